"""Deadlines: activeDeadlineSeconds fails a JobSet that ran too long, ttlSecondsAfterFinished deletes a finished one.

Pure. The clock is the observation's; when it is too early, the outcome says when to look again. KEP-1186.
"""

from datetime import datetime

from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.resources import JOBSETS
from pyjobset.reconciler.conditions import seconds_since
from pyjobset.reconciler.decision import Delete
from pyjobset.reconciler.outcome import NOTHING, Outcome, failed
from pyjobset.reconciler.view import View

WAKE_SECONDS_MAX = 24 * 3600.0
"""Farther than this nobody sets a timer: the JobSet is looked at again on the way."""


def active_deadline(view: View) -> Outcome:
    """Condition Failed once the deadline has passed; else when it will pass. What still runs is stopped once that is
    stored: it goes on where somebody has just put the deadline off."""
    status, seconds = view.jobset.status, view.jobset.spec.active_deadline_seconds
    is_on = gates.ACTIVE_DEADLINE_SECONDS in view.observation.features
    if not is_on or seconds is None or view.is_suspended or status.start_time is None:
        return NOTHING
    left = _seconds_left(status.start_time, seconds, view.observation.now)
    if left is None:
        return NOTHING  # the run that follows sets another one
    if left > 0:
        return Outcome(wake_after_seconds=min(left, WAKE_SECONDS_MAX))
    message = f"jobset was active for longer than its activeDeadlineSeconds of {seconds}"
    return failed(words.DEADLINE_EXCEEDED, message)


def has_ttl(jobset: JobSet) -> bool:
    """Finished, and to be deleted some time after: true of JobSets of other controllers too."""
    return jobset.spec.ttl_seconds_after_finished is not None and _finished_at(jobset) is not None


def ttl(jobset: JobSet, now: datetime) -> Outcome:
    """Delete the JobSet when its time has come; else when that will be. Only as it was seen: whoever has just prolonged
    its time still has it."""
    seconds, finished_at = jobset.spec.ttl_seconds_after_finished, _finished_at(jobset)
    if seconds is None or finished_at is None:
        return NOTHING
    left = _seconds_left(finished_at, seconds, now)
    if left is None:
        return NOTHING  # nobody knows since when: better kept than deleted
    if left > 0:
        return Outcome(wake_after_seconds=min(left, WAKE_SECONDS_MAX))
    metadata = jobset.metadata
    delete = Delete(JOBSETS, metadata.name, metadata.uid, "Foreground", metadata.resource_version)
    return Outcome(actions=(delete,))


def _finished_at(jobset: JobSet) -> str | None:
    """When the JobSet was completed or failed, by the condition that says so."""
    for condition in jobset.status.conditions:
        if condition.type in (words.COMPLETED, words.FAILED) and condition.status == "True":
            return condition.last_transition_time
    return None


def _seconds_left(since: str, seconds: int, now: datetime) -> float | None:
    """In float: a deadline of 64 bits is beyond what a date can say."""
    passed = seconds_since(since, now)
    return None if passed is None else seconds - passed
