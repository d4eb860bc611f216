"""The failure policy: what follows a failed child Job. Pure.

So far the default policy: without spec.failurePolicy the first failed Job fails the JobSet; with one, every failure
restarts the whole JobSet until maxRestarts is used up. A restart is only counted here; Jobs of older attempts go
because a later observation sees their label (intent before effect), so a restart is never counted twice or lost.
"""

import msgspec

from pyjobset.objects import conditions as words
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSetStatus
from pyjobset.reconciler.decision import Event
from pyjobset.reconciler.outcome import NOTHING, ConditionChange, Outcome
from pyjobset.reconciler.view import State, View


def _first_failed(view: View) -> Job | None:
    """The Job that failed earliest; of Jobs that failed in the same second, the first in spec order."""
    failed = [c.job for c in view.children if c.state is State.FAILED and c.job is not None]
    return min(failed, key=_failed_at, default=None)


def _failed_at(job: Job) -> str:
    condition = job.condition("Failed")
    return (condition.last_transition_time or "") if condition else ""


def failure(view: View, status: JobSetStatus) -> tuple[Outcome, JobSetStatus]:
    """The outcome, and the status with the restart counted where there is one."""
    job = _first_failed(view)
    if job is None:
        return NOTHING, status
    policy = view.jobset.spec.failure_policy
    suffix = f"(first failed job: {job.metadata.name})"
    if policy is None:
        return _failed(words.FAILED_JOBS, f"jobset failed due to one or more job failures {suffix}"), status
    if status.restarts_count_towards_max >= policy.max_restarts:
        message = f"jobset failed due to reaching max number of restarts {suffix}"
        return _failed(words.REACHED_MAX_RESTARTS, message), status
    counted = msgspec.structs.replace(
        status, restarts=status.restarts + 1, restarts_count_towards_max=status.restarts_count_towards_max + 1
    )
    message = f"restarting jobset, attempt {counted.restarts} of {policy.max_restarts} {suffix}"
    change = ConditionChange(words.RESTARTING_JOBSET, "True", words.DEFAULT_FAILURE_POLICY, message, is_silent=True)
    # Of its own: the condition stays True through several restarts, and each of them is worth an event.
    event = Event("Warning", words.DEFAULT_FAILURE_POLICY, message)
    return Outcome(conditions=(change,), events=(event,)), counted


def _failed(reason: str, message: str) -> Outcome:
    return Outcome(conditions=(ConditionChange(words.FAILED, "True", reason, message, is_warning=True),))
