"""Objects of one resource in memory, by namespace and name and by indexes. No I/O; used by kube.mirror.

Every operation costs the object's own size, never the number of objects. Objects are structs; the parts that an
object has in common with a sibling of the same owner are held once, since thousands of Jobs differ in little.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from pyjobset.objects.meta import Struct, controller_of

T = TypeVar("T", bound=Struct)

OWNER = "owner"
"""The built-in index, by `owner_key` of the controller ownerReference."""


class Key(NamedTuple):
    namespace: str
    name: str


class Store(Generic[T]):
    def __init__(self, indexes: Mapping[str, Callable[[T], Iterable[str]]]) -> None:
        assert OWNER not in indexes
        self._objects: dict[str, dict[str, T]] = {}
        self._size = 0
        self._functions: dict[str, Callable[[T], Iterable[str]]] = {OWNER: owners, **indexes}
        # index name -> value -> uid -> object
        self._indexes: dict[str, dict[str, dict[str, T]]] = {name: {} for name in self._functions}

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        """Of the objects at this moment: the store may change while they are looked at."""
        return iter([obj for named in self._objects.values() for obj in named.values()])

    def get(self, key: Key) -> T | None:
        named = self._objects.get(key.namespace)
        return None if named is None else named.get(key.name)

    def by_index(self, index: str, value: str) -> Collection[T]:
        bucket = self._indexes[index].get(value)
        return tuple(bucket.values()) if bucket else ()

    def put(self, obj: T) -> None:
        """Adds the object or replaces the one of its name."""
        meta = metadata_of(obj)
        self._share(obj)
        named = self._objects.setdefault(meta.namespace, {})
        old = named.get(meta.name)
        if old is None:
            self._size += 1
        named[meta.name] = obj
        for index, function in self._functions.items():
            values = frozenset(function(obj))
            if old is not None:
                is_same = metadata_of(old).uid == meta.uid
                self._unindex(index, old, keep=values if is_same else frozenset())
            for value in values:
                self._indexes[index].setdefault(value, {})[meta.uid] = obj

    def remove(self, key: Key) -> None:
        named = self._objects.get(key.namespace, {})
        old = named.pop(key.name, None)
        if old is None:
            return
        self._size -= 1
        if not named:
            del self._objects[key.namespace]
        for index in self._functions:
            self._unindex(index, old, keep=frozenset())

    def _unindex(self, index: str, old: T, *, keep: frozenset[str]) -> None:
        buckets, uid = self._indexes[index], metadata_of(old).uid
        for value in self._functions[index](old):
            if value in keep:
                continue
            bucket = buckets.get(value)
            if bucket is not None:
                bucket.pop(uid, None)
                if not bucket:
                    del buckets[value]

    def _share(self, obj: T) -> None:
        for owner in owners(obj):
            for sibling in self._indexes[OWNER].get(owner, {}).values():
                share(obj, sibling)
                return


def metadata_of(obj: Struct) -> Any:
    """Every type that is cached has metadata with namespace, name, uid, resource_version and owner_references."""
    return obj.metadata  # type: ignore[attr-defined]


def key_of(obj: Struct) -> Key:
    meta = metadata_of(obj)
    return Key(meta.namespace, meta.name)


def version_of(obj: Struct) -> int:
    """resourceVersions are integers that grow with every change of the resource (KEP-5504, Kubernetes 1.35)."""
    return version(metadata_of(obj).resource_version)


def version(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def owner_key(namespace: str, uid: str) -> str:
    """An owner is where its children are. Who names one of another namespace has guessed or read its uid: the garbage
    collector deletes that object, but not at once."""
    return f"{namespace}/{uid}"


def owners(obj: Struct) -> Iterable[str]:
    meta = metadata_of(obj)
    owner = controller_of(meta.owner_references)
    return () if owner is None else (owner_key(meta.namespace, owner.uid),)


def share(new: msgspec.Struct, sibling: msgspec.Struct) -> None:
    """Makes the parts of `new` that equal the sibling's be the same objects. `new` was just decoded: nobody has it."""
    for name in new.__struct_fields__:
        mine, theirs = getattr(new, name), getattr(sibling, name)
        if mine is theirs:
            continue
        if type(mine) is not type(theirs):
            continue
        if mine == theirs:
            msgspec.structs.force_setattr(new, name, theirs)
        elif isinstance(mine, msgspec.Struct):
            share(mine, theirs)
