"""Plays many worlds and tells of the first that ended badly, with what replays it. Used by the tests and by soak."""

import gc
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyjobset.simulation import world
from pyjobset.simulation.checkers import ALL
from pyjobset.simulation.chooser import Chooser, Recorded, Replayed, Seeded
from pyjobset.simulation.scenario import Scenario
from pyjobset.simulation.story import story
from pyjobset.simulation.world import Outcome

SHRINK_TRIES_MAX = 300


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


def play_seeds(seeds: Iterable[int]) -> tuple[Tally, str]:
    """What was tried, and the report of the first bad world; empty when all ended well."""
    tally = Tally()
    with quiet():
        for seed in seeds:
            outcome = play(Seeded(seed))
            tally.add(outcome)
            if outcome.violations:
                return tally, report(seed)
    return tally, ""


def report(seed: int) -> str:
    """The smallest world that still ends that badly, as a story, and what replays it."""
    recorded = Recorded(Seeded(seed))
    play(recorded)
    answers = shrunk(recorded.answers)
    outcome = play(Replayed(answers))
    return "\n".join(
        [
            f"seed {seed}: python -m tests.world.soak --seed {seed}",
            f"shrunk, for tests/world/regressions/: {json.dumps(answers, separators=(',', ':'))}",
            *story(outcome),
        ]
    )


def shrunk(answers: Sequence[int]) -> list[int]:
    """Fewer and plainer answers with a violation all the same: the end cut off, then blocks made plain."""
    best, tries = list(answers), 0

    def is_bad(candidate: list[int]) -> bool:
        nonlocal tries
        tries += 1
        return tries <= SHRINK_TRIES_MAX and bool(play(Replayed(candidate)).violations)

    size = len(best)
    while size > 1:
        size //= 2
        while len(best) > size and is_bad(best[:-size]):
            best = best[:-size]
    size = max(1, len(best) // 2)
    while size:
        for start in range(0, len(best), size):
            candidate = [*best[:start], *([0] * len(best[start : start + size])), *best[start + size :]]
            if candidate != best and is_bad(candidate):
                best = candidate
        size //= 2
    while best and best[-1] == 0:
        best.pop()
    return best
