"""The model garbage collector: dependents of what is gone go, and a foreground deletion waits for its dependents.

Mirrors Kubernetes' ownerReferences: an object whose owners are all gone is deleted; one that is being deleted in the
foreground is gone when no dependent with blockOwnerDeletion is left.
"""

from pyjobset.objects.meta import Manifest
from pyjobset.simulation.metadata import FOREGROUND
from pyjobset.simulation.server import Server
from pyjobset.simulation.store import Change, Name
from pyjobset.simulation.worker import Worker


class Collector(Worker):
    def __init__(self, server: Server, *, delay_seconds: float = 0.02) -> None:
        super().__init__(server, delay_seconds=delay_seconds)

    def wakes(self, change: Change) -> tuple[Name, ...]:
        metadata = change.object["metadata"]
        found = [change.name] if change.type != "DELETED" else list(self.server.store.owned_by(metadata["uid"]))
        for owner in metadata.get("ownerReferences") or ():
            name = self.server.store.with_uid(owner["uid"])
            if name is not None and "deletionTimestamp" in (self.server.store.get(name) or {})["metadata"]:
                found.append(name)
        return tuple(found)

    def look(self, key: Name) -> None:
        obj = self.server.store.get(key)
        if obj is None:
            return
        if self._is_orphan(obj) and "deletionTimestamp" not in obj["metadata"]:
            self.server.delete(key, {"propagationPolicy": "Background"})
            return
        if FOREGROUND in (obj["metadata"].get("finalizers") or ()):
            self._finish(key, obj)

    def _is_orphan(self, obj: Manifest) -> bool:
        owners = obj["metadata"].get("ownerReferences") or ()
        return bool(owners) and all(self.server.store.with_uid(owner["uid"]) is None for owner in owners)

    def _finish(self, key: Name, obj: Manifest) -> None:
        uid = obj["metadata"]["uid"]
        is_blocked = False
        for name in self.server.store.owned_by(uid):
            dependent = self.server.store.get(name)
            if dependent is None:
                continue
            owners = dependent["metadata"]["ownerReferences"]
            blocks = any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in owners)
            if "deletionTimestamp" not in dependent["metadata"]:
                self.server.delete(name, {"propagationPolicy": "Foreground" if blocks else "Background"})
            is_blocked = is_blocked or (blocks and self.server.store.get(name) is not None)
        if not is_blocked:
            rest = [f for f in obj["metadata"]["finalizers"] if f != FOREGROUND]
            self.server.patch(key, {"metadata": {"finalizers": rest}})
