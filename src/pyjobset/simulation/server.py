"""A model API server behind the transport: the real client, caches and controller run on it, in memory.

It does what the controller uses of the real one: versions, uids and generations, preconditions, patches, the status
subresource, finalizers and the ways of deletion, selectors, watches with bookmarks. tests/server/conformance plays the
same scripts against both. It makes no faults: simulation.faults does, in between.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, unquote

import msgspec

from pyjobset.errors import Unavailable
from pyjobset.kube.requests import PATCH_TYPES, PatchKind, Request
from pyjobset.kube.responses import Response, error_of
from pyjobset.objects.meta import Manifest
from pyjobset.simulation import clock, metadata
from pyjobset.simulation.kinds import KINDS, Kind
from pyjobset.simulation.patches import DoesNotApply, applied, merged, patched
from pyjobset.simulation.selectors import Predicate, chosen
from pyjobset.simulation.store import Change, Name, Store

INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
LATENCY_SECONDS = 0.001
PARAMETERS = {
    "POST": {"fieldManager", "dryRun"},
    "PATCH": {"fieldManager", "force"},
    "DELETE": set[str](),
    "GET": {"labelSelector", "fieldSelector", "limit", "continue"},
    "WATCH": {"watch", "allowWatchBookmarks", "labelSelector", "fieldSelector", "resourceVersion", "timeoutSeconds"},
    "LIST AND WATCH": {"sendInitialEvents", "resourceVersionMatch"},
}
"""Which are heard. Another one may change the answer: it is refused loudly, as every wish that is not modelled."""
UNMODELLED = "the model API server does not know"


class Refusal(Exception):
    """An answer that is a failure. `field` is the one that is wrong."""

    def __init__(self, code: int, reason: str, message: str, name: str = "", field: str = "") -> None:
        super().__init__(message)
        self.status: Manifest = {
            "kind": "Status",
            "status": "Failure",
            "code": code,
            "reason": reason,
            "message": message,
        }
        details: Manifest = {"name": name} if name else {}
        if field:
            details["causes"] = [{"field": field, "message": message}]
        self.response = Response(code, msgspec.json.encode({**self.status, "details": details}))


Admit = Callable[[Name, Manifest, bool], None]


def admit_all(_name: Name, _obj: Manifest, _is_new: bool, /) -> None:
    """Nothing is refused."""


class Server:
    """`admit` may refuse what is being stored, as quotas and webhooks do, knowing whether it is being created.
    `unserved` are plurals that it has not."""

    def __init__(self, kinds: Mapping[str, Kind] = KINDS) -> None:
        self.store = Store()
        self.kinds = kinds
        self.unserved: set[str] = set()
        self.admit: Admit = admit_all
        self._pages: dict[str, tuple[int, list[Manifest]]] = {}
        """By token: the version of a list, and what of it has yet to be told."""
        self._streams: dict[asyncio.Queue[bytes | None], None] = {}

    # The Transport protocol

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(LATENCY_SECONDS)
        return self.answer(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        await asyncio.sleep(LATENCY_SECONDS)
        plural, namespace, _, _ = parse(request.path)
        query = _query(request)
        is_list = bool(query.get("sendInitialEvents"))
        self._check_query(query, PARAMETERS["WATCH"] | (PARAMETERS["LIST AND WATCH"] if is_list else set()))
        try:
            self._check_served(plural)
        except Refusal as refusal:
            raise error_of(request, refusal.response) from refusal
        since = 0 if is_list else int(query["resourceVersion"])
        is_chosen = chosen(query.get("labelSelector", ""), query.get("fieldSelector", ""))
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()

        def told(change: Change) -> None:
            if namespace in ("", change.name.namespace):
                type_ = _type_for(change, is_chosen)
                if type_:
                    lines.put_nowait(change.line(type_))

        if is_list:
            for obj in self._sorted(plural, namespace):
                if is_chosen(obj):
                    lines.put_nowait(msgspec.json.encode({"type": "ADDED", "object": obj}) + b"\n")
            lines.put_nowait(self._bookmark(INITIAL_EVENTS_END))
        elif since < self.store.oldest:
            gone = Refusal(410, "Expired", f"too old resource version: {since}")
            lines.put_nowait(msgspec.json.encode({"type": "ERROR", "object": gone.status}) + b"\n")
            lines.put_nowait(None)
        else:
            for change in self.store.history:
                if change.version > since and change.name.plural == plural:
                    told(change)
        end = self.store.listen(told, plural)
        self._streams[lines] = None
        try:
            yield _lines(lines)
        finally:
            end()
            self._streams.pop(lines, None)

    @property
    def open_watches(self) -> int:
        return len(self._streams)

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

    def _bookmark(self, annotations: Manifest) -> bytes:
        metadata = {"resourceVersion": str(self.store.version), "annotations": annotations}
        return msgspec.json.encode({"type": "BOOKMARK", "object": {"metadata": metadata}}) + b"\n"

    # The verbs

    def answer(self, request: Request) -> Response:
        """At once, and in full: the whole request is executed or refused."""
        plural, namespace, name, subresource = parse(request.path)
        try:
            if not plural:
                return self._discovery(request)
            self._check_served(plural)
            if subresource and (subresource != "status" or request.method != "PATCH"):
                raise NotImplementedError(f"{UNMODELLED} {request.method} of {plural}/{subresource}")
            query = _query(request)
            self._check_query(query, PARAMETERS.get(request.method, set()))
            return self._do(request, query, Name(plural, namespace, name), subresource)
        except Refusal as refusal:
            return refusal.response

    def _do(self, request: Request, query: Mapping[str, str], key: Name, subresource: str) -> Response:
        body = msgspec.json.decode(request.body) if request.body else {}
        match request.method, bool(key.name):
            case "POST", False:
                made = self.create(key.plural, key.namespace, body, is_dry_run=query.get("dryRun") == "All")
                return _json(201, made)
            case "GET", False:
                return self._list(query, key.plural, key.namespace)
            case "GET", True:
                return _json(200, self._stored(key))
            case "PATCH", True:
                kind = next(k for k, type_ in PATCH_TYPES.items() if type_ == request.content_type)
                return _json(200, self.patch(key, body, kind=kind, subresource=subresource))
            case "DELETE", True:
                return _json(200, self.delete(key, body))
        raise NotImplementedError(f"{UNMODELLED} {request.method} {request.path}")

    def create(self, plural: str, namespace: str, body: Manifest, *, is_dry_run: bool = False) -> Manifest:
        kind, given = self.kinds[plural], body.get("metadata") or {}
        prefix = given.get("generateName")
        name = given.get("name") or (f"{prefix}{self.store.version:05x}" if prefix else "")
        if not name:
            raise self._invalid(plural, "", "metadata.name")
        if given.get("namespace") not in (None, namespace):
            raise Refusal(400, "BadRequest", "the namespace of the provided object does not match the request")
        if given.get("resourceVersion"):
            raise Refusal(500, "", "resourceVersion should not be set on objects to be created")
        key = Name(plural, namespace, name)
        made = metadata.created(
            given,
            name=name,
            namespace=namespace,
            uid=self.store.new_uid(),
            at=clock.timestamp(),
            has_generation=kind.has_generation,
        )
        obj = {**_head(kind), **body, "metadata": made}
        if kind.status is not None:
            obj["status"] = kind.status
        obj = kind.fill(obj)
        self.admit(key, obj, True)
        stored = self.store.get(key)
        if stored is not None:
            being = "object is being deleted: " if "deletionTimestamp" in stored["metadata"] else ""
            raise Refusal(409, "AlreadyExists", f'{being}{kind.resource} "{name}" already exists', name)
        return obj if is_dry_run else self.store.put(key, obj)

    def patch(self, key: Name, body: Any, *, kind: PatchKind = "merge", subresource: str = "") -> Manifest:
        if subresource and self.kinds[key.plural].status is None:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        old = self._stored(key)
        match kind:
            case "merge":
                new = merged(old, body)
            case "apply":
                new = applied(old, body)
            case "json":
                try:
                    new = patched(old, body)
                except DoesNotApply as error:
                    message = f"the server rejected our request due to an error in our request: {error}"
                    raise Refusal(422, "Invalid", message) from error
        if new["metadata"].get("name") != key.name:
            raise Refusal(400, "BadRequest", "the name of the object does not match the name on the URL")
        if new["metadata"].get("resourceVersion") not in (None, old["metadata"]["resourceVersion"]):
            message = "the object has been modified; please apply your changes to the latest version and try again"
            raise Refusal(409, "Conflict", message, key.name)
        return self._update(key, old, new, subresource)

    def set_status(self, key: Name, **status: Any) -> Manifest:
        """What a controller of the cluster writes: fields of the status, None removes one."""
        return self.patch(key, {"status": status}, subresource="status")

    def bind(self, key: Name, node: str) -> Manifest:
        """What the scheduler writes, by the pod's binding subresource: it makes no generation."""
        pod = self._stored(key)
        return self.store.put(key, {**pod, "spec": {**pod["spec"], "nodeName": node}})

    def _update(self, key: Name, old: Manifest, new: Manifest, subresource: str) -> Manifest:
        kind = self.kinds[key.plural]
        if subresource:
            kept = old["metadata"] if kind.is_metadata_kept else new["metadata"]
            new = {**old, "metadata": kept, "status": _plain_status(kind, new.get("status"))}
        elif kind.status is not None:
            new = {**new, "status": old["status"]}
        new = kind.plain(new)
        changed, field = metadata.updated(old["metadata"], new["metadata"])
        is_same_spec = new.get("spec") == old.get("spec")
        field = field or (kind.check_status if subresource else kind.check)(old, new)
        if field:
            raise self._invalid(key.plural, key.name, field)
        if kind.has_generation and not is_same_spec:
            changed["generation"] += 1
        new = {**new, "metadata": changed}
        if new == old and not _is_first_status(kind, old, new):
            return self._unchanged(key, old)
        self.admit(key, new, False)
        if metadata.is_over(changed):
            self.store.remove(key)
            return new
        return self.store.put(key, new)

    def delete(self, key: Name, options: Manifest | None = None) -> Manifest:
        """The object where it stays for a while; where it is gone, a Status or its last state, as its kind has it."""
        options, obj = options or {}, self._stored(key)
        propagation = options.get("propagationPolicy", "Background")
        if propagation not in ("Background", "Foreground"):
            raise NotImplementedError(f"{UNMODELLED} the propagation policy {propagation!r}")
        old, wanted = obj["metadata"], options.get("preconditions") or {}
        field = metadata.unmet(old, wanted)
        if field:
            message = f"Precondition failed: {field} in precondition: {wanted[field]}, in object meta: {old[field]}"
            raise Refusal(409, "Conflict", message, key.name)
        if old.get("deletionGracePeriodSeconds"):
            return obj  # it is pending: only its time could become shorter
        wish = metadata.FOREGROUND if propagation == "Foreground" else ""
        changed = metadata.deleted(old, wish, clock.timestamp(), grace_seconds=_grace(key, obj))
        if metadata.is_over(changed):
            if changed != old and "deletionTimestamp" in old and "resourceVersion" in wanted:
                raise NotImplementedError(f"{UNMODELLED} deletes of a version that change it first")
            return self._end(key, {**obj, "metadata": changed})
        return obj if changed == old else self.store.put(key, {**obj, "metadata": changed})

    def terminated(self, key: Name) -> None:
        """What the kubelet writes when a pod's containers are gone: it needs no more time."""
        pod = self._stored(key)
        changed = {**pod["metadata"], "deletionGracePeriodSeconds": 0}
        if changed != pod["metadata"]:
            self.store.put(key, {**pod, "metadata": changed})
        if metadata.is_over(changed):
            self.store.remove(key)

    def _end(self, key: Name, obj: Manifest) -> Manifest:
        """A pod is first told to go, also where that takes no time."""
        is_asked_before = "deletionTimestamp" in self._stored(key)["metadata"]
        if key.plural == "pods" and not is_asked_before:
            self.store.put(key, obj)
        last = self.store.remove(key)
        if self.kinds[key.plural].is_told_when_gone:
            return last
        return {"kind": "Status", "status": "Success", "details": {"name": key.name, "uid": obj["metadata"]["uid"]}}

    @staticmethod
    def _unchanged(key: Name, obj: Manifest) -> Manifest:
        """A write that changes nothing makes no version."""
        if key.plural == "persistentvolumeclaims":
            raise NotImplementedError(f"{UNMODELLED} which patches of a claim that change nothing make a version")
        return obj

    def _stored(self, key: Name) -> Manifest:
        obj = self.store.get(key)
        if obj is None:
            raise Refusal(404, "NotFound", f'{self.kinds[key.plural].resource} "{key.name}" not found', key.name)
        return obj

    def _list(self, query: Mapping[str, str], plural: str, namespace: str) -> Response:
        is_chosen = chosen(query.get("labelSelector", ""), query.get("fieldSelector", ""))
        items = [obj for obj in self._sorted(plural, namespace) if is_chosen(obj)]
        version = self.store.version
        if query.get("continue"):
            if query["continue"] not in self._pages:
                raise NotImplementedError(f"{UNMODELLED} tokens that it did not give")
            version, items = self._pages[query["continue"]]
            if version < self.store.oldest:
                raise Refusal(410, "Expired", "The provided continue parameter is too old")
        size = int(query.get("limit") or len(items))
        metadata = {"resourceVersion": str(version)}
        if len(items) > size:
            metadata["continue"] = str(len(self._pages))
            self._pages[metadata["continue"]] = version, items[size:]
        return _json(200, {"metadata": metadata, "items": items[:size]})

    def _sorted(self, plural: str, namespace: str) -> list[Manifest]:
        found = self.store.of(plural, namespace)
        return sorted(found, key=lambda obj: (obj["metadata"]["namespace"], obj["metadata"]["name"]))

    def _discovery(self, request: Request) -> Response:
        group = request.path.removeprefix("/apis/").removeprefix("/api/")
        served = [p for p, k in self.kinds.items() if k.resource.api_version == group and p not in self.unserved]
        if not served:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        found = [{"name": plural, "kind": self.kinds[plural].resource.kind} for plural in served]
        return _json(200, {"kind": "APIResourceList", "resources": found})

    def _invalid(self, plural: str, name: str, field: str) -> Refusal:
        message = f'{self.kinds[plural].resource} "{name}" is invalid: {field}: Invalid value: field is immutable'
        return Refusal(422, "Invalid", message, name, field)

    @staticmethod
    def _check_query(query: Mapping[str, str], known: set[str]) -> None:
        if unknown := set(query) - known:
            raise NotImplementedError(f"{UNMODELLED} the parameters {sorted(unknown)}")

    def _check_served(self, plural: str) -> None:
        if plural not in self.kinds or plural in self.unserved:
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


def _plain_status(kind: Kind, status: Manifest | None) -> Manifest:
    if status is None:
        return {}
    if kind.is_custom or [] not in status.values():
        return status
    return {field: value for field, value in status.items() if value != []}


def _is_first_status(kind: Kind, old: Manifest, new: Manifest) -> bool:
    """A custom resource has no status before the first write, and then one that may be empty: that is a change."""
    return kind.is_custom and old["status"] is kind.status and new["status"] is not kind.status


def _grace(key: Name, obj: Manifest) -> int:
    """How long a pod may take to terminate: no time where it is on no node or has ended."""
    if key.plural != "pods" or not obj["spec"].get("nodeName"):
        return 0
    if obj["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    return int(obj["spec"].get("terminationGracePeriodSeconds", metadata.POD_GRACE_SECONDS))


def _head(kind: Kind) -> Manifest:
    return {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}


def _query(request: Request) -> Mapping[str, str]:
    return _parsed(request.query)


@lru_cache(1000)
def _parsed(query: str) -> Mapping[str, str]:
    return {key: values[0] for key, values in parse_qs(query).items()}


@lru_cache(1000)
def parse(path: str) -> tuple[str, str, str, str]:
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
