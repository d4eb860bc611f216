"""A small API server behind the Transport protocol: the real client, caches and controller run on it, in memory.

It keeps objects with uids and resourceVersions, answers the verbs that the controller uses and feeds watches.
Foreground deletion and the garbage collector are a timer. Faults are put in by `before` and `after`. It does only what
the tests here need, and says nothing about the real API server: tests/server does.
"""

import asyncio
import copy
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, unquote

from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response, error_of
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import CLAIMS, JOBS, JOBSETS, LEASES, POD_GROUPS, PODS, SERVICES, WORKLOADS, Resource
from pyjobset.reconciler.conditions import timestamp
from tests.builders import NOW

FOREGROUND_SECONDS = 0.02
SERVED: tuple[Resource[Any], ...] = (JOBSETS, JOBS, SERVICES, CLAIMS, PODS, WORKLOADS, POD_GROUPS, LEASES)
INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}

Name = tuple[str, str, str]
"""Plural, namespace, name."""


@dataclass
class Call:
    """One request that the server saw, in order, with the status of the answer."""

    at: float
    method: str
    plural: str
    name: str
    subresource: str
    status: int
    body: Any

    def __str__(self) -> str:
        return " ".join(part for part in (self.method, self.plural, self.name, self.subresource) if part)


Fault = Response | Exception | None


@dataclass
class ModelServer:
    objects: dict[Name, Manifest] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    unserved: set[str] = field(default_factory=set)
    """Plurals that the server does not have."""
    before: Callable[[Request, str], Fault] = lambda _request, _plural: None
    """A fault instead of the answer to a request."""
    after: Callable[[Request, str], Fault] = lambda _request, _plural: None
    """A fault instead of the answer to a request that was executed."""
    latency_seconds: float = 0.001
    watched: set[tuple[str, str]] = field(default_factory=set)
    """Plural and namespace of every watch there was."""
    drops: set[str] = field(default_factory=set)
    """Fields that are dropped silently from what is created, as those whose gate is off."""
    silent: set[str] = field(default_factory=set)
    """Plurals of which the watches tell nothing now, as if they lagged behind."""
    _watchers: list[tuple[str, str, str, asyncio.Queue[Manifest | None]]] = field(default_factory=list)
    _history: list[tuple[int, str, Manifest]] = field(default_factory=list)
    _versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _version: int = 0

    # The Transport protocol

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(self.latency_seconds)
        plural, namespace, name, subresource = _parse(request.path)
        body = json.loads(request.body) if request.body else None
        fault = self.before(request, plural)
        if fault is None:
            response = self._answer(request, plural, namespace, name, subresource, body)
            fault = self.after(request, plural)
        status = fault.status if isinstance(fault, Response) else 0 if fault is not None else response.status
        seen = name or (body or {}).get("metadata", {}).get("name", "")
        self.calls.append(Call(_now(), request.method, plural, seen, subresource, status, body))
        if isinstance(fault, Exception):
            raise fault
        return fault or response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        await asyncio.sleep(self.latency_seconds)
        plural, namespace, _, _ = _parse(request.path)
        query = {key: values[0] for key, values in parse_qs(request.query).items()}
        if plural in self.unserved:
            raise error_of(request, failure(404, "NotFound", "the server could not find the requested resource"))
        lines: asyncio.Queue[Manifest | None] = asyncio.Queue()
        selector = query.get("labelSelector", "")
        if query.get("sendInitialEvents"):
            for obj in self._of(plural, namespace, selector):
                lines.put_nowait({"type": "ADDED", "object": obj})
            end = {"metadata": {"resourceVersion": str(self._version), "annotations": INITIAL_EVENTS_END}}
            lines.put_nowait({"type": "BOOKMARK", "object": end})
        else:
            since = int(query.get("resourceVersion") or 0)
            for version, of_plural, event in self._history:
                if version > since and of_plural == plural and _matches(event["object"], selector, namespace):
                    lines.put_nowait(event)
        watcher = (plural, namespace, selector, lines)
        self._watchers.append(watcher)
        self.watched.add((plural, namespace))
        try:
            yield _lines(lines)
        finally:
            self._watchers.remove(watcher)

    async def close(self) -> None:
        self.drop_watches()

    # What tests do to the world

    def put(self, plural: str, obj: Manifest, *, namespace: str = "ns") -> Manifest:
        """Create or replace an object, as somebody else would."""
        obj = copy.deepcopy(obj)
        metadata = obj.setdefault("metadata", {})
        metadata.setdefault("namespace", namespace)
        key = (plural, metadata["namespace"], metadata["name"])
        old = self.objects.get(key)
        metadata.setdefault("uid", old["metadata"]["uid"] if old else f"{plural}-{self._version}-uid")
        self._store(key, obj, "ADDED" if old is None else "MODIFIED")
        return obj

    def change(self, plural: str, name: str, patch: Manifest, *, namespace: str = "ns") -> Manifest:
        """Merge a patch into an object, status included."""
        key = (plural, namespace, name)
        obj = _merge(self.objects[key], patch)
        if "spec" in patch:
            obj["metadata"]["generation"] = obj["metadata"].get("generation", 1) + 1
        self._store(key, obj, "MODIFIED")
        return obj

    def remove(self, plural: str, name: str, *, namespace: str = "ns") -> None:
        key = (plural, namespace, name)
        obj = self.objects.pop(key)
        obj = copy.deepcopy(obj)
        obj["metadata"]["resourceVersion"] = self._next()
        self._tell(plural, "DELETED", obj)
        if plural == JOBSETS.plural:
            uid = obj["metadata"]["uid"]
            for child in [k for k, o in self.objects.items() if uid in _owner_uids(o)]:
                self.remove(child[0], child[2], namespace=child[1])

    def drop_watches(self) -> None:
        for *_, lines in self._watchers:
            lines.put_nowait(None)

    def get(self, plural: str, name: str, *, namespace: str = "ns") -> Manifest:
        return self.objects[plural, namespace, name]

    def names(self, plural: str) -> list[str]:
        return sorted(name for of, _, name in self.objects if of == plural)

    def writes(self, since: int = 0) -> list[str]:
        return [str(call) for call in self.calls[since:] if call.method != "GET"]

    def statuses(self, code: int) -> list[str]:
        return [str(call) for call in self.calls if call.status == code]

    # The verbs

    def _answer(
        self, request: Request, plural: str, namespace: str, name: str, subresource: str, body: Any
    ) -> Response:
        if not plural:
            group = request.path.removeprefix("/apis/").removeprefix("/api/")
            served = [r.plural for r in SERVED if r.api_version == group and r.plural not in self.unserved]
            if not served:
                return failure(404, "NotFound", "not found")
            return _json(200, {"kind": "APIResourceList", "resources": [{"name": n, "kind": n} for n in served]})
        if plural in self.unserved:
            return failure(404, "NotFound", "the server could not find the requested resource")
        key = (plural, namespace, name)
        if request.method == "POST":
            return self._create(plural, namespace, body, is_dry_run="dryRun=All" in request.query)
        if not name:
            items = self._of(plural, namespace, "")
            return _json(200, {"metadata": {"resourceVersion": str(self._version)}, "items": items})
        if key not in self.objects:
            return failure(404, "NotFound", f'{plural} "{name}" not found', name)
        if request.method == "PATCH":
            return self._patch(key, subresource, body)
        if request.method == "DELETE":
            return self._delete(key, body or {})
        return _json(200, self.objects[key])

    def _create(self, plural: str, namespace: str, body: Manifest, *, is_dry_run: bool) -> Response:
        metadata = body["metadata"]
        key = (plural, namespace, metadata.get("name") or metadata["generateName"] + "xxxxx")
        if key in self.objects:
            return failure(409, "AlreadyExists", f'{plural} "{key[2]}" already exists', key[2])
        body = _without(copy.deepcopy(body), self.drops)
        body["metadata"] |= {
            "name": key[2],
            "namespace": namespace,
            "uid": f"{plural}-{key[2]}-{self._version}",
            "generation": 1,
            "creationTimestamp": timestamp(NOW + timedelta(seconds=_now())),
        }
        if is_dry_run:
            return _json(201, body)
        self._store(key, body, "ADDED")
        return _json(201, self.objects[key])

    def _patch(self, key: Name, subresource: str, body: Any) -> Response:
        old = self.objects[key]
        if isinstance(body, list):
            new = copy.deepcopy(old)
            for operation in body:
                if not _operate(new, operation):
                    return failure(422, "Invalid", "the server rejected our request: test failed")
        else:
            metadata = body.get("metadata", {})
            if metadata.get("resourceVersion") not in (None, old["metadata"]["resourceVersion"]):
                return failure(409, "Conflict", "the object has been modified")
            if metadata.get("uid") not in (None, old["metadata"]["uid"]):
                return failure(422, "Invalid", "metadata.uid: field is immutable", key[2])
            part = {"status": body.get("status")} if subresource else {k: v for k, v in body.items() if k != "status"}
            new = _merge(old, part)
        if new["metadata"] | {"resourceVersion": ""} != old["metadata"] | {"resourceVersion": ""} or new != old:
            self._store(key, new, "MODIFIED")
        return _json(200, self.objects[key])

    def _delete(self, key: Name, options: Manifest) -> Response:
        obj = self.objects[key]
        uid = options.get("preconditions", {}).get("uid")
        if uid not in (None, obj["metadata"]["uid"]):
            return failure(409, "Conflict", "the UID in the precondition does not match")
        if options.get("propagationPolicy") != "Foreground":
            self.remove(key[0], key[2], namespace=key[1])
            return _json(200, {"kind": "Status", "status": "Success"})
        if "deletionTimestamp" not in obj["metadata"]:
            uid = obj["metadata"]["uid"]
            self._store(key, _merge(obj, {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}}), "MODIFIED")
            asyncio.get_running_loop().call_later(FOREGROUND_SECONDS, self._collect, key, uid)
        return _json(200, self.objects[key])

    def _collect(self, key: Name, uid: str) -> None:
        if key in self.objects and self.objects[key]["metadata"]["uid"] == uid:
            self.remove(key[0], key[2], namespace=key[1])

    def _store(self, key: Name, obj: Manifest, event: str) -> None:
        obj["metadata"]["resourceVersion"] = self._next()
        self.objects[key] = obj
        self._tell(key[0], event, obj)

    def _next(self) -> str:
        self._version = next(self._versions)
        return str(self._version)

    def _tell(self, plural: str, event: str, obj: Manifest) -> None:
        line = {"type": event, "object": copy.deepcopy(obj)}
        self._history.append((self._version, plural, line))
        if plural in self.silent:
            return
        for of, namespace, selector, lines in self._watchers:
            if of == plural and _matches(obj, selector, namespace):
                lines.put_nowait(line)

    def _of(self, plural: str, namespace: str, selector: str) -> list[Manifest]:
        return [
            copy.deepcopy(obj)
            for (of, _, _), obj in self.objects.items()
            if of == plural and _matches(obj, selector, namespace)
        ]


async def _lines(queue: asyncio.Queue[Manifest | None]) -> AsyncIterator[bytes]:
    while (event := await queue.get()) is not None:
        yield json.dumps(event).encode() + b"\n"


def _parse(path: str) -> tuple[str, str, str, str]:
    """Plural, namespace, name, subresource of a path; all empty for discovery."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    parts = parts[3:] if parts[0] == "apis" else parts[2:]
    namespace = ""
    if len(parts) > 2 and parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    parts += [""] * (3 - len(parts))
    return parts[0], namespace, parts[1], parts[2]


def _now() -> float:
    return asyncio.get_running_loop().time()


def _json(status: int, body: Any) -> Response:
    return Response(status, json.dumps(body).encode())


def failure(code: int, reason: str, message: str, name: str = "") -> Response:
    """A Status. `name` is that of the object that it is about."""
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return _json(code, status | ({"details": {"name": name}} if name else {}))


def _merge(old: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged


def _without(value: Any, fields: set[str]) -> Any:
    """The value without these fields, wherever they are."""
    if isinstance(value, dict):
        return {k: _without(v, fields) for k, v in value.items() if k not in fields}
    return [_without(v, fields) for v in value] if isinstance(value, list) else value


def _operate(obj: Any, operation: Manifest) -> bool:
    *path, last = (part.replace("~1", "/").replace("~0", "~") for part in operation["path"].strip("/").split("/"))
    for part in path:
        obj = obj[int(part)] if isinstance(obj, list) else obj[part]
    if operation["op"] == "test":
        return bool(obj.get(last) == operation["value"])
    assert operation["op"] in ("add", "replace")
    obj[last] = operation["value"]
    return True


def _matches(obj: Manifest, selector: str, namespace: str) -> bool:
    """`selector` is `key` or `key=value` of a label; empty ones match all."""
    metadata = obj["metadata"]
    key, equals, value = selector.partition("=")
    labels = metadata.get("labels", {})
    is_chosen = not selector or (labels.get(key) == value if equals else key in labels)
    return is_chosen and namespace in ("", metadata["namespace"])


def _owner_uids(obj: Manifest) -> set[str]:
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences", [])}
