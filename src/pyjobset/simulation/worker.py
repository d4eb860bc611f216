"""What the model controllers have in common: changes wake keys, and each key is looked at once, a little later.

Level-triggered, as the real ones are: a look reads the server and does what is lacking. Everything runs on the virtual
clock, so that the same world always goes the same way.
"""

import asyncio
from collections.abc import Callable

from pyjobset.simulation.server import Server
from pyjobset.simulation.store import Change, Name


class Worker:
    """`wakes` says which keys a change concerns, `look` does what one of them needs."""

    def __init__(self, server: Server, *, delay_seconds: float) -> None:
        self.server = server
        self.delay_seconds = delay_seconds
        self.is_stopped = False
        """A controller of the cluster that is down. It catches up when it is back."""
        self._due: dict[Name, asyncio.TimerHandle] = {}
        self._end: Callable[[], None] = lambda: None

    def start(self) -> None:
        self._end = self.server.store.listen(self._changed)

    def stop(self) -> None:
        self._end()
        for timer in self._due.values():
            timer.cancel()
        self._due.clear()

    def wake(self, key: Name, *, after_seconds: float | None = None) -> None:
        """Looks at the key after the delay, or at a later time that it asked for itself."""
        loop = asyncio.get_running_loop()
        at = loop.time() + (self.delay_seconds if after_seconds is None else after_seconds)
        timer = self._due.get(key)
        if timer is not None and timer.when() <= at:
            return
        if timer is not None:
            timer.cancel()
        self._due[key] = loop.call_at(at, self._run, key)

    def wakes(self, change: Change) -> tuple[Name, ...]:
        raise NotImplementedError

    def look(self, key: Name) -> None:
        raise NotImplementedError

    def _changed(self, change: Change) -> None:
        for key in self.wakes(change):
            self.wake(key)

    def _run(self, key: Name) -> None:
        del self._due[key]
        if self.is_stopped:
            self.wake(key, after_seconds=1.0)
        else:
            with self.server.store.acting(type(self).__name__):
                self.look(key)
