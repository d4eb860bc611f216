"""Executions: executionAttempts and startTime, the deadline and the TTL, and what a resume carries into the Jobs."""

from datetime import timedelta
from typing import Any

import pytest

from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects import labels
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import JOBS, JOBSETS
from pyjobset.reconciler.decide import decide, is_concerned
from pyjobset.reconciler.decision import Create, Delete, JsonPatch, Patch
from tests.builders import FEATURES, NOW, TinyServer, jobset, merged, replicated_job

TRACKED = FEATURES | {gates.EXECUTION_ATTEMPTS_TRACKING}
TIMED = FEATURES | {gates.ACTIVE_DEADLINE_SECONDS}


def server_of(js: JobSet, features: gates.Features) -> TinyServer:
    server = TinyServer(js, features=features)
    server.settle()
    return server


def set_spec(server: TinyServer, **spec: Any) -> None:
    server.jobset = merged(server.jobset, {"spec": spec})


def pass_time(server: TinyServer, seconds: float) -> None:
    server.now += timedelta(seconds=seconds)


# executionAttempts


def test_attempts_count_the_first_run_each_resume_and_each_restart() -> None:
    server = TinyServer(jobset(failurePolicy={"maxRestarts": 3}, suspend=True), features=TRACKED)
    server.settle()
    assert server.jobset.status.execution_attempts is None, "it never ran"
    seen = []
    for suspend in (False, True, False):
        set_spec(server, suspend=suspend)
        server.settle()
        seen.append(server.jobset.status.execution_attempts)
    server.finish("js-w-0", failed=True)
    server.settle()
    assert [*seen, server.jobset.status.execution_attempts] == [0, 0, 1, 2]


@pytest.mark.decision(17)
@pytest.mark.parametrize("start", ["new", "resumed"])
def test_an_attempt_is_stored_before_a_job_is_touched(start: str) -> None:
    server = TinyServer(jobset(suspend=start == "resumed"), features=TRACKED)
    if start == "resumed":
        server.settle()
        set_spec(server, suspend=False)
    first = server.step()
    assert first.actions == ()
    assert first.status is not None
    assert first.status.execution_attempts == 0
    second = server.step()
    notes = set()
    for action in second.actions:
        if isinstance(action, Create) and action.resource is JOBS:
            assert isinstance(action.body, dict)
            for metadata in (action.body["metadata"], action.body["spec"]["template"]["metadata"]):
                notes.add(metadata["annotations"][labels.EXECUTION_ATTEMPT])
        elif isinstance(action, JsonPatch):
            values = {o["path"]: o["value"] for o in action.operations}
            notes.add(values["/metadata/annotations/jobset.sigs.k8s.io~1execution-attempt"])
            notes.add(values["/spec/template/metadata/annotations"][labels.EXECUTION_ATTEMPT])
    assert notes == {"0"}


def test_a_suspension_is_stored_before_the_jobs_stop() -> None:
    """Else a resume right after a crash would look like the same run, and its attempt would not be counted."""
    server = server_of(jobset(), TRACKED)
    set_spec(server, suspend=True)
    first = server.step()
    assert first.actions == ()
    set_spec(server, suspend=False)
    server.settle()
    assert server.jobset.status.execution_attempts == 1


def test_without_the_gate_there_is_no_attempt() -> None:
    server = server_of(jobset(), FEATURES)
    assert server.jobset.status.execution_attempts is None
    assert server.jobset.status.start_time is None


# startTime and activeDeadlineSeconds


def test_start_time_is_of_the_current_execution() -> None:
    server = server_of(jobset(failurePolicy={"maxRestarts": 3}), TIMED)
    seen = [server.jobset.status.start_time]
    for suspend in (True, False):
        pass_time(server, 10)
        set_spec(server, suspend=suspend)
        server.settle()
        seen.append(server.jobset.status.start_time)
    pass_time(server, 10)
    server.settle()
    server.finish("js-w-0", failed=True)
    server.settle()
    seen.append(server.jobset.status.start_time)
    assert seen == ["2026-11-30T12:00:00Z", None, "2026-11-30T12:00:20Z", "2026-11-30T12:00:30Z"]
    server.features = FEATURES
    server.settle()
    assert server.jobset.status.start_time is None, "kept only while its gate is on"


def test_the_deadline_fails_the_jobset_and_stops_its_jobs() -> None:
    server = server_of(jobset(activeDeadlineSeconds=60), TIMED)
    pass_time(server, 59)
    early = decide(server.observe())
    assert early.actions == ()
    assert early.wake_after_seconds == 1
    pass_time(server, 1)
    assert server.step().actions == (), "the end is stored before anything is stopped"
    assert [type(a) for a in server.step().actions] == [Delete, Delete]
    (failed,) = [c for c in server.jobset.status.conditions if c.type == words.FAILED]
    assert (failed.reason, failed.message) == (
        "DeadlineExceeded",
        "jobset was active for longer than its activeDeadlineSeconds of 60",
    )
    assert server.jobset.status.terminal_state == "Failed"


@pytest.mark.parametrize(
    ("event", "state", "reason"),
    [("succeed", "Completed", "AllJobsCompleted"), ("fail", "Failed", "DeadlineExceeded")],
)
def test_a_deadline_comes_after_success_and_before_the_failure_policy(event: str, state: str, reason: str) -> None:
    server = server_of(jobset(activeDeadlineSeconds=60, failurePolicy={"maxRestarts": 3}), TIMED)
    pass_time(server, 60)
    server.finish("js-w-0", "js-w-1", failed=event == "fail")
    server.settle()
    assert server.jobset.status.terminal_state == state
    assert reason in [c.reason for c in server.jobset.status.conditions]


@pytest.mark.parametrize(
    ("spec", "features"),
    [({"activeDeadlineSeconds": 60, "suspend": True}, TIMED), ({"activeDeadlineSeconds": 60}, FEATURES), ({}, TIMED)],
    ids=["suspended", "gate off", "unset"],
)
def test_no_deadline(spec: Manifest, features: gates.Features) -> None:
    server = server_of(jobset(**spec), features)
    pass_time(server, 1_000_000)
    server.settle()
    assert server.jobset.status.terminal_state == ""


@pytest.mark.parametrize("seconds", [2**63 - 1, 10**12])
def test_a_deadline_beyond_all_dates_never_comes(seconds: int) -> None:
    server = server_of(jobset(activeDeadlineSeconds=seconds), TIMED)
    assert decide(server.observe()).wake_after_seconds == 24 * 3600


def test_a_resume_that_is_held_up_has_one_start() -> None:
    """Else a JobSet that waits for its claim would get a new start, and a write, each time that it is looked at."""
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    server = server_of(jobset(suspend=True, volumeClaimPolicies=[{"templates": [template]}]), TIMED)
    [claim] = server.claims.values()
    server.claims["data-js"] = merged(claim, {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}})
    set_spec(server, suspend=False)
    server.settle()
    assert server.jobset.status.start_time == "2026-11-30T12:00:00Z"
    pass_time(server, 10)
    assert server.step().status is None


NO_TIMES = ["", "yesterday", "2026-11-30", "2026-11-30T12:00:00", "0000-01-01T00:00:00Z", "9" * 400]


@pytest.mark.parametrize("start", NO_TIMES)
def test_a_start_that_is_no_time_is_set_anew(start: str) -> None:
    """Who may write a status may write anything: the JobSet goes on."""
    server = server_of(jobset(activeDeadlineSeconds=60, status={"startTime": start}), TIMED)
    assert server.jobset.status.start_time == "2026-11-30T12:00:00Z"
    assert [c.type for c in server.jobset.status.conditions] == []


def test_a_time_may_have_other_spellings() -> None:
    status = {"startTime": "2026-11-30t13:59:00.123456789+02:00"}
    assert TinyServer(jobset(activeDeadlineSeconds=61, status=status), features=TIMED).step().wake_after_seconds == (
        pytest.approx(1.123456, abs=1e-6)
    )


# ttlSecondsAfterFinished


def finished(**spec: Any) -> JobSet:
    condition = {
        "type": "Completed",
        "status": "True",
        "reason": "AllJobsCompleted",
        "message": "m",
        "lastTransitionTime": "2026-11-30T12:00:00Z",
    }
    return jobset(status={"conditions": [condition], "terminalState": "Completed"}, **spec)


@pytest.mark.parametrize("managed_by", [None, "example.com/other"])
@pytest.mark.parametrize(("ttl", "after", "wake"), [(30, 0, 30), (30, 29.5, 0.5), (30, 30, None), (0, 0, None)])
def test_a_finished_jobset_is_deleted_when_its_ttl_is_over(
    managed_by: str | None, ttl: int, after: float, wake: float | None
) -> None:
    """Also one of another controller: it has no clock for it."""
    js = finished(ttlSecondsAfterFinished=ttl, managedBy=managed_by)
    assert is_concerned(js)
    decision = decide(TinyServer(js, now=NOW + timedelta(seconds=after)).observe())
    deletes = [a for a in decision.actions if isinstance(a, Delete) and a.resource is JOBSETS]
    assert decision.wake_after_seconds == wake
    as_seen = ("js", "uid-js", "Foreground", "1")
    assert [(d.name, d.uid, d.propagation, d.resource_version) for d in deletes] == ([] if wake else [as_seen])


@pytest.mark.parametrize("managed_by", [None, "example.com/other"])
def test_an_unfinished_jobset_has_no_ttl(managed_by: str | None) -> None:
    js = jobset(ttlSecondsAfterFinished=0, managedBy=managed_by)
    assert is_concerned(js) == (managed_by is None)
    decision = decide(TinyServer(js, now=NOW + timedelta(days=1)).observe())
    assert not any(isinstance(a, Delete) for a in decision.actions)


@pytest.mark.parametrize("time", NO_TIMES)
def test_a_jobset_of_which_nobody_knows_when_it_finished_is_kept(time: str) -> None:
    js = merged(finished(ttlSecondsAfterFinished=0), {})
    [condition] = js.status.conditions
    conditions = [{"type": condition.type, "status": "True", "lastTransitionTime": time}]
    decision = decide(TinyServer(merged(js, {"status": {"conditions": conditions}})).observe())
    assert not any(isinstance(a, Delete) for a in decision.actions)


# Resume


@pytest.mark.decision(7)
def test_a_resume_replaces_what_may_change_in_a_template() -> None:
    """A node selector of an earlier admission goes; labels by which the Job finds its pods stay."""
    job = replicated_job("w")
    template = {"metadata": {"labels": {"a": "1"}}, "spec": {"nodeSelector": {"pool": "one"}, "tolerations": []}}
    js = merged(jobset(job, suspend=True), {"spec": {"replicatedJobs": [with_template(job, template)]}})
    server = server_of(js, FEATURES)
    changed = {"metadata": {"labels": {"b": "2"}}, "spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}
    set_spec(server, suspend=False, replicatedJobs=[with_template(job, changed)])
    (patch,) = [a for a in decide(server.observe()).actions if isinstance(a, JsonPatch)]
    values = {o["path"]: o["value"] for o in patch.operations}
    uid = server.jobs["js-w-0"].metadata.uid
    assert {o["op"] for o in patch.operations} == {"add"}
    assert values["/spec/template/spec/nodeSelector"] == {}
    assert values["/spec/template/spec/tolerations"] == [{"key": "k", "operator": "Exists"}]
    assert values["/spec/template/spec/schedulingGates"] == []
    found = values["/spec/template/metadata/labels"]
    assert "a" not in found
    assert found["b"] == "2"
    assert found["batch.kubernetes.io/controller-uid"] == found["controller-uid"] == uid
    assert found["batch.kubernetes.io/job-name"] == found["job-name"] == "js-w-0"
    assert found[labels.JOBSET_NAME] == "js"
    assert patch.operations[-1] == {"op": "add", "path": "/spec/suspend", "value": False}
    assert not any("resources" in path for path in values), "its gate is off"


def test_a_job_with_a_selector_of_its_own_gets_no_generated_labels() -> None:
    job = replicated_job("w")
    job["template"]["spec"]["manualSelector"] = True
    server = server_of(jobset(job, suspend=True), FEATURES)
    set_spec(server, suspend=False)
    (patch,) = [a for a in decide(server.observe()).actions if isinstance(a, JsonPatch)]
    values = {o["path"]: o["value"] for o in patch.operations}
    assert "controller-uid" not in values["/spec/template/metadata/labels"]


def test_resources_go_along_with_their_gate() -> None:
    job = replicated_job("w")
    job["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    server = server_of(jobset(job, suspend=True), FEATURES | {gates.MUTABLE_POD_RESOURCES})
    set_spec(server, suspend=False)
    (patch,) = [a for a in decide(server.observe()).actions if isinstance(a, JsonPatch)]
    values = {o["path"]: o["value"] for o in patch.operations}
    assert values["/spec/template/spec/containers/0/resources"] == {"requests": {"cpu": "2"}}


def test_a_job_that_ran_is_resumed_when_its_pods_are_gone_and_its_start_is_cleared() -> None:
    """The API server takes template changes of Jobs that have not started."""
    server = server_of(jobset(replicated_job("w")), FEATURES)
    server.set_status("js-w-0", startTime="2026-11-30T12:00:00Z", active=1)
    set_spec(server, suspend=True)
    server.settle()
    set_spec(server, suspend=False)
    assert decide(server.observe()).actions == (), "the Job controller has not yet stopped its pods"
    suspended = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-11-30T12:00:00Z"}
    server.set_status("js-w-0", active=0, conditions=[suspended])
    first, second = decide(server.observe()).actions
    assert isinstance(first, Patch)
    assert (first.patch, first.subresource) == ({"status": {"startTime": None}}, "status")
    assert isinstance(second, JsonPatch)


def with_template(job: Manifest, template: Manifest) -> Manifest:
    """The ReplicatedJob with this pod template merged into its own."""
    own = job["template"]["spec"]["template"]
    pod = {**own, **template, "spec": {**own["spec"], **template["spec"]}}
    return {**job, "template": {**job["template"], "spec": {**job["template"]["spec"], "template": pod}}}
