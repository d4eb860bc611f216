"""What the server told of one resource, and what our own writes already make of it. No I/O; used by kube.cache.

Two layers. Told: the state by the list and the watch; `on_change` reports every step of it, once, in order. Shown:
what readers see, which is told plus our own writes that the watch has not told yet. A write is shown only if it is
newer than anything told, and gives way to what is told of the same or a newer version.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from pyjobset.kube.store import Key, Store, key_of, metadata_of, version_of
from pyjobset.objects.meta import Struct

T = TypeVar("T", bound=Struct)

OnChange = Callable[[T | None, T | None], None]


class _Write(Generic[T]):
    """A write of ours that the watch has not told yet: the store shows it, `told` is what it covers."""

    __slots__ = ("hidden_uid", "lists_before", "told", "version")

    def __init__(self, told: T | None, version: int, lists_before: int, hidden_uid: str = "") -> None:
        self.told = told
        self.version = version
        """Of the object we wrote, or of the one we deleted: then its deletion has a greater one."""
        self.lists_before = lists_before
        self.hidden_uid = hidden_uid
        """Of the object we deleted. Empty: the store shows the object we wrote."""

    def is_overtaken(self, new: T | None, version: int) -> bool:
        """What was told at `version` (None: deleted) says as much as our write, or more."""
        if not self.hidden_uid:
            return version >= self.version
        is_same = new is not None and metadata_of(new).uid == self.hidden_uid
        return version > self.version and not is_same


class Mirror(Generic[T]):
    def __init__(self, store: Store[T], on_change: OnChange[T]) -> None:
        self.version = 0
        """All changes up to this resourceVersion were told; a watch resumes from it."""
        self._store = store
        self._on_change = on_change
        self._writes: dict[Key, _Write[T]] = {}
        self._listed: set[Key] | None = None
        self._lists = 0

    # What the server tells

    def begin_list(self) -> None:
        """All objects follow, in any order, perhaps with changes among them; then `end_list`."""
        self._listed = set()
        self._lists += 1

    def end_list(self, version: int) -> None:
        """The list showed the state of `version`: what was not in it is gone."""
        assert self._listed is not None
        listed, self._listed = self._listed, None
        # A list is never older than what was told before, unless the server was restored from a backup.
        was_restored = version < self.version
        for key, write in list(self._writes.items()):
            # A list of a write's version or later knows of it; of a deletion, only one that began after it does.
            knows = write.version <= version and (not write.hidden_uid or write.lists_before < self._lists)
            if was_restored or knows:
                # It came and went while nobody told of it: who waits for its end has to hear of that all the same.
                is_unheard_of = write.told is None and key not in listed and not write.hidden_uid
                gone = self._store.get(key) if is_unheard_of else None
                self._uncover(key, write)
                if gone is not None:
                    self._on_change(None, gone)
                    self._on_change(gone, None)
        for key in dict.fromkeys((*map(key_of, self._store), *self._writes)):
            if key not in listed:
                self._tell(key, None, version)
        self.version = version

    def told(self, obj: T) -> None:
        """ADDED, MODIFIED, or an item of a list."""
        key, version = key_of(obj), version_of(obj)
        self._exists(key, version)
        write = self._writes.get(key)
        old = self._store.get(key) if write is None else write.told
        known = 0 if old is None else version_of(old)
        # In a list, a version older than the known one is of a restored server; in a watch it would be a repetition.
        if version > known or (self._listed is not None and version != known):
            self._tell(key, obj, version)

    def told_deleted(self, key: Key, version: int) -> None:
        """DELETED, at `version`."""
        self._heard(version)
        self._tell(key, None, version)

    def told_unreadable(self, key: Key, version: int) -> None:
        """It exists, in a form that we cannot read: what we knew of it stays."""
        self._exists(key, version)

    def told_version(self, version: int) -> None:
        """A bookmark. A write of ours up to it that was not told is outside of what we watch (a label selector)."""
        self.version = max(self.version, version)
        for key, write in list(self._writes.items()):
            if not write.hidden_uid and write.version <= version:
                self._uncover(key, write)

    # What we did ourselves

    def wrote(self, obj: T) -> None:
        """The server's answer to a create, patch or delete of ours: shown at once, if nothing newer was told."""
        key, version = key_of(obj), version_of(obj)
        write, shown = self._writes.get(key), self._store.get(key)
        known = version_of(shown) if shown is not None else 0 if write is None else write.version
        if version <= self.version or version <= known:
            return
        if write is None:
            self._writes[key] = _Write(shown, version, self._lists)
        elif write.hidden_uid == metadata_of(obj).uid:
            return  # the answer to an earlier write, overtaken by the one to our delete
        else:
            self._writes[key] = _Write(write.told, version, self._lists)
        self._store.put(obj)

    def deleted(self, key: Key, uid: str) -> None:
        """Our delete was answered: the object is gone."""
        shown = self._store.get(key)
        if shown is None or metadata_of(shown).uid != uid:
            return
        write = self._writes.get(key)
        told = shown if write is None else write.told
        self._writes[key] = _Write(told, version_of(shown), self._lists, uid)
        self._store.remove(key)

    # The two layers

    def _heard(self, version: int) -> None:
        # Within a list versions come in any order; `end_list` says which one it is of.
        if self._listed is None:
            self.version = max(self.version, version)

    def _exists(self, key: Key, version: int) -> None:
        self._heard(version)
        if self._listed is not None:
            self._listed.add(key)

    def _tell(self, key: Key, new: T | None, version: int) -> None:
        """Puts `new` (None: deleted) into the told layer, updates what is shown, then reports it."""
        write = self._writes.get(key)
        if write is None:
            old = self._store.get(key)
            self._show(key, new)
        else:
            old, write.told = write.told, new
            if write.is_overtaken(new, version):
                self._uncover(key, write)
        if old is not None and new is not None and metadata_of(old).uid != metadata_of(new).uid:
            self._on_change(old, None)
            self._on_change(None, new)
        elif old is not None or new is not None:
            self._on_change(old, new)

    def _uncover(self, key: Key, write: _Write[T]) -> None:
        del self._writes[key]
        self._show(key, write.told)

    def _show(self, key: Key, obj: T | None) -> None:
        if obj is None:
            self._store.remove(key)
        else:
            self._store.put(obj)
