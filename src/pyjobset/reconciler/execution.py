"""Executions of a JobSet: the first run, and every run after a suspension or a restart (KEP-1282, KEP-1186). Pure.

It keeps status.executionAttempts and status.startTime, each under its feature gate. An attempt is counted before the
Jobs that carry its number are created or resumed: until the count is stored nothing else is done. So it is counted
exactly once, also when the controller dies in between.
"""

from dataclasses import dataclass

import msgspec

from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects.jobset import JobSetStatus
from pyjobset.reconciler.conditions import is_true, seconds_since, timestamp
from pyjobset.reconciler.view import View


@dataclass(frozen=True, slots=True)
class Execution:
    status: JobSetStatus
    must_be_stored: bool
    """Before any Job is touched."""


def execution(view: View, status: JobSetStatus) -> Execution:
    """The status of a JobSet that is neither finished nor about to restart."""
    was_suspended = is_true(status.conditions, words.SUSPENDED)
    attempts, is_counted = status.execution_attempts, gates.EXECUTION_ATTEMPTS_TRACKING in view.observation.features
    if view.is_suspended:
        # Stored before the Jobs stop: else a resume after a crash would look like the same run, and the time between
        # would be held against the deadline.
        stopped = _with_start(view, status, None)
        has_begun = stopped != status or (is_counted and attempts is not None)
        return Execution(stopped, has_begun and not was_suspended)
    begins = attempts is None or was_suspended
    must_be_stored = is_counted and begins
    if must_be_stored:
        status = msgspec.structs.replace(status, execution_attempts=0 if attempts is None else attempts + 1)
    started = status.start_time  # a suspended JobSet has none
    if started is None or seconds_since(started, view.observation.now) is None:
        started = _now(view)
    return Execution(_with_start(view, status, started), must_be_stored)


def restarted(view: View, status: JobSetStatus) -> JobSetStatus:
    """The status of a JobSet whose Jobs are all about to be created again."""
    if gates.EXECUTION_ATTEMPTS_TRACKING in view.observation.features:
        status = msgspec.structs.replace(status, execution_attempts=(status.execution_attempts or 0) + 1)
    return _with_start(view, status, None if view.is_suspended else _now(view))


def _with_start(view: View, status: JobSetStatus, started: str | None) -> JobSetStatus:
    """startTime is kept while the gate of the only field that reads it is on."""
    wanted = started if gates.ACTIVE_DEADLINE_SECONDS in view.observation.features else None
    return status if status.start_time == wanted else msgspec.structs.replace(status, start_time=wanted)


def _now(view: View) -> str:
    return timestamp(view.observation.now)
