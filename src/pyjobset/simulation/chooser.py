"""Where the choices of a world come from: a seed, what was recorded, or every combination in turn.

A world asks for everything that could go one way or another, with a word that says what it is for. Tests have one more
maker, drawn by Hypothesis. The same answers give the same world.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Chooser(Protocol):
    """The plain case, 0 or no, is the one in which nothing special happens."""

    def index(self, count: int, what: str, /) -> int:
        """One of 0 to count - 1."""
        ...

    def happens(self, percent: int, what: str, /) -> bool:
        """With this probability, where the chooser knows one."""
        ...


class Choices:
    """Words for what is asked, on top of any chooser."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser

    def one_of(self, values: Sequence[T], what: str) -> T:
        """The first one is the plain case."""
        return values[self._chooser.index(len(values), what)]

    def happens(self, percent: int, what: str) -> bool:
        return percent > 0 and self._chooser.happens(percent, what)

    def up_to(self, most: int, what: str) -> int:
        return self._chooser.index(most + 1, what)


class Seeded:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  # for worlds, not for secrets

    def index(self, count: int, _what: str, /) -> int:
        return self._random.randrange(count)

    def happens(self, percent: int, _what: str, /) -> bool:
        return self._random.randrange(100) >= 100 - percent


class Answer(NamedTuple):
    """To the question of these words that was asked as the nth of its kind, from 0."""

    what: str
    nth: int
    value: int
    """True where something happens."""


class Recorded:
    """Another chooser, whose answers are kept."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self._asked: Counter[str] = Counter()
        self.answers: list[Answer] = []

    def index(self, count: int, what: str, /) -> int:
        return self._keep(what, self._chooser.index(count, what))

    def happens(self, percent: int, what: str, /) -> bool:
        return bool(self._keep(what, self._chooser.happens(percent, what)))

    def _keep(self, what: str, value: int) -> int:
        self.answers.append(Answer(what, self._asked[what], value))
        self._asked[what] += 1
        return value

    @property
    def special(self) -> list[Answer]:
        """Those that are not plain. They are enough to replay the world."""
        return [answer for answer in self.answers if answer.value]


class Replayed:
    """Answers by the words of their questions, so that they survive new questions; to all others, the plain case."""

    def __init__(self, answers: Iterable[tuple[str, int, int]] = ()) -> None:
        self._answers = {(what, nth): value for what, nth, value in answers}
        self._asked: Counter[str] = Counter()

    def index(self, count: int, what: str, /) -> int:
        answer = self._answers.get((what, self._asked[what]), 0)
        self._asked[what] += 1
        return answer if answer < count else 0

    def happens(self, _percent: int, what: str, /) -> bool:
        return bool(self.index(2, what))


class Plain(Replayed):
    """The plain case each time: the world without anything special."""


class _Odometer:
    def __init__(self, digits: list[tuple[int, int]], most: Mapping[str, int]) -> None:
        self._digits = digits
        self._left = dict(most)
        self._at = 0

    def index(self, count: int, what: str, /) -> int:
        subject = what.partition(":")[0]
        count = count if self._left.get(subject, 1) else 1
        if self._at == len(self._digits):
            self._digits.append((0, count))
        answer, known = self._digits[self._at]
        assert known == count, f"the world is not the same each time: {what} had {known} ways, now {count}"
        self._at += 1
        if answer and subject in self._left:
            self._left[subject] -= 1
        return answer

    def happens(self, _percent: int, what: str, /) -> bool:
        return bool(self.index(2, what))


def exhaustive(most: Mapping[str, int] | None = None) -> Iterator[Chooser]:
    """A chooser for each combination of answers, the last question turning fastest. For worlds of a small scope.
    `most`: questions of these words, up to a colon, have at most so many answers in a world that are not plain."""
    digits: list[tuple[int, int]] = []
    while True:
        yield _Odometer(digits, most or {})
        while digits and digits[-1][0] == digits[-1][1] - 1:
            digits.pop()
        if not digits:
            return
        answer, count = digits[-1]
        digits[-1] = (answer + 1, count)
