"""What we ask the API server, as values: one frozen Request a call, built without I/O.

Called by kube.client; a Transport sends them. A name or namespace is quoted, and one that would change which
resource the path means (empty, `.` or `..`) is refused: an empty name would turn a delete into a delete of all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from pyjobset.errors import UsageError
from pyjobset.objects.meta import Manifest, Struct
from pyjobset.objects.resources import Resource

JSON = "application/json"
PatchKind = Literal["merge", "json", "apply"]
Propagation = Literal["Foreground", "Background", "Orphan"]
PatchBody = Manifest | Struct | Sequence[Manifest]

PATCH_TYPES: dict[PatchKind, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
FIELD_MANAGER = "jobset"
UNARY_TIMEOUT_SECONDS = 30.0
WATCH_TIMEOUT_SECONDS = 290
"""How long the server keeps a watch open (timeoutSeconds). The client adds jitter."""

_encoder = msgspec.json.Encoder()
_is_plain = re.compile(r"[A-Za-z0-9._~-]+").fullmatch


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    """Percent-encoded, without the query."""
    query: str = ""
    body: bytes = b""
    content_type: str = JSON
    timeout_seconds: float = UNARY_TIMEOUT_SECONDS
    """Until the whole answer is there. For a watch: the longest silence."""
    subject: str = ""
    """The object in words, for messages: `jobs.batch ns/name`."""

    @property
    def target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def is_mutating(self) -> bool:
        return self.method != "GET"

    def __str__(self) -> str:
        return f"{self.method} {self.subject or self.path}"


def get(resource: Resource[Struct], namespace: str | None, name: str) -> Request:
    return Request("GET", _path(resource, namespace, name), subject=_subject(resource, namespace, name))


def list_(
    resource: Resource[Struct],
    namespace: str | None,
    *,
    label_selector: str = "",
    field_selector: str = "",
    limit: int = 0,
    continue_token: str = "",
) -> Request:
    query = _query(
        labelSelector=label_selector,
        fieldSelector=field_selector,
        limit=str(limit) if limit else "",
        **{"continue": continue_token},
    )
    return Request("GET", _path(resource, namespace), query, subject=_subject(resource, namespace))


def create(resource: Resource[Struct], namespace: str | None, body: Manifest | Struct, *, dry_run: bool) -> Request:
    query = f"fieldManager={FIELD_MANAGER}&dryRun=All" if dry_run else f"fieldManager={FIELD_MANAGER}"
    return Request(
        "POST",
        _path(resource, namespace),
        query,
        encode(resource, body),
        subject=_subject(resource, namespace, name_of(body)),
    )


def patch(
    resource: Resource[Struct],
    namespace: str | None,
    name: str,
    body: PatchBody,
    *,
    kind: PatchKind,
    subresource: str | None,
    field_manager: str,
    force: bool,
) -> Request:
    return Request(
        "PATCH",
        _path(resource, namespace, name, subresource),
        _query(fieldManager=field_manager, force="true" if force else ""),
        encode(resource, body) if kind == "apply" and isinstance(body, Struct | dict) else _encoder.encode(body),
        content_type=PATCH_TYPES[kind],
        subject=_subject(resource, namespace, name, subresource),
    )


def delete(
    resource: Resource[Struct],
    namespace: str | None,
    name: str,
    *,
    uid: str | None,
    resource_version: str | None,
    propagation: Propagation,
) -> Request:
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": propagation,
        "preconditions": {key: value for key, value in preconditions.items() if value is not None},
    }
    return Request(
        "DELETE",
        _path(resource, namespace, name),
        body=_encoder.encode(options),
        subject=_subject(resource, namespace, name),
    )


def watch(
    resource: Resource[Struct],
    namespace: str | None,
    *,
    label_selector: str = "",
    field_selector: str = "",
    resource_version: str = "",
    is_streaming_list: bool = False,
    timeout_seconds: int = WATCH_TIMEOUT_SECONDS,
    silence_seconds_max: float,
) -> Request:
    """A watch from `resource_version`, or a streaming list (KEP-3157): all objects, a bookmark, then the watch."""
    query = _query(
        watch="true",
        allowWatchBookmarks="true",
        labelSelector=label_selector,
        fieldSelector=field_selector,
        resourceVersion=resource_version,
        sendInitialEvents="true" if is_streaming_list else "",
        resourceVersionMatch="NotOlderThan" if is_streaming_list else "",
        timeoutSeconds=str(timeout_seconds),
    )
    return Request(
        "GET",
        _path(resource, namespace),
        query,
        timeout_seconds=silence_seconds_max,
        subject=f"watch of {_subject(resource, namespace)}",
    )


def encode(resource: Resource[Struct], body: Manifest | Struct) -> bytes:
    """JSON. A struct does not carry its apiVersion and kind: they are put in front."""
    encoded = _encoder.encode(body)
    if not isinstance(body, Struct):
        return encoded
    head = f'{{"apiVersion":"{resource.api_version}","kind":"{resource.kind}"'.encode()
    return head + (b"}" if encoded == b"{}" else b"," + encoded[1:])


def name_of(body: Manifest | Struct) -> str:
    """metadata.name, or generateName, of what is being created; for messages only."""
    metadata: Any = body.get("metadata") if isinstance(body, dict) else getattr(body, "metadata", None)
    if isinstance(metadata, dict):
        return str(metadata.get("name") or metadata.get("generateName") or "")
    return getattr(metadata, "name", "") or getattr(metadata, "generate_name", "")


def _path(
    resource: Resource[Struct], namespace: str | None, name: str | None = None, subresource: str | None = None
) -> str:
    for what, value in (("namespace", namespace), ("name", name)):
        if value in ("", ".", ".."):
            raise UsageError(f"{resource}: {value!r} is not a {what}", hint=f"give the {what} of the object")
    return resource.path(
        None if namespace is None else _quoted(namespace),
        None if name is None else _quoted(name),
        subresource,
    )


def _subject(
    resource: Resource[Struct], namespace: str | None, name: str | None = None, subresource: str | None = None
) -> str:
    place = "/".join(part for part in (namespace, name, subresource) if part)
    return f"{resource} {place}" if place else str(resource)


def _query(**parameters: str) -> str:
    return "&".join(f"{key}={_quoted(value)}" for key, value in parameters.items() if value)


def _quoted(text: str) -> str:
    """For a URL. Most names and values are plain, and quote takes its time to find that out."""
    if _is_plain(text):
        return text
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise UsageError(f"{text!r} is no text", hint="it has bytes that are not UTF-8") from None
