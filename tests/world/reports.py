"""Plays the worlds of seeds and tells of the first that ended badly, with what replays it and what keeps it."""

import json
from collections.abc import Iterable

from pyjobset.simulation.chooser import Seeded
from pyjobset.simulation.story import story
from tests.world.drawn import World, played, shrunk
from tests.world.worlds import Tally, quiet


def play_seeds(seeds: Iterable[int]) -> tuple[Tally, str]:
    """What was tried, and the report of the first bad world; empty when all ended well."""
    tally = Tally()
    with quiet():
        for seed in seeds:
            world = played(Seeded(seed))
            tally.add(world.outcome)
            if world.outcome.violations:
                return tally, f"seed {seed}: python -m tests.world.soak --seed {seed}\n{report(world)}"
    return tally, ""


def report(world: World) -> str:
    """The smallest world that still ends badly, as a story."""
    small = shrunk(world.answers)
    answers = json.dumps(small.answers, separators=(",", ":"))
    return "\n".join(
        [
            f"shrunk: python -m tests.world.soak --replay '{answers}'",
            "to keep it, put these answers into tests/world/regressions/ (tests/README.md)",
            *story(small.outcome),
        ]
    )
