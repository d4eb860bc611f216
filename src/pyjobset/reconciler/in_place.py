"""In-place restarts (KEP-467): which attempt the pods are in, and when there were too many. Pure; called by decide.

The agent in each pod writes the pod's attempt as an annotation. All expected pods at one attempt: it becomes the
current one, and the agents let their workers run. Else all attempts below the newest are over, and pods that are in one
restart. Only status is written here: it is all that the agents read. Jobs that failed are left to the failure policy.
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
from pyjobset.reconciler.view import State, View

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


def in_place(view: View, status: JobSetStatus) -> tuple[Outcome, JobSetStatus]:
    """Failed where the limit is exceeded, and the status with the attempts."""
    is_on = is_in_place(view.jobset) and gates.IN_PLACE_RESTART in view.observation.features
    if not is_on or view.is_suspended:
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
    """What the pods say that are not over. What is no attempt counts as unsaid."""
    attempts: list[_Attempt] = []
    unreadable: list[str] = []
    for pod in pods:
        said = pod.metadata.annotations.in_place_restart_attempt
        if said is None or pod.status.phase == "Succeeded":
            continue
        number = _number(said)
        if number is None:
            unreadable.append(pod.metadata.name)
        else:
            attempts.append(_Attempt(pod, number))
    if not unreadable:
        return attempts, ()
    arguments = (("pods", len(unreadable)), ("first", unreadable[0]))
    return attempts, (Reason("in-place-restart-attempt-unreadable", arguments),)


def _number(said: str) -> int | None:
    """An int32 that is not negative. Pods are written by their users: anything may be in an annotation."""
    if not (said.isascii() and said.isdigit() and len(said) <= DIGITS_MAX):
        return None
    number = int(said)
    return number if number <= template.INT32_MAX else None


def _is_complete(view: View, pods: list[Pod], attempts: list[_Attempt]) -> bool:
    """Every pod that still has to run is there, stays, and is in the same attempt; and there is no other.

    A pod that succeeded can neither restart nor wait: it is in every attempt. One on its way out is about to be
    replaced by a pod that begins the next attempt.
    """
    unfinished = (c.expected.replicated_job for c in view.children if c.state is not State.SUCCEEDED)
    expected = sum(template.pods(replicated_job.template) for replicated_job in unfinished)
    succeeded = sum(pod.status.phase == "Succeeded" for pod in pods)
    return (
        len(pods) == expected
        and len(attempts) == expected - succeeded
        and len({attempt.number for attempt in attempts}) == 1
        and not any(attempt.pod.metadata.deletion_timestamp for attempt in attempts)
    )


def _moved(status: JobSetStatus, attempts: list[_Attempt], *, is_complete: bool) -> JobSetStatus:
    newest = max((attempt.number for attempt in attempts), default=0)
    if is_complete:
        return msgspec.structs.replace(status, current_in_place_restart_attempt=newest)
    previous = status.previous_in_place_restart_attempt
    if newest == 0 or (previous is not None and previous >= newest - 1):
        return status
    return msgspec.structs.replace(status, previous_in_place_restart_attempt=newest - 1)


def _news(old: JobSetStatus, new: JobSetStatus) -> Iterator[Reason]:
    current, previous = new.current_in_place_restart_attempt, new.previous_in_place_restart_attempt
    if current is not None and current != old.current_in_place_restart_attempt:
        yield Reason("in-place-restart-attempt-runs", (("attempt", current),))
    if previous is not None and previous != old.previous_in_place_restart_attempt:
        yield Reason("in-place-restart-attempt-over", (("attempt", previous),))


def _why_too_many(view: View, status: JobSetStatus, pods: Iterable[Pod], attempts: Iterable[_Attempt]) -> str:
    """Empty while the limit holds. Each attempt is a restart, global ones among them; those of global restarts that do
    not count are not held against it. A container that restarts alone is one that fails before its agent can speak."""
    policy = view.jobset.spec.failure_policy
    assert policy is not None
    uncounted = status.restarts - status.restarts_count_towards_max
    newest = max(attempts, key=lambda attempt: attempt.number, default=None)
    if newest is not None and newest.number - uncounted > policy.max_restarts:
        return f"pod {newest.pod.metadata.name} is in in-place restart attempt {newest.number}"
    busiest = max(pods, key=_restarts, default=None)
    if busiest is not None and _restarts(busiest) > policy.max_restarts:
        return f"a container of pod {busiest.metadata.name} restarted {_restarts(busiest)} times"
    return ""


def _restarts(pod: Pod) -> int:
    """Of the container that restarted most often."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return max((s.restart_count for s in statuses), default=0)
