"""The life of the running controller: wait for the API, fill the caches, reconcile, stop. Programs call `main`.

A change in a cache puts a JobSet in the queue (watches); workers take it out and run it (reconcile). The loss of the
API server is waited out. A part of the manager that ends by a bug ends the manager: it is restarted, never half alive.
"""

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from typing import Any

from pyjobset.controller.events import EventSender
from pyjobset.controller.gates_probe import GatesProbe
from pyjobset.controller.health import serve_health
from pyjobset.controller.log import Log, configure
from pyjobset.controller.metrics import Reviews
from pyjobset.controller.options import Options
from pyjobset.controller.pace import Pace
from pyjobset.controller.queue import Queue
from pyjobset.controller.reconcile import Reconciler, utc_now
from pyjobset.controller.refusals import Refusals
from pyjobset.controller.watches import Watches
from pyjobset.errors import JobSetError
from pyjobset.kube.cache import Cache
from pyjobset.kube.client import Client, connect
from pyjobset.objects import features as gates
from pyjobset.objects import jobset as api
from pyjobset.objects.batch import Pod
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.resources import JOBSETS
from pyjobset.reconciler.decide import needs_pods

RESYNC_SECONDS = 600.0
"""Every JobSet is looked at this often, whatever the watches said. It costs no request where all is right."""
PROBE_SECONDS = 10.0
"""How often it is looked whether the cluster began or ceased to serve the scheduling API (in memory)."""
WAIT_SECONDS_MAX = 10.0
SHUTDOWN_SECONDS = 5.0
"""For running reconciles to finish their writes. Kubernetes kills a pod 30 s after SIGTERM."""
EVENTS_SECONDS = 1.0
PODS_SECONDS = 10.0
"""How long gangs wait for the first list of pods."""
GC_THRESHOLDS = (20_000, 50, 100)
"""Objects here die by reference counting; Python's own thresholds spend 5 % of the CPU on looking for cycles."""

log = Log(__name__)


class Manager:
    """`run` is its whole life. Made inside a running event loop."""

    def __init__(self, client: Client, options: Options, *, now: Callable[[], datetime] = utc_now) -> None:
        self._client = client
        self._options = options
        self._queue = Queue()
        self._events = EventSender(client)
        self._reviews = Reviews()
        refusals, pace = Refusals(), Pace()
        self.watches = Watches(
            client,
            features=options.features,
            namespace=options.namespace,
            queue=self._queue,
            pace=pace,
            refusals=refusals,
        )
        self.caches = self.watches.caches
        self._gates = GatesProbe(client, self.caches, self.watches.wake_all)
        self.reconciler = Reconciler(
            client,
            self.caches,
            self._events,
            features=options.features,
            has_pods=self._has_pods,
            watch_nodes=self._watch_nodes,
            now=now,
            defers_suspended=options.defers_suspended,
            refusals=refusals,
            pace=pace,
            accepts=lambda: self._gates.accepts,
        )
        self.is_ready = False
        self._goes_without_pods = False
        self._parts = asyncio.TaskGroup()
        self._started: list[asyncio.Task[None]] = []
        self._busy: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set. Raises what a part of the manager raised by a bug."""
        address = self._options.health_address
        names = self._options.liveness_endpoint, self._options.readiness_endpoint
        health = None if address is None else await serve_health(address, lambda: self.is_ready, *names)
        try:
            async with self._webhooks(), self._metrics(), self._parts:
                self._start(self._live())
                await stop.wait()
                await self._finish()
                for part in self._started:
                    part.cancel()
        finally:
            if health is not None:
                health.close()

    def _webhooks(self) -> AbstractAsyncContextManager[Any]:
        """They are there before the manager is ready, and as long as it writes."""
        if self._options.webhooks is None:
            return nullcontext()
        from pyjobset.controller.webhook.dry_run import DryRun
        from pyjobset.controller.webhook.leaders import Leaders
        from pyjobset.controller.webhook.server import serving  # 4 MB that a controller without webhooks does without

        features = self._options.features
        look = DryRun(self._client, features) if self._options.dry_runs_job_templates else None
        lookup = Leaders(self._client, self.caches)
        return serving(self._options.webhooks, features, look, lookup=lookup, reviews=self._reviews)

    def _metrics(self) -> AbstractAsyncContextManager[Any]:
        if self._options.metrics is None:
            return nullcontext()
        from pyjobset.controller.metrics_page import Sources  # its library is 2 MB, and that of the server more
        from pyjobset.controller.metrics_server import serving

        client = self._client
        sources = Sources(
            self.reconciler.counters,
            self._queue,
            self.caches,
            self._reviews,
            client.answers,
            host=client.server.partition("://")[2],
            now=asyncio.get_running_loop().time,
        )
        return serving(self._options.metrics, sources, client)

    async def _live(self) -> None:
        await self._wait_served()
        self._start(self._events.run())
        for cache in self.caches.all():
            self._start(cache.run())
        for cache in self.caches.all():
            await cache.wait_synced()
        log.info("Caches synced", **{cache.resource.plural: len(cache) for cache in self.caches.all()})
        gc.freeze()  # what is cached now mostly stays: the collector need not walk it again
        # Leader election will wait here: the caches are warm and nothing has been written.
        self.is_ready = True
        for _ in range(self._options.concurrent_reconciles):
            self._start(self._work())
        if gates.WORKLOAD_AWARE_SCHEDULING in self._options.features:
            self._start(self._gates.run())
        await self._resync()

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while True:
            key = await self._queue.take()
            if self._is_stopping:
                return
            self._busy.add(task)
            try:
                after_seconds = await self.reconciler.run(key)
            finally:
                self._busy.discard(task)
            if after_seconds is not None:
                self._queue.add(key, after_seconds=after_seconds)
            self._queue.done(key)
            if self._is_stopping:
                return
            await asyncio.sleep(0)  # a run that finds nothing to do never waits: let the others have their turn

    async def _resync(self) -> None:
        was_served, since = self.caches.has_scheduling_api, 0.0
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            since += PROBE_SECONDS
            is_served = self.caches.has_scheduling_api
            if since >= RESYNC_SECONDS or is_served != was_served:
                was_served, since = is_served, 0.0
                self.caches.unwatched_claims.clear()
                self.watches.wake_all()

    async def _wait_served(self) -> None:
        """Until the server has our API. What keeps us waiting is said when it changes, not each time."""
        delay, said = 0.5, ""
        while True:
            try:
                if await self._client.serves(api.API_VERSION, JOBSETS.plural):
                    return
                problem = f"the API server does not serve {JOBSETS} {api.VERSION}: install the CustomResourceDefinition"
            except JobSetError as error:
                problem = error.message
            if problem != said:
                log.warning("Waiting for the JobSet API", problem=problem)
                said = problem
            await asyncio.sleep(delay)
            delay = min(delay * 2, WAIT_SECONDS_MAX)

    def _has_pods(self) -> bool:
        if self.caches.pods is None:
            pods = self.watches.add_pods()
            self._start(pods.run())
            self._start(self._wake_those_that_need(pods))
        return self._goes_without_pods or (self.caches.pods is not None and self.caches.pods.is_synced)

    def _watch_nodes(self) -> None:
        """Nobody waits for them: a node that is not known yet wakes who needs it when it comes."""
        if self.caches.nodes is None:
            self._start(self.watches.add_nodes().run())

    async def _wake_those_that_need(self, pods: Cache[Pod]) -> None:
        """Pods only tell how the gangs are doing: when they cannot be listed, gangs run all the same."""
        try:
            async with asyncio.timeout(PODS_SECONDS):
                await pods.wait_synced()
        except TimeoutError:
            log.warning("Pods cannot be listed: gangs run, but nothing is said of them", problem=pods.problem)
            self._goes_without_pods = True
            self.watches.wake_all(self._needs_pods)
            await pods.wait_synced()
        self.watches.wake_all(self._needs_pods)

    def _needs_pods(self, jobset: JobSet) -> bool:
        return needs_pods(jobset, self._options.features)

    async def _finish(self) -> None:
        """Lets running reconciles end their writes, and queued events go out, for a bounded time."""
        log.info("Stopping", reconciles=len(self._busy))
        self._is_stopping = True
        self.is_ready = False
        if self._busy:
            await asyncio.wait(self._busy, timeout=SHUTDOWN_SECONDS)
        try:
            async with asyncio.timeout(EVENTS_SECONDS):
                await self._events.drain()
        except TimeoutError:
            pass
        log.info("Stopped", unfinished_reconciles=len(self._busy))

    def _start(self, part: Coroutine[Any, Any, None]) -> None:
        self._started.append(self._parts.create_task(part))


def main(options: Options) -> None:
    """Runs the controller until SIGTERM or SIGINT. Raises UsageError."""
    configure(options.log_level, options.log_format, options.log_time_format, stack_traces=options.log_stack_traces)
    gc.set_threshold(*GC_THRESHOLDS)
    with asyncio.Runner(loop_factory=_event_loop_factory()) as runner:
        runner.run(_main(options))


async def _main(options: Options) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with connect(
        kubeconfig=options.kubeconfig, context=options.context, qps=options.qps, burst=options.burst
    ) as client:
        await Manager(client, options).run(stop)


def _event_loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
