"""Plays one script of requests against an API server, the model or the real one, and writes down what it answered.

A script is data. What an answer says of identities is told by placeholders, so that a later step can use it:
`$uid:jobs/a` and `$version:jobs/a` are those of the last answer about that object, `$first-version:jobs/a` and
`$first-uid:jobs/a` those of the first one; `$namespace` is the script's own.
"""

import asyncio
from collections.abc import Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from pyjobset.kube import requests
from pyjobset.kube.requests import PatchKind, Request
from pyjobset.kube.responses import Response
from pyjobset.kube.transport import Transport
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import Resource
from pyjobset.simulation.kinds import KINDS

END = "zz-end"
"""The object that is made after a script, so that a watch knows when it has seen all."""
WATCH_SECONDS = 180
UNSEEN = ("1", "00000000-0000-4000-9000-000000000000")
"""The version and the uid of an object that no answer told of."""


@dataclass(frozen=True)
class Step:
    method: str
    plural: str
    name: str = ""
    body: Any = None
    kind: PatchKind = "merge"
    subresource: str = ""
    query: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Watch:
    """`first`: the number of the step before which it begins. A streaming list tells what there is, then goes on.
    `version`: from where, if not from what there is when it begins."""

    plural: str
    selector: str = ""
    first: int = 0
    is_streaming_list: bool = False
    version: str = ""


@dataclass(frozen=True)
class Script:
    steps: Sequence[Step]
    watches: Sequence[Watch] = ()
    lists: Sequence[str] = ()
    """What there is of these kinds at the end."""
    refuses: Literal["", "quota", "policy"] = ""
    """A quota of one of each kind, or a policy that only lets through what is named `a`."""


@dataclass
class Story:
    """What came of a script: the answers in order, then what each watch told, then what there was at the end."""

    answers: list[Manifest] = field(default_factory=list)
    told: list[list[Manifest]] = field(default_factory=list)
    left: list[Manifest] = field(default_factory=list)


def create(plural: str, body: Manifest, **query: Any) -> Step:
    return Step("POST", plural, body=body, query=query)


def patch(plural: str, name: str, body: Any, subresource: str = "", kind: PatchKind | None = None) -> Step:
    """A merge patch, or a JSON patch where it is a list."""
    return Step("PATCH", plural, name, body, kind or ("json" if isinstance(body, list) else "merge"), subresource)


def delete(plural: str, name: str, propagation: str = "Background", **preconditions: str) -> Step:
    return Step("DELETE", plural, name, query={"propagation": propagation, **preconditions})


def get(plural: str, name: str) -> Step:
    return Step("GET", plural, name)


def list_(plural: str, **query: Any) -> Step:
    return Step("GET", plural, query=query)


class Player:
    def __init__(self, transport: Transport, namespace: str, ends: Mapping[str, Manifest]) -> None:
        self._transport = transport
        self._namespace = namespace
        self._ends = ends
        """By kind: an object that can be created, with labels that each watch of the script selects."""
        self._seen: dict[str, list[Manifest]] = {}

    async def play(self, script: Script) -> Story:
        story = Story()
        begun: list[asyncio.Task[list[Manifest]]] = []
        for number, step in enumerate(script.steps):
            begun += [await self._begin(watch) for watch in script.watches if watch.first == number]
            story.answers.append(await self.ask(step))
        begun += [await self._begin(watch) for watch in script.watches if watch.first >= len(script.steps)]
        for plural in script.lists:
            story.left += await self.all(plural)
        for plural in dict.fromkeys(watch.plural for watch in script.watches):
            await self.send(create(plural, self._ends[plural]))
        story.told = list(await asyncio.gather(*begun))
        return story

    async def send(self, step: Step) -> Response:
        return await self._transport.send(self._request(step))

    async def ask(self, step: Step) -> Manifest:
        """The answer, with what it is the answer to. Its identities are remembered."""
        return self._answer(step, await self.send(step))

    async def follow(self, plural: str, version: str, told: MutableSequence[Manifest]) -> None:
        """Keeps the objects that a watch tells, until it is cancelled."""
        resource: Resource[Any] = KINDS[plural].resource
        request = requests.watch(
            resource, self._namespace, resource_version=version, timeout_seconds=600, silence_seconds_max=600
        )
        async with self._transport.stream(request) as lines:
            async for line in lines:
                event = msgspec.json.decode(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    told.append(event["object"])

    def _request(self, step: Step) -> Request:
        resource: Resource[Any] = KINDS[step.plural].resource
        body, query, where = self._filled(step.body), self._filled(dict(step.query)), self._namespace
        if step.method == "POST":
            head = {"apiVersion": resource.api_version, "kind": resource.kind}
            return requests.create(resource, where, {**head, **body}, dry_run=query.get("dry_run", False))
        if step.method == "PATCH":
            is_apply = step.kind == "apply"
            return requests.patch(
                resource,
                where,
                step.name,
                body,
                kind=step.kind,
                subresource=step.subresource or None,
                field_manager="jobset",
                force=is_apply,
            )
        if step.method == "DELETE":
            return requests.delete(
                resource,
                where,
                step.name,
                uid=query.get("uid"),
                resource_version=query.get("version"),
                propagation=query["propagation"],
            )
        if step.name:
            return requests.get(resource, where, step.name)
        return requests.list_(resource, where, **query)

    def _answer(self, step: Step, response: Response) -> Manifest:
        body = msgspec.json.decode(response.body)
        if "items" in body:
            body["items"] = [_headed(step.plural, item) for item in body["items"]]
        for item in body.get("items", [body]):
            self._remember(step.plural, item)
        return {"step": f"{step.method} {step.plural} {step.name}", "code": response.status, "body": body}

    def _remember(self, plural: str, body: Manifest) -> None:
        metadata = body.get("metadata") or {}
        if "uid" in metadata and "resourceVersion" in metadata:
            self._seen.setdefault(f"{plural}/{metadata['name']}", []).append(metadata)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        if value.startswith("$namespace"):
            return value.replace("$namespace", self._namespace)
        what, _, of = value[1:].partition(":")
        if of not in self._seen:
            return UNSEEN[what.endswith("uid")]
        metadata = self._seen[of][0 if what.startswith("first-") else -1]
        return metadata["uid" if what.endswith("uid") else "resourceVersion"]

    async def all(self, plural: str) -> list[Manifest]:
        """All of the namespace, by name."""
        response = await self.send(list_(plural))
        items = [_headed(plural, item) for item in msgspec.json.decode(response.body)["items"]]
        return sorted(items, key=lambda item: str(item["metadata"]["name"]))

    async def _begin(self, watch: Watch) -> asyncio.Task[list[Manifest]]:
        """Returns when the watch knows from where it is to tell."""
        resource: Resource[Any] = KINDS[watch.plural].resource
        version = watch.version
        if not watch.is_streaming_list and not version:
            response = await self.send(list_(watch.plural))
            version = msgspec.json.decode(response.body)["metadata"]["resourceVersion"]
        request = requests.watch(
            resource,
            self._namespace,
            label_selector=watch.selector,
            resource_version=version,
            is_streaming_list=watch.is_streaming_list,
            timeout_seconds=WATCH_SECONDS,
            silence_seconds_max=WATCH_SECONDS,
        )
        started = asyncio.Event()
        task = asyncio.create_task(self._events(request, started))
        if watch.is_streaming_list:
            await started.wait()
        return task

    async def _events(self, request: Request, started: asyncio.Event) -> list[Manifest]:
        events: list[Manifest] = []
        async with self._transport.stream(request) as lines:
            async for line in lines:
                event = msgspec.json.decode(line)
                metadata = event["object"].get("metadata") or {}
                if event["type"] == "BOOKMARK":
                    if metadata.get("annotations"):  # the end of a streaming list; others come when they come
                        events.append({"type": "BOOKMARK", "object": {"metadata": metadata["annotations"]}})
                        started.set()
                    continue
                if metadata.get("name") == END:
                    return events
                if event["type"] == "ERROR":
                    return [*events, {"type": f"ERROR {event['object']['code']}", "object": event["object"]}]
                events.append(event)
        events.append({"type": "the watch ended", "object": {}})
        return events


def _headed(plural: str, item: Manifest) -> Manifest:
    """Items of a list of a built-in kind do not say what they are."""
    resource = KINDS[plural].resource
    return {"apiVersion": resource.api_version, "kind": resource.kind, **item}
