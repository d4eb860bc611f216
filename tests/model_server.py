"""The model API server as tests of one controller use it: what was asked is written down, faults are put in.

The server is pyjobset.simulation.server; this adds what a test does to the world, and a garbage collector. Objects
that a test puts are taken as they are, with their defaults.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import msgspec

from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response, error_of
from pyjobset.objects import resources
from pyjobset.objects.meta import Manifest, Struct
from pyjobset.objects.resources import Resource
from pyjobset.simulation.collector import Collector
from pyjobset.simulation.kinds import KINDS, POD_GROUP_FINALIZER, Kind
from pyjobset.simulation.patches import merged
from pyjobset.simulation.server import Refusal, Server
from pyjobset.simulation.store import Change
from pyjobset.simulation.store import Name as Key

CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
MORE = (
    Kind(resources.SECRETS),
    Kind(resources.NODES),
    Kind(Resource("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", Struct, namespaced=False)),
    *(
        Kind(Resource("admissionregistration.k8s.io/v1", f"{kind.lower()}s", kind, Struct, namespaced=False))
        for kind in CONFIGURATIONS
    ),
)
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


class _Objects(MutableMapping[Name, Manifest]):
    def __init__(self, server: Server) -> None:
        self._server = server

    def __getitem__(self, name: Name) -> Manifest:
        found = self._server.store.get(Key(*name))
        if found is None:
            raise KeyError(name)
        return found

    def __setitem__(self, name: Name, obj: Manifest) -> None:
        self._server.store.put(Key(*name), obj)

    def __delitem__(self, name: Name) -> None:
        self._server.store.remove(Key(*name))

    def __iter__(self) -> Iterator[Name]:
        for plural in self._server.kinds:
            for obj in self._server.store.of(plural):
                yield plural, obj["metadata"]["namespace"], obj["metadata"]["name"]

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass
class ModelServer:
    calls: list[Call] = field(default_factory=list)
    unserved: set[str] = field(default_factory=set)
    """Plurals that the server does not have."""
    before: Callable[[Request, str], Fault] = lambda _request, _plural: None
    """A fault instead of the answer to a request, and of a watch."""
    after: Callable[[Request, str], Fault] = lambda _request, _plural: None
    """A fault instead of the answer to a request that was executed."""
    latency_seconds: float = 0.001
    watched: set[tuple[str, str]] = field(default_factory=set)
    """Plural and namespace of every watch there was."""
    drops: set[str] = field(default_factory=set)
    """Fields that are dropped silently from what is created, as those whose gate is off."""
    silent: set[str] = field(default_factory=set)
    """Plurals of which the watches tell nothing now, as if they lagged behind."""

    def __post_init__(self) -> None:
        self.model = Server(KINDS | {kind.resource.plural: kind for kind in MORE})
        self.objects = _Objects(self.model)
        self._is_started = False

    def _start(self) -> None:
        """What happens by itself, from the first request on: tests put objects before there is a clock."""
        self.model.unserved = self.unserved
        if not self._is_started:
            self._is_started = True
            Collector(self.model).start()
            self.model.store.listen(self._release)

    # The Transport protocol

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(self.latency_seconds)
        self._start()
        plural, name, subresource = _parse(request.path)
        body = msgspec.json.decode(request.body) if request.body else None
        fault = self.before(request, plural)
        if fault is None:
            response = self._answer(request, body)
            fault = self.after(request, plural)
        status = fault.status if isinstance(fault, Response) else 0 if fault is not None else response.status
        seen = name or (body or {}).get("metadata", {}).get("name", "")
        self.calls.append(
            Call(asyncio.get_running_loop().time(), request.method, plural, seen, subresource, status, body)
        )
        if isinstance(fault, Exception):
            raise fault
        return fault or response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        self._start()
        plural, _, _ = _parse(request.path)
        fault = self.before(request, plural)
        if fault is not None:
            raise fault if isinstance(fault, Exception) else error_of(request, fault)
        async with self.model.stream(request) as lines:
            parts = request.path.split("/namespaces/")
            self.watched.add((plural, parts[1].split("/")[0] if len(parts) > 1 else ""))
            yield self._heard(plural, lines)

    async def close(self) -> None:
        self.drop_watches()

    async def _heard(self, plural: str, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            if plural not in self.silent:
                yield line

    # What tests do to the world

    def put(self, plural: str, obj: Manifest, *, namespace: str = "ns") -> Manifest:
        """Create or replace an object, as somebody else would."""
        kind = self.model.kinds[plural]
        metadata = {"namespace": namespace, **obj.get("metadata", {})}
        key = Key(plural, metadata["namespace"], metadata["name"])
        old = self.model.store.get(key)
        metadata.setdefault("uid", old["metadata"]["uid"] if old else f"{plural}-{self.model.store.version}-uid")
        head = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
        status = {} if kind.status is None else {"status": dict(kind.status)}
        if kind.has_generation:
            metadata.setdefault("generation", 1)
        if plural == "jobs":
            obj = {**obj, "spec": {"template": {"spec": {}}, **obj.get("spec", {})}}
        return self.model.store.put(key, kind.plain({**head, **status, **obj, "metadata": metadata}))

    def change(self, plural: str, name: str, patch: Manifest, *, namespace: str = "ns") -> Manifest:
        """Merge a patch into an object, status included."""
        key = Key(plural, namespace, name)
        old = self.objects[key]
        new = merged(old, patch)
        if "spec" in patch:
            new["metadata"] = {**new["metadata"], "generation": old["metadata"].get("generation", 1) + 1}
        return self.model.store.put(key, new)

    def remove(self, plural: str, name: str, *, namespace: str = "ns") -> None:
        """At once, and what a JobSet owns with it."""
        uid = self.model.store.remove(Key(plural, namespace, name))["metadata"]["uid"]
        if plural == resources.JOBSETS.plural:
            for child in self.model.store.owned_by(uid):
                self.model.store.remove(child)

    @property
    def open_watches(self) -> int:
        return self.model.open_watches

    def drop_watches(self) -> None:
        self.model.end_watches()

    def get(self, plural: str, name: str, *, namespace: str = "ns") -> Manifest:
        return self.objects[plural, namespace, name]

    def names(self, plural: str) -> list[str]:
        return sorted(obj["metadata"]["name"] for obj in self.model.store.of(plural))

    def writes(self, since: int = 0) -> list[str]:
        return [str(call) for call in self.calls[since:] if call.method != "GET"]

    def statuses(self, code: int) -> list[str]:
        return [str(call) for call in self.calls if call.status == code]

    def _answer(self, request: Request, body: Any) -> Response:
        if request.method == "POST" and self.drops:
            request = replace(request, body=msgspec.json.encode(_without(body, self.drops)))
        if "fieldSelector" in request.query:  # it picks from the objects of a test, which are its own
            kept = [each for each in request.query.split("&") if not each.startswith("fieldSelector")]
            request = replace(request, query="&".join(kept))
        return self.model.answer(request)

    def _release(self, change: Change) -> None:
        """There is no scheduler, and no pod that a PodGroup waits for."""
        metadata = change.object["metadata"]
        if change.name.plural == "podgroups" and change.type == "MODIFIED" and "deletionTimestamp" in metadata:
            rest = [each for each in metadata.get("finalizers", ()) if each != POD_GROUP_FINALIZER]
            asyncio.get_running_loop().call_soon(self.model.patch, change.name, {"metadata": {"finalizers": rest}})


def _parse(path: str) -> tuple[str, str, str]:
    """Plural, name, subresource of a path; all empty for discovery."""
    parts = path.strip("/").split("/")
    parts = parts[3:] if parts[0] == "apis" else parts[2:]
    parts = parts[2:] if len(parts) > 2 and parts[0] == "namespaces" else parts
    plural, name, subresource, *_ = [unquote(part) for part in parts] + ["", "", ""]
    return plural, name, subresource


def failure(code: int, reason: str, message: str, name: str = "") -> Response:
    """A Status. `name` is that of the object that it is about."""
    return Refusal(code, reason, message, name).response


def _without(value: Any, fields: set[str]) -> Any:
    """The value without these fields, wherever they are."""
    if isinstance(value, dict):
        return {k: _without(v, fields) for k, v in value.items() if k not in fields}
    return [_without(v, fields) for v in value] if isinstance(value, list) else value
