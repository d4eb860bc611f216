"""The command `jobset explain`: what it fetches and when, on a model server in virtual time, and how it prints."""

import json
from typing import Any

import pytest
import yaml

from pyjobset.cli import cluster
from pyjobset.cli.explain import SECOND_LOOK_SECONDS, look
from pyjobset.cli.explaining.facts import Facts
from pyjobset.errors import NotFound, Refused
from pyjobset.kube.client import Client
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.simulation.clock import run as run_virtually
from tests.cli.conftest import Run
from tests.model_server import ModelServer, failure

LABEL = {"jobset.sigs.k8s.io/jobset-name": "js"}
TEMPLATE = {"spec": {"parallelism": 1, "completions": 1}}
SPEC = {"replicatedJobs": [{"name": "w", "template": TEMPLATE}]}


def put(server: ModelServer, plural: str, name: str, owner: Any = None, **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": LABEL}
    if owner is not None:
        reference = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
        metadata["ownerReferences"] = [reference]
    return server.put(plural, {"metadata": metadata, **more})


def waiting() -> ModelServer:
    """A JobSet of one Job whose pod has no node."""
    server = ModelServer()
    jobset = put(server, "jobsets", "js", spec=SPEC)
    job = put(server, "jobs", "js-w-0", jobset, spec=TEMPLATE["spec"])
    put(server, "pods", "js-w-0-0", job)
    put(server, "nodes", "n")
    return server


def looked(server: ModelServer) -> Facts:
    return run_virtually(look(Client(server), "ns", "js"))


def asked(server: ModelServer) -> list[str]:
    return [call.plural for call in server.calls]


def test_what_is_there() -> None:
    seen = looked(waiting())
    assert [p.metadata.name for p in seen.pods] == ["js-w-0-0"]
    assert [n.metadata.name for n in seen.nodes or ()] == ["n"]
    assert seen.pending == ()
    assert seen.unreadable == ()


@pytest.mark.parametrize(
    ("change", "lists"),
    [
        ({"spec": {"suspend": True}}, {"pods": 1, "events": 0}),
        ({"status": {"terminalState": "Completed"}}, {"pods": 1, "events": 0}),
        ({}, {"pods": 2, "events": 2}),
    ],
)
def test_long_lists_are_read_only_where_something_waits(change: dict[str, Any], lists: dict[str, int]) -> None:
    server = waiting()
    server.change("jobs", "js-w-0", {"spec": {"suspend": change.get("spec", {}).get("suspend", False)}})
    server.change("jobsets", "js", change)
    looked(server)
    assert {plural: asked(server).count(plural) for plural in lists} == lists


def test_pods_that_run_need_no_list_of_the_others() -> None:
    server = waiting()
    server.change("pods", "js-w-0-0", {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}})
    looked(server)
    assert asked(server).count("pods") == 1


def test_events_of_others_are_not_its() -> None:
    server = waiting()
    uid = server.get("jobs", "js-w-0")["metadata"]["uid"]
    for name, about in (("ours", uid), ("theirs", "x")):
        put(server, "events", name, involvedObject={"kind": "Job", "name": "j", "uid": about}, message=name)
    assert {e.message for e in looked(server).events} == {"ours"}


def test_what_a_restart_has_removed_is_asked_of_the_events() -> None:
    server = waiting()
    server.change("jobsets", "js", {"status": {"restarts": 1, "restartsCountTowardsMax": 1}})
    labels = {"jobset.sigs.k8s.io/restart-attempt": "1"}
    server.change("jobs", "js-w-0", {"metadata": {"labels": labels}})
    uid = server.get("jobsets", "js")["metadata"]["uid"]
    for name, kind, about, of, reason in (
        ("restart", "JobSet", "js", uid, "RestartJobSetFailurePolicyAction"),
        ("another", "JobSet", "js", "of one before", "RestartJobSetFailurePolicyAction"),
        ("failure", "Job", "js-w-0", "gone", "BackoffLimitExceeded"),
        ("other", "Job", "x-w-0", "gone", "BackoffLimitExceeded"),
        ("create", "Job", "js-w-0", "gone", "FailedCreate"),
    ):
        put(
            server, "events", name, involvedObject={"kind": kind, "name": about, "uid": of}, reason=reason, message=name
        )
    seen = looked(server)
    assert {e.message for e in seen.events} == {"restart", "failure"}
    assert asked(server).count("events") == 4


def test_a_controller_that_acts_a_moment_later_owes_nothing() -> None:
    server = ModelServer()
    jobset = put(server, "jobsets", "js", spec=SPEC)

    def act(request: Request, plural: str) -> Response | None:
        if plural == "priorityclasses":  # the last list of the first look
            put(server, "jobs", "js-w-0", jobset, spec=TEMPLATE["spec"])
        return None

    server.after = act
    assert looked(server).pending == ()
    assert asked(server).count("jobsets") == 2


def test_a_controller_that_does_not_act_owes_it() -> None:
    server = ModelServer()
    put(server, "jobsets", "js", spec=SPEC)
    assert looked(server).pending == ("create Job js-w-0",)
    assert server.calls[-1].at - server.calls[0].at >= SECOND_LOOK_SECONDS


@pytest.mark.parametrize("plural", ["nodes", "events", "priorityclasses"])
def test_what_may_not_be_read_is_left_out_and_said(plural: str) -> None:
    server = waiting()
    server.before = lambda _, of: failure(403, "Forbidden", "no") if of == plural else None
    assert looked(server).unreadable == (plural,)


def test_pods_of_others_may_not_be_read() -> None:
    server = waiting()
    server.before = lambda request, _: failure(403, "Forbidden", "no") if request.path == "/api/v1/pods" else None
    seen = looked(server)
    assert (seen.occupants, seen.unreadable) == (None, ("pods",))


@pytest.mark.parametrize(("code", "plural"), [(403, "jobs"), (400, "nodes")])
def test_other_refusals_end_it(code: int, plural: str) -> None:
    server = waiting()
    server.before = lambda _, of: failure(code, "Forbidden", "no") if of == plural else None
    with pytest.raises(Refused):
        looked(server)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(NotFound, match="ns/js not found"):
        looked(ModelServer())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    """The command talks to this one."""
    server = waiting()
    monkeypatch.setattr(cluster, "open_client", lambda *_: Client(server, namespace="ns"))
    return server


def test_it_ends_well_also_when_something_waits(run: Run, server: ModelServer) -> None:
    ended = run("explain", "js")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("JobSet ns/js waits: ")


def test_data_for_programs(run: Run, server: ModelServer) -> None:
    found = json.loads(run("explain", "js", "-o", "json").out)
    assert (found["namespace"], found["name"], found["code"]) == ("ns", "js", "waits")
    assert [f["code"] for f in found["findings"]] == ["no-node-usable"] or found["findings"]
    assert yaml.safe_load(run("explain", "js", "-o", "yaml").out) == found


def test_a_wrong_name_ends_with_4(run: Run, server: ModelServer) -> None:
    ended = run("explain", "jss")
    assert (ended.code, ended.out) == (4, "")
    assert "did you mean js?" in ended.err
