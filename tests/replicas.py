"""Several controllers that elect a leader, in one virtual time: each may be paused, killed, cut off from the server.

A replica's callbacks are held while it is paused, as those of a stopped process; what it has sent arrives all the same.
Clocks differ from replica to replica. `judge` is asked before the server executes a write: only the holder of a living
Lease may write.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from pyjobset.controller.manager import Manager
from pyjobset.controller.options import LeaderElection
from pyjobset.errors import OutcomeUnknown, Unavailable
from pyjobset.kube.client import Client
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.simulation.clock import VirtualLoop
from tests.builders import NOW
from tests.controller_world import OPTIONS, manifest, until
from tests.model_server import ModelServer

ELECTION = LeaderElection(enabled=True, namespace="system")
LEASE = ("leases", ELECTION.namespace, ELECTION.name)
TAKEOVER_SECONDS = ELECTION.lease_seconds + 1.2 * ELECTION.retry_seconds + 0.1
TIMERS_SECONDS = 0.2
_PROCESS: ContextVar[str] = ContextVar("process", default="")
_SENDER: ContextVar[str] = ContextVar("sender", default="")


class PausableLoop(VirtualLoop):
    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, list[tuple[bool, Callable[..., object], Any, Context]]] = {}

    def pause(self, process: str) -> None:
        self._held.setdefault(process, [])

    def resume(self, process: str) -> None:
        """What came from outside is first, the timers that are due come a little later: nothing tells a leader early
        how late it is."""
        for is_timer, callback, arguments, context in self._held.pop(process, []):
            if is_timer:
                self.call_later(TIMERS_SECONDS, callback, *arguments, context=context)
            else:
                self.call_soon(callback, *arguments, context=context)

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        context = context or copy_context()
        return super().call_soon(self._run, False, callback, args, context, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        context = context or copy_context()
        return super().call_at(when, self._run, True, callback, args, context, context=context)

    def _run(self, is_timer: bool, callback: Any, arguments: Any, context: Context) -> None:
        held = self._held.get(_PROCESS.get())
        if held is None:
            callback(*arguments)
        else:
            held.append((is_timer, callback, arguments, context))


@dataclass
class Replica:
    world: "World"
    name: str
    fault: str = ""
    """hang, fail: nothing arrives. lose: no answer comes back."""
    delay_seconds: float = 0.0
    is_deaf: bool = False
    """Its watches tell nothing any more."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    offset: float = field(default_factory=lambda: random.uniform(-1e6, 1e6))

    def start(self) -> None:
        loop = self.world.loop
        context = copy_context()
        context.run(_PROCESS.set, self.name)
        self._outside = context.copy()
        self._outside.run(_PROCESS.set, "")
        self._outside.run(_SENDER.set, self.name)
        self.client = Client(self, qps=self.world.qps, burst=self.world.burst)
        self.manager = Manager(
            self.client,
            replace(OPTIONS, leader_election=ELECTION),
            lease_client=Client(self),
            now=lambda: NOW + timedelta(seconds=loop.time() + self.offset),
            clock=lambda: loop.time() + self.offset,
        )
        self.running = loop.create_task(self.manager.run(self.stop), context=context)

    @property
    def identity(self) -> str:
        assert self.manager._leadership is not None
        return self.manager._leadership.identity

    @property
    def is_leading(self) -> bool:
        return self.world.holder() == self.identity

    def pause(self) -> None:
        self.world.loop.pause(self.name)

    def resume(self) -> None:
        self.world.loop.resume(self.name)

    kill = pause

    # Its network: the Transport protocol

    async def send(self, request: Request) -> Response:
        if self.fault == "fail":
            raise Unavailable("connection refused")
        try:
            async with asyncio.timeout(request.timeout_seconds):
                if self.fault == "hang":
                    await asyncio.Event().wait()
                on_its_way = self.world.loop.create_task(self._deliver(request), context=self._outside.copy())
                answer = await asyncio.shield(on_its_way)
                if self.fault == "lose":
                    await asyncio.Event().wait()
                return answer
        except TimeoutError:
            raise (OutcomeUnknown if request.is_mutating else Unavailable)("no answer") from None

    async def _deliver(self, request: Request) -> Response:
        await asyncio.sleep(random.uniform(0, self.delay_seconds))
        return await self.world.server.send(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        async def heard(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            async for line in lines:
                if self.is_deaf:
                    await asyncio.Event().wait()
                yield line

        async with self.world.server.stream(request) as lines:
            yield heard(lines)

    async def close(self) -> None:
        pass


@dataclass
class World:
    server: ModelServer = field(default_factory=ModelServer)
    qps: float = 0.0
    burst: int = 1
    replicas: dict[str, Replica] = field(default_factory=dict)
    writes: list[tuple[float, str, str]] = field(default_factory=list)
    """When the server executed which write of whom."""
    violations: list[str] = field(default_factory=list)
    _lease_at: float = 0.0
    _numbers: int = 0

    def __post_init__(self) -> None:
        self.loop: Any = asyncio.get_running_loop()
        self.server.before = self.judge

    def judge(self, request: Request, plural: str) -> None:
        now, sender = self.loop.time(), _SENDER.get()
        if not request.is_mutating:
            return
        if plural == "leases":
            self._lease_at = now
            return
        self.writes.append((now, sender, str(request)))
        if self.holder() != self.replicas[sender].identity or now > self._lease_at + ELECTION.lease_seconds:
            self.violations.append(f"{now:.3f} {sender}: {request}; {self.leader()} leads")

    def add(self, name: str) -> Replica:
        made = self.replicas[name] = Replica(self, name)
        made.start()
        return made

    async def pair(self) -> tuple[Replica, Replica]:
        """A leader and a follower that is ready."""
        leader = self.add("a")
        await until(lambda: leader.is_leading)
        follower = self.add("b")
        await until(lambda: follower.manager.is_ready)
        return leader, follower

    def holder(self) -> str:
        return str(self.server.objects.get(LEASE, {}).get("spec", {}).get("holderIdentity", ""))

    def leader(self) -> str:
        return next((name for name, replica in self.replicas.items() if replica.is_leading), "nobody")

    def work(self) -> str:
        """A new JobSet. Returns the name of its last Job."""
        self._numbers += 1
        self.server.put("jobsets", manifest(f"js-{self._numbers}"))
        return f"js-{self._numbers}-w-1"

    async def is_done(self, job: str, seconds: float) -> None:
        await until(lambda: job in self.server.names("jobs"), seconds)

    async def end(self) -> None:
        for replica in self.replicas.values():
            replica.resume()
            replica.running.cancel()
        await asyncio.gather(*(r.running for r in self.replicas.values()), return_exceptions=True)


def replicated(case: Callable[[World], Any]) -> World:
    """Runs it in virtual time. Returns the world with what was written in it."""

    @asynccontextmanager
    async def made() -> AsyncIterator[World]:
        world = World()
        try:
            yield world
        finally:
            await world.end()

    async def main() -> World:
        async with made() as world:
            await case(world)
        return world

    with asyncio.Runner(loop_factory=PausableLoop) as runner:
        return runner.run(main())
