"""Two features at a time: what suspension, restarts, deadlines, order and size do to each other. One case a pair."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import JOBS, JOBSETS
from pyjobset.reconciler.decide import decide
from pyjobset.reconciler.decision import Create, Decision, Delete
from pyjobset.rules.policies import JOB_RESTARTS_MAX
from tests.builders import FEATURES, TinyServer, jobset, merged, replicated_job

ALL = FEATURES | {gates.RESTART_JOB, gates.ACTIVE_DEADLINE_SECONDS, gates.EXECUTION_ATTEMPTS_TRACKING}
TIMED = FEATURES | {gates.ACTIVE_DEADLINE_SECONDS}
RESTARTS = {"maxRestarts": 3}
SINGLE = {"maxRestarts": 3, "rules": [{"name": "one", "action": "RestartJob"}]}


def running(js: JobSet, features: gates.Features = ALL) -> TinyServer:
    server = TinyServer(js, features=features)
    server.settle()
    start(server)
    server.settle()
    return server


def start(server: TinyServer, *names: str) -> None:
    """As the Job controller starts them: all their pods are ready."""
    for name in names or tuple(server.jobs):
        count = server.jobs[name].parallelism
        server.set_status(name, active=count, ready=count, startTime="2026-11-30T11:00:00Z", conditions=[])


def set_spec(server: TinyServer, **spec: Any) -> None:
    server.jobset = merged(server.jobset, {"spec": spec})


def leave(server: TinyServer, name: str) -> None:
    """The Job is being deleted and its pods hold it."""
    server.jobs[name] = merged(server.jobs[name], {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}})


def condition(server: TinyServer, type_: str) -> tuple[str, str]:
    found = [c for c in server.jobset.status.conditions if c.type == type_]
    return (found[0].status, found[0].reason) if found else ("", "")


def created(decision: Decision) -> list[str]:
    return [a.name for a in decision.actions if isinstance(a, Create) and a.resource is JOBS]


def attempts(server: TinyServer) -> set[tuple[str, str]]:
    return {
        (job.metadata.labels.restart_attempt, job.metadata.labels.job_restart_attempt) for job in server.jobs.values()
    }


def test_the_time_of_a_suspension_is_not_held_against_the_deadline_also_after_a_crash() -> None:
    """The end of the run is stored before its Jobs stop: a controller that dies in between finds it."""
    server = running(jobset(activeDeadlineSeconds=60), TIMED)
    begun = server.jobset.status.start_time
    assert begun is not None
    set_spec(server, suspend=True)
    decision = server.step()
    assert decision.actions == ()
    assert (server.jobset.status.start_time, condition(server, words.SUSPENDED)[0]) == (None, "True")
    server.now += timedelta(hours=1)
    set_spec(server, suspend=False)
    server.settle()
    assert server.jobset.status.terminal_state == ""
    assert server.jobset.status.start_time == "2026-11-30T13:00:00Z"


def test_a_restart_of_a_suspended_jobset_starts_no_clock() -> None:
    server = running(jobset(activeDeadlineSeconds=60, failurePolicy=RESTARTS), TIMED)
    set_spec(server, suspend=True)
    server.settle()
    server.finish("js-w-0", failed=True)
    server.step()
    assert (server.jobset.status.restarts, server.jobset.status.start_time) == (1, None)
    server.settle()
    assert [job.spec.suspend for job in server.jobs.values()] == [True, True]
    assert condition(server, words.RESTARTING_JOBSET) == ("False", words.JOBSET_SUSPENDED)


def test_a_restart_begins_the_deadline_anew_and_a_single_restart_does_not() -> None:
    whole = running(jobset(activeDeadlineSeconds=60, failurePolicy=RESTARTS))
    single = running(jobset(activeDeadlineSeconds=60, failurePolicy=SINGLE))
    for server in (whole, single):
        server.now += timedelta(seconds=50)
        server.finish("js-w-0", failed=True)
        server.settle()
        server.now += timedelta(seconds=20)
        server.settle()
    assert whole.jobset.status.terminal_state == ""
    assert condition(single, words.FAILED) == ("True", words.DEADLINE_EXCEEDED)


def test_a_deadline_that_passes_during_a_restart_ends_it() -> None:
    server = running(jobset(activeDeadlineSeconds=60, failurePolicy=RESTARTS))
    server.finish("js-w-0", failed=True)
    server.step()
    leave(server, "js-w-0")
    server.now += timedelta(seconds=61)
    server.step()
    assert condition(server, words.FAILED) == ("True", words.DEADLINE_EXCEEDED)
    assert condition(server, words.RESTARTING_JOBSET) == ("False", words.JOBSET_FAILED)
    (delete,) = server.step().actions
    assert (delete.name, created(server.step())) == ("js-w-1", [])


@pytest.mark.parametrize("suspend", [False, True])
def test_a_finished_jobset_is_deleted_in_its_time_whether_suspended_or_not(suspend: bool) -> None:
    server = running(jobset(ttlSecondsAfterFinished=30))
    server.finish(*server.jobs)
    server.settle()
    set_spec(server, suspend=suspend)
    assert server.step().actions == ()
    server.now += timedelta(seconds=31)
    (delete,) = decide(server.observe()).actions
    assert isinstance(delete, Delete)
    assert delete.resource is JOBSETS


def test_a_suspended_jobset_that_fails_has_no_jobs_and_a_ttl() -> None:
    server = running(jobset(ttlSecondsAfterFinished=30))
    set_spec(server, suspend=True)
    server.settle()
    server.finish("js-w-0", failed=True)
    server.settle()
    assert condition(server, words.FAILED)[0] == "True"
    assert list(server.jobs) == ["js-w-0"]
    assert decide(server.observe()).wake_after_seconds == 30


def test_a_suspension_during_a_blocking_restart_has_suspended_jobs_when_the_last_old_one_is_gone() -> None:
    server = running(jobset(failurePolicy={**RESTARTS, "restartStrategy": "BlockingRecreate"}))
    server.finish("js-w-0", failed=True)
    server.step()
    leave(server, "js-w-1")
    set_spec(server, suspend=True)
    for _ in range(4):
        assert created(server.step()) == []
    assert condition(server, words.SUSPENDED)[0] == "True"
    del server.jobs["js-w-1"]
    server.settle()
    assert [job.spec.suspend for job in server.jobs.values()] == [True, True]
    assert attempts(server) == {("1", "0")}
    set_spec(server, suspend=False)
    server.settle()
    assert [job.spec.suspend for job in server.jobs.values()] == [False, False]
    assert server.jobset.status.restarts == 1


def test_a_change_of_size_during_a_restart_is_that_of_the_new_jobs() -> None:
    server = running(jobset(failurePolicy=RESTARTS))
    server.finish("js-w-0", failed=True)
    server.step()
    leave(server, "js-w-1")
    resized = replicated_job("w", replicas=2, pods=5)
    set_spec(server, replicatedJobs=[resized])
    server.step()
    assert created(server.step()) == ["js-w-0"]
    assert server.jobs["js-w-1"].spec.parallelism == 2, "the old one is left alone"
    del server.jobs["js-w-1"]
    server.settle()
    assert {job.spec.parallelism for job in server.jobs.values()} == {5}


def test_a_change_of_size_during_a_suspension_comes_before_the_resume() -> None:
    server = running(jobset())
    set_spec(server, suspend=True)
    server.settle()
    for name in server.jobs:
        server.set_status(name, active=0, ready=0, startTime=None, conditions=[{"type": "Suspended", "status": "True"}])
    set_spec(server, suspend=False, replicatedJobs=[replicated_job("w", replicas=2, pods=3)])
    decision = server.step()
    if not decision.actions:  # the new execution is counted first
        decision = server.step()
    kinds = [type(a).__name__ for a in decision.actions if a.name == "js-w-0"]
    assert kinds == ["Patch", "JsonPatch"]
    assert {(job.spec.parallelism, job.spec.suspend) for job in server.jobs.values()} == {(3, False)}


def ordered(wanted: str, **spec: Any) -> JobSet:
    depends = {"dependsOn": [{"name": "a", "status": wanted}]}
    return jobset(replicated_job("a", replicas=2), replicated_job("b", **depends), **spec)


def test_while_a_dependency_restarts_alone_who_waited_for_it_runs_on_and_is_not_made_again() -> None:
    server = running(ordered("Ready", failurePolicy=SINGLE))
    start(server)
    server.settle()
    assert list(server.jobs) == ["js-a-0", "js-a-1", "js-b-0"]
    uid = server.jobs["js-b-0"].metadata.uid
    server.finish("js-a-0", failed=True)
    server.settle()
    assert server.jobs["js-a-0"].metadata.labels.job_restart_attempt == "1"
    assert server.jobs["js-b-0"].metadata.uid == uid
    server.finish("js-b-0", failed=True)
    server.settle()
    assert "js-b-0" not in server.jobs, "its new Job waits for js-a-0 to be ready again"
    start(server, "js-a-0")
    server.settle()
    assert server.jobs["js-b-0"].metadata.labels.job_restart_attempt == "1"


def test_a_resume_goes_on_where_the_order_was_and_a_restart_begins_it_again() -> None:
    server = running(ordered("Complete", failurePolicy=RESTARTS))
    server.finish("js-a-0", "js-a-1")
    server.settle()
    start(server, "js-b-0")
    set_spec(server, suspend=True)
    server.settle()
    server.set_status("js-b-0", active=0, ready=0, startTime=None, conditions=[{"type": "Suspended", "status": "True"}])
    set_spec(server, suspend=False)
    server.settle()
    assert server.jobs["js-b-0"].spec.suspend is False
    assert server.jobs["js-a-0"].is_succeeded
    server.finish("js-b-0", failed=True)
    server.settle()
    assert list(server.jobs) == ["js-a-0", "js-a-1"]
    assert not server.jobs["js-a-0"].is_succeeded


def test_a_dependency_that_failed_once_and_then_succeeded_is_complete() -> None:
    server = running(ordered("Complete", failurePolicy=SINGLE))
    server.finish("js-a-0")
    server.finish("js-a-1", failed=True)
    server.settle()
    assert list(server.jobs) == ["js-a-0", "js-a-1"]
    server.finish("js-a-1")
    server.settle()
    assert "js-b-0" in server.jobs


@pytest.mark.parametrize("policy", [RESTARTS, SINGLE])
def test_a_success_of_before_a_restart_is_none(policy: Manifest) -> None:
    """One of the two succeeded in the same moment as it was decided to make it again, or just before."""
    server = running(jobset(failurePolicy=policy, successPolicy={"operator": "All"}))
    server.finish("js-w-0", failed=True)
    server.step()
    server.finish("js-w-0")  # as if it could
    server.finish("js-w-1")
    server.settle()
    assert server.jobset.status.terminal_state == ""
    assert not server.jobs["js-w-0"].is_succeeded


def test_a_success_that_is_met_while_a_restart_is_pending_ends_it() -> None:
    """The driver of the new attempt is done before the last old Job is gone."""
    jobs = (replicated_job("driver"), replicated_job("w"))
    server = running(
        jobset(*jobs, failurePolicy=RESTARTS, successPolicy={"operator": "All", "targetReplicatedJobs": ["driver"]})
    )
    server.finish("js-w-0", failed=True)
    server.step()
    leave(server, "js-w-0")
    server.settle()
    server.finish("js-driver-0")
    server.step()
    assert server.jobset.status.terminal_state == words.TERMINAL_COMPLETED
    assert condition(server, words.RESTARTING_JOBSET) == ("False", words.JOBSET_COMPLETED)
    assert created(server.step()) == []


def test_restarts_of_single_jobs_that_the_status_cannot_count_are_restarts_of_the_whole() -> None:
    """Admission refuses so many; this JobSet was stored without it."""
    server = running(jobset(replicated_job("w", replicas=JOB_RESTARTS_MAX + 1), failurePolicy=SINGLE))
    server.finish("js-w-7", failed=True)
    decision = server.step()
    assert server.jobset.status.restarts == 1
    assert all(entry.job_restarts is msgspec.UNSET for entry in server.jobset.status.replicated_jobs_status)
    assert "RestartJobSetFailurePolicyAction" in [event.reason for event in decision.events]


def test_a_suspension_stops_a_job_that_restarted_alone_too() -> None:
    server = running(jobset(failurePolicy=SINGLE))
    server.finish("js-w-0", failed=True)
    server.step()
    set_spec(server, suspend=True)
    server.settle()
    assert {name: job.spec.suspend for name, job in server.jobs.items()} == {"js-w-0": True, "js-w-1": True}
    assert server.jobs["js-w-0"].metadata.labels.job_restart_attempt == "1"
    assert server.jobset.status.replicated_jobs_status[0].job_restarts == (1, 0)


def test_in_order_a_single_restart_of_the_first_holds_up_only_who_has_no_job_yet() -> None:
    jobs = [replicated_job(name) for name in ("a", "b", "c")]
    server = running(jobset(*jobs, failurePolicy=SINGLE, startupPolicy={"startupPolicyOrder": "InOrder"}))
    assert list(server.jobs) == ["js-a-0", "js-b-0"]
    server.finish("js-a-0", failed=True)
    server.settle()
    start(server, "js-b-0")
    server.settle()
    assert set(server.jobs) == {"js-a-0", "js-b-0"}, "c waits for a as well"
    start(server, "js-a-0")
    server.settle()
    assert "js-c-0" in server.jobs


def test_a_claim_that_cannot_be_used_holds_up_the_jobs_of_a_restart_and_stops_none() -> None:
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    job = replicated_job("w", replicas=2)
    job["template"]["spec"]["template"]["spec"]["containers"] = [container]
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    server = running(jobset(job, failurePolicy=RESTARTS, volumeClaimPolicies=[{"templates": [claim]}]))
    assert list(server.claims) == ["data-js"]
    claims = server.claims["data-js"]
    server.claims["data-js"] = merged(claims, {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}})
    server.settle()
    assert len(server.jobs) == 2, "it is no reason to stop what runs"
    server.finish("js-w-0", failed=True)
    server.settle()
    assert server.jobs == {}
    del server.claims["data-js"]
    server.settle()
    assert attempts(server) == {("1", "0")}
    assert list(server.claims) == ["data-js"]
