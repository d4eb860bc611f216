"""What the API server refused to each JobSet, with the time of the next try. Filled by apply, read by observe.

decide keeps away from a refused object until that time, and tells people about it; how long it is, and when a refusal
is forgotten, is known here: when the action succeeds, when it is due but no longer wanted, when the spec changed, when
the foreign object that had the name is gone, or when the PriorityClass has come. Nothing is kept of a JobSet that is
gone.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pyjobset.controller.queue import SLOW_SECONDS, nth_delay
from pyjobset.errors import ForeignObject, Refused
from pyjobset.objects.meta import Key
from pyjobset.objects.resources import PRIORITY_CLASSES
from pyjobset.reconciler.observation import Refusal
from pyjobset.reconciler.refusals import is_due, missing_class

MESSAGE_LENGTH_MAX = 1024
"""Longer answers are cut: some list hundreds of failures, and conditions and events are bounded."""
ALREADY_EXISTS = 409
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Target = tuple[str, str]
"""Kind and name of an object."""


Place = tuple[str, Target]
"""A name of a namespace; empty for what is in none."""


class Memory:
    """The refusals of one JobSet for one generation of its spec."""

    def __init__(self, uid: str, generation: int) -> None:
        self.uid = uid
        self.generation = generation
        self._refusals: dict[Target, Refusal] = {}
        self._tries: dict[Target, int] = {}

    def refusals(self) -> tuple[Refusal, ...]:
        return tuple(self._refusals.values())

    def is_refused(self, target: Target) -> bool:
        """By the server's word, not because of a foreign object."""
        refusal = self._refusals.get(target)
        return refusal is not None and not refusal.owner

    def refuse(self, targets: Iterable[Target], error: Refused | ForeignObject, now: datetime) -> None:
        for target in targets:
            tries = self._tries.get(target, 0)
            self._tries[target] = tries + 1
            retry_at = now + timedelta(seconds=nth_delay(SLOW_SECONDS, tries))
            self._refusals[target] = _refusal(target, error, retry_at)

    def accept(self, target: Target) -> None:
        if self._refusals.pop(target, None) is not None:
            del self._tries[target]

    def forget_unwanted(self, wanted: Collection[Target], now: datetime) -> None:
        """Those that are due, so that decide was free to ask for them again, and did not."""
        for target, refusal in list(self._refusals.items()):
            if is_due(refusal, now) and target not in wanted:
                self.accept(target)

    def freed(self, target: Target) -> bool:
        """The object is gone. True if it was foreign and this JobSet waits for its name, which may be tried at once."""
        refusal = self._refusals.get(target)
        if refusal is None or not refusal.owner:
            return False
        self._refusals[target] = replace(refusal, retry_at=_LONG_AGO)
        return True

    def has_come(self, priority_class: str) -> bool:
        """True if it was missing, so that what was refused for it may be tried at once, and soon again: who refuses it
        may learn of the class a moment later than we do."""
        waiting = [target for target, refusal in self._refusals.items() if missing_class(refusal) == priority_class]
        for target in waiting:
            self._refusals[target] = replace(self._refusals[target], retry_at=_LONG_AGO)
            self._tries[target] = 0
        return bool(waiting)

    def lacks(self) -> frozenset[str]:
        """The PriorityClasses that were missing."""
        return frozenset(filter(None, map(missing_class, self._refusals.values())))

    def taken(self) -> frozenset[Target]:
        """The names that foreign objects have."""
        return frozenset(target for target, refusal in self._refusals.items() if refusal.owner)

    def told(self) -> frozenset[Refusal]:
        """The refusals as people are told about them: another try with the same answer is no news."""
        return frozenset(replace(r, retry_at=_LONG_AGO) for r in self._refusals.values())

    def wait_seconds(self, now: datetime) -> float | None:
        """Until the first of them is due; None without any."""
        refusals = self._refusals.values()
        waits = (0.0 if is_due(r, now) else (r.retry_at - now).total_seconds() for r in refusals)
        return min(waits, default=None)


class Refusals:
    """The memories of all JobSets. Those without a refusal have none."""

    def __init__(self) -> None:
        self._memories: dict[Key, Memory] = {}
        self._places: dict[Key, frozenset[Place]] = {}
        self._waiting: dict[Place, set[Key]] = {}
        """Who waits for what. Asked at every deletion of a child, so it is not searched."""

    def of(self, key: Key, uid: str, generation: int) -> Memory:
        """The JobSet's memory, an empty one when there is none for this very spec. `store` keeps it."""
        memory = self._memories.get(key)
        if memory is None or (memory.uid, memory.generation) != (uid, generation):
            return Memory(uid, generation)
        return memory

    def store(self, key: Key, memory: Memory) -> None:
        self.forget(key)
        if memory.refusals():
            self._memories[key] = memory
            taken = {(key.namespace, target) for target in memory.taken()}
            self._places[key] = frozenset(taken | {_of_class(name) for name in memory.lacks()})
            for place in self._places[key]:
                self._waiting.setdefault(place, set()).add(key)

    def forget(self, key: Key) -> None:
        self._memories.pop(key, None)
        for place in self._places.pop(key, ()):
            waiting = self._waiting.get(place, set())
            waiting.discard(key)
            if not waiting:
                self._waiting.pop(place, None)

    def freed(self, kind: str, namespace: str, name: str) -> list[Key]:
        """An object was deleted: the JobSets that waited for its name."""
        target = (kind, name)
        return [key for key in self._who_waits((namespace, target)) if self._memories[key].freed(target)]

    def class_came(self, name: str) -> list[Key]:
        """A PriorityClass is there: the JobSets that were refused for want of it."""
        return [key for key in self._who_waits(_of_class(name)) if self._memories[key].has_come(name)]

    def _who_waits(self, place: Place) -> list[Key]:
        return sorted(self._waiting.get(place, ()), key=str)


def _of_class(name: str) -> Place:
    return "", (PRIORITY_CLASSES.kind, name)


def _refusal(target: Target, error: Refused | ForeignObject, retry_at: datetime) -> Refusal:
    kind, name = target
    message = error.message
    if len(message) > MESSAGE_LENGTH_MAX:
        message = message[: MESSAGE_LENGTH_MAX - 1] + "…"
    if isinstance(error, ForeignObject):
        return Refusal(kind, name, ALREADY_EXISTS, "AlreadyExists", message, retry_at, error.owner)
    return Refusal(kind, name, error.code, error.reason, message, retry_at)
