"""Plays a world with all checkers, and counts what was tried. Used by all tests of worlds and by soak."""

import gc
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyjobset.simulation import world
from pyjobset.simulation.checkers import ALL
from pyjobset.simulation.chooser import Chooser
from pyjobset.simulation.scenario import Scenario
from pyjobset.simulation.world import Outcome


@dataclass
class Tally:
    """What was tried."""

    worlds: int = 0
    changes: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.worlds += 1
        self.changes += len(outcome.changes)
        self.faults.update(outcome.storm.seen)

    def merge(self, other: "Tally") -> None:
        self.worlds += other.worlds
        self.changes += other.changes
        self.faults.update(other.faults)

    def lines(self) -> list[str]:
        rows = [f"{count:10,}  {kind}" for kind, count in sorted(self.faults.items())]
        return [f"{self.worlds:10,}  worlds", f"{self.changes:10,}  changes of objects", *rows]


@contextmanager
def quiet() -> Iterator[None]:
    """Without logs. The garbage collector looks at what is new, after each world (play): a world is full of cycles,
    and to find them among all that was there before would take as long as the world."""
    was, gc_was = logging.root.manager.disable, gc.isenabled()
    logging.disable(logging.CRITICAL)
    gc.disable()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        logging.disable(was)
        if gc_was:
            gc.enable()
        gc.unfreeze()


def play(
    chooser: Chooser,
    kinds: frozenset[str] | None = None,
    *,
    given: Scenario | None = None,
    crash_at: Sequence[int] = (),
) -> Outcome:
    """One world, with all checkers."""
    try:
        return world.play(chooser, kinds, checkers=ALL, given=given, crash_at=crash_at)
    finally:
        gc.collect()
