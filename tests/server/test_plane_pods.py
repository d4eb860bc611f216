"""Simulated pods: how long they run, how they end. The rules are in docs/local-plane.md."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from pyjobset.localplane.api import ApiServer, tls
from pyjobset.localplane.plane import Plane
from pyjobset.localplane.stages import EXIT_CODE, FAIL_AFTER, READY_AFTER, RUN_FOR, TERMINATE_AFTER
from tests.server.plane import Kubectl, wait_for
from tests.server.scheduling.lab import Lab


@dataclass(frozen=True)
class Case:
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)
    code: int | None = None
    """None: runs for ever."""


CASES = {
    "sleep": Case(("sleep", "2s"), code=0),
    "sleep-number": Case(("sleep", "1"), code=0),
    "sleep-sum": Case(("sleep", "1", "1s"), code=0),
    "sleep-as-args": Case((), ("/bin/sleep", "1500ms"), code=0),
    "sleep-infinity": Case(("sleep", "infinity")),
    "no-command": Case(),
    "unknown-command": Case(("python", "train.py")),
    "true": Case(("true",), code=0),
    "false": Case(("/bin/false",), code=1),
    "shell": Case(("sh", "-c", "echo hello && sleep 1"), code=0),
    "shell-flags-in-args": Case(("/bin/bash",), ("-euc", "sleep 1; exit 3"), code=3),
    "shell-loop": Case(("sh", "-c", "while true; do sleep 1; done")),
    "shell-for-ever": Case(("sh", "-c", "echo hello; sleep infinity")),
    "shell-program": Case(("sh", "-c", "python train.py")),
    "run-for": Case(("sleep", "1h"), notes={RUN_FOR: "1s"}, code=0),
    "run-for-ever": Case(("sleep", "1s"), notes={RUN_FOR: "forever"}),
    "exit-code": Case(("sleep", "1s"), notes={EXIT_CODE: "42"}, code=42),
    "exit-code-unreadable": Case(("true",), notes={EXIT_CODE: "high"}, code=1),
    "exit-code-alone": Case(notes={EXIT_CODE: "42"}),
    "fail-after": Case(("sleep", "1h"), notes={FAIL_AFTER: "1s"}, code=1),
    "fail-after-with-code": Case(notes={FAIL_AFTER: "500ms", EXIT_CODE: "9"}, code=9),
}


def pod(name: str, case: Case) -> dict[str, Any]:
    container = {"name": "c", "image": "simulated", "command": list(case.command), "args": list(case.args)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": case.notes},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def create(kubectl: Kubectl, namespace: str, *pods: dict[str, Any]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(pods)})
    created = kubectl("create", "-n", namespace, "-f", "-", stdin=text)
    assert created.returncode == 0, created.stderr


def get(kubectl: Kubectl, namespace: str, name: str) -> dict[str, Any]:
    shown = kubectl("get", "pod", name, "-n", namespace, "-o", "json", "--ignore-not-found")
    assert shown.returncode == 0, shown.stderr
    found: dict[str, Any] = json.loads(shown.stdout or "{}")
    return found


def state(found: dict[str, Any]) -> dict[str, Any]:
    containers = found.get("status", {}).get("containerStatuses", [])
    assert containers, "no container has a status yet"
    result: dict[str, Any] = containers[0]["state"]
    return result


@pytest.fixture(scope="module")
def together(plane: Plane) -> Iterator[str]:
    """A namespace with a pod of every case, all started at once."""
    name = f"pod-cases-{secrets.token_hex(3)}"
    assert plane.run_kubectl("create", "namespace", name).returncode == 0
    create(plane.run_kubectl, name, *(pod(case, CASES[case]) for case in CASES))
    yield name
    plane.run_kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("name", CASES)
def test_a_pod_ends_as_its_command_or_annotation_says(name: str, kubectl: Kubectl, together: str) -> None:
    case = CASES[name]
    if case.code is None:
        wait_for(lambda: "terminated" in state(get(kubectl, together, "sleep")), "the pod that sleeps to end")
        wait_for(lambda: "running" in state(get(kubectl, together, name)), f"pod {name} to run for ever")
        return
    ended = wait_for(lambda: state(get(kubectl, together, name)).get("terminated"), f"pod {name} to end")
    phase = get(kubectl, together, name)["status"]["phase"]
    assert (ended["exitCode"], phase) == (case.code, "Failed" if case.code else "Succeeded")


def seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def test_sleep_takes_its_time(kubectl: Kubectl, namespace: str) -> None:
    """`sleep 1h` is not done when `sleep 2s` is."""
    create(kubectl, namespace, pod("short", Case(("sleep", "2s"))), pod("long", Case(("sleep", "1h"))))
    wait_for(lambda: "running" in state(get(kubectl, namespace, "long")), "the long pod to run")
    ended = wait_for(lambda: state(get(kubectl, namespace, "short")).get("terminated"), "the short pod to end")
    assert seconds(ended["startedAt"], ended["finishedAt"]) >= 2
    assert "running" in state(get(kubectl, namespace, "long"))


def test_ready_after_delays_readiness_only(kubectl: Kubectl, namespace: str) -> None:
    for name, time in (("slow", "3s"), ("slower", "1h")):
        create(kubectl, namespace, pod(name, Case(("sleep", "1h"), notes={READY_AFTER: time})))

    def is_ready(name: str, status: str) -> tuple[str, str]:
        """When it was started, and when that was said."""
        found = get(kubectl, namespace, name)
        (ready,) = (c for c in found["status"].get("conditions", []) if c["type"] == "Ready")
        assert ready["status"] == status
        return state(found)["running"]["startedAt"], ready["lastTransitionTime"]

    assert seconds(*wait_for(lambda: is_ready("slow", "True"), "the slow pod is ready")) >= 3
    wait_for(lambda: is_ready("slower", "False"), "the slower pod runs")


def test_a_pod_that_changes_does_not_start_its_clock_again(plane: Plane, kubectl: Kubectl, namespace: str) -> None:
    """It changes several times a second."""
    create(kubectl, namespace, pod("busy", Case(("sleep", "4s"))))
    wait_for(lambda: "running" in state(get(kubectl, namespace, "busy")), "the pod to run")
    changes = 0

    def ended_while_changing(server: ApiServer) -> bool:
        nonlocal changes
        changes += 1
        metadata = {"name": "busy", "annotations": {"n": str(changes)}}
        body = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}).encode()
        return "terminated" in state(server.apply(f"/api/v1/namespaces/{namespace}/pods/busy", body))

    port = urlsplit(plane.status().server).port
    assert port
    with ApiServer(port, tls(plane.directory / "pki", "ca", "admin")) as server:
        wait_for(lambda: ended_while_changing(server), "a pod that changes all the time to end")
    assert changes > 2


def test_terminate_after_keeps_a_pod_terminating(plane: Plane, kubectl: Kubectl, namespace: str) -> None:
    lab = Lab(plane, namespace)
    times = {"slower": "1h", "slow": "3s", "fast": "0s"}
    since = lab.version()
    create(kubectl, namespace, *(pod(name, Case(notes={TERMINATE_AFTER: time})) for name, time in times.items()))
    for name in times:
        wait_for(lambda n=name: "running" in state(get(kubectl, namespace, n)), f"pod {name} to run")  # type: ignore[misc]
    assert kubectl("delete", "pod", *times, "-n", namespace, "--wait=false").returncode == 0
    wait_for(lambda: lab.list_names("pods") == ["slower"], "the others to go")
    left = get(kubectl, namespace, "slower")
    assert left["metadata"]["deletionTimestamp"]
    assert left["status"]["phase"] == "Running"
    lab.run("annotate", "pod", "slower", f"{TERMINATE_AFTER}=0s", "--overwrite")
    wait_for(lambda: not lab.list_names("pods"), "the slower pod to go")

    def gone() -> list[str]:
        found = [c.name for c in lab.changes("pods", since) if c.type == "DELETED"]
        assert len(found) == len(times), found
        return found

    assert wait_for(gone, "their ends are told") == [*reversed(times)]
    lab.close()


def test_a_deleted_pod_that_somebody_holds_has_failed(kubectl: Kubectl, namespace: str) -> None:
    """The Job controller counts a pod that was deleted only once it has ended: a kubelet kills it first."""
    held = pod("held", Case())
    held["metadata"]["finalizers"] = ["example.com/held"]
    create(kubectl, namespace, held)
    wait_for(lambda: "running" in state(get(kubectl, namespace, "held")), "the pod to run")
    kubectl("delete", "pod", "held", "-n", namespace, "--wait=false")
    found = wait_for(lambda: state(get(kubectl, namespace, "held")).get("terminated"), "the pod to end")
    assert found["exitCode"] == 143
    assert get(kubectl, namespace, "held")["status"]["phase"] == "Failed"
    kubectl("patch", "pod", "held", "-n", namespace, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    wait_for(lambda: not get(kubectl, namespace, "held"), "the pod to go")
