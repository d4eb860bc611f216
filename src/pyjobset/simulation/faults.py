"""What can go wrong between the controller and the API server, put in below the real client, at the transport.

Each kind can be off. Which request or line of a watch meets a fault is asked of the chooser. When the storm is over
(`heal`), everything is delivered at once and nothing goes wrong any more.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pyjobset.errors import OutcomeUnknown, Unavailable
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.simulation.chooser import Choices
from pyjobset.simulation.server import Refusal, Server, parse

LOST_REQUEST, LOST_REPLY = "lost-request", "lost-reply"
CONFLICT, THROTTLED, BROKEN, SLOW = "conflict", "throttled", "broken", "slow"
LATE, DOUBLED, CUT, EXPIRED = "late", "doubled", "cut", "expired"
CRASH, CLOCK, HANDOVER, FOREIGN, UNSERVED = "crash", "clock-jump", "two-leaders", "foreign-edit", "api-missing"
REFUSED, TAKEN, OVERDUE = "refused", "name-taken", "overdue"

OF_REQUESTS = (LOST_REQUEST, LOST_REPLY, CONFLICT, THROTTLED, BROKEN, SLOW, OVERDUE)
OF_WATCHES = (LATE, DOUBLED, CUT, EXPIRED)
ASIDES = (CLOCK, FOREIGN, UNSERVED, HANDOVER, REFUSED, TAKEN)
"""No request's."""
KINDS = (*OF_REQUESTS[:-1], *OF_WATCHES, CRASH, CLOCK, HANDOVER, FOREIGN, UNSERVED, REFUSED, TAKEN, OVERDUE)
"""In the order in which a world is asked whether there may be any. A new one comes last."""

FAULT = "is there a fault"
"""What is asked, with what it would happen to."""
REQUEST_PERCENT = 15
LINE_PERCENT = 15
SLOW_SECONDS = 3.0
LATE_SECONDS = 4.0
OVERDUE_SECONDS = 6.0
"""A write is executed so long after its sender gave it up: it waited somewhere on the way."""


class Storm:
    """Which kinds of fault there are in a world, and how many happened."""

    def __init__(self, choices: Choices, kinds: frozenset[str]) -> None:
        self.choices = choices
        self.kinds = kinds
        self.seen: Counter[str] = Counter()
        self._over = asyncio.Event()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def heal(self) -> None:
        self._over.set()

    def fault(self, kinds: tuple[str, ...], percent: int, where: str = "aside") -> str:
        """One of these kinds, or nothing."""
        possible = [kind for kind in kinds if kind in self.kinds]
        if self.is_over or not possible or not self.choices.happens(percent, f"{FAULT}: {where}"):
            return ""
        kind = self.choices.one_of(possible, f"which fault: {where}")
        self.seen[kind] += 1
        return kind

    async def pause(self, seconds: float) -> None:
        """Waits so long, or until the storm is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            pass


class FaultyTransport:
    """The connection of one controller process. `crash_at`: it dies after so many writes that changed something."""

    def __init__(self, server: Server, storm: Storm, actor: str, *, crash_at: int = 0) -> None:
        self.crashed = asyncio.Event()
        self.writes = 0
        """Those that changed something."""
        self._server = server
        self._storm = storm
        self._actor = actor
        self._crash_at = crash_at
        self._cut_until = 0.0
        self._overdue: list[asyncio.Task[None]] = []

    def cut(self, seconds: float) -> None:
        """Nothing gets through for so long, or until the storm is over."""
        self._cut_until = asyncio.get_running_loop().time() + seconds

    async def send(self, request: Request) -> Response:
        await self._alive()
        if await self._is_cut():
            raise _lost(request)
        await asyncio.sleep(0.001)
        kind = self._storm.fault(OF_REQUESTS, REQUEST_PERCENT, f"{request.method} {_plural(request)}")
        if kind == SLOW:
            await self._storm.pause(SLOW_SECONDS)
        elif kind == LOST_REQUEST:
            await self._storm.pause(SLOW_SECONDS)
            raise _lost(request)
        elif kind == OVERDUE and request.method in ("PATCH", "DELETE"):
            self._overdue.append(asyncio.create_task(self._execute_late(request)))
            await self._storm.pause(SLOW_SECONDS)
            raise _lost(request)
        elif kind == CONFLICT and request.method in ("PATCH", "DELETE"):
            return Refusal(409, "Conflict", "the object has been modified; please apply your changes again").response
        elif kind == THROTTLED:
            refused = Refusal(429, "TooManyRequests", "too many requests")
            return Response(429, refused.response.body, {"retry-after": "1"})
        elif kind == BROKEN:
            return Refusal(500, "InternalError", "an error on the server").response
        response = await self._answer(request, is_late=kind == SLOW)
        if kind == LOST_REPLY:
            await self._storm.pause(SLOW_SECONDS)
            raise _lost(request)
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        await self._alive()
        plural = _plural(request)
        if self._storm.fault((BROKEN,), REQUEST_PERCENT, f"watch of {plural}"):
            raise Unavailable("the watch could not be opened")
        async with self._server.stream(request) as lines:
            yield self._lines(lines, f"event of {plural}")

    async def close(self) -> None:
        pass

    async def _execute_late(self, request: Request) -> None:
        """Whatever has become of the process that sent it."""
        await self._storm.pause(SLOW_SECONDS + OVERDUE_SECONDS)
        with self._server.store.acting(f"{self._actor} {LATE}"):
            self._server.answer(request)

    async def _answer(self, request: Request, *, is_late: bool) -> Response:
        before = self._server.store.version
        with self._server.store.acting(f"{self._actor} {LATE}" if is_late else self._actor):
            response = self._server.answer(request)
        if request.is_mutating and self._server.store.version != before and not _is_aside(request.path):
            self.writes += 1
            if self.writes == self._crash_at:
                self.crashed.set()
        await self._alive()
        return response

    async def _lines(self, lines: AsyncIterator[bytes], what: str) -> AsyncIterator[bytes]:
        async for line in lines:
            await self._alive()
            await self._is_cut()
            kind = self._storm.fault(OF_WATCHES, LINE_PERCENT, what)
            if kind == LATE:
                await self._storm.pause(LATE_SECONDS)
            elif kind == DOUBLED and not line.startswith(b'{"type":"BOOKMARK"'):
                yield line  # no server repeats the end of a list
            elif kind in (CUT, EXPIRED):
                if kind == EXPIRED:
                    self._server.store.compact()
                raise Unavailable("the watch was cut")
            yield line

    async def _is_cut(self) -> bool:
        left = self._cut_until - asyncio.get_running_loop().time()
        if left <= 0 or self._storm.is_over:
            return False
        await self._storm.pause(left)
        return True

    async def _alive(self) -> None:
        """A process that is dead says and hears nothing any more."""
        if self.crashed.is_set():
            await asyncio.Event().wait()


def _plural(request: Request) -> str:
    return parse(request.path)[0] or "discovery"


def _is_aside(path: str) -> bool:
    """Of events and leases, which are about no JobSet's life."""
    return "/events" in path or "/leases" in path


def _lost(request: Request) -> Exception:
    if request.is_mutating:
        return OutcomeUnknown(f"{request}: no answer")
    return Unavailable(f"{request}: no answer")
