"""Observation -> Decision: all ordering of a reconcile is here, one policy a file beside it. Pure; called by
controller.

Order: 1. not ours, being deleted or too large: nothing. 2. finished: stop what runs, drop the reservation, then its
TTL. 3. success policy, before 4. deadline, 5. in-place restarts and 6. failure policy, which only write status (intent
before effect). 7. a new execution is counted before 8. Jobs of older attempts go. 9. suspended, or 10. running: groups,
Service, claims, Jobs. 11. what the API server refused. 12. status. Deciding again after the actions were applied
decides nothing.
"""

import dataclasses

import msgspec

from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects import labels
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import JobSet, JobSetStatus, ReplicatedJobStatus
from pyjobset.objects.meta import Condition
from pyjobset.reconciler.claims import claims
from pyjobset.reconciler.conditions import changed, is_true
from pyjobset.reconciler.deadline import active_deadline, has_ttl, ttl
from pyjobset.reconciler.decision import Decision
from pyjobset.reconciler.execution import execution
from pyjobset.reconciler.failure import failure
from pyjobset.reconciler.gangs import gangs, suspended_gangs
from pyjobset.reconciler.in_place import after_stop, in_place, is_in_place, is_interrupted
from pyjobset.reconciler.jobs import (
    create_jobs,
    replace_jobs,
    resize_jobs,
    resume_jobs,
    stop_jobs,
    suspend_jobs,
)
from pyjobset.reconciler.observation import Observation
from pyjobset.reconciler.outcome import NOTHING, ConditionChange, Outcome
from pyjobset.reconciler.placement import is_exclusive, placement, suspended_placement
from pyjobset.reconciler.refusals import blocked, oversized, without_refused
from pyjobset.reconciler.scheduling import drop_groups, sync_groups
from pyjobset.reconciler.service import service
from pyjobset.reconciler.startup import startup
from pyjobset.reconciler.status import replicated_jobs_status, with_counts
from pyjobset.reconciler.success import success
from pyjobset.reconciler.view import View, view_of


def is_managed(managed_by: str | None) -> bool:
    """spec.managedBy names this controller, or nobody."""
    return managed_by in (None, labels.MANAGED_BY)


def is_concerned(jobset: JobSet) -> bool:
    """Is there anything to decide? Of another controller's JobSets only the TTL is ours (jobset-api: managedBy)."""
    return is_managed(jobset.spec.managed_by) or has_ttl(jobset)


def needs_pods(jobset: JobSet, features: Features) -> bool:
    """Of a running JobSet: gangs, in-place restarts and exclusive placement are judged by their pods. Of a suspended
    one until the attempt is put back that was interrupted."""
    restarts_in_place = is_in_place(jobset) and gates.IN_PLACE_RESTART in features
    if jobset.spec.suspend or jobset.status.terminal_state:
        return restarts_in_place and not jobset.status.terminal_state and is_interrupted(jobset.status)
    is_gang = jobset.spec.scheduling is not None and gates.WORKLOAD_AWARE_SCHEDULING in features
    return is_gang or restarts_in_place or is_exclusive(jobset)


def needs_nodes(jobset: JobSet) -> bool:
    """Only exclusive placement looks at the labels of nodes."""
    return is_exclusive(jobset) and not (jobset.spec.suspend or jobset.status.terminal_state)


def decide(observation: Observation) -> Decision:
    jobset = observation.jobset
    if jobset.metadata.deletion_timestamp is not None:
        return Decision()
    if not is_managed(jobset.spec.managed_by):
        left = ttl(jobset, observation.now)
        return Decision(actions=left.actions, wake_after_seconds=left.wake_after_seconds)
    too_large = oversized(jobset, observation.now)
    if too_large is not None:
        left_alone = blocked((too_large,), jobset.metadata.name) + ttl(jobset, observation.now)
        return _decision(observation, left_alone, jobset.status)
    view = view_of(observation)
    counts = replicated_jobs_status(view)
    outcome, status = _progress(view, counts, with_counts(view.jobset.status, counts))
    actions, retry_after_seconds = without_refused(outcome.actions, observation.refusals, observation.now)
    outcome += Outcome(wake_after_seconds=retry_after_seconds) + blocked(
        (*observation.refusals, *outcome.refusals), jobset.metadata.name
    )
    return _decision(observation, dataclasses.replace(outcome, actions=actions), status)


def _decision(observation: Observation, outcome: Outcome, status: JobSetStatus) -> Decision:
    conditions, events = changed(status.conditions, outcome.conditions, observation.now)
    status = msgspec.structs.replace(status, conditions=conditions, terminal_state=_terminal_state(conditions))
    return Decision(
        actions=outcome.actions,
        status=status if status != observation.jobset.status else None,
        events=outcome.events + events,
        wake_after_seconds=outcome.wake_after_seconds,
        reasons=outcome.reasons,
    )


Counts = tuple[ReplicatedJobStatus, ...]


def _progress(view: View, counts: Counts, status: JobSetStatus) -> tuple[Outcome, JobSetStatus]:
    now = view.observation.now
    if view.is_finished:
        return stop_jobs(view) + drop_groups(view) + ttl(view.jobset, now), status
    succeeded = success(view)
    if succeeded.conditions:
        return succeeded + _restart_over(view, words.JOBSET_COMPLETED), status
    expired = active_deadline(view)
    if expired.conditions:
        return expired + _restart_over(view, words.JOBSET_FAILED), status
    restarted, status = in_place(view, status)
    if restarted.conditions:
        return restarted + _restart_over(view, words.JOBSET_FAILED), status
    failed, counted = failure(view, status)
    if counted != status:
        return failed, counted
    if failed.conditions:
        return failed + _restart_over(view, words.JOBSET_FAILED), status
    stopped = after_stop(view, status)
    if stopped != status:
        return failed, stopped
    run = execution(view, status)
    if run.must_be_stored:
        return failed + (_suspension() if view.is_suspended else _resumption()), run.status
    outcome = expired + restarted + failed + replace_jobs(view)
    outcome += _suspended(view) if view.is_suspended else _running(view, counts)
    return outcome, run.status


def _suspended(view: View) -> Outcome:
    """Nothing runs, so nothing is reserved. Service and Jobs exist all the same: queueing controllers rely on it. Only
    where the Configuration defers them a JobSet that has yet to run has none (decision 29).

    Groups go once no Job is left to stop. A resume in between would find a group on its way out, held for ever by the
    pods of the Job that was never stopped, and the stopped ones would wait for it."""
    has_run = bool(view.observation.jobs) or view.jobset.status.restarts > 0
    kept = NOTHING
    if has_run or not view.observation.defers_suspended:
        storage = claims(view)
        jobs = create_jobs(view, allowed=frozenset(), groups=None) if storage.is_ready else NOTHING
        kept = service(view) + storage.outcome + jobs
    stopped = suspend_jobs(view)
    return (
        stopped
        + (NOTHING if stopped.actions else drop_groups(view))
        + kept
        + suspended_gangs(view)
        + suspended_placement(view)
        + _restart_over(view, words.JOBSET_SUSPENDED)
        + _suspension()
    )


def _running(view: View, counts: Counts) -> Outcome:
    order = startup(view, counts)
    groups = sync_groups(view)
    storage = claims(view)
    allowed = order.allowed if storage.is_ready else frozenset()
    resized = resize_jobs(view, groups=groups.growable)
    resumed = resume_jobs(view, allowed=allowed, groups=groups.ready)
    outcome = groups.outcome + service(view) + storage.outcome + placement(view, allowed=order.allowed) + resized
    outcome += create_jobs(view, allowed=allowed, groups=groups.ready) + resumed + order.outcome
    outcome += gangs(view, allowed=order.allowed)
    if resumed.actions or any(c.job is not None and not c.job.spec.suspend for c in view.children):
        outcome += _resumption()
    replicas = {rj.name: rj.replicas for rj in view.jobset.spec.replicated_jobs}
    if all(c.ready + c.succeeded == replicas[c.name] for c in counts):
        outcome += _restart_over(view, words.JOBS_READY)
    return outcome


def _suspension() -> Outcome:
    return Outcome(conditions=(ConditionChange(words.SUSPENDED, "True", words.SUSPENDED_JOBS, "jobset is suspended"),))


def _resumption() -> Outcome:
    return Outcome(conditions=(ConditionChange(words.SUSPENDED, "False", words.RESUME_JOBS, "jobset is resumed"),))


def _restart_over(view: View, reason: str) -> Outcome:
    if not is_true(view.jobset.status.conditions, words.RESTARTING_JOBSET):
        return NOTHING
    message = "the restart of the jobset is over"
    return Outcome(conditions=(ConditionChange(words.RESTARTING_JOBSET, "False", reason, message),))


def _terminal_state(conditions: tuple[Condition, ...]) -> str:
    if is_true(conditions, words.COMPLETED):
        return words.TERMINAL_COMPLETED
    return words.TERMINAL_FAILED if is_true(conditions, words.FAILED) else ""
