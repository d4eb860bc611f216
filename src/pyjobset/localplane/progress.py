"""What a person hears while a plane is built and started. The base class says nothing; `for_stream` picks a form.

The build's bar counts packages that the compiler was really given, of those that were really missing: no guess of time.
"""

import sys
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

LINE_SECONDS = 20.0


class Counter:
    """How far a build is: packages compiled of those that were missing when it began."""

    def __init__(self, missing: Collection[str]) -> None:
        self._left = set(missing)
        self.total = len(self._left)

    @property
    def done(self) -> int:
        return self.total - len(self._left)

    def compiled(self, package: str) -> None:
        self._left.discard(package)


class Progress:
    """Silent. Subclasses show what they are told."""

    def step(self, text: str) -> None:
        """Something begins or is worth knowing."""

    def build(self, what: str, done: int, total: int, seconds: float) -> None:
        """The build works on `what`, so many seconds after it began. `total` is 0 while it is not known."""

    def close(self) -> None:
        """Nothing more comes for now: leave the terminal tidy."""


class Lines(Progress):
    """Plain lines, now and then, for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last: tuple[str, float] = ("", 0.0)

    def step(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def build(self, what: str, done: int, total: int, seconds: float) -> None:
        now = time.monotonic()
        if what != self._last[0] or now - self._last[1] >= LINE_SECONDS:
            self._last = (what, now)
            amount = f"{done} of {total} packages, " if total else f"{done}, " if done else ""
            self.step(f"{what}: {amount}{clock(seconds)}")


class Terminal(Progress):
    """A bar on a terminal; steps scroll above it."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=stream, highlight=False)
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def step(self, text: str) -> None:
        self._console.print(text, markup=False)

    def build(self, what: str, done: int, total: int, seconds: float) -> None:  # noqa: ARG002 - the bar has a clock
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        if self._bar is None:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self._bar = Bar(*columns, TimeElapsedColumn(), console=self._console, transient=True)
            self._task = self._bar.add_task(what, total=total or None)
            self._bar.start()
        assert self._task is not None
        self._bar.update(self._task, description=what, completed=done, total=total or None)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def for_stream(stream: TextIO | None = None) -> Progress:
    """A bar on a terminal, lines elsewhere. The default stream is stderr: stdout is for results."""
    stream = stream or sys.stderr
    return Terminal(stream) if stream.isatty() else Lines(stream)


def clock(seconds: float) -> str:
    """`75` as `1:15`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
