"""The life of the running controller: wait for the API, fill the caches, lead, reconcile, stop. Programs call `main`.

A change in a cache puts a JobSet in the queue (watches); workers take it out and run it (reconcile). The loss of the
API server is waited out. A part of the manager that ends by a bug ends the manager, and so does the loss of leadership:
it is restarted, never half alive.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pyjobset.controller.events import EventSender
from pyjobset.controller.gates_probe import GatesProbe
from pyjobset.controller.health import serving_health
from pyjobset.controller.lease import Leadership, steady_seconds
from pyjobset.controller.liveness import Liveness
from pyjobset.controller.log import Log, configure
from pyjobset.controller.metrics import Reviews
from pyjobset.controller.options import NAMESPACE, Options
from pyjobset.controller.pace import Pace
from pyjobset.controller.queue import Queue
from pyjobset.controller.reconcile import Reconciler, utc_now
from pyjobset.controller.refusals import Refusals
from pyjobset.controller.signals import install
from pyjobset.controller.watches import Watches
from pyjobset.errors import JobSetError
from pyjobset.kube.cache import Cache
from pyjobset.kube.client import Client, connect
from pyjobset.kube.cluster import own_namespace
from pyjobset.objects import features as gates
from pyjobset.objects import jobset as api
from pyjobset.objects.batch import Pod
from pyjobset.objects.jobset import JobSet, JobSetStatus
from pyjobset.objects.resources import JOBSETS
from pyjobset.reconciler.decide import needs_nodes, needs_pods

if TYPE_CHECKING:
    from pyjobset.controller.certificates.keeper import Keeper

RESYNC_SECONDS = 600.0
"""Every JobSet is looked at this often, whatever the watches said. It costs no request where all is right."""
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

    def __init__(
        self,
        client: Client,
        options: Options,
        *,
        lease_client: Client | None = None,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = steady_seconds,
        cpu_clock: Callable[[], float] = time.thread_time,
        on_synced: Callable[[], None] = lambda: None,
    ) -> None:
        """With leader election, `lease_client` is for the Lease alone: nothing else may hold up a renewal.
        `on_synced` is called when the caches show all that the server has."""
        self._client = client
        self._options = options
        self._queue = Queue()
        self._leadership: Leadership | None = None
        writing = client
        if options.leader_election.enabled:
            leadership = Leadership(lease_client or client, options.leader_election, clock=clock, now=now)
            self._leadership, writing = leadership, client.permitted(leadership.permit)
        self._events = EventSender(writing)
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
        self._gates = GatesProbe(writing, self.caches, self.watches.wake_all)
        self.reconciler = Reconciler(
            writing,
            self.caches,
            self._events,
            features=options.features,
            has_pods=self._has_pods,
            watch_nodes=self._watch_nodes,
            watch_classes=self._watch_classes,
            now=now,
            cpu_clock=cpu_clock,
            defers_suspended=options.defers_suspended,
            refusals=refusals,
            pace=pace,
            accepts=lambda: self._gates.accepts,
        )
        self._liveness = Liveness(options.qps)
        self._certificates = self._keeper()
        self._missing = {"webhooks", "caches"}
        """What is waited for before it is ready."""
        self._goes_without_pods = False
        self._parts = asyncio.TaskGroup()
        self._started: list[asyncio.Task[None]] = []
        self._busy: set[asyncio.Task[None]] = set()
        self._on_synced = on_synced
        self._is_stopping = False
        self._unfinished = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set. Raises what a part of the manager raised: NotLeading, or a bug."""
        with self._health():
            async with self._webhooks(), self._metrics():
                self._missing.discard("webhooks")
                async with self._parts:
                    self._start(self._liveness.beat(), "heartbeat")
                    if self._certificates is not None:
                        self._start(self._certificates.run(), "certificates")
                    self._start(self._live(), "resync")
                    await stop.wait()
                    await self._finish()
                    for part in self._started:
                        part.cancel()
                await self._hand_over()

    @property
    def is_ready(self) -> bool:
        return not self.unready()

    def unready(self) -> str:
        """Why it is not ready; empty when it is. A follower is ready as a leader is: its webhooks are as good."""
        if self._is_stopping:
            return "stopping"
        has_certificate = self._certificates is None or self._certificates.is_ready()
        missing = sorted(self._missing | (set() if has_certificate else {"certificates"}))
        return f"waiting for {' and '.join(missing)}" if missing else ""

    def unhealthy(self) -> str:
        """Why it should be restarted; empty while it works."""
        return "" if self._is_stopping else self._liveness.problem()

    def leads(self) -> dict[str, bool]:
        """Whether this replica leads, by the Lease; empty without leader election."""
        leadership = self._leadership
        return {} if leadership is None else {self._options.leader_election.name: leadership.is_leading}

    def _health(self) -> AbstractContextManager[Any]:
        options = self._options
        if options.health_address is None:
            return nullcontext()
        names = options.liveness_endpoint, options.readiness_endpoint
        return serving_health(options.health_address, self.unhealthy, self.unready, *names)

    def _keeper(self) -> "Keeper | None":
        webhooks = self._options.webhooks
        if webhooks is None or webhooks.certificates is not None:
            return None
        from pyjobset.controller.certificates.keeper import Keeper  # 11 MB, for cryptography

        return Keeper(self._client, self._options.certificates, own_namespace() or NAMESPACE, webhooks.tls)

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
        tls = None if self._certificates is None else self._certificates.context
        return serving(self._options.webhooks, features, look, lookup=lookup, reviews=self._reviews, tls=tls)

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
            leads=self.leads,
        )
        return serving(self._options.metrics, sources, client)

    async def _live(self) -> None:
        await self._wait_served()
        self._start(self._events.run(), "events")
        for cache in self.caches.all():
            self._start(cache.run(), f"watch of {cache.resource.plural}")
        for cache in self.caches.all():
            await cache.wait_synced()
        log.info("Caches synced", **{cache.resource.plural: len(cache) for cache in self.caches.all()})
        self._on_synced()
        self._missing.discard("caches")
        if self._leadership is not None:
            await self._lead(self._leadership)
        self.reconciler.found = frozenset(j.metadata.uid for j in self.caches.jobsets if j.status == JobSetStatus())
        for _ in range(self._options.concurrent_reconciles):
            self._start(self._work(), "worker")
        if gates.WORKLOAD_AWARE_SCHEDULING in self._options.features:
            self._start(self._gates.run(), "probe of gates")
        await self._resync()

    async def _lead(self, leadership: Leadership) -> None:
        following = self._start(self._follow())
        await leadership.acquire()
        following.cancel()
        self._start(leadership.keep(), "leader election")
        self.watches.wake_all()

    async def _follow(self) -> None:
        """Runs no JobSet. It looks which caches they need, so that those are warm when it leads."""
        while True:
            key = await self._queue.take()
            jobset = self.caches.jobsets.get(key.namespace, key.name)
            if jobset is not None and self._needs_pods(jobset):
                self._has_pods()
            if jobset is not None and needs_nodes(jobset):
                self._watch_nodes()
            self._queue.done(key)
            await asyncio.sleep(0)

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while True:
            key = await self._queue.take()
            if self._is_stopping:
                return
            self._busy.add(task)
            self._liveness.began(key)
            try:
                after_seconds = await self.reconciler.run(key)
            finally:
                self._liveness.ended(key)
                self._busy.discard(task)
            if after_seconds is not None:
                self._queue.add(key, after_seconds=after_seconds)
            self._queue.done(key)
            if self._is_stopping:
                return
            await asyncio.sleep(0)  # a run that finds nothing to do never waits: let the others have their turn

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(RESYNC_SECONDS)
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
            self._start(pods.run(), "watch of pods")
            self._start(self._wake_those_that_need(pods))
        return self._goes_without_pods or (self.caches.pods is not None and self.caches.pods.is_synced)

    def _watch_nodes(self) -> None:
        """Nobody waits for them: a node that is not known yet wakes who needs it when it comes."""
        if self.caches.nodes is None:
            self._start(self.watches.add_nodes().run(), "watch of nodes")

    def _watch_classes(self) -> None:
        if self.caches.priority_classes is None:
            self._start(self.watches.add_priority_classes().run(), "watch of priority classes")

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
        if self._busy:
            await asyncio.wait(self._busy, timeout=SHUTDOWN_SECONDS)
        self._unfinished = len(self._busy)
        try:
            async with asyncio.timeout(EVENTS_SECONDS):
                await self._events.drain()
        except TimeoutError:
            pass
        log.info("Stopped", unfinished_reconciles=self._unfinished)

    async def _hand_over(self) -> None:
        """After the last write. One that was given up may still arrive: then others wait for the end of the Lease."""
        if self._leadership is None:
            return
        if self._unfinished:
            log.warning("Lease not released: it ends by itself", unfinished_reconciles=self._unfinished)
        else:
            await self._leadership.release()

    def _start(self, part: Coroutine[Any, Any, None], needed: str = "") -> asyncio.Task[None]:
        """`needed` is the name of a part that must not end."""
        task = self._parts.create_task(part)
        self._started.append(task)
        if needed:
            self._liveness.needs(needed, task)
        return task


def main(options: Options) -> None:
    """Runs the controller until SIGTERM or SIGINT. Raises UsageError."""
    configure(options.log_level, options.log_format, options.log_time_format, stack_traces=options.log_stack_traces)
    gc.set_threshold(*GC_THRESHOLDS)
    with asyncio.Runner(loop_factory=_event_loop_factory()) as runner:
        runner.run(_main(options))


async def _main(options: Options) -> None:
    stop = asyncio.Event()
    install(stop)
    reach = partial(connect, kubeconfig=options.kubeconfig, context=options.context)
    async with reach(qps=options.qps, burst=options.burst) as client, reach(qps=0) as lease_client:
        # What is cached once all is there mostly stays: the collector need not walk it again.
        await Manager(client, options, lease_client=lease_client, on_synced=gc.freeze).run(stop)


def _event_loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
