"""The work queue: which JobSet runs next, and when. Keyed by name, so that all events of one JobSet are one run.

A key is idle, waiting for its time, ready, or running; it is never run twice at once. An addition while it waits can
only bring it forward; one while it runs makes it wait again afterwards. Ready keys run in the order in which they
became ready. Filled by the watches and by the workers. Knows nothing of JobSets, and never drops an addition.
"""

import asyncio
import random

from pyjobset.controller.metrics import Histogram
from pyjobset.errors import OutcomeUnknown, Raced, Unavailable
from pyjobset.objects.meta import Key


class Queue:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        self._is_ready: dict[Key, float] = {}
        """Since when."""
        self._waiting: dict[Key, tuple[float, asyncio.TimerHandle]] = {}
        self._running: dict[Key, float | None] = {}
        """The time at which a running key must run again, if it must."""
        self.adds = 0
        """How often a key became ready."""
        self.waits = Histogram()
        """How long ready keys waited to be taken."""

    def add(self, key: Key, *, after_seconds: float = 0.0) -> None:
        """Run `key` no later than `after_seconds` from now."""
        due = self._loop.time() + after_seconds
        if key in self._running:
            again = self._running[key]
            self._running[key] = due if again is None else min(again, due)
        elif key not in self._is_ready:
            self._schedule(key, due)

    async def take(self) -> Key:
        """The next ready key, which is running from now on until `done`."""
        key = await self._ready.get()
        self.waits.observe(self._loop.time() - self._is_ready.pop(key))
        self._running[key] = None
        return key

    def done(self, key: Key) -> None:
        due = self._running.pop(key)
        if due is not None:
            self._schedule(key, due)

    def __len__(self) -> int:
        """Keys that are ready or running: the work at hand."""
        return len(self._is_ready) + len(self._running)

    @property
    def depth(self) -> int:
        """Keys that wait for a worker."""
        return len(self._is_ready)

    def _schedule(self, key: Key, due: float) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None:
            if waiting[0] <= due:
                return
            waiting[1].cancel()
            del self._waiting[key]
        if due <= self._loop.time():
            self._make_ready(key)
        else:
            self._waiting[key] = (due, self._loop.call_at(due, self._wake, key))

    def _wake(self, key: Key) -> None:
        del self._waiting[key]
        self._make_ready(key)

    def _make_ready(self, key: Key) -> None:
        self.adds += 1
        self._is_ready[key] = self._loop.time()
        self._ready.put_nowait(key)


RACED_SECONDS = (0.0, 0.005, 1.0)
UNAVAILABLE_SECONDS = (0.1, 0.2, 30.0)
SLOW_SECONDS = (5.0, 10.0, 300.0)
"""First delay, second delay, longest delay; from the second on it doubles."""


class Backoff:
    """How long a JobSet waits after a failed run, by who must act; the count starts again after a run that worked."""

    def __init__(self) -> None:
        self._failures: dict[Key, int] = {}

    def delay_seconds(self, key: Key, error: Exception) -> float:
        """Counts the failure. A race is retried at once the first time; a bug and a refusal slowly."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        if isinstance(error, Raced):
            return nth_delay(RACED_SECONDS, failures)
        if isinstance(error, Unavailable | OutcomeUnknown):
            # Spread by up to a fifth, so that what failed together does not come back together.
            delay = nth_delay(UNAVAILABLE_SECONDS, failures) * random.uniform(0.8, 1.2)  # noqa: S311
            wish = error.retry_after_seconds if isinstance(error, Unavailable) else None
            return max(delay, wish or 0.0)
        return nth_delay(SLOW_SECONDS, failures)

    def forget(self, key: Key) -> None:
        self._failures.pop(key, None)


def nth_delay(seconds: tuple[float, float, float], failures: int) -> float:
    """The delay after `failures` earlier failures in a row."""
    first, second, most = seconds
    if failures == 0:
        return first
    return min(second * 2.0 ** min(failures - 1, 32), most)
