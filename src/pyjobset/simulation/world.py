"""One world: the real controller on the model cluster, a scenario, faults; until it is healed, still, and quiet.

    1. The storm: the scenario's steps, with the faults that are on, for STORM_SECONDS.
    2. Healing: no more faults, one controller that lives. Now the world must come to rest.
    3. Stillness: nothing was written for a while. Then a quiet time, in which nothing may be written.

Checkers see every change, and the end. What they find are violations, told with the story of the world.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pyjobset.controller.manager import Manager
from pyjobset.controller.options import LeaderElection, Options
from pyjobset.errors import NotLeading
from pyjobset.kube.client import Client
from pyjobset.objects import features as gates
from pyjobset.objects.meta import Manifest
from pyjobset.simulation import clock, faults
from pyjobset.simulation.chooser import Choices, Chooser
from pyjobset.simulation.collector import Collector
from pyjobset.simulation.extras import with_extras
from pyjobset.simulation.faults import FaultyTransport, Storm
from pyjobset.simulation.jobs import JobController
from pyjobset.simulation.kubelet import Kubelet
from pyjobset.simulation.scenario import NAMESPACE, Scenario, scenario
from pyjobset.simulation.scheduler import Scheduler
from pyjobset.simulation.server import Server
from pyjobset.simulation.store import Change, Store
from pyjobset.simulation.strangers import KEPT, Strangers
from pyjobset.simulation.users import act

STORM_SECONDS = 30.0
STILL_SECONDS = 330.0
"""Longer than the controller ever waits before it tries something again."""
REST_SECONDS_MAX = 1500.0
QUIET_SECONDS = 700.0
"""Longer than the controller's resync."""
QUIET_PERCENT = 5
"""Of the worlds have such a time in the end: it costs more than all the rest."""
CRASHES_MAX = 3
BYSTANDERS: Mapping[str, Manifest] = {
    "services": {"metadata": {"name": KEPT}, "spec": {"clusterIP": "None"}},
    "podgroups": {"metadata": {"name": KEPT}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}},
}
"""What is somebody else's, in the same namespace."""
GATES = (gates.WORKLOAD_AWARE_SCHEDULING, gates.RESTART_JOB, gates.ELASTIC_JOBSET)
ELECTION = LeaderElection(
    enabled=True, namespace=NAMESPACE, lease_seconds=12.0, renew_deadline_seconds=8.0, retry_seconds=4.0
)
CUT_SECONDS = 14.0
"""Longer than a lease: another one leads by then."""
REPLICAS_PERCENT = 4
"""Of the worlds in which leaders may change have two replicas: renewing costs more than all the rest."""


@dataclass
class Checker:
    """Looks for one kind of wrong. `see` and `end` call `report`."""

    store: Store
    scenario: Scenario
    storm: Storm
    report: Callable[[str], None]

    def __post_init__(self) -> None:
        """What the checker remembers."""

    def see(self, change: Change) -> None:
        """Every change, in order, after it was made."""

    def rest(self) -> None:
        """Nothing was written for a while: from now on nothing may be."""

    def end(self) -> None:
        """The world is still, and nothing can go wrong any more. It runs no longer."""


@dataclass
class Outcome:
    scenario: Scenario
    store: Store
    storm: Storm
    changes: list[Change] = field(default_factory=list)
    """All of them, also those that the server has forgotten."""
    violations: list[str] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    """Effective ones of each controller process."""


def play(
    chooser: Chooser,
    kinds: frozenset[str] | None = None,
    *,
    checkers: Sequence[type[Checker]],
    given: Scenario | None = None,
    crash_at: Sequence[int] = (),
) -> Outcome:
    """Runs a world to its end, in virtual time. `kinds` are the faults that there may be; None: some, chosen, since a
    fault hides what would happen without it. `given` is the scenario, else it is chosen too; `crash_at` makes one
    controller process after the other die after so many effective writes, whatever the chooser says."""
    before = random.getstate()
    random.seed(0)  # the client's jitter: the same world goes the same way each time
    try:
        world = _World(chooser, kinds, checkers, given, crash_at)
        outcome = clock.run(world.run())
        for checker in world.checkers:
            checker.end()
        return outcome
    finally:
        random.setstate(before)


class _World:
    def __init__(
        self,
        chooser: Chooser,
        kinds: frozenset[str] | None,
        checkers: Sequence[type[Checker]],
        given: Scenario | None,
        crash_at: Sequence[int],
    ) -> None:
        self._choices = Choices(chooser)
        self._kinds = _some_of(self._choices) if kinds is None else kinds
        self._made_with = checkers
        self._scenario = given or with_extras(self._choices, scenario(self._choices))
        self._has_replicas = faults.HANDOVER in self._kinds and self._choices.happens(REPLICAS_PERCENT, "two replicas")
        self._crash_at = list(crash_at)
        self._transports: list[FaultyTransport] = []
        self._skew = timedelta()

    async def run(self) -> Outcome:
        self._server = server = Server()
        asyncio.get_running_loop().set_exception_handler(self._failed)
        self._storm = Storm(self._choices, self._kinds if self._has_replicas else self._kinds - {faults.HANDOVER})
        outcome = Outcome(self._scenario, server.store, self._storm)
        self._strangers = Strangers(server, self._choices)
        self._report = outcome.violations.append
        self.checkers = [
            make(server.store, self._scenario, self._storm, self._reporter(make)) for make in self._made_with
        ]
        self._changes = outcome.changes
        server.store.listen(self._remember)
        for checker in self.checkers:
            server.store.listen(checker.see)
        workers = [Collector(server), JobController(server), Scheduler(server), Kubelet(server, self._scenario.fate)]
        for worker in workers:
            worker.start()
        try:
            async with asyncio.TaskGroup() as tasks:
                script = tasks.create_task(self._script())
                controllers = tasks.create_task(self._controllers())
                await asyncio.sleep(STORM_SECONDS)
                self._storm.heal()
                server.unserved.clear()
                self._strangers.leave()
                await script
                await self._rest()
                controllers.cancel()
        finally:
            for worker in workers:
                worker.stop()
        outcome.writes = [transport.writes for transport in self._transports]
        return outcome

    def _remember(self, change: Change) -> None:
        """What is renewed all the time says nothing about a JobSet."""
        if change.name.plural != "leases":
            self._changes.append(change)

    def _failed(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A fault of the model, or something that it does not model: it may not pass as a good end."""
        self._report(f"Model: {context['message']}: {context.get('exception')!r}")

    def _reporter(self, make: type[Checker]) -> Callable[[str], None]:
        return lambda text: self._report(f"{make.__name__}: {text}")

    # What the users do

    async def _script(self) -> None:
        for plural, bystander in BYSTANDERS.items():
            with self._server.store.acting("bystander"):
                self._server.create(plural, NAMESPACE, bystander)
        self._server.create("jobsets", NAMESPACE, self._scenario.jobset)
        for step in self._scenario.steps:
            await asyncio.sleep(max(0.0, step.at - asyncio.get_running_loop().time()))
            act(self._server, self._scenario, step)

    # What becomes of the controller

    async def _controllers(self) -> None:
        """One replica, or two of which one leads (where leaders may change)."""
        asides = asyncio.create_task(self._asides())
        replicas = [asyncio.create_task(self._replica()) for _ in range(1 + self._has_replicas)]
        try:
            await asyncio.gather(*replicas)
        finally:
            for task in (asides, *replicas):
                await _ended(task)

    async def _replica(self) -> None:
        """One process after the other. A new one knows nothing of what the last one did."""
        while True:
            transport = self._transport(may_crash=self._storm.seen[faults.CRASH] < CRASHES_MAX)
            living = asyncio.create_task(self._live(transport))
            crash = asyncio.create_task(transport.crashed.wait())
            try:
                await asyncio.wait((living, crash), return_when=asyncio.FIRST_COMPLETED)
                if living.done():
                    living.result()
                self._storm.seen[faults.CRASH] += crash.done()
            finally:
                await _ended(crash)
                await _ended(living)

    def _when_to_crash(self) -> int:
        if self._crash_at:
            return self._crash_at.pop(0)
        if faults.CRASH not in self._kinds or not self._choices.happens(40, "does the controller crash"):
            return 0
        return 1 + self._choices.up_to(15, "after which write")

    def _transport(self, *, may_crash: bool = True) -> FaultyTransport:
        number = len(self._transports) + 1
        crash_at = self._when_to_crash() if may_crash else 0
        made = FaultyTransport(self._server, self._storm, f"controller-{number}", crash_at=crash_at)
        self._transports.append(made)
        return made

    async def _live(self, transport: FaultyTransport) -> None:
        """Returns when it lost its leadership."""
        loop = asyncio.get_running_loop()
        async with Client(transport) as client:
            manager = Manager(
                client,
                self._options(),
                now=lambda: clock.now() + self._skew,
                clock=loop.time,
                cpu_clock=lambda: 0.0,
            )
            try:
                await manager.run(asyncio.Event())
            except* NotLeading:
                await asyncio.sleep(1.0)  # of the virtual clock, until its container is started again

    def _options(self) -> Options:
        features = gates.resolve(dict.fromkeys((*GATES, *self._scenario.gates), True))
        election = ELECTION if self._has_replicas else LeaderElection(enabled=False)
        return Options(health_address=None, features=features, leader_election=election)

    async def _asides(self) -> None:
        """Faults that are no request's: of the clock, of others in the namespace, of the API, of who leads."""
        while not self._storm.is_over and self._storm.kinds.intersection(faults.ASIDES):
            await asyncio.sleep(1.0)
            match self._storm.fault(faults.ASIDES, 15):
                case faults.CLOCK:
                    self._skew = timedelta(seconds=self._choices.one_of((0, 30, -30, 3600), "clock"))
                case faults.FOREIGN:
                    self._strangers.edit()
                case faults.REFUSED:
                    self._strangers.refuse()
                case faults.TAKEN:
                    self._strangers.take()
                case faults.UNSERVED:
                    self._server.unserved ^= {"workloads", "podgroups"}
                    self._server.end_watches()
                case faults.HANDOVER:
                    self._choices.one_of(self._transports[-2:], "who is cut off").cut(CUT_SECONDS)
        self._skew = timedelta()

    # The end

    async def _rest(self) -> None:
        """Waits until nothing is written, then longer, and nothing may be."""
        changes, loop = self._changes, asyncio.get_running_loop()
        begin = loop.time()
        while (left := max(begin, changes[-1].at) + STILL_SECONDS - loop.time()) > 0:
            await asyncio.sleep(left)
            if loop.time() - begin > REST_SECONDS_MAX:
                return
        for checker in self.checkers:
            checker.rest()
        await asyncio.sleep(QUIET_SECONDS if self._choices.happens(QUIET_PERCENT, "a long quiet time") else 0)


def _some_of(choices: Choices) -> frozenset[str]:
    return frozenset(kind for kind in faults.KINDS if choices.happens(50, f"may there be {kind}"))


async def _ended(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
