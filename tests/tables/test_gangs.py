"""Condition PodGroupsScheduled: what is said of a gang, from its pods and the scheduler's words."""

from datetime import timedelta
from typing import Any

import msgspec

from pyjobset.objects import conditions as words
from pyjobset.objects.batch import Pod
from pyjobset.reconciler.decision import Decision
from tests.builders import NOW, TinyServer, jobset, merged, replicated_job

GANG = {"schedulingPolicy": {"gang": {}}}
UNSCHEDULABLE = "minCount (3) cannot be satisfied: 2 scheduled, 1 remaining"


def gang() -> TinyServer:
    server = TinyServer(jobset(replicated_job("w", pods=3), scheduling=GANG))
    server.settle()
    server.set_status("js-w-0", active=3)
    return server


def group_name(server: TinyServer) -> str:
    (name,) = server.pod_groups
    return name


def pods(server: TinyServer, *, bound: int = 0, pending: int = 0, **status: Any) -> tuple[Pod, ...]:
    def pod(index: int, node: str) -> Pod:
        return msgspec.convert(
            {
                "metadata": {"name": f"p{index}"},
                "spec": {"nodeName": node, "schedulingGroup": {"podGroupName": group_name(server)}},
                "status": {"phase": "Running" if node else "Pending", **status},
            },
            Pod,
        )

    return tuple(pod(i, "n1" if i < bound else "") for i in range(bound + pending))


def scheduler_says(server: TinyServer, status: str, message: str, created: str | None = None) -> None:
    name = group_name(server)
    condition = {"type": "PodGroupInitiallyScheduled", "status": status, "reason": "Unschedulable", "message": message}
    patch: dict[str, Any] = {"status": {"conditions": [condition] if status else []}}
    if created:
        patch["metadata"] = {"creationTimestamp": created}
    server.pod_groups[name] = merged(server.pod_groups[name], patch)


def told(decision: Decision) -> tuple[str, str, str] | None:
    conditions = decision.status.conditions if decision.status else ()
    found = next((c for c in conditions if c.type == words.POD_GROUPS_SCHEDULED), None)
    return (found.status, found.reason, found.message) if found else None


def test_a_gang_that_fits_is_told_once_it_is_placed() -> None:
    server = gang()
    decision = server.step(pods=pods(server, bound=3))
    assert told(decision) == ("True", words.ALL_SCHEDULED, "1 of 1 pod groups are scheduled")
    assert [(e.type, e.reason) for e in decision.events] == [("Normal", words.ALL_SCHEDULED)]


def test_nothing_is_said_before_the_scheduler_answered() -> None:
    server = gang()
    decision = server.step(pods=pods(server, pending=3))
    assert told(decision) is None


def test_an_unschedulable_gang_is_told_with_quorum_and_the_schedulers_words() -> None:
    server = gang()
    scheduler_says(server, "False", UNSCHEDULABLE)
    decision = server.step(pods=pods(server, pending=3))
    status, reason, message = told(decision) or ("", "", "")
    assert (status, reason) == ("False", words.POD_GROUP_UNSCHEDULABLE)
    assert "0 of the 3 pods" in message
    assert UNSCHEDULABLE in message
    assert [(e.type, e.reason) for e in decision.events] == [("Warning", words.POD_GROUP_UNSCHEDULABLE)]


def test_other_words_for_the_same_trouble_are_no_new_event() -> None:
    server = gang()
    scheduler_says(server, "False", UNSCHEDULABLE)
    server.step(pods=pods(server, pending=3))
    scheduler_says(server, "False", "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining")
    decision = server.step(pods=pods(server, pending=3))
    assert "1 scheduled" in (told(decision) or ("", "", ""))[2]
    assert decision.events == ()


def test_a_gang_that_lacks_pods_is_told_after_a_while() -> None:
    server = gang()
    young = (NOW - timedelta(seconds=4)).isoformat()
    scheduler_says(server, "", "", created=young)
    decision = server.step(pods=pods(server, pending=2))
    assert told(decision) is None
    assert decision.wake_after_seconds == 6
    scheduler_says(server, "", "", created=(NOW - timedelta(seconds=10)).isoformat())
    status, reason, message = told(server.step(pods=pods(server, pending=2))) or ("", "", "")
    assert (status, reason) == ("False", words.POD_GROUP_INCOMPLETE)
    assert "only 2 pods exist" in message


def test_decision_27_initially_scheduled_is_no_health() -> None:
    server = gang()
    scheduler_says(server, "True", "", created=(NOW - timedelta(minutes=5)).isoformat())
    assert (told(server.step(pods=pods(server, bound=1, pending=2))) or ("",))[0] == "False"


def test_a_preempted_gang_is_told() -> None:
    server = gang()
    server.step(pods=pods(server, bound=3))
    victim = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    gone = tuple(
        merged(p, {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}})
        for p in pods(server, bound=3, conditions=[victim])
    )
    decision = server.step(pods=gone)
    assert (told(decision) or ("", ""))[:2] == ("False", words.POD_GROUP_PREEMPTED)
    assert [e.reason for e in decision.events] == [words.POD_GROUP_PREEMPTED]


def test_a_group_whose_jobs_have_not_started_is_no_trouble() -> None:
    jobs = (replicated_job("a"), replicated_job("b", dependsOn=[{"name": "a", "status": "Complete"}]))
    server = TinyServer(jobset(*jobs, scheduling={}))
    server.settle()
    server.set_status("js-a-0", active=1)
    assert told(server.step()) is None


def test_finished_pods_count_as_placed() -> None:
    server = gang()
    done = pods(server, bound=3, phase="Succeeded")
    assert (told(server.step(pods=done)) or ("",))[0] == "True"
