"""One resource of an API server behind the Transport protocol, with all that can go wrong with lists and watches.

For tests of the cache. Versions, streaming and paged lists, resumed watches, bookmarks, compaction and label selectors
follow the real server; `tests/server/test_client.py` holds the cache against it. The test decides when lines arrive,
when connections break and what the server forgets.
"""

import asyncio
import json
import math
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from pyjobset.errors import Unavailable
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response, error_of
from pyjobset.objects.meta import Manifest

Name = tuple[str, str]
INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}


def failure(code: int, reason: str, message: str = "") -> Response:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message or reason}
    return Response(code, json.dumps(status).encode())


@dataclass
class Stream:
    """An open watch. `after_list` is the key of a bookmark that is due when the listed objects have been read."""

    namespace: str
    selector: str
    lines: deque[bytes] = field(default_factory=deque)
    listed: int = 0
    version: int = 0
    is_listing: bool = False
    since: int = 0
    """The version that the client asked for. A real server says nothing until it gets there."""
    end: Exception | str | None = None


@dataclass
class WatchServer:
    objects: dict[Name, Manifest] = field(default_factory=dict)
    version: int = 10
    forgotten: int = 0
    """No watch can resume from before this version, no page continue."""
    allowed: float = math.inf
    """How many more lines may arrive, over all watches."""
    refusal: Response | Exception | None = None
    """The answer to every request, when set."""
    streaming_refusal: Response | None = None
    """The answer to streaming lists, when set."""
    page_size_max: int = 500
    requests: list[Request] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    past: dict[int, dict[Name, Manifest]] = field(default_factory=dict)
    """What existed at each version."""
    _history: list[tuple[int, Manifest, Manifest]] = field(default_factory=list)
    _pages: dict[str, tuple[int, list[Manifest]]] = field(default_factory=dict)
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    # What happens in the cluster

    def put(self, name: str, *, namespace: str = "ns", owner: str = "", uid: str = "", **labels: str) -> Manifest:
        """Create or replace. The uid stays unless a new one is given."""
        key = (namespace, name)
        if uid and key in self.objects:
            self.remove(name, namespace=namespace)
        old = self.objects.get(key)
        self.version += 1
        metadata = {
            "namespace": namespace,
            "name": name,
            "uid": uid or (old["metadata"]["uid"] if old else f"uid-{self.version}"),
            "resourceVersion": str(self.version),
            "labels": labels,
            "ownerReferences": [{"uid": owner, "controller": True, "kind": "JobSet", "name": owner}] if owner else [],
        }
        self.objects[key] = {"kind": "Job", "metadata": metadata}
        self.past[self.version] = dict(self.objects)
        self._tell("ADDED" if old is None else "MODIFIED", self.objects[key], old)
        return self.objects[key]

    def remove(self, name: str, *, namespace: str = "ns") -> Manifest:
        self.version += 1
        old = self.objects.pop((namespace, name))
        self.past[self.version] = dict(self.objects)
        gone = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        self._tell("DELETED", gone, old)
        return gone

    def tick(self) -> None:
        """A change of another resource."""
        self.version += 1
        self.past[self.version] = dict(self.objects)

    async def asked(self, times: int) -> None:
        """Until so many lists and watches have been asked for."""
        while len(self.requests) < times:
            self._asked.clear()
            await self._asked.wait()

    # What happens to connections

    def bookmark(self) -> None:
        for stream in self.streams:
            if not stream.is_listing and stream.since <= self.version:
                stream.lines.append(_line("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}}))
        self._changed.set()

    def send_line(self, line: bytes) -> None:
        for stream in self.streams:
            stream.lines.append(line)
        self._changed.set()

    def deliver(self, lines: float) -> None:
        self.allowed += lines
        self._changed.set()

    def drop(self) -> None:
        """Break all connections; lines on the way are lost."""
        for stream in self.streams:
            stream.lines.clear()
            stream.end = Unavailable("connection reset")
        self._changed.set()

    def finish(self) -> None:
        """End all watches as the server does after timeoutSeconds."""
        for stream in self.streams:
            stream.end = "finished"
        self._changed.set()

    def forget(self) -> None:
        """Compaction: only the present is known."""
        self.forgotten = self.version
        self._history.clear()
        self._pages.clear()

    def restore(self, objects: dict[Name, Manifest], version: int) -> None:
        """A restart from a backup: the server goes back."""
        self.objects, self.version = dict(objects), version
        self.forget()
        self.forgotten = 0
        self.drop()

    # The Transport protocol

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(0)
        self.requests.append(request)
        self._asked.set()
        if self.refusal is not None:
            return _answer(self.refusal)
        query = _query(request)
        token = query.get("continue", "")
        if token:
            if token not in self._pages:
                return failure(410, "Expired")
            version, rest = self._pages[token]
        else:
            version, rest = self.version, self._matching(_namespace(request), query.get("labelSelector", ""))
        size = min(int(query.get("limit") or self.page_size_max), self.page_size_max)
        items, rest = rest[:size], rest[size:]
        meta = {"resourceVersion": str(version)}
        if rest:
            meta["continue"] = f"{version}-{len(rest)}"
            self._pages[meta["continue"]] = (version, rest)
        return Response(200, json.dumps({"metadata": meta, "items": items or None}).encode())

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        await asyncio.sleep(0)
        self.requests.append(request)
        self._asked.set()
        query = _query(request)
        is_listing = "sendInitialEvents" in query
        refusal = self.refusal or (self.streaming_refusal if is_listing else None)
        if refusal is not None:
            raise error_of(request, _answer(refusal))
        stream = Stream(_namespace(request), query.get("labelSelector", ""), is_listing=is_listing)
        if is_listing:
            listed = self._matching(stream.namespace, stream.selector)
            stream.lines.extend(_line("ADDED", obj) for obj in listed)
            stream.listed, stream.version = len(listed), self.version
        else:
            since = stream.since = int(query["resourceVersion"])
            if since < self.forgotten:
                status = json.loads(failure(410, "Expired").body)
                stream.lines.append(_line("ERROR", status))
            for version, event, old in self._history:
                if version > since:
                    self._send(stream, event, old)
        self.streams.append(stream)
        try:
            yield self._read(stream)
        finally:
            self.streams.remove(stream)

    async def close(self) -> None:
        pass

    async def _read(self, stream: Stream) -> AsyncIterator[bytes]:
        while True:
            if stream.is_listing and stream.listed == 0:
                # Changes since the snapshot may be on the way already: the bookmark comes after them.
                stream.is_listing = False
                meta = {"resourceVersion": str(stream.version), "annotations": INITIAL_EVENTS_END}
                stream.lines.append(_line("BOOKMARK", {"metadata": meta}))
            if isinstance(stream.end, Exception):
                raise stream.end
            if stream.lines and self.allowed > 0:
                self.allowed -= 1
                stream.listed -= stream.is_listing and stream.listed > 0
                yield stream.lines.popleft()
            elif stream.end and not stream.lines:
                return
            else:
                self._changed.clear()
                await self._changed.wait()

    def _tell(self, type_: str, obj: Manifest, old: Manifest | None) -> None:
        event = {"type": type_, "object": obj}
        self._history.append((self.version, event, old or {}))
        for stream in self.streams:
            self._send(stream, event, old or {})
        self._changed.set()

    def _send(self, stream: Stream, event: Manifest, old: Manifest) -> None:
        """To a watch with a selector, an object that begins or ceases to match is added or deleted."""
        obj, type_ = event["object"], event["type"]
        if int(event["object"]["metadata"]["resourceVersion"]) <= stream.since:
            return
        was = bool(old) and _matches(old, stream.namespace, stream.selector)
        matches = type_ != "DELETED" and _matches(obj, stream.namespace, stream.selector)
        if was or matches:
            stream.lines.append(_line("DELETED" if not matches else "MODIFIED" if was else "ADDED", obj))
            stream.version = int(obj["metadata"]["resourceVersion"])

    def _matching(self, namespace: str, selector: str) -> list[Manifest]:
        return [obj for _, obj in sorted(self.objects.items()) if _matches(obj, namespace, selector)]


def _answer(refusal: Response | Exception) -> Response:
    if isinstance(refusal, Exception):
        raise refusal
    return refusal


def _line(type_: str, obj: Any) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode()


def _query(request: Request) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(request.query).items()}


def _namespace(request: Request) -> str:
    parts = request.path.split("/")
    return parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""


def _matches(obj: Manifest, namespace: str, selector: str) -> bool:
    """`selector` is the key of a label; an empty selector or namespace matches all."""
    metadata = obj["metadata"]
    return namespace in ("", metadata["namespace"]) and (not selector or selector in metadata["labels"])
