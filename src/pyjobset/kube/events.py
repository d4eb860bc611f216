"""The lines of a watch, decoded: changes of objects, bookmarks, and objects that do not fit their type. No I/O.

Called by kube.client for each line. One bad line never ends a watch: it becomes an Unreadable.
"""

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import msgspec

from pyjobset.errors import JobSetError
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import BAD_JSON, Status, error_of_status
from pyjobset.objects.meta import Struct

T = TypeVar("T", bound=Struct)

LINE_BYTES_MAX = 32 * 1024 * 1024
"""etcd holds objects of at most 1.5 MiB; managed fields and JSON can make them a few times larger."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchEvent(Struct, Generic[T], frozen=True):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: T


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All changes up to `resource_version` have been sent."""

    resource_version: str
    ends_initial_list: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An event whose object does not fit its type. `name` is empty when not even the metadata can be read."""

    type: str
    namespace: str
    name: str
    resource_version: str
    problem: str


class _Metadata(Struct, frozen=True):
    namespace: str = ""
    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _Partial(Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_partial_decoder = msgspec.json.Decoder(WatchEvent[_Partial])
_item_decoder = msgspec.json.Decoder(_Partial)
_error_decoder = msgspec.json.Decoder(WatchEvent[Status])


class EventDecoder(Generic[T]):
    """Decodes each line in one step; looks twice only at bookmarks, errors and what does not fit."""

    def __init__(self, request: Request, type_: type[T]) -> None:
        self._request = request
        self._decoder = msgspec.json.Decoder(WatchEvent[type_])  # type: ignore[valid-type]
        self._item_decoder = msgspec.json.Decoder(type_)

    def decode(self, line: bytes) -> WatchEvent[T] | Bookmark | Unreadable:
        """Raises what an ERROR event means, as if it were the answer's status."""
        try:
            event: WatchEvent[T] = self._decoder.decode(line)
        except BAD_JSON as error:
            return self._second_look(line, str(error))
        if event.type in ("BOOKMARK", "ERROR"):
            return self._second_look(line, "")
        return event

    def decode_item(self, item: msgspec.Raw) -> T | Unreadable:
        """An object of a list."""
        try:
            found: T = self._item_decoder.decode(item)
        except BAD_JSON as error:
            return _unreadable_item(item, str(error))
        return found

    def _second_look(self, line: bytes, problem: str) -> Bookmark | Unreadable:
        try:
            event = _partial_decoder.decode(line)
        except BAD_JSON as error:
            return Unreadable("", "", "", "", problem or str(error))
        meta = event.object.metadata
        if event.type == "BOOKMARK":
            return Bookmark(meta.resource_version, meta.annotations.get(INITIAL_EVENTS_END) == "true")
        if event.type == "ERROR":
            raise self._error(line)
        return _unreadable(event.type, meta, problem)

    def _error(self, line: bytes) -> JobSetError:
        try:
            status = _error_decoder.decode(line).object
        except msgspec.ValidationError as error:
            status = Status(message=f"an unreadable error event: {error}")
        return error_of_status(self._request, status.code or 500, status)


def _unreadable_item(item: msgspec.Raw, problem: str) -> Unreadable:
    try:
        meta = _item_decoder.decode(item).metadata
    except BAD_JSON:
        meta = _Metadata()
    return _unreadable("ADDED", meta, problem)


def _unreadable(type_: str, meta: _Metadata, problem: str) -> Unreadable:
    return Unreadable(type_, meta.namespace, meta.name, meta.resource_version, problem)


class LineSplitter:
    """Puts the chunks of a stream together into lines, wherever the chunks were cut."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._rest_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their ends; empty ones are left out."""
        head, newline, tail = chunk.partition(b"\n")
        if not newline:
            self._keep(chunk)
            return []
        self._rest.append(head)
        *lines, last = (b"".join(self._rest), *tail.split(b"\n"))
        self._rest, self._rest_bytes = [], 0
        self._keep(last)
        return [line for line in lines if line and not line.isspace()]

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._rest.append(part)
        self._rest_bytes += len(part)
        if self._rest_bytes > LINE_BYTES_MAX:
            raise ValueError(f"a watch event is longer than {LINE_BYTES_MAX} bytes")
