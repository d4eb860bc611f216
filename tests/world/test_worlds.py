"""The real controller in worlds of faults. simulation/checkers says what must always hold, this how much is tried."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pyjobset.simulation.chooser import Plain, Replayed, Seeded
from pyjobset.simulation.ending import ending
from pyjobset.simulation.story import line, story
from pyjobset.simulation.world import Outcome
from tests.world.mutants import MUTANTS
from tests.world.reports import play_seeds
from tests.world.worlds import play, quiet

WORLDS = int(os.environ.get("JOBSET_WORLDS", "18000"))
"""Of seeds. With those of a small scope, the drawn ones and the crash points it is more than twenty thousand."""
SHARDS = 40
REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.json"))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_worlds_end_well(shard: int, record_property: Callable[[str, object], None]) -> None:
    """Every world comes to rest, and nothing forbidden ever happens in it."""
    size = WORLDS // SHARDS
    tally, problem = play_seeds(range(shard * size, (shard + 1) * size))
    record_property("tried", {"worlds": tally.worlds, "changes of objects": tally.changes, **tally.faults})
    assert not problem, problem
    assert tally.worlds == size


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_a_world_that_once_ended_badly(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends well now, and badly where the fault is made again: else its answers have lost their meaning."""
    kept = json.loads(path.read_text())
    with quiet():
        outcome = play(Replayed(kept["answers"]))
        assert not outcome.violations, "\n".join(story(outcome))
        mutant = MUTANTS[kept["mutant"]]
        mutant.plant(monkeypatch)
        told = {text.split(":")[0] for text in play(Replayed(kept["answers"])).violations}
    assert told & set(mutant.caught_by), f"{kept['why']}: not so in this world any more"


def test_rare_faults_have_a_kept_world() -> None:
    kept = {json.loads(path.read_text())["mutant"] for path in REGRESSIONS}
    assert {name for name, mutant in MUTANTS.items() if mutant.is_rare} <= kept


@pytest.mark.parametrize("seed", [0, 7, 102])
def test_the_same_seed_is_the_same_world(seed: int) -> None:
    with quiet():
        first, second = (play(Seeded(seed)) for _ in range(2))
    assert told(first) == told(second)
    assert first.storm.seen == second.storm.seen


def told(outcome: Outcome) -> list[str]:
    """Without events: their names hold the time of day."""
    return [line(change) for change in outcome.changes if change.name.plural != "events"]


def test_worlds_differ() -> None:
    """A world in which nothing happens would pass every checker."""
    with quiet():
        outcomes = [play(Seeded(seed)) for seed in range(60)]
    terminal = {json.dumps(ending(outcome.store), default=str, sort_keys=True) for outcome in outcomes}
    assert len(terminal) > 20
    assert sum(bool(outcome.storm.seen) for outcome in outcomes) > 40
    assert any(line(c) for outcome in outcomes for c in outcome.changes if c.actor.startswith("controller-2"))


def test_the_plain_world_has_no_faults() -> None:
    with quiet():
        outcome = play(Plain(), frozenset())
    assert not outcome.violations
    assert not outcome.storm.seen
    assert ending(outcome.store)["jobsets/js"][1]["terminalState"] == "Completed"
