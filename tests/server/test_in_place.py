"""Restarts in place on real Kubernetes: real agents beside simulated pods, which the test restarts as a kubelet would.

The agents run as the service account of the example, so its rights are exactly enough.
"""

import json
import os
import random
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest
import yaml

from pyjobset.localplane.plane import Plane
from tests.server.plane import PATIENCE_SECONDS, Kubectl, wait_for
from tests.server.test_controller import Cluster, Object

EXAMPLES = Path(__file__).parents[2] / "examples" / "in-place-restart"
ATTEMPT = "jobset.sigs.k8s.io/in-place-restart-attempt"
RESTART = 77
MAX_RESTARTS = 2
# The worker counts its starts, and ends as soon as somebody says with which code.
WORKER = "echo >> $POD_NAME.starts; while [ ! -e $POD_NAME.end ]; do sleep 0.05; done; code=$(cat $POD_NAME.end); "
WORKER += "rm $POD_NAME.end; exit $code"


@pytest.fixture
def cluster(kubectl: Kubectl, namespace: str) -> Cluster:
    return Cluster(kubectl, namespace)


@pytest.fixture
def kubelet(plane: Plane, cluster: Cluster, tmp_path: Path) -> Iterator["Kubelet"]:
    kubelet = Kubelet(plane, cluster, tmp_path)
    yield kubelet
    kubelet.close()


class Kubelet:
    """Runs the agents of the pods of one namespace, and starts them again as their restart policy says."""

    def __init__(self, plane: Plane, cluster: Cluster, directory: Path) -> None:
        self._plane = plane
        self._cluster = cluster
        self._directory = directory
        self._agents: dict[str, tuple[subprocess.Popen[bytes], Mapping[str, str]]] = {}
        self.exits: list[tuple[str, int]] = []
        """Pod and exit code of every agent that ended."""
        cluster.apply(*(_in(cluster.namespace, o) for o in _documents("service-account.yaml")))
        token = cluster.run("create", "token", "in-place-restart-agent").strip()
        config = yaml.safe_load(plane.kubeconfig.read_text())
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
        self._kubeconfig = directory / "kubeconfig"
        self._kubeconfig.write_text(json.dumps(config))

    def start(self, pod: str, **environment: str) -> None:
        named = {"JOBSET_NAME": "js", "POD_NAME": pod, "IN_PLACE_RESTART_EXIT_CODE": str(RESTART)}
        words = [sys.executable, "-m", "pyjobset.agent.main", "--kubeconfig", str(self._kubeconfig)]
        words += ["--namespace", self._cluster.namespace]
        with (self._directory / f"{pod}.log").open("ab") as log:
            agent = subprocess.Popen(
                words, cwd=self._directory, env={**os.environ, **named, **environment}, stdout=log, stderr=log
            )
        self._agents[pod] = (agent, environment)

    def sync(self) -> None:
        """A container that exits with an error is started again, in the same pod."""
        for pod, (agent, environment) in list(self._agents.items()):
            code = agent.poll()
            if code is not None:
                self.exits.append((pod, code))
                del self._agents[pod]
                if code not in (0, 128 + SIGTERM):
                    self.start(pod, **environment)

    def are_gone(self, pods: Collection[str]) -> bool:
        self.sync()
        return not set(pods) & set(self._agents)

    def kill(self, pod: str, number: int) -> None:
        self._agents[pod][0].send_signal(number)

    def starts(self, pod: str) -> int:
        """How often the pod's worker was started."""
        path = self._directory / f"{pod}.starts"
        return len(path.read_text()) if path.exists() else 0

    def end_worker(self, pod: str, code: int) -> None:
        (self._directory / "next").write_text(str(code))
        (self._directory / "next").rename(self._directory / f"{pod}.end")

    def logs(self) -> str:
        """What the agents said, and the controller last."""
        paths = [*sorted(self._directory.glob("*.log")), self._plane.log("controller")]
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in paths)

    def close(self) -> None:
        for agent, _ in self._agents.values():
            agent.terminate()
        for agent, _ in self._agents.values():
            agent.wait(PATIENCE_SECONDS)


def _documents(name: str) -> list[Object]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def _in(namespace: str, document: Object) -> Object:
    """The same object in another namespace."""
    return json.loads(json.dumps(document).replace('"namespace": "default"', f'"namespace": "{namespace}"'))


def example(cluster: Cluster, name: str, **policy: Any) -> None:
    """The JobSet of an example, as `js`."""
    (document,) = _documents(name)
    document["metadata"] |= {"name": "js", "namespace": cluster.namespace}
    document["spec"]["failurePolicy"] |= policy
    cluster.apply(document)


def pods(cluster: Cluster, number: int) -> dict[str, str]:
    """The uids of the running pods by name."""

    def running() -> dict[str, str]:
        found = [p for p in cluster.all("pods") if p["status"].get("phase") == "Running"]
        assert len(found) == number, [p["metadata"]["name"] for p in found]
        return {p["metadata"]["name"]: p["metadata"]["uid"] for p in found}

    return wait_for(running, f"{number} running pods")


def attempts(cluster: Cluster) -> tuple[int | None, int | None]:
    """Previous and current attempt."""
    status = cluster.get("jobset", "js").get("status", {})
    return status.get("previousInPlaceRestartAttempt"), status.get("currentInPlaceRestartAttempt")


def said(cluster: Cluster) -> list[str]:
    """The attempts that pods have said."""
    notes = [p["metadata"].get("annotations", {}) for p in cluster.all("pods")]
    return sorted(n[ATTEMPT] for n in notes if ATTEMPT in n)


def test_all_workers_start_and_restart_together_in_their_pods(cluster: Cluster, kubelet: Kubelet) -> None:
    example(cluster, "main-container.yaml", maxRestarts=MAX_RESTARTS)
    uids = pods(cluster, 4)
    *first, last = uids
    worker = {"WORKER_COMMAND": WORKER, "SHELL": "/bin/sh"}

    def all_started(times: int) -> bool:
        kubelet.sync()
        starts = {pod: kubelet.starts(pod) for pod in uids}
        assert set(starts.values()) == {times}, f"{starts}\n{kubelet.logs()}"
        return True

    for pod in first:
        kubelet.start(pod, **worker)
    assert wait_for(lambda: said(cluster) == ["0"] * 3, "three agents at the barrier")
    assert all_started(0)
    assert attempts(cluster) == (None, None)
    kubelet.start(last, **worker)
    wait_for(lambda: all_started(1), "the first attempt")
    assert attempts(cluster) == (None, 0)

    for attempt in range(1, MAX_RESTARTS + 1):
        kubelet.exits.clear()
        kubelet.end_worker(first[attempt], 3)
        wait_for(lambda times=attempt + 1: all_started(times), f"attempt {attempt}")
        assert dict(kubelet.exits) == {pod: 3 if pod == first[attempt] else RESTART for pod in uids}
        assert len(kubelet.exits) == len(uids)
        assert attempts(cluster) == (attempt - 1, attempt)
        assert pods(cluster, 4) == uids

    kubelet.end_worker(last, 3)

    def failed() -> Object:
        kubelet.sync()
        condition = cluster.condition("Failed")
        assert condition["status"] == "True", condition
        return condition

    condition = wait_for(failed, "the limit")
    assert condition["reason"] == "ReachedMaxRestarts"
    assert f"{last} is in in-place restart attempt {MAX_RESTARTS + 1}" in condition["message"]
    assert wait_for(lambda: not cluster.all("jobs"), "the Jobs are deleted")


def test_a_failed_job_recreates_the_pods_and_the_attempts_go_on(cluster: Cluster, kubelet: Kubelet) -> None:
    example(cluster, "main-container.yaml", maxRestarts=3)
    worker = {"WORKER_COMMAND": WORKER, "SHELL": "/bin/sh"}
    old = pods(cluster, 4)
    for pod in old:
        kubelet.start(pod, **worker)
    assert wait_for(lambda: attempts(cluster) == (None, 0), "the first attempt")
    failed = {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "exit code 9"}
    target = {**failed, "type": "FailureTarget"}
    now = {"lastTransitionTime": "2026-01-01T00:00:00Z", "lastProbeTime": "2026-01-01T00:00:00Z"}
    cluster.run(
        "patch", "job", "js-workers-0", "--subresource=status", "--type=merge", "-p",
        json.dumps({"status": {"conditions": [{**target, **now}]}}),
    )  # fmt: skip
    wait_for(lambda: cluster.get("jobset", "js")["status"]["restarts"] == 1, "a global restart")

    def recreated() -> dict[str, str]:
        new = {p["metadata"]["name"]: p["status"].get("phase", "") for p in cluster.all("pods")}
        assert not set(new) & set(old), new
        assert list(new.values()) == ["Running"] * 4, new
        return new

    new = wait_for(recreated, "new pods")
    for pod in old:
        kubelet.kill(pod, SIGTERM)
    for pod in new:
        kubelet.start(pod, **worker)

    def all_started() -> bool:
        kubelet.sync()
        assert {kubelet.starts(pod) for pod in new} == {1}, kubelet.logs()
        return True

    assert wait_for(all_started, "the attempt after the restart")
    assert attempts(cluster)[1] == 1
    assert {(pod, code) for pod, code in kubelet.exits if pod in old} == {(pod, 128 + SIGTERM) for pod in old}


@pytest.mark.decision(41)
def test_a_suspension_is_no_restart(cluster: Cluster, kubelet: Kubelet) -> None:
    """A JobSet that may not restart at all is suspended and resumed, in its first attempt and, where it may restart
    once, in its second."""
    example(cluster, "main-container.yaml", maxRestarts=1)
    worker = {"WORKER_COMMAND": WORKER, "SHELL": "/bin/sh"}

    def all_started(names: list[str], times: int) -> bool:
        kubelet.sync()
        assert {kubelet.starts(pod) for pod in names} == {times}, kubelet.logs()
        return True

    def suspend(old: dict[str, str]) -> dict[str, str]:
        """The pods that come after it, with their agents."""
        cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":true}}')
        assert wait_for(lambda: not cluster.all("pods"), "all pods are gone")
        for pod in old:
            kubelet.kill(pod, SIGTERM)
        wait_for(lambda: kubelet.are_gone(old), "their agents are gone")
        cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":false}}')
        new = pods(cluster, 4)
        for pod in new:
            kubelet.start(pod, **worker)
        return new

    first = pods(cluster, 4)
    for pod in first:
        kubelet.start(pod, **worker)
    wait_for(lambda: all_started(list(first), 1), "the first attempt")
    assert attempts(cluster) == (None, 0)
    second = suspend(first)
    wait_for(lambda: all_started(list(second), 1), "the first attempt again")
    assert attempts(cluster) == (None, 0)
    kubelet.end_worker(min(second), 3)
    wait_for(lambda: all_started(list(second), 2), "the restart")
    assert attempts(cluster) == (0, 1)
    third = suspend(second)
    wait_for(lambda: all_started(list(third), 1), "the second attempt again")
    assert attempts(cluster) == (0, 1)
    assert "Failed" not in {c["type"] for c in cluster.get("jobset", "js")["status"]["conditions"]}


def test_sidecars_hold_the_startup_probe_and_a_bypass_ends_it(cluster: Cluster, kubelet: Kubelet) -> None:
    example(cluster, "sidecar.yaml")
    uids = pods(cluster, 4)
    ports = dict(zip(uids, _free_ports(4), strict=True))
    *first, last = ports

    def all_are_down() -> bool:
        kubelet.sync()
        answers = {pod: _probe(port) for pod, port in ports.items()}
        assert set(answers.values()) == {200}, f"{answers}\n{said(cluster)}\n{kubelet.logs()}"
        return True

    def has_ended() -> bool:
        kubelet.sync()
        return kubelet.exits == [(last, -SIGKILL)]

    for pod in first:
        kubelet.start(pod, STARTUP_PROBE_PORT=str(ports[pod]))
    assert wait_for(lambda: said(cluster) == ["0"] * 3, "three agents at the barrier")
    assert {_probe(ports[pod]) for pod in first} == {503}
    kubelet.start(last, STARTUP_PROBE_PORT=str(ports[last]))
    assert wait_for(all_are_down, "the barrier is down")

    kubelet.kill(last, SIGKILL)
    assert wait_for(lambda: all_are_down() and attempts(cluster) == (0, 1), "the second attempt")
    assert sorted(code for _, code in kubelet.exits) == [-SIGKILL, RESTART, RESTART, RESTART]

    kubelet.exits.clear()
    cluster.run("annotate", "jobset", "js", "jobset.sigs.k8s.io/disable-in-place-restart=")
    kubelet.kill(last, SIGKILL)
    assert wait_for(has_ended, "its end")
    assert wait_for(all_are_down, "it comes back without the others")
    assert kubelet.exits == [(last, -SIGKILL)]
    assert attempts(cluster) == (0, 1)


@pytest.mark.usefixtures("kubelet")
def test_the_rights_of_the_example_are_no_more_than_needed(kubectl: Kubectl, cluster: Cluster) -> None:
    who = f"--as=system:serviceaccount:{cluster.namespace}:in-place-restart-agent"
    for verb, resource, is_allowed in [
        ("watch", "jobsets.jobset.x-k8s.io", "yes"),
        ("patch", "pods", "yes"),
        ("patch", "jobsets.jobset.x-k8s.io", "no"),
        ("patch", "pods --subresource=status", "no"),
        ("delete", "pods", "no"),
        ("get", "secrets", "no"),
    ]:
        done = kubectl("auth", "can-i", verb, *resource.split(), who, "-n", cluster.namespace)
        assert done.stdout.strip() == is_allowed, f"{verb} {resource}"


def _free_ports(number: int) -> list[int]:
    """Below those that the kernel gives to outgoing connections, so that they are free a moment later, too."""
    ports: list[int] = []
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("", port))
            ports.append(port)
    return ports[:number]


def _probe(port: int) -> int:
    """The status of the startup probe, 0 while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/barrier-is-down", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0
