"""Plays many worlds and tells of the first that ended badly, with what replays it. Used by the tests and by soak."""

import gc
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyjobset.simulation.checkers import ALL
from pyjobset.simulation.chooser import Recorded, Replayed, Seeded
from pyjobset.simulation.story import story
from pyjobset.simulation.world import Outcome, play

COLLECT_EVERY = 150
"""Worlds. They are full of cycles; looking for them after each costs a third of the time."""
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
    """Without logs and without the garbage collector, which would look after every few worlds."""
    was, gc_was = logging.root.manager.disable, gc.isenabled()
    logging.disable(logging.CRITICAL)
    gc.disable()
    try:
        yield
    finally:
        logging.disable(was)
        if gc_was:
            gc.enable()
        gc.collect()


def play_seeds(seeds: Iterable[int]) -> tuple[Tally, str]:
    """What was tried, and the report of the first bad world; empty when all ended well."""
    tally = Tally()
    with quiet():
        for number, seed in enumerate(seeds):
            outcome = play(Seeded(seed), checkers=ALL)
            tally.add(outcome)
            if outcome.violations:
                return tally, report(seed)
            if number % COLLECT_EVERY == 0:
                gc.collect()
    return tally, ""


def report(seed: int) -> str:
    """The smallest world that still ends that badly, as a story, and what replays it."""
    recorded = Recorded(Seeded(seed))
    play(recorded, checkers=ALL)
    answers = shrunk(recorded.answers)
    outcome = play(Replayed(answers), checkers=ALL)
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
        return tries <= SHRINK_TRIES_MAX and bool(play(Replayed(candidate), checkers=ALL).violations)

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
