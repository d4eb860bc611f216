"""The objects of a model API server: versions, uids, what changed in which order, and who owns what.

Written by simulation.server only, so that every change has a version and is told to all who listen. Objects are plain
mappings that nobody changes: a write puts another one in their place.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

from pyjobset.objects.meta import Manifest


class Name(NamedTuple):
    plural: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Change:
    version: int
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    name: Name
    old: Manifest | None
    object: Manifest
    """As it is, or as it was when it was deleted, with the version of the change."""
    actor: str
    """Who wrote it."""
    at: float
    """Seconds of the virtual clock."""

    def line(self, type_: str) -> bytes:
        """As a watch tells it."""
        obj = self.object
        if type_ == "DELETED" and self.type == "MODIFIED" and self.old is not None:
            # it left the selection: what is told is how it was in it
            metadata = {**self.old["metadata"], "resourceVersion": obj["metadata"]["resourceVersion"]}
            obj = {**self.old, "metadata": metadata}
        return msgspec.json.encode({"type": type_, "object": obj}) + b"\n"


@dataclass(slots=True)
class Store:
    version: int = 0
    history: list[Change] = field(default_factory=list)
    actor: str = "user"
    """Whose writes are being executed now."""
    oldest: int = 0
    """A watch from before this version is told that its time is over (410)."""
    _objects: dict[str, dict[Name, Manifest]] = field(default_factory=lambda: defaultdict(dict))
    _owned: dict[str, dict[Name, None]] = field(default_factory=dict)
    _uids: dict[str, Name] = field(default_factory=dict)
    _listeners: dict[str, list[Callable[[Change], None]]] = field(default_factory=lambda: defaultdict(list))
    _serial: int = 0

    def listen(self, listener: Callable[[Change], None], plural: str = "") -> Callable[[], None]:
        """Called after each change, of any resource or of one, in order. The result ends it."""
        listeners = self._listeners[plural]
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def get(self, name: Name) -> Manifest | None:
        return self._objects[name.plural].get(name)

    def of(self, plural: str, namespace: str = "") -> Iterator[Manifest]:
        """In the order of their creation; all namespaces when none is given."""
        return (o for n, o in self._objects[plural].items() if namespace in ("", n.namespace))

    def with_uid(self, uid: str) -> Name | None:
        return self._uids.get(uid)

    def owned_by(self, uid: str) -> tuple[Name, ...]:
        """Everything that names the uid as an owner."""
        return tuple(self._owned.get(uid, ()))

    def new_uid(self) -> str:
        self._serial += 1
        return f"00000000-0000-4000-8000-{self._serial:012x}"

    def put(self, name: Name, obj: Manifest) -> Manifest:
        """Stores the object under a new version and hands it back."""
        objects = self._objects[name.plural]
        old = objects.get(name)
        self.version += 1
        stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        objects[name] = stored
        if old is not None:
            self._unindex(name, old)
        self._index(name, stored)
        self._tell("ADDED" if old is None else "MODIFIED", name, old, stored)
        return stored

    def remove(self, name: Name) -> Manifest:
        old = self._objects[name.plural].pop(name)
        self._unindex(name, old)
        self.version += 1
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        self._tell("DELETED", name, old, last)
        return last

    def compact(self) -> None:
        """Forgets the past: who watches from an old version has to list again."""
        self.oldest = self.version
        self.history.clear()

    def acting(self, actor: str) -> "_Acting":
        """What is written meanwhile is this one's work. Nothing may wait in it."""
        return _Acting(self, actor)

    def _tell(
        self, type_: Literal["ADDED", "MODIFIED", "DELETED"], name: Name, old: Manifest | None, obj: Manifest
    ) -> None:
        now = _now()
        change = Change(self.version, type_, name, old, obj, self.actor, now)
        self.history.append(change)
        for listener in (*self._listeners[""], *self._listeners[name.plural]):
            listener(change)

    def _index(self, name: Name, obj: Manifest) -> None:
        self._uids[obj["metadata"]["uid"]] = name
        for owner in obj["metadata"].get("ownerReferences") or ():
            self._owned.setdefault(owner["uid"], {})[name] = None

    def _unindex(self, name: Name, obj: Manifest) -> None:
        self._uids.pop(obj["metadata"]["uid"], None)
        for owner in obj["metadata"].get("ownerReferences") or ():
            owned = self._owned.get(owner["uid"], {})
            owned.pop(name, None)
            if not owned:
                self._owned.pop(owner["uid"], None)


class _Acting:
    """Without contextlib: each request and each look of a model controller is one."""

    __slots__ = ("_actor", "_before", "_store")

    def __init__(self, store: Store, actor: str) -> None:
        self._store, self._actor = store, actor

    def __enter__(self) -> None:
        self._before, self._store.actor = self._store.actor, self._actor

    def __exit__(self, *_: object) -> None:
        self._store.actor = self._before


def _now() -> float:
    """Objects may be put before there is a clock."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 0.0
