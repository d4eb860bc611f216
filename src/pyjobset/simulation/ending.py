"""How a world ended, without what differs from run to run by itself: uids, versions, times, generated names, words."""

from typing import Any

from pyjobset.objects import labels
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.store import Store


def ending(store: Store) -> dict[str, Any]:
    """By kind and name. Two worlds that end the same way have equal ones."""
    plurals = ("jobsets", "jobs", "services", "workloads", "podgroups", "persistentvolumeclaims")
    found: dict[str, Any] = {}
    for plural in plurals:
        for obj in store.of(plural):
            if plural == "jobsets" or obj["metadata"].get("ownerReferences"):
                found[f"{plural}/{obj['metadata']['name']}"] = _plain(plural, obj)
    found["pods"] = sorted((_index_of(pod), str(pod["status"].get("phase"))) for pod in store.of("pods"))
    return found


def _plain(plural: str, obj: Manifest) -> Any:
    status = obj.get("status") or {}
    conditions = sorted((c["type"], c["status"], c["reason"]) for c in status.get("conditions") or ())
    if plural == "jobsets":
        counters = ("restarts", "restartsCountTowardsMax", "terminalState", "replicatedJobsStatus", "executionAttempts")
        return conditions, {key: status.get(key) for key in counters}, obj["spec"].get("suspend")
    if plural == "jobs":
        attempt = (obj["metadata"]["labels"].get(key) for key in (labels.RESTART_ATTEMPT, labels.JOB_RESTART_ATTEMPT))
        return [(type_, value) for type_, value, _ in conditions if type_ != "Suspended"], list(attempt)
    return obj.get("spec") if plural in ("workloads", "podgroups") else None


def _index_of(pod: Manifest) -> tuple[str, str]:
    notes = pod["metadata"]["labels"]
    return notes[labels.JOB_KEY], notes[labels.RESTART_ATTEMPT]
