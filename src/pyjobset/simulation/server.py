"""A model API server behind the transport: the real client, caches and controller run on it, in memory.

It does what the controller uses of the real one: versions, uids and generations, preconditions, patches, the status
subresource, finalizers and the ways of deletion, selectors, watches with bookmarks. tests/server/conformance plays the
same scripts against both. It makes no faults: simulation.faults does, in between.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, unquote

import msgspec

from pyjobset.errors import Unavailable
from pyjobset.kube.requests import PATCH_TYPES, Request
from pyjobset.kube.responses import Response, error_of
from pyjobset.objects.meta import Manifest
from pyjobset.simulation import clock
from pyjobset.simulation.kinds import KINDS, Kind
from pyjobset.simulation.patches import DoesNotApply, merged, patched
from pyjobset.simulation.selectors import Predicate, chosen
from pyjobset.simulation.store import Change, Name, Store

FOREGROUND = "foregroundDeletion"
INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
LATENCY_SECONDS = 0.001


class Refusal(Exception):
    """An answer that is a failure."""

    def __init__(self, code: int, reason: str, message: str, name: str = "") -> None:
        super().__init__(message)
        details = {"details": {"name": name}} if name else {}
        self.status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
        self.response = Response(code, msgspec.json.encode(self.status | details))


class Server:
    """`admit` may refuse what is being stored, as quotas and webhooks do. `unserved` are plurals that it has not."""

    def __init__(self) -> None:
        self.store = Store()
        self.unserved: set[str] = set()
        self.admit: Callable[[Name, Manifest], None] = lambda _name, _obj: None
        self._streams: dict[asyncio.Queue[bytes | None], None] = {}

    # The Transport protocol

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(LATENCY_SECONDS)
        return self.answer(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        await asyncio.sleep(LATENCY_SECONDS)
        plural, namespace, _, _ = _parse(request.path)
        query = _query(request)
        try:
            self._check_served(plural)
            since = self._since(query)
        except Refusal as refusal:
            raise error_of(request, refusal.response) from refusal
        is_chosen = chosen(query.get("labelSelector", ""), query.get("fieldSelector", ""))
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()

        def told(change: Change) -> None:
            if change.name.plural == plural and namespace in ("", change.name.namespace):
                type_ = _type_for(change, is_chosen)
                if type_:
                    lines.put_nowait(change.line(type_))

        if query.get("sendInitialEvents"):
            for obj in self.store.of(plural, namespace):
                if is_chosen(obj):
                    lines.put_nowait(msgspec.json.encode({"type": "ADDED", "object": obj}) + b"\n")
            lines.put_nowait(self._bookmark(INITIAL_EVENTS_END))
        else:
            for change in self.store.history:
                if change.version > since:
                    told(change)
        end = self.store.listen(told)
        self._streams[lines] = None
        try:
            yield _lines(lines)
        finally:
            end()
            self._streams.pop(lines, None)

    async def close(self) -> None:
        self.end_watches()

    def end_watches(self) -> None:
        """As an API server that is restarted, or whose connection breaks."""
        for lines in self._streams:
            lines.put_nowait(None)

    def bookmark(self) -> None:
        """Tells every watch how far it is, as the real one does about once a minute."""
        for lines in self._streams:
            lines.put_nowait(self._bookmark({}))

    def _since(self, query: Mapping[str, str]) -> int:
        since = int(query.get("resourceVersion") or 0)
        if since and since < self.store.oldest:
            raise Refusal(410, "Expired", f"too old resource version: {since}")
        return since

    def _bookmark(self, annotations: Manifest) -> bytes:
        metadata = {"resourceVersion": str(self.store.version), "annotations": annotations}
        return msgspec.json.encode({"type": "BOOKMARK", "object": {"metadata": metadata}}) + b"\n"

    # The verbs

    def answer(self, request: Request) -> Response:
        """At once, and in full: the whole request is executed or refused."""
        plural, namespace, name, subresource = _parse(request.path)
        try:
            if not plural:
                return self._discovery(request)
            self._check_served(plural)
            body = msgspec.json.decode(request.body) if request.body else {}
            if request.method == "POST":
                return _json(201, self.create(plural, namespace, body, is_dry_run="dryRun=All" in request.query))
            if not name:
                return self._list(request, plural, namespace)
            key = Name(plural, namespace, name)
            if request.method == "GET":
                return _json(200, self._stored(key))
            if request.method == "PATCH":
                kind = next(k for k, type_ in PATCH_TYPES.items() if type_ == request.content_type)
                return _json(200, self.patch(key, body, kind=kind, subresource=subresource))
            return _json(200, self.delete(key, body))
        except Refusal as refusal:
            return refusal.response

    def create(self, plural: str, namespace: str, body: Manifest, *, is_dry_run: bool = False) -> Manifest:
        kind, given = KINDS[plural], body.get("metadata") or {}
        name = given.get("name") or f"{given['generateName']}{self.store.version:05x}"
        key = Name(plural, namespace, name)
        stored = self.store.get(key)
        if stored is not None:
            being = "object is being deleted: " if "deletionTimestamp" in stored["metadata"] else ""
            raise Refusal(409, "AlreadyExists", f'{being}{plural} "{name}" already exists', name)
        metadata = {
            **given,
            "name": name,
            "namespace": namespace,
            "uid": self.store.new_uid(),
            "creationTimestamp": clock.timestamp(),
        }
        if kind.has_generation:
            metadata["generation"] = 1
        obj = {**_head(kind), **body, "metadata": metadata}
        if kind.has_status:
            obj["status"] = {}
        obj = kind.complete(obj)
        self.admit(key, obj)
        return obj if is_dry_run else self.store.put(key, obj)

    def patch(self, key: Name, body: Any, *, kind: str = "merge", subresource: str = "") -> Manifest:
        old = self._stored(key)
        if kind == "json":
            try:
                new = patched(old, body)
            except DoesNotApply as error:
                raise Refusal(
                    422, "Invalid", f"the server rejected our request due to an error in our request: {error}"
                ) from error
        else:
            new = merged(old, body)
        metadata = new["metadata"]
        if metadata.get("uid") != old["metadata"]["uid"]:
            raise Refusal(409, "Conflict", f"Precondition failed: UID in precondition: {metadata.get('uid')}", key.name)
        if metadata.get("resourceVersion") != old["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", "the object has been modified; please apply your changes again", key.name)
        return self._update(key, old, new, subresource)

    def set_status(self, key: Name, **status: Any) -> Manifest:
        """What a controller of the cluster writes: fields of the status, None removes one."""
        return self.patch(key, {"status": status}, subresource="status")

    def _update(self, key: Name, old: Manifest, new: Manifest, subresource: str) -> Manifest:
        kind = KINDS[key.plural]
        if kind.has_status:
            new = {**old, "status": new.get("status")} if subresource == "status" else {**new, "status": old["status"]}
        if kind.frozen(new) != kind.frozen(old):
            raise Refusal(422, "Invalid", f"{key.plural} {key.name}: spec: Invalid value: field is immutable", key.name)
        if kind.has_generation and new.get("spec") != old.get("spec"):
            metadata = {**new["metadata"], "generation": old["metadata"]["generation"] + 1}
            new = {**new, "metadata": metadata}
        if new == old:
            return old  # a write that changes nothing makes no version
        self.admit(key, new)
        if "deletionTimestamp" in old["metadata"] and not new["metadata"].get("finalizers"):
            return self.store.remove(key)
        return self.store.put(key, new)

    def delete(self, key: Name, options: Manifest | None = None) -> Manifest:
        """The object where it stays for a while, a Status where it is gone."""
        options, obj = options or {}, self._stored(key)
        metadata, wanted = obj["metadata"], options.get("preconditions") or {}
        for field in ("uid", "resourceVersion"):
            if wanted.get(field) not in (None, metadata[field]):
                raise Refusal(
                    409, "Conflict", f"Precondition failed: {field} in precondition: {wanted[field]}", key.name
                )
        finalizers = list(metadata.get("finalizers") or ())
        if options.get("propagationPolicy") == "Foreground" and FOREGROUND not in finalizers:
            finalizers.append(FOREGROUND)
        is_held = bool(finalizers) or (key.plural == "pods" and bool(obj.get("spec", {}).get("nodeName")))
        if not is_held:
            self.store.remove(key)
            return {"kind": "Status", "status": "Success", "details": {"name": key.name, "uid": metadata["uid"]}}
        changed = {**metadata, "deletionTimestamp": metadata.get("deletionTimestamp") or clock.timestamp()}
        if finalizers:
            changed["finalizers"] = finalizers
        return obj if changed == metadata else self.store.put(key, {**obj, "metadata": changed})

    def _stored(self, key: Name) -> Manifest:
        obj = self.store.get(key)
        if obj is None:
            raise Refusal(404, "NotFound", f'{key.plural} "{key.name}" not found', key.name)
        return obj

    def _list(self, request: Request, plural: str, namespace: str) -> Response:
        query = _query(request)
        is_chosen = chosen(query.get("labelSelector", ""), query.get("fieldSelector", ""))
        items = [obj for obj in self.store.of(plural, namespace) if is_chosen(obj)]
        return _json(200, {"metadata": {"resourceVersion": str(self.store.version)}, "items": items})

    def _discovery(self, request: Request) -> Response:
        group = request.path.removeprefix("/apis/").removeprefix("/api/")
        served = [p for p, k in KINDS.items() if k.resource.api_version == group and p not in self.unserved]
        if not served:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        found = [{"name": plural, "kind": KINDS[plural].resource.kind} for plural in served]
        return _json(200, {"kind": "APIResourceList", "resources": found})

    def _check_served(self, plural: str) -> None:
        if plural not in KINDS or plural in self.unserved:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")


async def _lines(queue: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    while (line := await queue.get()) is not None:
        yield line
    raise Unavailable("the watch was cut")


def _type_for(change: Change, is_chosen: Predicate) -> str:
    """A watch with a selector sees an object that begins to match as added, and one that ceases to as deleted."""
    was = change.old is not None and is_chosen(change.old)
    if change.type == "DELETED":
        return "DELETED" if was else ""
    if is_chosen(change.object):
        return "MODIFIED" if was else "ADDED"
    return "DELETED" if was else ""


def _head(kind: Kind) -> Manifest:
    return {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}


def _query(request: Request) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(request.query).items()}


def _parse(path: str) -> tuple[str, str, str, str]:
    """Plural, namespace, name, subresource of a path; all empty for discovery."""
    parts = path.strip("/").split("/")
    parts = [unquote(part) for part in (parts[3:] if parts[0] == "apis" else parts[2:])]
    namespace = ""
    if len(parts) > 2 and parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    parts += [""] * (3 - len(parts))
    return parts[0], namespace, parts[1], parts[2]


def _json(status: int, body: Any) -> Response:
    return Response(status, msgspec.json.encode(body))
