"""What a model API server does to the metadata of an object that is created, changed or deleted. Pure.

Called by simulation.server. It says which field may not become what a client wants; it stores nothing.
"""

from collections.abc import Mapping
from typing import Any

from pyjobset.objects.meta import Manifest

FOREGROUND = "foregroundDeletion"
POD_GRACE_SECONDS = 30
_EMPTY_IS_ABSENT = ("labels", "annotations", "finalizers", "ownerReferences")
_OWN = ("creationTimestamp", "generation", "namespace", "deletionGracePeriodSeconds")
"""What the server decides: whatever a client wants of them is not heard."""


def created(given: Manifest, *, name: str, namespace: str, uid: str, at: str, has_generation: bool) -> Manifest:
    metadata = {key: value for key, value in given.items() if key not in ("generateName", "deletionTimestamp", *_OWN)}
    if "generateName" in given:
        metadata["generateName"] = given["generateName"]
    metadata |= {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": at}
    if has_generation:
        metadata["generation"] = 1
    return without_empty(metadata)


def without_empty(metadata: Manifest) -> Manifest:
    if all(metadata.get(key, True) for key in _EMPTY_IS_ABSENT):
        return metadata
    return {key: value for key, value in metadata.items() if value or key not in _EMPTY_IS_ABSENT}


def updated(old: Manifest, new: Manifest) -> tuple[Manifest, str]:
    """The metadata that an update leads to, and the field that it may not change, or nothing."""
    result = without_empty({**new, **{key: old[key] for key in _OWN if key in old}})
    for key in ("uid", "resourceVersion"):
        result[key] = new.get(key) or old[key]
    if "deletionTimestamp" in old:
        result.setdefault("deletionTimestamp", old["deletionTimestamp"])
    for key in ("uid", "deletionTimestamp"):
        if result.get(key) != old.get(key):
            return result, f"metadata.{key}"
    before = old.get("finalizers") or ()
    if "deletionTimestamp" in old and not set(result.get("finalizers") or ()) <= set(before):
        return result, "metadata.finalizers"
    return result, ""


def deleted(metadata: Manifest, propagation: str, at: str, *, grace_seconds: int = 0) -> Manifest:
    """The metadata of an object that was asked to go. It is the same as before where it is asked again."""
    finalizers = [each for each in metadata.get("finalizers") or () if each != FOREGROUND]
    if propagation == FOREGROUND:
        finalizers.append(FOREGROUND)
    changed = {**metadata, "finalizers": finalizers}
    if "deletionTimestamp" not in metadata:
        changed |= {"deletionTimestamp": at, "deletionGracePeriodSeconds": grace_seconds}
        if "generation" in metadata:
            changed["generation"] = metadata["generation"] + 1
    return without_empty(changed)


def is_over(metadata: Manifest) -> bool:
    """Asked to go, with nobody who holds it and no time left."""
    return metadata.get("deletionGracePeriodSeconds") == 0 and not metadata.get("finalizers")


def unmet(metadata: Manifest, preconditions: Mapping[str, Any]) -> str:
    """The precondition of a delete that does not hold, or nothing."""
    fields = ("uid", "resourceVersion")
    return next((f for f in fields if preconditions.get(f) not in (None, metadata[f])), "")
