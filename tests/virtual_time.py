"""An event loop whose clock jumps: where a real loop would wait, the next timer is due at once.

For tests of code that waits, with its own unchanged asyncio calls. Nothing in it may do real I/O. Waiting with no timer
set is a deadlock, reported as such.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

HOURS_MAX = 48.0


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError("deadlock: everything waits and no timer is set")
        self.now += timeout
        if self.now > HOURS_MAX * 3600:
            raise RuntimeError(f"still running after {HOURS_MAX:g} virtual hours")
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs to the end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
