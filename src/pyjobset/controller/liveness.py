"""Whether the controller still does its work: its event loop turns, its parts run, no worker is stuck in a JobSet.

Fed by the manager; asked from the thread of the health endpoint, which answers when the event loop cannot. It ends
nothing: Kubernetes restarts a container that says that it is not alive.
"""

import asyncio
import time
from collections.abc import Callable

from pyjobset.controller.log import Log
from pyjobset.objects.meta import Key

BEAT_SECONDS = 10.0
SILENCE_SECONDS_MAX = 30.0
"""Of the event loop. Decoding a list of a hundred thousand Jobs takes some seconds; a throttled CPU makes it more."""
RUN_SECONDS_MAX = 600.0
REQUESTS_MAX = 100_000
"""Of one run, all of them at the rate that the client is allowed. With a low rate a run may take longer."""

log = Log(__name__)


class Liveness:
    def __init__(self, qps: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._run_seconds_max = max(RUN_SECONDS_MAX, REQUESTS_MAX / qps)
        self._clock = clock
        self._beat_at = clock()
        self._parts: list[tuple[str, asyncio.Task[None]]] = []
        self._runs: dict[Key, float] = {}
        self._said = ""

    async def beat(self) -> None:
        while True:
            self._beat_at = self._clock()
            await asyncio.sleep(BEAT_SECONDS)

    def needs(self, name: str, part: asyncio.Task[None]) -> None:
        """A part that must not end. One that raises ends the manager; one that returns would not be missed."""
        self._parts.append((name, part))

    def began(self, key: Key) -> None:
        self._runs[key] = self._clock()

    def ended(self, key: Key) -> None:
        del self._runs[key]

    def problem(self) -> str:
        """Empty while it is alive. From any thread. JobSets are not named to everybody: the log has them."""
        now = self._clock()
        problem = ""
        details: dict[str, object] = {}
        stuck = [(began, key) for key, began in list(self._runs.items()) if now - began > self._run_seconds_max]
        ended = [name for name, part in list(self._parts) if part.done()]
        if now - self._beat_at > SILENCE_SECONDS_MAX:
            problem = "the event loop is blocked"
        elif ended:
            problem = f"a part has ended: {', '.join(ended)}"
        elif stuck:
            problem = f"workers are stuck: {len(stuck)}"
            details = {"jobset": min(stuck)[1], "seconds": round(now - min(stuck)[0])}
        if problem != self._said:
            self._said = problem
            log.warning("Not alive" if problem else "Alive again", problem=problem, **details)
        return problem
