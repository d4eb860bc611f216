"""Worlds that Hypothesis draws: other mixtures than seeds make, the same ones each time. It makes them small too."""

import json
import re
from collections.abc import Callable

import pytest

from pyjobset.simulation.chooser import Replayed
from tests.world.drawn import first_bad
from tests.world.mutants import MUTANTS
from tests.world.reports import report
from tests.world.worlds import Tally, play, quiet

WORLDS = 150
ANSWERS_MAX = 3
"""Of a world that is as small as may be and starts too early: two ReplicatedJobs, with an order."""


def test_drawn_worlds_end_well(record_property: Callable[[str, object], None]) -> None:
    tally = Tally()
    with quiet():
        world = first_bad(WORLDS, tally)
    record_property("tried", {"worlds drawn by Hypothesis": tally.worlds, "changes of objects": tally.changes})
    assert world is None, report(world)
    assert tally.worlds >= WORLDS
    assert len(tally.faults) > 10


def test_a_bad_world_is_told_small_and_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS["everybody starts at once"].plant(monkeypatch)
    with quiet():
        world = first_bad(WORLDS, Tally())
        assert world is not None
        text = report(world)
        replay = re.search(r"python -m tests.world.soak --replay '(.*)'", text)
        assert replay, text
        answers = json.loads(replay[1])
        assert len(world.answers) > len(answers) <= ANSWERS_MAX, text
        assert {"ReplicatedJobs", "order of startup"} <= {what for what, _, _ in answers}
        assert re.search(r"^VIOLATION Startup: .* starts before", text, re.MULTILINE), text
        assert re.search(r"^ +[0-9.]+ s  controller-1 +added +jobs js-b-0", text, re.MULTILINE), text
        assert play(Replayed(answers)).violations
        monkeypatch.undo()
        assert not play(Replayed(answers)).violations
