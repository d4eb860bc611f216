"""Short words for what checkers read in objects."""

from collections.abc import Iterator

from pyjobset.objects import labels
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.jobs import ENDED
from pyjobset.simulation.store import Store


def label(obj: Manifest, key: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(key) or "")


def attempt(obj: Manifest) -> tuple[int, int]:
    """Of the JobSet, and of the Job alone."""
    return int(label(obj, labels.RESTART_ATTEMPT) or 0), int(label(obj, labels.JOB_RESTART_ATTEMPT) or 0)


def owner(obj: Manifest) -> str:
    """The uid of the controller, or nothing."""
    return next((o["uid"] for o in obj["metadata"].get("ownerReferences") or () if o.get("controller")), "")


def is_ours(jobset: Manifest) -> bool:
    """No other controller is in charge of it."""
    return jobset["spec"].get("managedBy") in (None, labels.MANAGED_BY)


def owned(store: Store, plural: str) -> Iterator[Manifest]:
    """Without what belongs to nobody: that is a bystander's."""
    return (obj for obj in store.of(plural) if owner(obj))


def is_true(obj: Manifest, type_: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(c["type"] == type_ and c["status"] == "True" for c in conditions)


def is_deleted(obj: Manifest) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def is_live_pod(pod: Manifest) -> bool:
    """It runs, or will. A pod that terminates may run still."""
    return pod["status"].get("phase") not in ENDED


def group(pod_spec: Manifest) -> str:
    return str((pod_spec.get("schedulingGroup") or {}).get("podGroupName") or "")


def min_count(pod_group: Manifest) -> int | None:
    gang = (pod_group["spec"].get("schedulingPolicy") or {}).get("gang")
    return gang.get("minCount") if gang else None


def has_order(jobset_spec: Manifest) -> bool:
    """Some Jobs start after others."""
    in_order = (jobset_spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"
    return in_order or any(replicated_job.get("dependsOn") for replicated_job in jobset_spec["replicatedJobs"])
