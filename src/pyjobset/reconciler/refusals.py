"""What the API server refused: kept away from until its time, and told in the condition Blocked. Pure.

Nothing that needs the refused object is created meanwhile: no Job under a PodGroup that could not be made.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pyjobset.objects import conditions as words
from pyjobset.objects.jobset import JOBS_MAX, KIND, JobSet
from pyjobset.objects.resources import CLAIMS, JOBS, POD_GROUPS, SERVICES, WORKLOADS
from pyjobset.reconciler.decision import CREATION_ORDER, Action, Create
from pyjobset.reconciler.observation import OWN_VERDICT, Refusal
from pyjobset.reconciler.outcome import ConditionChange, Outcome

WAIT_SECONDS_MAX = 600.0
"""Longer than the shell ever puts a retry off."""
RETRY_SECONDS_MAX = 300.0
"""How long the shell puts a retry off at most: people are told."""
NAMED_MAX = 3
"""Most refusals that the message names; the rest is a number. A JobSet may have a thousand Jobs."""

_CLASS = re.compile(r"no PriorityClass with name (\S+) was found")
"""What the API server says to a PodGroup whose class is missing."""

_REASONS = {
    JOBS.kind: words.JOB_CREATION_FAILED,
    SERVICES.kind: words.HEADLESS_SERVICE_CREATION_FAILED,
    CLAIMS.kind: words.PVC_CREATION_FAILED,
    WORKLOADS.kind: words.SCHEDULING_OBJECTS_RECONCILE_FAILED,
    POD_GROUPS.kind: words.SCHEDULING_OBJECTS_RECONCILE_FAILED,
}


def missing_class(refusal: Refusal) -> str:
    """The name of the PriorityClass that was not there; empty where something else is wrong."""
    found = _CLASS.search(refusal.message)
    return found[1] if found else ""


def held_back(refusals: Sequence[Refusal], now: datetime) -> Mapping[tuple[str, str], datetime]:
    """(kind, name) of the objects that are left alone, and until when."""
    return {(r.kind, r.name): r.retry_at for r in refusals if not is_due(r, now)}


def is_due(refusal: Refusal, now: datetime) -> bool:
    """A time that is too far away was taken from a clock that has been set back since: it has come."""
    return not now < refusal.retry_at <= now + timedelta(seconds=WAIT_SECONDS_MAX)


def without_refused(
    actions: Sequence[Action], refusals: Sequence[Refusal], now: datetime
) -> tuple[tuple[Action, ...], float | None]:
    """The actions to take now, and the seconds until the next refused one is due."""
    waiting = held_back(refusals, now)
    if not waiting:
        return tuple(actions), None
    kept: list[Action] = []
    first_blocked = len(CREATION_ORDER)
    for action in actions:
        if (action.resource.kind, action.name) not in waiting:
            kept.append(action)
        elif isinstance(action, Create):
            first_blocked = min(first_blocked, CREATION_ORDER.index(action.resource))
    kept = [a for a in kept if not (isinstance(a, Create) and CREATION_ORDER.index(a.resource) > first_blocked)]
    return tuple(kept), max(0.0, (min(waiting.values()) - now).total_seconds())


def blocked(refusals: Sequence[Refusal], jobset: str) -> Outcome:
    """Condition Blocked with the API server's own words, or its end. `jobset` is the JobSet's name."""
    if not refusals:
        message = "the API server accepts the JobSet's objects again"
        return Outcome(conditions=(ConditionChange(words.BLOCKED, "False", words.UNBLOCKED, message),))
    parts = [_sentence(same, f"{KIND}/{jobset}") for same in _alike(refusals)]
    if len(parts) > NAMED_MAX:
        parts = [*parts[:NAMED_MAX], f"and {len(parts) - NAMED_MAX} more"]
    if any(not (refusal.owner or refusal.code == OWN_VERDICT or missing_class(refusal)) for refusal in refusals):
        parts.append(f"what was refused is tried again within {RETRY_SECONDS_MAX / 60:g} minutes")
    reason = _REASONS.get(refusals[0].kind, words.REFUSED)
    return Outcome(conditions=(ConditionChange(words.BLOCKED, "True", reason, "; ".join(parts), is_warning=True),))


def oversized(jobset: JobSet, now: datetime) -> Refusal | None:
    """A JobSet of so many Jobs that looking at them would be the end of all others. Admission refuses it; one that was
    stored without is not worked on."""
    total = sum(max(0, replicated_job.replicas) for replicated_job in jobset.spec.replicated_jobs)
    if total <= JOBS_MAX:
        return None
    message = f"asks for {total} Jobs and is left alone: {JOBS_MAX} are the most"
    return Refusal(KIND, jobset.metadata.name, OWN_VERDICT, "", message, now)


def _alike(refusals: Sequence[Refusal]) -> list[list[Refusal]]:
    """Those with one answer together: after a refusal the others of its kind are not tried, and share it. First the
    object that the answer names."""
    groups: dict[tuple[str, ...], list[Refusal]] = {}
    for refusal in refusals:
        is_own = refusal.owner or refusal.code == OWN_VERDICT
        groups.setdefault((refusal.kind, refusal.name if is_own else "", refusal.message), []).append(refusal)
    return [sorted(same, key=lambda r: r.name not in r.message) for same in groups.values()]


def _sentence(same: Sequence[Refusal], namesake: str) -> str:
    refusal = same[0]
    what = f"{refusal.kind} {refusal.name}"
    if refusal.owner == namesake:
        return f"{what} is of an earlier JobSet of this name and is still being removed; this one goes on by itself"
    if refusal.owner:
        return f"{what} exists and belongs to {refusal.owner}; it is not touched: delete or rename one of the two"
    if refusal.code == OWN_VERDICT:
        return f"{what} {refusal.message}"
    others = f" (and {len(same) - 1} more with it)" if len(same) > 1 else ""
    again = ", and is tried again when there is one" if missing_class(refusal) else ""
    return f"{what} was refused: {refusal.message}{others}{again}"
