"""Follows one JobSet and keeps one pod in step with it: joins an attempt, lifts the barrier, asks for the restart.

Used by agent.program. What to do is decided by agent.protocol. The loss of the API server is waited out, whatever is
refused is said and tried again: a worker that runs is never disturbed by it. A JobSet that is gone changes nothing.
"""

import asyncio
import contextlib
import logging
import random
from typing import Protocol

from pyjobset.agent.protocol import WATCHED, Move, WatchedJobSet, attempt_to_join, next_move
from pyjobset.errors import JobSetError, Refused, Unavailable
from pyjobset.kube.cache import Cache
from pyjobset.kube.client import Client
from pyjobset.objects.labels import IN_PLACE_RESTART_ATTEMPT
from pyjobset.objects.resources import PODS

BACKOFF_SECONDS = 0.25
BACKOFF_SECONDS_MAX = 15.0
FIELD_MANAGER = "jobset-in-place-restart-agent"

log = logging.getLogger(__name__)


class Barrier(Protocol):
    def lift(self) -> None:
        """Lets the worker run. Later calls change nothing."""
        ...


class Agent:
    """`run` is its whole life. Made inside a running event loop."""

    def __init__(self, client: Client, *, namespace: str, jobset: str, pod: str, barrier: Barrier) -> None:
        self._client = client
        self._namespace = namespace
        self._pod = pod
        self._barrier = barrier
        self._cache = Cache(
            client, WATCHED, namespace=namespace, field_selector=f"metadata.name={jobset}", on_change=self._changed
        )
        self._jobset: WatchedJobSet | None = None
        self._attempt: int | None = None
        self._is_lifted = False
        self._failures = 0
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Returns when the pod has to restart in place."""
        watching = asyncio.create_task(self._cache.run())
        try:
            await self._cache.wait_synced()
            if self._jobset is None:
                log.warning("there is no such JobSet yet: the barrier stays up")
            while (move := self._move()) is not Move.RESTART:
                pause = None
                self._news.clear()
                if move is Move.LIFT:
                    self._lift()
                elif move is Move.JOIN:
                    pause = await self._join()
                    if pause is None:
                        continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._news.wait()
            log.info("attempt %s is over: restarting in place", self._attempt)
        finally:
            watching.cancel()

    def _move(self) -> Move:
        return Move.WAIT if self._jobset is None else next_move(self._jobset, self._attempt)

    def _lift(self) -> None:
        if not self._is_lifted:
            attempt = "in-place restarts are off" if self._attempt is None else f"all are in attempt {self._attempt}"
            log.info("%s: the barrier is down", attempt)
            self._is_lifted = True
        self._barrier.lift()

    async def _join(self) -> float | None:
        """Says the attempt in the pod's annotation. Seconds until the next try, None when it is said."""
        assert self._jobset is not None
        attempt = attempt_to_join(self._jobset)
        annotations = {IN_PLACE_RESTART_ATTEMPT: str(attempt)}
        body = {
            "apiVersion": PODS.api_version,
            "kind": PODS.kind,
            "metadata": {"name": self._pod, "namespace": self._namespace, "annotations": annotations},
        }
        try:
            await self._client.patch(
                PODS, self._namespace, self._pod, body, kind="apply", field_manager=FIELD_MANAGER, force=True
            )
        except JobSetError as error:
            return self._backoff(error)
        self._failures = 0
        self._attempt = attempt
        log.info("in attempt %s: waiting for all pods", attempt)
        return None

    def _backoff(self, error: JobSetError) -> float:
        """Many agents fail at the same moment: they do not come back at the same moment."""
        self._failures += 1
        seconds = min(BACKOFF_SECONDS * 2.0 ** min(self._failures, 10), BACKOFF_SECONDS_MAX)
        seconds *= random.uniform(0.5, 1.0)  # noqa: S311
        if isinstance(error, Unavailable):
            seconds = max(seconds, error.retry_after_seconds or 0.0)
        hint = "; may this pod's service account patch pods?" if isinstance(error, Refused) else ""
        log.warning("cannot say the attempt, retry_seconds=%.1f: %s%s", seconds, error.message, hint)
        return seconds

    def _changed(self, _: WatchedJobSet | None, new: WatchedJobSet | None) -> None:
        """A JobSet that is gone leaves the pod as it is: its end comes as a signal. Another one of the same name is
        not the pod's."""
        mine = self._jobset
        if new is None:
            log.info("the JobSet is gone: going on until a signal comes")
        elif mine is None or mine.metadata.uid == new.metadata.uid:
            self._jobset = new
            self._news.set()
