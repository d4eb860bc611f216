"""One trial: a controller does one work on a fresh plane, then a bare loop writes the same objects.

    1. A warm-up, so that the API server is not measured while it is cold.
    2. The controller is started and is ready; the JobSets are created; until all their objects exist.
    3. Until the JobSets have settled; then a quiet time, which should cost no request.
    4. The controller is stopped, and with `restart` one more is started among all these objects.
    5. On a bare plane the loop, in a namespace of its own.

Returns figures; judges nothing.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bench import measure, metrics
from bench.measure import Program, Running, Usage
from bench.metrics import Calls
from bench.plane import Kind, Server
from bench.watcher import Watcher
from bench.workloads import CHILDREN, Workload, many_jobs
from pyjobset.kube.client import Client, connect
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import JOBS, JOBSETS

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

    @property
    def cpu_ratio(self) -> float | None:
        return _ratio(self.cpu_seconds, self.api_cpu_seconds)


@dataclass(frozen=True, slots=True)
class Start:
    """What a controller took until it was ready; or, with `settled`, until it had looked at all that was there."""

    ready_seconds: float
    cpu_seconds: float
    rss_peak_mib: float


@dataclass(frozen=True, slots=True)
class Trial:
    """`seconds`: from the first JobSet's creation, or failure, until all objects exist. CPU: from then until all has
    settled; the API server's until the last object and the last change of a JobSet."""

    workload: Workload
    plane: Kind
    controller: str
    start: Start
    objects: int
    """That the controller had to create."""
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
        return _ratio(self.cpu_seconds, self.api_cpu_seconds)

    @property
    def loop_ratio(self) -> float | None:
        return None if self.loop is None else self.seconds / self.loop.seconds


def _ratio(cpu_seconds: float, api_cpu_seconds: float) -> float | None:
    """None: too little work to be measured."""
    return cpu_seconds / api_cpu_seconds if api_cpu_seconds else None


class Bench:
    """Trials on one server. The connection of the bench itself has no rate limit."""

    def __init__(self, client: Client, server: Server, kind: Kind, settings: Settings) -> None:
        self._client = client
        self._server = server
        self._kind = kind
        self._is_full = kind == "full"
        self._settings = settings
        self._starts = itertools.count()

    async def run(self, workload: Workload, program: Program) -> Trial:
        if self._kind == "bare":
            await self._warm_up()
        await self._namespace(NAMESPACE)
        with self._running(program, workload) as controller:
            trial = await self._work(workload, program, controller)
        restart = await self._restart(program, workload) if self._settings.restart else None
        loop = await self._loop(workload.children(LOOP_NAMESPACE)) if self._kind == "bare" else None
        return replace(trial, restart=restart, loop=loop)

    async def _work(self, workload: Workload, program: Program, controller: Running) -> Trial:
        settings, server = self._settings, self._server
        last = Usage.of(server.pid)

        def sample() -> None:
            nonlocal last
            last = Usage.of(server.pid)

        expected = workload.expected()
        manifests = workload.manifests(NAMESPACE)
        async with Watcher(self._client, NAMESPACE, expected, on_change=sample) as watcher:
            if workload.restart_strategy:
                await self._post(manifests)
                await watcher.complete(settings.timeout_seconds)
                await watcher.settled(settings.timeout_seconds, ready=self._is_full)
                expected = Counter({JOBS.kind: workload.jobs})
                watcher.expect_more(expected)
            calls, api = await self._calls(), Usage.of(server.pid)
            own = controller.usage()
            started = time.perf_counter()
            await (self._fail(manifests) if workload.restart_strategy else self._post(manifests))
            await watcher.complete(settings.timeout_seconds)
            seconds = time.perf_counter() - started
            await watcher.settled(settings.timeout_seconds, ready=self._is_full)
            usage = controller.usage()
            settled = await self._calls()
            await asyncio.sleep(settings.quiet_seconds)
            quiet = await self._calls() - settled
        return Trial(
            workload=workload,
            plane=self._kind,
            controller=program.name,
            start=Start(controller.ready_seconds, controller.start.cpu_seconds, controller.start.rss_peak_mib),
            objects=expected.total(),
            seconds=seconds,
            cpu_seconds=usage.cpu_seconds - own.cpu_seconds,
            api_cpu_seconds=last.cpu_seconds - api.cpu_seconds,
            rss_peak_mib=usage.rss_peak_mib,
            calls=settled - calls,
            quiet_calls=quiet,
        )

    async def _fail(self, jobsets: Sequence[Manifest]) -> None:
        """Makes the first Job of each JobSet fail, as the Job controller would say it."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        reason = {"status": "True", "reason": "BackoffLimitExceeded", "message": "", "lastTransitionTime": now}
        conditions = [{"type": kind, **reason} for kind in ("FailureTarget", "Failed")]
        status = {"startTime": now, "failed": 1, "conditions": conditions}
        for jobset in jobsets:
            name = f"{jobset['metadata']['name']}-{jobset['spec']['replicatedJobs'][0]['name']}-0"
            body = {"status": status}
            await self._client.patch(JOBS, NAMESPACE, name, body, kind="merge", subresource="status")

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


async def run(server: Server, kind: Kind, workload: Workload, program: Program, settings: Settings) -> Trial:
    """One trial on a fresh plane."""
    async with connect(kubeconfig=str(server.kubeconfig), qps=UNLIMITED, burst=UNLIMITED) as client:
        return await Bench(client, server, kind, settings).run(workload, program)
