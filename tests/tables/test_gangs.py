"""Condition PodGroupsScheduled: what is said of a gang, from its pods and the scheduler's words."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from pyjobset.objects import conditions as words
from pyjobset.objects.batch import Pod
from pyjobset.reconciler.conditions import timestamp
from pyjobset.reconciler.decision import Decision
from tests.builders import NOW, TinyServer, jobset, merged, replicated_job

GANG = {"schedulingPolicy": {"gang": {}}}
UNSCHEDULABLE = "minCount (3) cannot be satisfied: 2 scheduled, 1 remaining"


def ago(seconds: float) -> str:
    return timestamp(NOW - timedelta(seconds=seconds))


def gang(*, started: str = ago(0), scheduling: Any = GANG) -> TinyServer:
    server = TinyServer(jobset(replicated_job("w", pods=3), scheduling=scheduling))
    server.settle()
    server.set_status("js-w-0", active=3, startTime=started)
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


@pytest.mark.parametrize(
    ("spec", "second"),
    [
        pytest.param({"startupPolicy": {"startupPolicyOrder": "InOrder"}}, {}, id="in order"),
        pytest.param({}, {"dependsOn": [{"name": "a", "status": "Complete"}]}, id="it depends on the first"),
    ],
)
def test_a_gang_that_has_yet_to_start_keeps_no_word_of_another(spec: Any, second: Any) -> None:
    entries = [{"targetReplicatedJobs": [name], "job": {"schedulingPolicy": {"gang": {}}}} for name in "ab"]
    js = jobset(
        replicated_job("a", pods=3), replicated_job("b", **second), scheduling={"replicatedJobs": entries}, **spec
    )
    server = TinyServer(js)
    server.settle()
    job = server.jobs["js-a-0"]
    assert (list(server.jobs), len(server.pod_groups)) == (["js-a-0"], 2)
    server.set_status("js-a-0", active=3, startTime=ago(60))

    def of_a(node: str) -> tuple[Pod, ...]:
        status = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]}
        spec = {"nodeName": node, "schedulingGroup": {"podGroupName": job.pod_group}}
        return tuple(
            msgspec.convert({"metadata": {"name": f"p{i}"}, "spec": spec, "status": status}, Pod) for i in "123"
        )

    assert (told(server.step(pods=of_a(""))) or ("", ""))[:2] == ("False", words.POD_GROUP_UNSCHEDULABLE)
    message = "1 of 2 pod groups are scheduled; the others have yet to start"
    assert told(server.step(pods=of_a("n1"))) == ("True", words.ALL_SCHEDULED, message)
    assert server.step(pods=of_a("n1")).status is None


def test_nothing_is_said_of_a_part_that_fits_at_once() -> None:
    order = {"startupPolicyOrder": "InOrder"}
    entries = [{"targetReplicatedJobs": [name], "job": {"schedulingPolicy": {"gang": {}}}} for name in "ab"]
    js = jobset(replicated_job("a"), replicated_job("b"), scheduling={"replicatedJobs": entries}, startupPolicy=order)
    server = TinyServer(js)
    server.settle()
    server.set_status("js-a-0", active=1, startTime=ago(60))
    group = {"podGroupName": server.jobs["js-a-0"].pod_group}
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "schedulingGroup": group}}, Pod)
    decision = server.step(pods=(pod,))
    assert told(decision) is None


def test_nothing_is_said_before_the_scheduler_answered() -> None:
    server = gang()
    decision = server.step(pods=pods(server, pending=3))
    assert told(decision) is None


@pytest.mark.decision(26)
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
    server = gang(started=ago(300))
    scheduler_says(server, "", "", created=ago(4))
    decision = server.step(pods=pods(server, pending=2))
    assert told(decision) is None
    assert decision.wake_after_seconds == 6
    scheduler_says(server, "", "", created=ago(10))
    status, reason, message = told(server.step(pods=pods(server, pending=2))) or ("", "", "")
    assert (status, reason) == ("False", words.POD_GROUP_INCOMPLETE)
    assert "only 2 pods exist" in message


@pytest.mark.parametrize(("seconds", "expected"), [(-5, 15), (-3600, None)], ids=["they differ", "set back"])
def test_a_clock_that_was_set_back_keeps_no_warning(seconds: int, expected: float | None) -> None:
    server = gang(started=ago(300))
    scheduler_says(server, "", "", created=ago(seconds))
    decision = server.step(pods=pods(server, pending=2))
    assert (decision.wake_after_seconds, told(decision) is None) == (expected, expected is not None)


def test_a_note_without_its_time_is_no_note_for_ever() -> None:
    server = gang(started=ago(300))
    server.step(pods=pods(server, bound=3))
    server.step(pods=pods(server, bound=2))
    (note,) = [c for c in server.jobset.status.conditions if c.reason == words.POD_GROUP_PENDING]
    timeless = msgspec.structs.replace(note, last_transition_time=None)
    conditions = tuple(timeless if c is note else c for c in server.jobset.status.conditions)
    server.jobset = msgspec.structs.replace(
        server.jobset, status=msgspec.structs.replace(server.jobset.status, conditions=conditions)
    )
    decision = server.step(pods=pods(server, bound=2))
    assert (told(decision) or ("", ""))[1] == words.POD_GROUP_INCOMPLETE


def test_jobs_that_started_again_under_an_old_group_get_the_same_while() -> None:
    server = gang(started=ago(3))
    scheduler_says(server, "True", "", created=ago(3000))
    decision = server.step(pods=pods(server, pending=2))
    assert told(decision) is None
    assert decision.wake_after_seconds == 7
    server.set_status("js-w-0", startTime=ago(11))
    assert (told(server.step(pods=pods(server, pending=2))) or ("", ""))[1] == words.POD_GROUP_INCOMPLETE


def test_a_placed_gang_that_lacks_pods_is_noted_and_after_a_while_told() -> None:
    """It may just have grown."""
    server = gang(started=ago(300))
    server.step(pods=pods(server, bound=3))
    decision = server.step(pods=pods(server, bound=2))
    assert (told(decision) or ("", ""))[:2] == ("False", words.POD_GROUP_PENDING)
    assert decision.events == ()
    assert decision.wake_after_seconds == 10
    later = server.step(pods=pods(server, bound=2), now=NOW + timedelta(seconds=4))
    assert (later.status, later.wake_after_seconds) == (None, 6)
    last = server.step(pods=pods(server, bound=2), now=NOW + timedelta(seconds=10))
    assert (told(last) or ("", ""))[1] == words.POD_GROUP_INCOMPLETE
    assert [e.type for e in last.events] == ["Warning"]
    assert (told(server.step(pods=pods(server, bound=3))) or ("",))[0] == "True"


def test_a_placed_gang_for_whose_new_pods_there_is_no_room_is_told_what_they_were_told() -> None:
    """The group's condition stays True: only the pods have the scheduler's answer."""
    server = gang(started=ago(300))
    scheduler_says(server, "True", "")
    server.step(pods=pods(server, bound=3))
    waiting = [answer(server, "0/4 nodes are available: 4 Insufficient cpu."), *pods(server, bound=2)]
    decision = server.step(pods=tuple(waiting))
    status, reason, message = told(decision) or ("", "", "")
    assert (status, reason) == ("False", words.POD_GROUP_UNSCHEDULABLE)
    assert "2 of the 3 pods" in message
    assert message.endswith("0/4 nodes are available: 4 Insufficient cpu.")


def answer(server: TinyServer, message: str) -> Pod:
    """A pod that the scheduler could not place."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    (pod,) = pods(server, pending=1, conditions=[condition])
    return pod


def test_of_the_pods_words_the_most_frequent_that_do_not_repeat_the_groups_are_told() -> None:
    server = gang()
    scheduler_says(server, "False", UNSCHEDULABLE)
    said = (f"pod group is unschedulable, {UNSCHEDULABLE}", "no memory", "no cpu", "no cpu")
    message = (told(server.step(pods=tuple(answer(server, text) for text in said))) or ("", "", ""))[2]
    assert message.endswith(f"{UNSCHEDULABLE}; no cpu")


FIXED = {"schedulingPolicy": {"gang": {"minCount": 2}}}


@pytest.mark.decision(20)
def test_a_fixed_quorum_that_can_no_longer_be_met_is_told_with_the_way_out() -> None:
    server = gang(scheduling={"replicatedJobs": [{"targetReplicatedJobs": ["w"], "job": FIXED}]})
    done = pods(server, bound=2, phase="Succeeded")
    decision = server.step(pods=(*done, *pods(server, pending=1)))
    status, reason, message = told(decision) or ("", "", "")
    assert (status, reason) == ("False", words.POD_GROUP_QUORUM_OUT_OF_REACH)
    assert "finished pods do not count" in message
    assert "recreate the JobSet" in message
    assert [e.type for e in decision.events] == ["Warning"]


@pytest.mark.decision(20)
def test_a_computed_quorum_moves_so_that_nobody_is_warned() -> None:
    server = gang(started=ago(300))
    done = pods(server, bound=2, phase="Succeeded")
    assert (told(server.step(pods=(*done, *pods(server, bound=1)))) or ("",))[0] == "True"
    server.set_status("js-w-0", active=1, ready=0, succeeded=2)
    waits = server.step(pods=(*done, *pods(server, pending=1)))
    assert waits.actions
    assert waits.events == ()
    moved = server.step(pods=(*done, *pods(server, bound=1)))
    assert (told(moved) or ("",))[0] == "True"


def test_a_suspended_jobset_no_longer_claims_that_its_gang_is_placed() -> None:
    server = gang()
    server.step(pods=pods(server, bound=3))
    server.jobset = merged(server.jobset, {"spec": {"suspend": True}})
    decision = server.step()
    assert (told(decision) or ("", ""))[:2] == ("False", words.JOBSET_SUSPENDED)
    assert words.JOBSET_SUSPENDED not in {e.reason for e in decision.events}


def test_a_group_that_still_terminates_is_told_to_those_who_resumed() -> None:
    server = gang()
    server.jobset = merged(server.jobset, {"spec": {"suspend": True}})
    group = server.pod_groups[group_name(server)]
    server.settle()
    server.jobset = merged(server.jobset, {"spec": {"suspend": False}})
    server.pod_groups[group.metadata.name] = merged(group, {"metadata": {"deletionTimestamp": ago(1)}})
    leaving = tuple(merged(p, {"metadata": {"deletionTimestamp": ago(1)}}) for p in pods(server, bound=3))
    decision = server.step(pods=leaving)
    status, reason, message = told(decision) or ("", "", "")
    assert (status, reason) == ("False", words.POD_GROUP_TERMINATING)
    assert "(3 terminate)" in message
    assert {e.type for e in decision.events} <= {"Normal"}


def test_a_group_that_someone_deleted_under_running_pods_is_no_trouble_for_them() -> None:
    server = gang()
    name = group_name(server)
    server.pod_groups[name] = merged(server.pod_groups[name], {"metadata": {"deletionTimestamp": ago(1)}})
    assert (told(server.step(pods=pods(server, bound=3))) or ("",))[0] == "True"


def test_a_restart_that_clears_the_old_attempt_is_no_news_of_the_gang() -> None:
    server = gang()
    server.step(pods=pods(server, bound=3))
    server.jobset = merged(server.jobset, {"status": {"restarts": 1}})
    decision = server.step(pods=())
    assert told(decision) in (None, ("True", words.ALL_SCHEDULED, "1 of 1 pod groups are scheduled"))
    assert words.POD_GROUP_INCOMPLETE not in {e.reason for e in decision.events}


@pytest.mark.decision(27)
def test_initially_scheduled_is_no_health() -> None:
    server = gang(started=ago(300))
    scheduler_says(server, "True", "", created=ago(300))
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


def test_that_a_gang_was_preempted_is_said_until_it_is_placed_again() -> None:
    server = gang(started=ago(300))
    server.step(pods=pods(server, bound=3))
    victim = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    server.step(pods=pods(server, bound=3, conditions=[victim])[:1])
    for there, says in (((), "only 0 pods exist"), ((answer(server, "no cpu"),) * 3, "no cpu")):
        decision = server.step(pods=there)
        status, reason, message = told(decision) or ("", "", "")
        assert (status, reason) == ("False", words.POD_GROUP_PREEMPTED)
        assert says in message
        assert message.endswith("; it was preempted for a higher priority")
        assert decision.events == ()
    assert (told(server.step(pods=pods(server, bound=3))) or ("",))[0] == "True"
    lost = told(server.step(pods=pods(server, bound=1))) or ("", "", "preempted")
    assert "preempted" not in lost[2]


def test_the_preemption_of_one_gang_is_not_said_of_another() -> None:
    scheduling = {"replicatedJobs": [{"targetReplicatedJobs": [name]} for name in "ab"]}
    server = TinyServer(jobset(replicated_job("a"), replicated_job("b"), scheduling=scheduling))
    server.settle()
    names = sorted(server.pod_groups)
    text = f"PodGroup {names[1]}: 0 of the 1 pods that must be placed together are placed; 1 were preempted"
    before = {
        "type": words.POD_GROUPS_SCHEDULED,
        "status": "False",
        "reason": words.POD_GROUP_PREEMPTED,
        "message": text,
    }
    server.jobset = merged(server.jobset, {"status": {"conditions": [before]}})
    for name in server.jobs:
        server.set_status(name, active=1, startTime=ago(300))
    said = told(server.step(pods=())) or ("", "", "")
    assert said[1] == words.POD_GROUP_PREEMPTED
    assert names[1] in said[2], "the gang that was preempted is the one that is spoken of"


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


def test_pods_that_were_made_again_are_no_new_warning_before_the_scheduler_answered() -> None:
    server = gang(started=ago(300))
    scheduler_says(server, "True", "")
    assert (told(server.step(pods=pods(server, bound=1))) or ("", ""))[1] == words.POD_GROUP_INCOMPLETE
    again = server.step(pods=pods(server, bound=1, pending=2))
    status, reason, message = told(again) or ("", "", "")
    assert (status, reason) == ("False", words.POD_GROUP_INCOMPLETE)
    assert "has not tried it yet" in message
    assert again.events == ()
    decision = server.step(pods=(*pods(server, bound=1), answer(server, "no cpu"), answer(server, "no cpu")))
    assert [(e.type, e.reason) for e in decision.events] == [("Warning", words.POD_GROUP_UNSCHEDULABLE)]


def test_a_scheduler_that_does_not_answer_at_all_is_told() -> None:
    server = gang(started=ago(300))
    scheduler_says(server, "", "", created=ago(300))
    decision = server.step(pods=pods(server, pending=3))
    assert (told(decision) or ("", ""))[1] == words.POD_GROUP_UNSCHEDULABLE
    assert "has not tried it yet" in (told(decision) or ("", "", ""))[2]


def test_succeeded_pods_that_were_removed_still_count_as_placed() -> None:
    server = gang()
    server.set_status("js-w-0", active=1, ready=1, succeeded=2, startTime="2026-11-30T10:00:00Z")
    decision = server.step(pods=pods(server, bound=1))
    assert (told(decision) or ("",))[0] == "True"
