"""A token bucket: how many requests a second a client may start. Called by kube.client before each request.

While there are tokens it costs no await and no timer. Waiters are served in the order of their arrival.
"""

import asyncio
import math


class RateLimiter:
    """`burst` tokens at first, `qps` new ones a second, never more than `burst`. A qps of 0 or less: no limit."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = float(max(burst, 1))
        self._tokens = self._burst
        self._filled_at = -math.inf

    def take(self, now: float) -> float:
        """Takes a token, lent if there is none. Returns the seconds until it is really there: 0 if it is now."""
        if self._qps <= 0:
            return 0.0
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._qps)

    async def wait(self) -> None:
        """Returns when a request may start."""
        seconds = self.take(asyncio.get_running_loop().time())
        if seconds > 0.0:
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                self._tokens += 1.0
                raise
