"""Where the choices of a world come from: a seed, a list that is replayed, or every combination in turn.

A world asks for everything that could go one way or another, by number, with a word that says what it is for. Tests
have one more maker, drawn by Hypothesis. The same answers give the same world.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Chooser(Protocol):
    def index(self, count: int, what: str, /) -> int:
        """One of 0 to count - 1. 0 is the plain case: nothing special happens."""
        ...


class Choices:
    """Words for what is asked, on top of any chooser."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser

    def one_of(self, values: Sequence[T], what: str) -> T:
        """The first one is the plain case."""
        return values[self._chooser.index(len(values), what)]

    def happens(self, percent: int, what: str) -> bool:
        """With this probability, where the chooser knows one."""
        return self._chooser.index(100, what) >= 100 - percent if percent else False

    def up_to(self, most: int, what: str) -> int:
        return self._chooser.index(most + 1, what)


class Seeded:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  # for worlds, not for secrets

    def index(self, count: int, _what: str, /) -> int:
        return self._random.randrange(count)


class Plain:
    """The plain case each time: the world without anything special."""

    def index(self, _count: int, _what: str, /) -> int:
        return 0


class Recorded:
    """Another chooser, whose answers are kept."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self.answers: list[int] = []

    def index(self, count: int, what: str, /) -> int:
        answer = self._chooser.index(count, what)
        self.answers.append(answer)
        return answer


class Replayed:
    """Answers from a list; where it ends, or does not fit any more, the plain case."""

    def __init__(self, answers: Sequence[int]) -> None:
        self._answers = iter(answers)

    def index(self, count: int, _what: str, /) -> int:
        answer = next(self._answers, 0)
        return answer if answer < count else 0


class _Odometer:
    def __init__(self, digits: list[tuple[int, int]]) -> None:
        self._digits = digits
        self._at = 0

    def index(self, count: int, what: str, /) -> int:
        if self._at == len(self._digits):
            self._digits.append((0, count))
        answer, known = self._digits[self._at]
        assert known == count, f"the world is not the same each time: {what} had {known} ways, now {count}"
        self._at += 1
        return answer


def exhaustive() -> Iterator[Chooser]:
    """A chooser for each combination of answers, the last question turning fastest. For worlds of a small scope."""
    digits: list[tuple[int, int]] = []
    while True:
        yield _Odometer(digits)
        while digits and digits[-1][0] == digits[-1][1] - 1:
            digits.pop()
        if not digits:
            return
        answer, count = digits[-1]
        digits[-1] = (answer + 1, count)
