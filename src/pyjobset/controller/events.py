"""Sends events.k8s.io events about JobSets, in the background and in order. Fed by a reconcile after its status write.

An event is news for people: one that cannot be sent is logged and dropped, and the controller never waits for it. What
is queued is bounded; when the API server is that slow, the oldest news is dropped.
"""

import asyncio
import itertools
import socket
from collections import deque
from datetime import UTC, datetime
from typing import Any

from pyjobset.controller.log import Log
from pyjobset.errors import JobSetError
from pyjobset.kube.client import Client
from pyjobset.objects import labels
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import EVENTS, JOBSETS
from pyjobset.reconciler.decision import Event

NOTE_BYTES_MAX = 1024
REASON_BYTES_MAX = 128
"""events.k8s.io/v1 refuses longer ones. The name of a failure policy's rule, which is part of a reason, may be as long
alone."""
QUEUE_LENGTH_MAX = 10_000
ACTION = "Reconciling"
REPORTING_CONTROLLER = labels.MANAGED_BY

log = Log(__name__)


class EventSender:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._queue: deque[tuple[str, Manifest]] = deque(maxlen=QUEUE_LENGTH_MAX)
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._numbers = itertools.count()
        # A name must not repeat, also not after a restart within the hour that events live.
        self._start = f"{int(datetime.now(UTC).timestamp() * 1000):x}"
        self._instance = f"jobset-controller-{socket.gethostname()}"[:128]

    def send(self, jobset: JobSet, event: Event, now: datetime) -> None:
        """Queues it; returns at once."""
        suffix = f".{self._start}.{next(self._numbers):x}"
        name = jobset.metadata.name[: 253 - len(suffix)] + suffix
        body = event_body(jobset, event, now, name=name, instance=self._instance)
        self._queue.append((jobset.metadata.namespace, body))
        self._idle.clear()
        self._wake.set()

    async def run(self) -> None:
        while True:
            while self._queue:
                namespace, body = self._queue.popleft()
                await self._post(namespace, body)
            self._idle.set()
            self._wake.clear()
            await self._wake.wait()

    async def drain(self) -> None:
        """Until everything that was queued has been tried."""
        await self._idle.wait()

    async def _post(self, namespace: str, body: Manifest) -> None:
        try:
            await self._client.create(EVENTS, namespace, body)
        except JobSetError as error:
            log.warning("Event not sent", namespace=namespace, reason=body["reason"], error=error.message)


def event_body(jobset: JobSet, event: Event, now: datetime, *, name: str, instance: str) -> Manifest:
    metadata = jobset.metadata
    regarding: dict[str, Any] = {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
    }
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": name, "namespace": metadata.namespace},
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": REPORTING_CONTROLLER,
        "reportingInstance": instance,
        "action": ACTION,
        "type": event.type,
        "reason": _cut(event.reason, REASON_BYTES_MAX, ""),
        "note": _cut(event.message, NOTE_BYTES_MAX, "…"),
        "regarding": regarding,
    }


def _cut(text: str, bytes_max: int, mark: str) -> str:
    """At a whole character. The API server counts bytes."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= bytes_max:
        return text
    return encoded[: bytes_max - len(mark.encode())].decode(errors="ignore") + mark
