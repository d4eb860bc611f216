"""The worlds would notice: each planted fault is caught by the first worlds of the default run."""

import pytest

from pyjobset.simulation.checkers import ALL
from pyjobset.simulation.chooser import Seeded
from pyjobset.simulation.world import Checker
from tests.world.mutants import MUTANTS
from tests.world.worlds import play, quiet

WORLDS_MAX = 500
"""Of the default run's twenty thousand."""


@pytest.mark.parametrize("name", [name for name, mutant in MUTANTS.items() if not mutant.is_rare])
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


@pytest.mark.parametrize("checker", ALL, ids=lambda checker: checker.__name__)
def test_every_checker_is_needed(checker: type[Checker]) -> None:
    """Some planted fault has to be told of by this one, whatever the others say."""
    assert (checker.__name__,) in [mutant.caught_by for mutant in MUTANTS.values()]


def test_there_are_enough_planted_faults() -> None:
    assert len(MUTANTS) >= 20
