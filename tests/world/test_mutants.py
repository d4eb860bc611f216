"""The worlds would notice: each planted fault is caught by the first worlds of the default run."""

import pytest

from pyjobset.simulation.chooser import Seeded
from tests.world.mutants import MUTANTS
from tests.world.worlds import play, quiet

WORLDS_MAX = 500
"""Of the default run's twenty thousand."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    mutant.plant(monkeypatch)
    told: set[str] = set()
    with quiet():
        for seed in range(WORLDS_MAX):
            told |= {text.split(":")[0] for text in play(Seeded(seed)).violations}
            if told & set(mutant.caught_by):
                return
    pytest.fail(f"not caught in {WORLDS_MAX} worlds by {', '.join(mutant.caught_by)}; others: {sorted(told)}")


def test_there_are_enough_planted_faults() -> None:
    assert len(MUTANTS) >= 20
