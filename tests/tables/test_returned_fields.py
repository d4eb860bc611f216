"""Fields that the cluster dropped and keeps now: which objects are made anew, when, and what waits for it."""

from typing import Any

import msgspec
import pytest

from pyjobset.objects import conditions as words
from pyjobset.objects.resources import JOBS, POD_GROUPS, WORKLOADS
from pyjobset.reconciler.decision import Create, Decision, Delete, JsonPatch, Patch
from tests.builders import TinyServer, jobset, merged, plain, replicated_job

FIELD = "schedulingConstraints"
SINCE = "2026-11-30T12:00:00Z"
BEFORE, AFTER = "2026-11-30T11:59:59Z", "2026-11-30T12:00:00Z"
ACCEPTS = {FIELD: SINCE}
LEAF = {"schedulingPolicy": {"gang": {}}, FIELD: {"topology": [{"key": "rack"}]}}
TWO = {"replicatedJobs": [{"targetReplicatedJobs": [name], **LEAF} for name in "ab"]}


def dropped(scheduling: Any, *, made: str = BEFORE) -> TinyServer:
    """Jobs a and b run, and the cluster dropped the field."""
    server = TinyServer(jobset(replicated_job("a"), replicated_job("b"), scheduling=scheduling))
    server.settle()
    for store in (server.workloads, server.pod_groups):
        for name, obj in store.items():
            value = plain(obj)
            value["metadata"]["creationTimestamp"] = made
            for leaf in value["spec"].get("podGroupTemplates", [value["spec"]]):
                del leaf[FIELD]
            store[name] = msgspec.convert(value, type(obj))  # type: ignore[index]
    for name in server.jobs:
        server.set_status(name, active=1)
    server.settle()
    return server


def unschedulable(server: TinyServer) -> None:
    told = {"type": "PodGroupInitiallyScheduled", "status": "False", "message": "no room"}
    for name, group in server.pod_groups.items():
        server.pod_groups[name] = merged(group, {"status": {"conditions": [told]}})


def did(decision: Decision) -> list[tuple[str, str, str]]:
    return [(type(a).__name__, a.resource.kind, a.name) for a in decision.actions]


def told(server: TinyServer) -> tuple[str, str]:
    found = next(c for c in server.jobset.status.conditions if c.type == words.SCHEDULING_DEGRADED)
    return found.status, found.message


@pytest.mark.parametrize(
    ("accepts", "made", "says"),
    [({}, BEFORE, "turn the gate on"), ({"resourceClaims": SINCE}, BEFORE, "turn the gate on"),
     (ACCEPTS, AFTER, "turn the gate on"), (ACCEPTS, BEFORE, "keeps them now")],
)  # fmt: skip
def test_what_is_said_while_pods_run(accepts: dict[str, str], made: str, says: str) -> None:
    server = dropped(LEAF, made=made)
    for name in server.jobs:
        server.set_status(name, ready=1)
    decision = server.step(accepts=accepts)
    assert decision.actions == ()
    assert told(server)[0] == "True"
    assert says in told(server)[1]


def test_objects_made_after_the_answer_are_not_made_again() -> None:
    """The answer was wrong: another API server drops the field."""
    server = dropped(LEAF, made=AFTER)
    for name in server.jobs:
        server.set_status(name, active=0)
    assert server.step(accepts=ACCEPTS).actions == ()


def test_without_pods_both_objects_are_made_anew_and_a_new_job_waits_for_them() -> None:
    server = dropped(LEAF)
    for name in server.jobs:
        server.set_status(name, active=0)
    del server.jobs["js-b-0"]
    decision = server.step(accepts=ACCEPTS)
    assert {(type(a), a.resource) for a in decision.actions} == {(Delete, POD_GROUPS), (Delete, WORKLOADS)}
    again = server.step(accepts=ACCEPTS)
    assert [(type(a), a.resource) for a in again.actions] == [(Create, WORKLOADS), (Create, POD_GROUPS), (Create, JOBS)]
    assert told(server)[0] == "False"


def test_a_gang_that_was_placed_is_not_disturbed_when_a_pod_of_it_waits() -> None:
    server = dropped(LEAF)
    unschedulable(server)
    server.set_status("js-a-0", ready=1)
    assert server.step(accepts=ACCEPTS).actions == ()


def test_gangs_that_wait_are_taken_back_and_resumed_once_all_objects_are_new() -> None:
    server = dropped(TWO)
    unschedulable(server)
    first = server.step(accepts=ACCEPTS)
    assert [(type(a), a.name) for a in first.actions] == [(Patch, "js-a-0"), (Patch, "js-b-0")]
    assert all(job.spec.suspend for job in server.jobs.values())

    server.set_status("js-a-0", active=0)
    group_a = server.jobs["js-a-0"].pod_group
    assert did(server.step(accepts=ACCEPTS)) == [("Delete", "PodGroup", group_a)]
    assert did(server.step(accepts=ACCEPTS)) == [("Create", "PodGroup", group_a)], "the Workload is not new yet"
    assert server.step(accepts=ACCEPTS).actions == ()

    server.set_status("js-b-0", active=0)
    last = server.step(accepts=ACCEPTS)
    assert {(type(a), a.resource) for a in last.actions} == {(Delete, POD_GROUPS), (Delete, WORKLOADS)}
    resumed = server.step(accepts=ACCEPTS)
    assert [a.name for a in resumed.actions if isinstance(a, JsonPatch)] == ["js-a-0", "js-b-0"]
    assert told(server)[0] == "False"


def test_a_gang_that_waits_does_not_wait_for_one_that_runs() -> None:
    server = dropped(TWO)
    unschedulable(server)
    server.set_status("js-b-0", ready=1)
    first = server.step(accepts=ACCEPTS)
    assert [(type(a), a.name) for a in first.actions] == [(Patch, "js-a-0")]
    server.set_status("js-a-0", active=0)
    server.step(accepts=ACCEPTS)
    again = server.step(accepts=ACCEPTS)
    assert [type(a) for a in again.actions] == [Create, JsonPatch]
    assert told(server)[0] == "True", "the Workload and the other group are from before"


@pytest.mark.parametrize(
    ("succeeded", "accepts", "is_replaced"), [(0, True, True), (1, True, False), (0, False, False)]
)
def test_a_suspended_job_without_its_group(succeeded: int, accepts: bool, is_replaced: bool) -> None:
    """Work that is done is not thrown away."""
    server = TinyServer(jobset(replicated_job("a"), scheduling={"schedulingPolicy": {"gang": {}}}))
    server.settle()
    ungrouped = plain(server.jobs["js-a-0"])
    ungrouped["spec"]["suspend"] = True
    del ungrouped["spec"]["template"]["spec"]["schedulingGroup"]
    server.jobs["js-a-0"] = msgspec.convert(ungrouped, JOBS.type)
    server.set_status("js-a-0", succeeded=succeeded)
    decision = server.step(accepts={"schedulingGroup": SINCE} if accepts else {})
    assert [type(a) for a in decision.actions] == [Delete if is_replaced else JsonPatch]
