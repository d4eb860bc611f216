"""Worlds whose choices Hypothesis draws, so that it makes a bad one small: fewer things happen in it, and plainer ones.

Used to draw worlds (test_drawn) and to shrink one that a seed made (reports).
"""

from collections.abc import Iterable, Sequence

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase, choices_to_bytes
from hypothesis.errors import NoSuchExample

from pyjobset.simulation.chooser import Answer, Chooser, Recorded, Replayed
from pyjobset.simulation.world import Outcome
from tests.world.worlds import Tally, play

SETTINGS = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
ANSWERS_MAX = 300
"""Drawn for a world; to what is asked after them, the plain case. Most worlds ask less."""


class World:
    """Not a dataclass: Hypothesis would print all that happened in it."""

    def __init__(self, answers: Sequence[Answer], outcome: Outcome) -> None:
        self.answers = answers
        self.outcome = outcome

    def __repr__(self) -> str:
        return f"a world with {len(self.answers)} special answers"


class Drawn:
    """A byte for each question. A smaller one is a plainer answer."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = iter(numbers)

    def index(self, count: int, _what: str, /) -> int:
        return next(self._numbers, 0) * count // 256

    def happens(self, percent: int, what: str, /) -> bool:
        return self.index(100, what) >= 100 - percent


def played(chooser: Chooser) -> World:
    recorded = Recorded(chooser)
    outcome = play(recorded)
    return World(recorded.special, outcome)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    size = draw(st.integers(0, ANSWERS_MAX))
    return played(Drawn(draw(st.binary(min_size=size, max_size=size))))


def first_bad(most: int, tally: Tally) -> World | None:
    """The first of so many drawn worlds that ends badly. It is not shrunk: `shrunk` knows better what can go."""

    def is_bad(world: World) -> bool:
        tally.add(world.outcome)
        return bool(world.outcome.violations)

    try:
        return find(worlds(), is_bad, settings=settings(SETTINGS, max_examples=most, phases=(Phase.generate,)))
    except NoSuchExample:
        return None


def shrunk(answers: Sequence[Answer]) -> World:
    """The smallest world that also ends badly, from the special answers of one that does."""

    def lessened(values: Sequence[int]) -> World:
        return played(Replayed((what, nth, value) for (what, nth, _), value in zip(answers, values, strict=True)))

    smaller = st.tuples(*(st.integers(0, answer.value) for answer in answers)).map(lessened)
    key, database = b"world", InMemoryExampleDatabase()
    # one number too many: what fits exactly counts as shrunk already
    database.save(key, choices_to_bytes([*(int(answer.value) for answer in answers), 0]))
    how = settings(SETTINGS, database=database, derandomize=False, phases=(Phase.reuse, Phase.shrink))
    try:
        return find(smaller, lambda world: bool(world.outcome.violations), settings=how, database_key=key)
    except NoSuchExample:
        return played(Replayed(answers))
