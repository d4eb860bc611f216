"""Virtual time: an event loop whose clock jumps. Where a real loop would wait, the next timer is due at once.

Code that waits runs on it unchanged, with its own asyncio calls, in no time and in the same order each time. Nothing on
it may do real I/O. Waiting with no timer set is a deadlock and is reported as such.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")

EPOCH = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
"""What the clock shows when a loop starts."""
HOURS_MAX = 48.0
TURNS_MAX = 100_000
"""Of the event loop without time going on. A world needs some dozens."""


class Deadlock(RuntimeError):
    """Everything waits, and for nothing that will come."""


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._turns = 0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout <= 0:
            self._turns += 1
            if self._turns > TURNS_MAX:
                raise Deadlock(f"{TURNS_MAX} turns of the event loop at {self.now:g} s, and time does not go on")
            return []
        self._turns = 0
        if timeout is None:
            raise Deadlock("everything waits and no timer is set")
        self.now += timeout
        if self.now > HOURS_MAX * 3600:
            raise Deadlock(f"still running after {HOURS_MAX:g} virtual hours")
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        self.tasks: list[asyncio.Task[Any]] = []
        """All that were made. asyncio.all_tasks would look through those of all loops of the process."""

    def time(self) -> float:
        return self._virtual.now

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = super().create_task(coro, **options)
        self.tasks.append(task)
        return task

    def _make_self_pipe(self) -> None:
        """No other thread wakes this loop, and a pair of sockets takes as long as a tenth of a small world."""
        self._ssock = self._csock = None

    def _close_self_pipe(self) -> None:
        pass


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs to the end in virtual time. Without asyncio.Runner: its signal handler costs a tenth of a small world."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        if left := [task for task in loop.tasks if not task.done()]:
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def now() -> datetime:
    """The time of day of the running loop, UTC."""
    return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


def timestamp() -> str:
    """Now as Kubernetes writes it: RFC 3339 in whole seconds."""
    return _timestamp(int(asyncio.get_running_loop().time()))


@lru_cache(1000)
def _timestamp(seconds: int) -> str:
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
