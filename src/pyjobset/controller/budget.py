"""How often a JobSet may write the same thing before it is slowed down: two who undo each other's work never stop.

A life of a JobSet writes each thing once, or once an attempt; a big one has many runs, each about other objects. So it
is the same write again that counts: the same create, delete or patch, or a status with the same words. Asked by a
reconcile. Decides nothing about JobSets; a changed spec or a new attempt starts with a full budget.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from pyjobset.controller.queue import SLOW_SECONDS, nth_delay
from pyjobset.objects.jobset import JobSet, JobSetStatus
from pyjobset.objects.meta import Key
from pyjobset.reconciler.decision import Action, JsonPatch, Patch

SAME_WRITES_MAX = 10
"""Of one thing, in WINDOW_SECONDS."""
WINDOW_SECONDS = 60.0
"""Also how long a JobSet must be still, after its last hold, until nothing is held against it."""
SAME_WRITES_AFTER_HOLD = 2
"""A step of a real repair, such as a delete and a create, is not cut in two by the next hold."""
RESOLUTION_SECONDS = 0.01
RUNS_IN_A_ROW_MAX = 16
"""Runs that each ask for another at once. A JobSet settles in two or three."""


@dataclass(slots=True)
class _Spent:
    attempt: Hashable
    since: float
    still_since: float
    """The last write, or the end of the hold."""
    writes: Counter[int] = field(default_factory=Counter)
    in_a_row: int = 0
    holds: int = 0


class Budget:
    def __init__(self) -> None:
        self._spent: dict[Key, _Spent] = {}
        """Of the JobSets that wrote lately."""
        self._swept = 0.0

    def hold_seconds(self, key: Key, attempt: Hashable, now: float) -> float:
        """How long the JobSet is still held. 0: it may run."""
        spent = self._spent.get(key)
        left = 0.0 if spent is None or spent.attempt != attempt else spent.still_since - now
        # A timer may fire a rounding error early: waiting for that would be a loop that never ends.
        return left if left > RESOLUTION_SECONDS else 0.0

    def spend(
        self, key: Key, attempt: Hashable, writes: Iterable[Hashable], *, asks_again: bool, now: float
    ) -> float | None:
        """A run ended. The seconds that the JobSet is held, None: it is not."""
        self._sweep(now)
        hashes = [hash(write) for write in writes]
        spent = self._spent.get(key)
        if not hashes and not asks_again:
            if spent is not None:
                spent.in_a_row = 0
            return None
        if spent is None or spent.attempt != attempt or _is_forgotten(spent, now):
            # Only the runs in a row go on: they are what a decision that restarts for ever has in common.
            in_a_row = spent.in_a_row if spent is not None else 0
            spent = self._spent[key] = _Spent(attempt, since=now, still_since=now, in_a_row=in_a_row)
        elif now - spent.since >= WINDOW_SECONDS and not spent.holds:
            spent.writes.clear()
            spent.since = now
        spent.still_since = now
        spent.in_a_row = spent.in_a_row + 1 if asks_again else 0
        spent.writes.update(hashes)
        most = max((spent.writes[h] for h in hashes), default=0)
        if most <= SAME_WRITES_MAX and spent.in_a_row <= RUNS_IN_A_ROW_MAX:
            return None
        seconds = nth_delay(SLOW_SECONDS, spent.holds)
        spent.holds += 1
        spent.still_since = now + seconds
        for write in spent.writes:
            spent.writes[write] = min(spent.writes[write], SAME_WRITES_MAX - SAME_WRITES_AFTER_HOLD)
        return seconds

    def forget(self, key: Key) -> None:
        self._spent.pop(key, None)

    def _sweep(self, now: float) -> None:
        if now - self._swept >= WINDOW_SECONDS:
            self._swept = now
            for key in [key for key, spent in self._spent.items() if _is_forgotten(spent, now)]:
                del self._spent[key]


def _is_forgotten(spent: _Spent, now: float) -> bool:
    return now - spent.still_since > WINDOW_SECONDS


def attempt_of(jobset: JobSet) -> Hashable:
    """What a user or a failure changes, and nobody who undoes our work: the spec and the restarts."""
    status = jobset.status
    single = tuple(repr(s.job_restarts) for s in status.replicated_jobs_status)
    return (jobset.metadata.uid, jobset.metadata.generation, status.restarts, single)


def write_of(action: Action) -> Hashable:
    """Two actions with the same one write the same thing. A quorum that follows its pods is another each time."""
    what = repr(action.patch) if isinstance(action, Patch) else ""
    if isinstance(action, JsonPatch):
        what = repr(action.operations)
    return (type(action).__name__, action.resource.kind, action.name, what)


def write_of_status(status: JobSetStatus) -> Hashable:
    """Its words and attempts, without times, messages and counts. Each attempt of a JobSet is its user's doing, as pods
    that restart in place say theirs."""
    words = tuple((c.type, c.status, c.reason) for c in status.conditions)
    attempts = (status.restarts, status.execution_attempts)
    in_place = (status.previous_in_place_restart_attempt, status.current_in_place_restart_attempt)
    return (words, status.terminal_state, attempts, in_place)
