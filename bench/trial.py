"""One trial: a controller does one work on a fresh plane, then a bare loop writes the same objects.

    1. A warm-up, so that the API server is not measured while it is cold.
    2. The controller is started and is ready; the JobSets are created; until all their objects exist.
    3. Until the JobSets have settled; then a quiet time, which should cost no request.
    4. The controller is stopped, and with `restart` one more is started among all these objects.
    5. The bare loop, in a namespace of its own.

Returns figures; judges nothing.
"""

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from bench import measure, metrics
from bench.measure import Program, Running, Usage
from bench.metrics import Calls
from bench.plane import Server
from bench.watcher import Watcher
from bench.workloads import CHILDREN, Workload, many_jobs
from pyjobset.kube.client import Client, connect
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import JOBSETS

PARALLEL = 50
"""Requests at a time: as many as the controller sends for one JobSet."""
UNLIMITED = 1_000_000
WARM_UP_JOBS = 200
NAMESPACE = "bench"
LOOP_NAMESPACE = "bare-loop"


@dataclass(frozen=True, slots=True)
class Settings:
    quiet_seconds: float = 10.0
    timeout_seconds: float = 600.0
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Loop:
    """What the bare loop of POSTs took: the time, and the CPU of this process and of the API server."""

    seconds: float
    cpu_seconds: float
    api_cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Start:
    """What a controller took until it was ready; or, with `settled`, until it had looked at all that was there."""

    ready_seconds: float
    cpu_seconds: float
    rss_peak_mib: float


@dataclass(frozen=True, slots=True)
class Trial:
    """`seconds`: from the first JobSet's creation until all objects exist. CPU: until the JobSets have settled, the
    start of the controller not counted; the API server's until the last object and the last change of a JobSet."""

    workload: Workload
    controller: str
    is_full: bool
    start: Start
    seconds: float
    cpu_seconds: float
    api_cpu_seconds: float
    rss_peak_mib: float
    calls: Calls
    quiet_calls: Calls
    loop: Loop | None = None
    restart: Start | None = None

    @property
    def cpu_ratio(self) -> float | None:
        """None: too little work to be measured."""
        return self.cpu_seconds / self.api_cpu_seconds if self.api_cpu_seconds else None

    @property
    def loop_ratio(self) -> float | None:
        return None if self.loop is None else self.seconds / self.loop.seconds


class Bench:
    """Trials on one server. The connection of the bench itself has no rate limit."""

    def __init__(self, client: Client, server: Server, *, is_full: bool, settings: Settings) -> None:
        self._client = client
        self._server = server
        self._is_full = is_full
        self._settings = settings
        self._starts = itertools.count()

    async def run(self, workload: Workload, program: Program) -> Trial:
        if not self._is_full:
            await self._warm_up()
        await self._namespace(NAMESPACE)
        with self._running(program, workload) as controller:
            trial = await self._work(workload, program, controller)
        restart = await self._restart(program, workload) if self._settings.restart else None
        loop = None if self._is_full else await self._loop(workload.children(LOOP_NAMESPACE))
        return replace(trial, restart=restart, loop=loop)

    async def _work(self, workload: Workload, program: Program, controller: Running) -> Trial:
        settings, server = self._settings, self._server
        last = Usage.of(server.pid)

        def sample() -> None:
            nonlocal last
            last = Usage.of(server.pid)

        manifests = workload.manifests(NAMESPACE)
        async with Watcher(self._client, NAMESPACE, workload.expected(), on_change=sample) as watcher:
            calls, api = await self._calls(), Usage.of(server.pid)
            own = controller.usage()
            started = time.perf_counter()
            await self._post(manifests)
            await watcher.complete(settings.timeout_seconds)
            seconds = time.perf_counter() - started
            await watcher.settled(settings.timeout_seconds, ready=self._is_full)
            usage = controller.usage()
            settled = await self._calls()
            await asyncio.sleep(settings.quiet_seconds)
            quiet = await self._calls() - settled
        return Trial(
            workload=workload,
            controller=program.name,
            is_full=self._is_full,
            start=Start(controller.ready_seconds, controller.start.cpu_seconds, controller.start.rss_peak_mib),
            seconds=seconds,
            cpu_seconds=usage.cpu_seconds - own.cpu_seconds,
            api_cpu_seconds=last.cpu_seconds - api.cpu_seconds,
            rss_peak_mib=usage.rss_peak_mib,
            calls=settled - calls,
            quiet_calls=quiet,
        )

    async def _restart(self, program: Program, workload: Workload) -> Start:
        """A controller that starts among all the objects, until it uses no more CPU."""
        with self._running(program, workload) as controller:
            usage = controller.usage()
            while True:
                await asyncio.sleep(1)
                if (now := controller.usage()).cpu_seconds - usage.cpu_seconds < 0.02:
                    return Start(controller.ready_seconds, now.cpu_seconds, now.rss_peak_mib)
                usage = now

    async def _loop(self, bodies: Sequence[Manifest]) -> Loop:
        await self._namespace(LOOP_NAMESPACE)
        api = Usage.of(self._server.pid).cpu_seconds
        cpu, started = time.process_time(), time.perf_counter()
        await self._post(bodies)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        return Loop(seconds, cpu, Usage.of(self._server.pid).cpu_seconds - api)

    async def _warm_up(self) -> None:
        await self._namespace("warm-up")
        await self._post(many_jobs("warm-up", WARM_UP_JOBS).children("warm-up"))
        await self._client.raw("DELETE", "/apis/batch/v1/namespaces/warm-up/jobs?propagationPolicy=Background")

    async def _post(self, bodies: Sequence[Manifest]) -> None:
        """Creates all, PARALLEL at a time, in their order."""
        pending: Iterator[Manifest] = iter(bodies)
        resources = {**CHILDREN, JOBSETS.kind: JOBSETS}

        async def work() -> None:
            for body in pending:
                await self._client.create(resources[body["kind"]], body["metadata"]["namespace"], body)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(PARALLEL):
                tasks.create_task(work())

    async def _namespace(self, name: str) -> None:
        body = f'{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}'
        await self._client.raw("POST", "/api/v1/namespaces", body.encode())

    async def _calls(self) -> Calls:
        return metrics.parse((await self._client.raw("GET", "/metrics")).decode())

    @contextmanager
    def _running(self, program: Program, workload: Workload) -> Iterator[Running]:
        log = self._server.directory / f"{workload.name}-{next(self._starts)}.log"
        with measure.running(program, self._server.kubeconfig, log) as controller:
            yield controller


async def run(server: Server, workload: Workload, program: Program, *, is_full: bool, settings: Settings) -> Trial:
    """One trial on a fresh plane."""
    async with connect(kubeconfig=str(server.kubeconfig), qps=UNLIMITED, burst=UNLIMITED) as client:
        return await Bench(client, server, is_full=is_full, settings=settings).run(workload, program)
