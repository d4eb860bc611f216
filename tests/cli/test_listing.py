"""`jobset tree` and `jobset explain` without a name: the list, what it says of each, and where there is nothing."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import yaml

from pyjobset.cli import listing
from pyjobset.cli.listing import line
from pyjobset.kube.client import Client
from pyjobset.objects.jobset import JobSet
from tests.cli.conftest import Run
from tests.model_server import ModelServer, failure

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
COUNTS = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}


def jobset(*conditions: tuple[str, str, str], **more: Any) -> JobSet:
    """Two Jobs; `more` are `ready`, `suspend`, `metadata` and fields of the status."""
    counts = [{"name": "w", **COUNTS, "ready": more.pop("ready", 0)}]
    listed = [{"type": t, "status": s, "reason": "R", "message": m} for t, s, m in conditions]
    value = {
        "metadata": {
            "name": "js",
            "namespace": "ns",
            "creationTimestamp": "2026-11-30T11:00:00Z",
            **more.pop("metadata", {}),
        },
        "spec": {"replicatedJobs": [{"name": "w", "replicas": 2}], "suspend": more.pop("suspend", False)},
        "status": {"conditions": listed, "replicatedJobsStatus": counts, **more},
    }
    return msgspec.convert(value, JobSet)


def waiting_for_a_rack(reason: str = "LeaderUnschedulable", **more: Any) -> JobSet:
    value = msgspec.to_builtins(jobset(("LeadersScheduled", "False", "no rack"), **more))
    value["status"]["conditions"][0]["reason"] = reason
    return msgspec.convert(value, JobSet)


STATES: dict[str, tuple[JobSet, str, str]] = {
    "new": (jobset(), "Starting", ""),
    "some ready": (jobset(ready=1), "Running", ""),
    "completed": (jobset(("Completed", "True", "all"), terminalState="Completed"), "Completed", ""),
    "failed": (jobset(("Failed", "True", "why"), terminalState="Failed"), "Failed", "why"),
    "suspended": (jobset(("Suspended", "True", ""), suspend=True), "Suspended", ""),
    "being suspended": (jobset(suspend=True, ready=2), "Suspending", ""),
    "being resumed": (jobset(("Suspended", "True", "")), "Resuming", ""),
    "being deleted": (jobset(metadata={"deletionTimestamp": "2026-11-30T11:59:00Z"}), "Terminating", ""),
    "a gang waits": (jobset(("PodGroupsScheduled", "False", "no room")), "Waiting", "no room"),
    "a gang has its place": (jobset(("PodGroupsScheduled", "True", "all"), ready=2), "Running", ""),
    "a Job waits for a rack": (waiting_for_a_rack(), "Waiting", "no rack"),
    "a Job waited for a rack before it was suspended": (
        waiting_for_a_rack("JobSetSuspended", ready=1), "Running", "",
    ),
    "blocked and waiting": (
        jobset(("PodGroupsScheduled", "False", "no room"), ("Blocked", "True", "quota")), "Waiting", "quota",
    ),
    "no message": (jobset(("Blocked", "True", "")), "Starting", "R"),
    "the waiting of before": (
        jobset(("PodGroupsScheduled", "False", "no room"), ("Suspended", "True", ""), suspend=True), "Suspended", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("what", "state", "why"), STATES.values(), ids=STATES.keys())
def test_a_word_on_each(what: JobSet, state: str, why: str) -> None:
    found = line(what, NOW)
    assert (found.state, found.why) == (state, why)
    assert (found.jobs, found.age_seconds) == (2, 3600)


def test_a_clock_that_goes_before_ours() -> None:
    assert line(jobset(metadata={"creationTimestamp": "2026-11-30T13:00:00Z"}), NOW).age_seconds == 0


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    """The commands talk to this one; their namespace is ns."""
    server = ModelServer(latency_seconds=0.0)
    monkeypatch.setattr(listing, "open_client", lambda *_: Client(server, namespace="ns"))
    return server


def put(server: ModelServer, name: str, namespace: str = "ns", **status: Any) -> None:
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": "2026-11-30T11:00:00Z"}
    spec = {"replicatedJobs": [{"name": "w"}], "failurePolicy": {"maxRestarts": 3}}
    server.put("jobsets", {"metadata": metadata, "spec": spec, "status": status})


def cells(text: str) -> list[list[str]]:
    return [row.split() for row in text.splitlines()]


@pytest.mark.parametrize("command", ["tree", "explain"])
def test_a_list_instead_of_an_error(run: Run, server: ModelServer, command: str) -> None:
    put(server, "b", restarts=2)
    put(server, "a", conditions=[{"type": "Blocked", "status": "True", "message": "x" * 99}])
    put(server, "c", "other")
    ended = run(command)
    header, first, second = cells(ended.out)
    assert ended.code == 0
    assert header == ["NAME", "STATE", "JOBS", "RESTARTS", "AGE", "WHY"]
    assert [*first[:5], first[-1]] == ["a", "Starting", "0/1", "0", "(max", "x" * 80 + "..."]
    assert second[:5] == ["b", "Starting", "0/1", "2", "(max"]
    assert ended.err == ("hint: name one of them, such as: jobset explain a\n" if command == "explain" else "")


@pytest.mark.parametrize("command", ["tree", "explain"])
def test_all_namespaces(run: Run, server: ModelServer, command: str) -> None:
    put(server, "b")
    put(server, "a", "other")
    ended = run(command, "-A")
    assert [row[:2] for row in cells(ended.out)] == [["NAMESPACE", "NAME"], ["ns", "b"], ["other", "a"]]
    assert ended.err == ("hint: name one of them, such as: jobset explain b -n ns\n" if command == "explain" else "")


@pytest.mark.parametrize("command", ["tree", "explain"])
def test_data(run: Run, server: ModelServer, command: str) -> None:
    put(server, "a", restarts=1)
    found = json.loads(run(command, "-o", "json").out)
    assert [(f["namespace"], f["name"], f["restarts"], f["maxRestarts"]) for f in found] == [("ns", "a", 1, 3)]
    assert [each["name"] for each in yaml.safe_load(run(command, "-o", "yaml").out)] == ["a"]


@pytest.mark.parametrize(("output", "out"), [("table", ""), ("json", "[]\n"), ("yaml", "[]\n")])
def test_nothing_here(run: Run, server: ModelServer, output: str, out: str) -> None:
    for n in range(7):
        put(server, "a", f"other-{n}")
    ended = run("tree", "-o", output)
    assert (ended.code, ended.out) == (0, out)
    assert ended.err.splitlines() == [
        "namespace ns has no JobSets",
        "hint: other-0, other-1, other-2, other-3, other-4 and 2 more have some; -A lists all",
    ]


def test_nothing_anywhere(run: Run, server: ModelServer) -> None:
    assert run("tree").err == "namespace ns has no JobSets\n"
    assert run("tree", "-A").err == "there are no JobSets\n"


def test_no_right_to_look_elsewhere(run: Run, server: ModelServer) -> None:
    server.before = lambda request, _: failure(403, "Forbidden", "no") if "/namespaces/" not in request.path else None
    ended = run("tree")
    assert (ended.code, ended.err) == (0, "namespace ns has no JobSets\n")
    refused = run("tree", "-A")
    assert (refused.code, refused.out) == (4, "")


def test_jobset_is_not_installed(run: Run, server: ModelServer) -> None:
    server.unserved = {"jobsets"}
    ended = run("tree")
    assert (ended.code, ended.out) == (4, "")
    assert "JobSet is not installed" in ended.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tree", "a", "-A"], "-A is for a list, and a is one JobSet"),
        (["explain", "a", "-A"], "-A is for a list, and a is one JobSet"),
        (["tree", "-A", "-n", "x"], "-A is for all namespaces, and -n x for one"),
        (["tree", "ns/js"], "'ns/js' is no name of a JobSet"),
        (["explain", "jobset/js"], "'jobset/js' is no name of a JobSet"),
        (["tree", "--watch"], "--watch needs the name of a JobSet"),
    ],
)
def test_what_cannot_be_meant(run: Run, server: ModelServer, words: list[str], said: str) -> None:
    ended = run(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {said}\nhint: ")
    assert server.calls == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ns/js", "js -n ns"),
        ("jobset/js", "js"),
        ("JobSets/js", "js"),
        ("jobset.jobset.x-k8s.io/js", "js"),
        ("a b/js", "js -n 'a b'"),
        ("../js", "js -n .."),
    ],
)
def test_a_name_as_other_programs_print_it(run: Run, server: ModelServer, name: str, hint: str) -> None:
    assert run("tree", name).err.endswith(f"\nhint: give the name alone: {hint}\n")
