"""In-place restarts (KEP-467): which attempt the pods are in, and when there were too many. Pure; called by decide.

The agent in each pod writes the pod's attempt as an annotation. All expected pods at one attempt: it becomes the
current one, and the agents let their workers run. Else all attempts below the newest are over, and pods that are in one
restart. A suspension is no restart: the pods that follow it begin again what the last ones were in. Only status is
written here: it is all that the agents read. Jobs that failed are left to the failure policy.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects import template
from pyjobset.objects.batch import Pod
from pyjobset.objects.jobset import JobSet, JobSetStatus
from pyjobset.objects.meta import controller_of
from pyjobset.reconciler.decision import Reason
from pyjobset.reconciler.outcome import NOTHING, Outcome, failed
from pyjobset.reconciler.restarts import uncounted, uncounted_of_jobs
from pyjobset.reconciler.view import Child, State, View

DIGITS_MAX = len(str(template.INT32_MAX))
UNFINISHED = (State.LIVE, State.FAILED)
"""A failed Job ends its attempt of the JobSet, not what its pods say meanwhile."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A pod that said which attempt it is in."""

    pod: Pod
    number: int


def is_in_place(jobset: JobSet) -> bool:
    policy = jobset.spec.failure_policy
    return policy is not None and policy.restart_strategy == "InPlaceRestart"


def is_interrupted(status: JobSetStatus) -> bool:
    """Where the Jobs are stopped: pods were in the current attempt, and it was not put back yet. Equal attempts mean
    that it was, or that a restart was under way: the attempt after them is yet to begin."""
    current, previous = status.current_in_place_restart_attempt, status.previous_in_place_restart_attempt
    return current is not None and (previous is None or previous < current)


def stops(view: View) -> bool:
    """Pods of a suspended Job may still run. With in-place restarts no other Job is resumed before they are on their
    way out: what they said before the suspension would be taken for what is said after it."""
    return _is_on(view) and _some_stop(view)


def after_stop(view: View, status: JobSetStatus) -> JobSetStatus:
    """The status once all Jobs have stopped after a suspension. The attempt that their pods were in is yet to begin, so
    that a resume does not count as a restart. Stored before any Job is resumed: agents read it once, when they start.

    Where pods cannot be seen it stays: old ones would be taken for new ones."""
    if not _is_on(view) or not is_interrupted(status) or view.observation.pods is None:
        return status
    left = [child for child in view.children if child.state not in (State.MISSING, State.SUCCEEDED)]
    if not left or not all(_is_suspended(child) for child in left) or _some_stop(view):
        return status
    current = status.current_in_place_restart_attempt
    last = current - 1 if current else None
    return msgspec.structs.replace(
        status, current_in_place_restart_attempt=last, previous_in_place_restart_attempt=last
    )


def _is_suspended(child: Child) -> bool:
    return child.state is State.LIVE and child.job is not None and bool(child.job.spec.suspend)


def _some_stop(view: View) -> bool:
    """Suspended Jobs whose controller or whose pods do not show it yet. Pods have a watch of their own."""
    jobs = [child.job for child in view.children if _is_suspended(child) and child.job is not None]
    if any(job.status.active or (job.status.start_time and job.condition("Suspended") is None) for job in jobs):
        return True
    stopped = {job.metadata.uid for job in jobs}
    owners = (controller_of(pod.metadata.owner_references) for pod in view.observation.pods or () if pod.is_live)
    return any(owner is not None and owner.uid in stopped for owner in owners)


def _is_on(view: View) -> bool:
    return is_in_place(view.jobset) and gates.IN_PLACE_RESTART in view.observation.features


def in_place(view: View, status: JobSetStatus) -> tuple[Outcome, JobSetStatus]:
    """Failed where the limit is exceeded, and the status with the attempts."""
    if not _is_on(view) or view.is_suspended:
        return NOTHING, status
    if view.observation.pods is None:
        return Outcome(reasons=(Reason("in-place-restart-pods-unseen"),)), status
    pods = _pods(view, view.observation.pods)
    attempts, unreadable = _attempts(pods)
    problem = _why_too_many(view, status, pods, attempts)
    if problem:
        message = f"jobset failed due to reaching max number of restarts ({problem})"
        return failed(words.REACHED_MAX_RESTARTS, message), status
    moved = _moved(status, attempts, is_complete=_is_complete(view, pods, attempts))
    return Outcome(reasons=(*unreadable, *_news(status, moved))), moved


def _pods(view: View, pods: Iterable[Pod]) -> list[Pod]:
    """Those of the unfinished Jobs of this attempt of the JobSet, without failed ones: others take their places. Pods
    that a global restart is about to remove say nothing about the Jobs that follow them."""
    unfinished = {c.job.metadata.uid for c in view.children if c.state in UNFINISHED and c.job is not None}
    owned = ((pod, controller_of(pod.metadata.owner_references)) for pod in pods)
    return [pod for pod, owner in owned if owner and owner.uid in unfinished and pod.status.phase != "Failed"]


def _attempts(pods: Iterable[Pod]) -> tuple[list[_Attempt], tuple[Reason, ...]]:
    """What the pods say that stay. One on its way out is followed by one that begins the next attempt, or was stopped
    by a suspension that is over. What is no attempt counts as unsaid."""
    attempts: list[_Attempt] = []
    unreadable: list[str] = []
    for pod in pods:
        said = pod.metadata.annotations.in_place_restart_attempt
        if said is None or not pod.is_live:
            continue
        number = attempt_number(said)
        if number is None:
            unreadable.append(pod.metadata.name)
        else:
            attempts.append(_Attempt(pod, number))
    if not unreadable:
        return attempts, ()
    arguments = (("pods", len(unreadable)), ("first", unreadable[0]))
    return attempts, (Reason("in-place-restart-attempt-unreadable", arguments),)


def attempt_number(said: str) -> int | None:
    """An int32 that is not negative. Pods are written by their users: anything may be in an annotation."""
    if not (said.isascii() and said.isdigit() and len(said) <= DIGITS_MAX):
        return None
    number = int(said)
    return number if number <= template.INT32_MAX else None


def _is_complete(view: View, pods: list[Pod], attempts: list[_Attempt]) -> bool:
    """Every pod that still has to run is there, stays, and is in the same attempt; and there is no other. A pod that
    succeeded can neither restart nor wait: it is in every attempt."""
    unfinished = (c.expected.replicated_job for c in view.children if c.state is not State.SUCCEEDED)
    expected = sum(template.pods(replicated_job.template) for replicated_job in unfinished)
    succeeded = sum(pod.status.phase == "Succeeded" for pod in pods)
    return (
        len(pods) == expected
        and len(attempts) == expected - succeeded
        and len({attempt.number for attempt in attempts}) == 1
    )


def _moved(status: JobSetStatus, attempts: list[_Attempt], *, is_complete: bool) -> JobSetStatus:
    newest = max((attempt.number for attempt in attempts), default=0)
    if is_complete:
        return msgspec.structs.replace(status, current_in_place_restart_attempt=newest)
    previous = status.previous_in_place_restart_attempt
    if newest == 0 or (previous is not None and previous >= newest - 1):
        return status
    status = msgspec.structs.replace(status, previous_in_place_restart_attempt=newest - 1)
    current = status.current_in_place_restart_attempt
    if current is None or current < newest - 1:
        # Pods begin the attempt after the current one: where that is over too, they would restart for ever.
        status = msgspec.structs.replace(status, current_in_place_restart_attempt=newest - 1)
    return status


def _news(old: JobSetStatus, new: JobSetStatus) -> Iterator[Reason]:
    current, previous = new.current_in_place_restart_attempt, new.previous_in_place_restart_attempt
    if current is not None and current != old.current_in_place_restart_attempt:
        yield Reason("in-place-restart-attempt-runs", (("attempt", current),))
    if previous is not None and previous != old.previous_in_place_restart_attempt:
        yield Reason("in-place-restart-attempt-over", (("attempt", previous),))


def _why_too_many(view: View, status: JobSetStatus, pods: Iterable[Pod], attempts: Iterable[_Attempt]) -> str:
    """Empty while the limit holds. Each attempt is a restart, those of the JobSet and of single Jobs among them; what
    does not count there is not held against it. A container that restarts alone is one that fails before its agent can
    speak."""
    policy = view.jobset.spec.failure_policy
    assert policy is not None
    newest = max(attempts, key=lambda attempt: attempt.number, default=None)
    if newest is not None and newest.number - uncounted(view, status) > policy.max_restarts:
        return f"pod {newest.pod.metadata.name} is in in-place restart attempt {newest.number}"
    busiest = max(pods, key=_restarts, default=None)
    # Those of the whole JobSet make other pods; those of single Jobs restart the containers of all others.
    if busiest is not None and _restarts(busiest) - uncounted_of_jobs(view, status) > policy.max_restarts:
        return f"a container of pod {busiest.metadata.name} restarted {_restarts(busiest)} times"
    return ""


def _restarts(pod: Pod) -> int:
    """Of the container that restarted most often."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return max((s.restart_count for s in statuses), default=0)
