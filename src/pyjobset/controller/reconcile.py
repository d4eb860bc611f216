"""One run of one JobSet: observe, decide, apply, and when to run again. Called by the manager's workers.

Flow: a run that changed something is followed by another, until one changes nothing. Failures wait by who must act
(Backoff); a JobSet that writes the same things for ever is held (Budget). A bug stops only its JobSet: it is logged
with its traceback, counted and tried again slowly. Never raises.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pyjobset.controller.apply import Applied, apply
from pyjobset.controller.budget import Budget, attempt_of, write_of, write_of_status
from pyjobset.controller.events import EventSender
from pyjobset.controller.log import Log
from pyjobset.controller.metrics import Ends, Histogram
from pyjobset.controller.observe import Caches, observe
from pyjobset.controller.pace import Pace, changes_only_counts, has_partial_counts
from pyjobset.controller.queue import Backoff
from pyjobset.controller.refusals import Memory, Refusals
from pyjobset.controller.writes import Writer
from pyjobset.errors import JobSetError, OutcomeUnknown, Raced
from pyjobset.kube.client import Client
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Key
from pyjobset.reconciler.decide import decide, is_concerned, needs_nodes, needs_pods
from pyjobset.reconciler.decision import Create, Decision
from pyjobset.reconciler.observation import Observation, Refusal

log = Log(__name__)


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Counters:
    """What happened since the start."""

    runs: int = 0
    effective_runs: int = 0
    requeues: int = 0
    """Runs that worked and ask for another one."""
    errors: int = 0
    bugs: int = 0
    seconds: Histogram = field(default_factory=Histogram)
    """Of the runs that are over, whatever came of them."""
    ends: Ends = field(default_factory=Ends)


class Reconciler:
    def __init__(
        self,
        client: Client,
        caches: Caches,
        events: EventSender,
        *,
        features: Features,
        has_pods: Callable[[], bool],
        watch_nodes: Callable[[], None],
        watch_classes: Callable[[], None],
        refusals: Refusals,
        pace: Pace,
        decide: Callable[[Observation], Decision] = decide,
        now: Callable[[], datetime] = utc_now,
        cpu_clock: Callable[[], float] = time.thread_time,
        defers_suspended: bool = False,
        accepts: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`has_pods` is asked when a JobSet's pods matter: True once they are in the caches. Whoever answers False
        wakes the JobSet when that changes."""
        self.client = client
        self.caches = caches
        self.events = events
        self.features = features
        self.has_pods = has_pods
        self.watch_nodes = watch_nodes
        self.watch_classes = watch_classes
        self.decide = decide
        self.now = now
        self.cpu_clock = cpu_clock
        self.defers_suspended = defers_suspended
        self.accepts = accepts
        self.refusals = refusals
        self.pace = pace
        self.backoff = Backoff()
        self.counters = Counters()
        self.budget = Budget()
        self.made_for: dict[Key, str] = {}
        """The uids of the JobSets for which this process has created something."""
        self.found: frozenset[str] = frozenset()
        """Those that were there, without a status, when this process began to write: somebody may have made things for
        them and died before it could say so."""
        self._causes = itertools.count(1)

    async def run(self, key: Key) -> float | None:
        """Seconds until the JobSet must run again if nothing happens; None: only when something happens."""
        jobset = self.caches.jobsets.get(key.namespace, key.name)
        if jobset is None or not is_concerned(jobset):
            self._forget(key)
            return None
        self.counters.runs += 1
        run = _Run(self, key, jobset, next(self._causes))
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            return await run.execute()
        except JobSetError as error:
            log.warning("JobSet cannot be reconciled", jobset=key, cause=run.cause, error=error.message)
            return self.failed(key, error)
        except Exception as bug:
            self.counters.bugs += 1
            delay = self.failed(key, bug)
            log.bug("Bug: JobSet stopped", bug, jobset=key, cause=run.cause, retry_seconds=delay)
            # The observation has the user's templates, which may hold secrets.
            log.debug("Observation of the bug", jobset=key, cause=run.cause, observation=run.observation)
            return delay
        finally:
            self.counters.seconds.observe(loop.time() - started)

    def failed(self, key: Key, error: Exception) -> float:
        """Seconds until the next try, which news of children does not bring forward."""
        self.counters.errors += 1
        delay = self.backoff.delay_seconds(key, error)
        self.pace.hold(key, until=asyncio.get_running_loop().time() + delay)
        return delay

    def is_new(self, key: Key, jobset: JobSet) -> bool:
        """This process has created nothing for it, and there was nobody before who could have."""
        uid = jobset.metadata.uid
        return self.made_for.get(key) != uid and uid not in self.found

    def _forget(self, key: Key) -> None:
        self.made_for.pop(key, None)
        self.counters.ends.gone(key, asyncio.get_running_loop().time())
        self.backoff.forget(key)
        self.pace.forget(key)
        self.refusals.forget(key)
        self.budget.forget(key)


class _Run:
    def __init__(self, reconciler: Reconciler, key: Key, jobset: JobSet, cause: int) -> None:
        self._all = reconciler
        self._key = key
        self._jobset = jobset
        self.cause = cause
        self.observation: Observation | None = None

    async def execute(self) -> float | None:
        reconciler, jobset = self._all, self._jobset
        with_pods = needs_pods(jobset, reconciler.features)
        with_nodes = needs_nodes(jobset)
        if with_nodes:
            reconciler.watch_nodes()
        if with_pods and not reconciler.has_pods():
            return None
        counters, loop = reconciler.counters, asyncio.get_running_loop()
        counters.ends.seen(jobset)
        held_seconds = reconciler.budget.hold_seconds(self._key, attempt_of(jobset), loop.time())
        if held_seconds > 0:
            counters.requeues += 1
            return held_seconds
        started = reconciler.cpu_clock()
        memory = reconciler.refusals.of(self._key, jobset.metadata.uid, jobset.metadata.generation)
        observation = self.observation = observe(
            reconciler.caches,
            jobset,
            now=reconciler.now(),
            features=reconciler.features,
            refusals=memory.refusals(),
            with_pods=with_pods,
            with_nodes=with_nodes,
            defers_suspended=reconciler.defers_suspended,
            accepts=reconciler.accepts(),
        )
        decision = reconciler.decide(observation)
        cpu_seconds = reconciler.cpu_clock() - started
        decision = self._without_early_counts(decision, loop.time())
        applied = Applied()
        if decision.actions or decision.status is not None or memory.refusals():
            writer = Writer(reconciler.client, reconciler.caches, jobset, is_new=reconciler.is_new(self._key, jobset))
            applied = await apply(decision, writer, memory, now=observation.now)
            reconciler.refusals.store(self._key, memory)
            if memory.lacks():
                reconciler.watch_classes()
            if any(isinstance(action, Create) for action in applied.done):
                reconciler.made_for[self._key] = jobset.metadata.uid
            self._count_end(decision, applied)
        if applied.error is None and not applied.is_news:
            for event in decision.events:
                reconciler.events.send(jobset, event, observation.now)
        reconciler.pace.ran(self._key, now=loop.time(), cpu_seconds=cpu_seconds)
        is_quiet = self._is_quiet(decision, applied)
        self._report(decision, applied, memory.refusals() if applied.is_news else (), is_quiet)
        if applied.error is not None:
            return reconciler.failed(self._key, applied.error)
        reconciler.backoff.forget(self._key)
        after_seconds = self._wake_after(decision, applied, memory, is_quiet)
        counters.requeues += after_seconds is not None
        return after_seconds

    def _count_end(self, decision: Decision, applied: Applied) -> None:
        ends = self._all.counters.ends
        if decision.status is None:
            return
        if applied.wrote_status:
            ends.wrote(self._jobset, decision.status)
        elif isinstance(applied.error, OutcomeUnknown):
            ends.perhaps_wrote(self._jobset, decision.status)

    def _without_early_counts(self, decision: Decision, now: float) -> Decision:
        """Counts alone are stored a little later, together with those that follow."""
        pace = self._all.pace
        if decision.status is None or decision.events or not changes_only_counts(self._jobset.status, decision.status):
            pace.counts_stored(self._key)
            return decision
        is_partial = has_partial_counts(self._jobset.spec, decision.status)
        wait = pace.counts_seconds(self._key, now, is_partial=is_partial)
        if wait <= 0:
            pace.counts_stored(self._key)
            return decision
        wake = wait if decision.wake_after_seconds is None else min(wait, decision.wake_after_seconds)
        return replace(decision, status=None, wake_after_seconds=wake)

    def _wake_after(self, decision: Decision, applied: Applied, memory: Memory, is_quiet: bool) -> float | None:
        key, reconciler, now = self._key, self._all, asyncio.get_running_loop().time()
        wakes = [] if decision.wake_after_seconds is None else [decision.wake_after_seconds]
        assert self.observation is not None
        retry_seconds = memory.wait_seconds(self.observation.now)  # the clock may have been set meanwhile
        if retry_seconds is not None:
            wakes.append(retry_seconds)
        if applied.is_effective:
            reconciler.counters.effective_runs += 1
            wakes.append(reconciler.pace.gather_seconds(key, now) if is_quiet else 0.0)
        writes = self._writes(decision, applied)
        held_seconds = reconciler.budget.spend(key, attempt_of(self._jobset), writes, asks_again=not is_quiet, now=now)
        if held_seconds is not None:
            codes = ",".join(reason.code for reason in decision.reasons)
            log.warning(
                "JobSet does not settle", jobset=key, cause=self.cause, reasons=codes, hold_seconds=held_seconds
            )
            reconciler.pace.hold(key, until=now + held_seconds)
            return held_seconds
        return None if not wakes else max(0.0, min(wakes))

    def _writes(self, decision: Decision, applied: Applied) -> list[Hashable]:
        """What was written, for the budget. Counts have their own pace, and may change for ever."""
        writes = [write_of(action) for action in applied.done]
        status = decision.status if applied.wrote_status else None
        if status is not None and not changes_only_counts(self._jobset.status, status):
            writes.append(write_of_status(status))
        return writes

    def _is_quiet(self, decision: Decision, applied: Applied) -> bool:
        """Nothing waits for the next run: this one did nothing, or created and counted, and only looks once more."""
        if applied.is_news or any(not isinstance(action, Create) for action in applied.done):
            return False
        if not applied.wrote_status or decision.status is None:
            return True
        return changes_only_counts(self._jobset.status, decision.status)

    def _report(self, decision: Decision, applied: Applied, refused: Sequence[Refusal], is_quiet: bool) -> None:
        key, cause, error = self._key, self.cause, applied.error
        if error is not None:
            write = log.debug if isinstance(error, Raced) else log.warning
            write("Not reconciled yet", jobset=key, cause=cause, kind=type(error).__name__, error=error.message)
        for refusal in refused[:3]:
            log.warning(
                "Refused by the API server",
                jobset=key,
                cause=cause,
                kind=refusal.kind,
                name=refusal.name,
                reason=refusal.reason,
                refusals=len(refused),
                error=refusal.message,
            )
        if applied.done or applied.wrote_status:
            counts = Counter(f"{type(a).__name__.lower()}_{a.resource.plural}" for a in applied.done)
            write = log.debug if is_quiet and not applied.done else log.info
            codes = ",".join(reason.code for reason in decision.reasons)
            write("Reconciled", jobset=key, cause=cause, reasons=codes, status=applied.wrote_status, **counts)
