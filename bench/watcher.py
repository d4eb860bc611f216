"""Sees through watches what a controller has made, without asking again and again. Used by `trial.py`.

The namespace is empty when the watching begins, so every object that appears in it counts.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self

from bench.workloads import CHILDREN
from pyjobset.errors import PlaneError
from pyjobset.kube.cache import Cache
from pyjobset.kube.client import Client
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.resources import JOBSETS

SYNC_SECONDS_MAX = 30.0
SILENCE_SECONDS = 1.0
"""A JobSet whose status nobody wrote for so long has settled."""


class Watcher:
    """`async with` it before the first JobSet is created. `on_change` is called when the last object has appeared, and
    after every change of a JobSet."""

    def __init__(
        self, client: Client, namespace: str, expected: Mapping[str, int], *, on_change: Callable[[], None]
    ) -> None:
        self._expected = Counter(expected)
        self._seen: Counter[str] = Counter()
        self._on_change = on_change
        self._complete = asyncio.Event()
        self._jobset_changed = asyncio.Event()
        self._jobsets = Cache(client, JOBSETS, namespace=namespace, on_change=self._jobset)
        self._caches: list[Cache[Any]] = [
            Cache(client, CHILDREN[kind], namespace=namespace, on_change=self._count(kind)) for kind in expected
        ]
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        caches = (self._jobsets, *self._caches)
        self._tasks = [asyncio.create_task(cache.run()) for cache in caches]
        for cache in caches:
            await self._or_failure(cache.wait_synced(), SYNC_SECONDS_MAX)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def expect_more(self, more: Mapping[str, int]) -> None:
        """So many objects again, under new names or old ones."""
        self._expected.update(more)
        self._complete.clear()

    async def complete(self, timeout_seconds: float) -> None:
        """Until every expected object has appeared."""
        try:
            await self._or_failure(self._complete.wait(), timeout_seconds)
        except TimeoutError as error:
            seen = ", ".join(f"{self._seen[kind]} of {count} {kind}s" for kind, count in self._expected.items())
            raise PlaneError(f"after {timeout_seconds:.0f} s there are {seen}") from error

    async def settled(self, timeout_seconds: float, *, ready: bool) -> None:
        """Until no JobSet has changed for SILENCE_SECONDS and, if `ready`, all their Jobs are ready."""
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            self._jobset_changed.clear()
            try:
                await self._or_failure(self._jobset_changed.wait(), SILENCE_SECONDS)
            except TimeoutError:
                if not ready or all(map(_is_ready, self._jobsets)):
                    return
        raise PlaneError(f"after {timeout_seconds:.0f} s the JobSets have not settled")

    def _count(self, kind: str) -> Callable[[Any, Any], None]:
        def count(old: Any, new: Any) -> None:
            if old is None and new is not None:
                self._seen[kind] += 1
                if all(self._seen[k] >= n for k, n in self._expected.items()):
                    self._complete.set()
                    self._on_change()

        return count

    def _jobset(self, _old: JobSet | None, _new: JobSet | None) -> None:
        self._jobset_changed.set()
        self._on_change()

    async def _or_failure(self, awaited: Coroutine[Any, Any, Any], timeout_seconds: float) -> None:
        """Waits, unless a watch ends by a bug first: then that is raised."""
        wanted = asyncio.ensure_future(awaited)
        try:
            async with asyncio.timeout(timeout_seconds):
                await asyncio.wait([wanted, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            wanted.cancel()
        for task in self._tasks:
            if task.done():
                task.result()


def _is_ready(jobset: JobSet) -> bool:
    ready = {status.name: status.ready for status in jobset.status.replicated_jobs_status}
    return all(ready.get(group.name, 0) >= group.replicas for group in jobset.spec.replicated_jobs)
