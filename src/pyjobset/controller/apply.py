"""Carries out a Decision in waves: deletes; then creates and patches, kind by kind; then the status.

Flow: a wave's actions run up to PARALLEL at a time, those on one object in their order; a failed wave stops the later
ones. A refusal is remembered (see refusals); one that the decision knew of does not keep the status from being
written, because the status tells it. Called by a reconcile. Decides nothing, repeats nothing: after a failure the
JobSet is observed again.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pyjobset.controller.refusals import Memory, Target
from pyjobset.controller.writes import Writer
from pyjobset.errors import ForeignObject, JobSetError, OutcomeUnknown, Raced, Refused, Unavailable
from pyjobset.objects.resources import JOBS, PODS
from pyjobset.reconciler.decision import CREATION_ORDER, Action, Create, Decision, Delete, JsonPatch
from pyjobset.reconciler.observation import OWN_VERDICT

PARALLEL = 50
"""Requests at a time for one JobSet, as the original controller does."""
DELETES = "deletes"
WAVES = (DELETES, *(resource.kind for resource in CREATION_ORDER), PODS.kind)
"""Pods last: a right that lacks for them holds up nothing else."""

Chains = dict[Target, list[Action]]
"""The actions on each object, in order."""


@dataclass(slots=True)
class Applied:
    """What came of it. `error` is what stopped it and calls for another try; refusals of actions are in the memory."""

    done: list[Action] = field(default_factory=list)
    error: JobSetError | None = None
    is_news: bool = False
    """The refusals are no longer those that the decision knew of."""
    wrote_status: bool = False

    @property
    def is_effective(self) -> bool:
        """Something changed, so that the JobSet should be observed once more."""
        return bool(self.done) or self.wrote_status or self.is_news


async def apply(decision: Decision, writer: Writer, memory: Memory, *, now: datetime) -> Applied:
    """Guarantees: no wave starts before every action of the earlier ones succeeded, nor after the JobSet was seen to
    ask for something else; the status is written last, and only if its decision knew of all refusals. Raises nothing
    but bugs."""
    applied = Applied()
    known = memory.told()
    memory.forget_unwanted({(action.resource.kind, action.name) for action in decision.actions}, now)
    waves = waves_of(decision.actions)
    if any(_starts(action) for action in decision.actions):
        try:
            await writer.confirm()
        except JobSetError as error:
            applied.error = error
            return applied
    for name in WAVES:
        if name not in waves:
            continue
        if applied.done and writer.is_outdated:
            applied.error = Raced("the JobSet changed while this was carried out")
            break
        if not await _Wave(writer, memory, applied, now).run(waves[name]):
            break
    applied.is_news = memory.told() != known
    if decision.status is not None and applied.error is None and not applied.is_news:
        try:
            applied.wrote_status = await writer.write_status(decision.status)
        except JobSetError as error:
            applied.error = error
    return applied


def _starts(action: Action) -> bool:
    """Something is made, or a Job is resumed: a JSON patch of a Job always does that."""
    return isinstance(action, Create) or (isinstance(action, JsonPatch) and action.resource is JOBS)


def waves_of(actions: Sequence[Action]) -> dict[str, Chains]:
    waves: dict[str, Chains] = {}
    for action in actions:
        name = DELETES if isinstance(action, Delete) else action.resource.kind
        assert name in WAVES, f"no wave for {action.resource}"
        waves.setdefault(name, {}).setdefault((action.resource.kind, action.name), []).append(action)
    return waves


class _Wave:
    def __init__(self, writer: Writer, memory: Memory, applied: Applied, now: datetime) -> None:
        self._writer = writer
        self._memory = memory
        self._applied = applied
        self._now = now
        self._is_failed = False
        self._refused: Refused | None = None

    async def run(self, chains: Chains) -> bool:
        """True if every action succeeded. What was refused before is tried alone first: most likely all is refused."""
        probe = next((target for target in chains if self._memory.is_refused(target)), None)
        if probe is not None:
            await self._run_chain(probe, chains[probe])
        pending = iter([item for item in chains.items() if item[0] != probe])
        parallel = min(PARALLEL, len(chains))
        if parallel == 1:
            await self._work(pending)
        else:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(parallel):
                    tasks.create_task(self._work(pending))
        if self._refused is not None:
            self._memory.refuse([target for target, _ in pending], self._refused, self._now)
        return not self._is_failed

    async def _work(self, pending: Iterator[tuple[Target, list[Action]]]) -> None:
        while self._refused is None and self._applied.error is None:
            item = next(pending, None)
            if item is None:
                return
            await self._run_chain(*item)

    async def _run_chain(self, target: Target, chain: Sequence[Action]) -> None:
        for action in chain:
            try:
                await self._writer.perform(action)
            except (Refused, ForeignObject) as error:
                self._is_failed = True
                self._memory.refuse((target,), error, self._now)
                if isinstance(error, Refused) and error.code != OWN_VERDICT:  # a taken name says nothing about others
                    self._refused = error
                return
            except JobSetError as error:
                self._is_failed = True
                self._applied.error = _worse(self._applied.error, error)
                return
            self._applied.done.append(action)
        self._memory.accept(target)


def _worse(first: JobSetError | None, second: JobSetError) -> JobSetError:
    """The one that asks for more patience: a server that cannot be reached outranks a race."""
    if first is None:
        return second
    order = (Unavailable, OutcomeUnknown, JobSetError)
    rank = [next(i for i, kind in enumerate(order) if isinstance(e, kind)) for e in (first, second)]
    return first if rank[0] <= rank[1] else second
