"""The model garbage collector: dependents of what is gone go, and a foreground deletion waits for its dependents.

Mirrors Kubernetes' ownerReferences: an object whose owners are all gone is deleted; one that is being deleted in the
foreground is gone when no dependent with blockOwnerDeletion is left. It also keeps the protection finalizer of claims,
which is another controller's work in a real cluster.
"""

from pyjobset.objects.meta import Manifest
from pyjobset.simulation.kinds import CLAIM_FINALIZER
from pyjobset.simulation.metadata import FOREGROUND
from pyjobset.simulation.server import Server
from pyjobset.simulation.store import Change, Name
from pyjobset.simulation.worker import Worker


class Collector(Worker):
    def __init__(self, server: Server, *, delay_seconds: float = 0.02) -> None:
        super().__init__(server, delay_seconds=delay_seconds)
        self._kinds = {kind.resource.kind for kind in server.kinds.values()}

    def wakes(self, change: Change) -> tuple[Name, ...]:
        metadata = change.object["metadata"]
        found = [change.name] if change.type != "DELETED" else list(self.server.store.owned_by(metadata["uid"]))
        for owner in metadata.get("ownerReferences") or ():
            name = self.server.store.with_uid(owner["uid"])
            if name is not None and "deletionTimestamp" in (self.server.store.get(name) or {})["metadata"]:
                found.append(name)
        if change.name.plural == "pods" and change.type == "DELETED":
            found += [Name("persistentvolumeclaims", change.name.namespace, name) for name in _claims(change.object)]
        return tuple(found)

    def look(self, key: Name) -> None:
        obj = self.server.store.get(key)
        if obj is None:
            return
        if self._is_orphan(obj) and "deletionTimestamp" not in obj["metadata"]:
            self.server.delete(key, {"propagationPolicy": "Background"})
            return
        finalizers = obj["metadata"].get("finalizers") or ()
        if FOREGROUND in finalizers:
            self._finish(key, obj)
        elif CLAIM_FINALIZER in finalizers and "deletionTimestamp" in obj["metadata"] and not self._is_used(key):
            self._release(key, obj, CLAIM_FINALIZER)

    def _is_orphan(self, obj: Manifest) -> bool:
        """An owner of a kind that the server does not have is taken to be there."""
        owners = obj["metadata"].get("ownerReferences") or ()
        return bool(owners) and all(
            owner["kind"] in self._kinds and self.server.store.with_uid(owner["uid"]) is None for owner in owners
        )

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
            self._release(key, obj, FOREGROUND)

    def _is_used(self, claim: Name) -> bool:
        """By a pod that has a node."""
        pods = self.server.store.of("pods", claim.namespace)
        return any(claim.name in _claims(pod) for pod in pods if pod["spec"].get("nodeName"))

    def _release(self, key: Name, obj: Manifest, finalizer: str) -> None:
        rest = [f for f in obj["metadata"]["finalizers"] if f != finalizer]
        self.server.patch(key, {"metadata": {"finalizers": rest}})


def _claims(pod: Manifest) -> list[str]:
    volumes = pod["spec"].get("volumes") or ()
    return [v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v]
