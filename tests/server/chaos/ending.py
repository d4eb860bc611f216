"""What a plane holds when its work is done, without what differs from run to run by itself. Two runs that end the same
way have equal endings.

Left out: uids, versions, times, words; names of pods, which are drawn; the condition Suspended of Jobs (a Job that was
made while its start was delayed is made suspended); conditions of Workloads and PodGroups, which are the scheduler's;
PodGroupsScheduled of a JobSet that has ended: who saw nothing of it before its end says nothing about its scheduling.
"""

from collections import Counter
from typing import Any

from pyjobset.objects import labels
from tests.server.chaos.work import Work
from tests.server.test_controller import Object

KINDS = "jobsets,jobs,workloads,podgroups,services,persistentvolumeclaims,pods"
COUNTERS = ("restarts", "restartsCountTowardsMax", "terminalState", "replicatedJobsStatus")


def ending(work: Work) -> dict[str, Any]:
    """By kind, namespace and name."""
    found: dict[str, Any] = {}
    pods: Counter[tuple[str, str, str]] = Counter()
    for obj in work.all(KINDS):
        metadata, kind = obj["metadata"], obj["kind"]
        if kind == "Pod":
            pods[metadata["namespace"], metadata["labels"]["batch.kubernetes.io/job-name"], obj["status"]["phase"]] += 1
        else:
            found[f"{kind} {metadata['namespace']}/{metadata['name']}"] = _plain(kind, obj)
    return found | {f"Pods {' '.join(key)}": count for key, count in pods.items()}


def _plain(kind: str, obj: Object) -> Any:
    status, spec = obj.get("status", {}), obj["spec"]
    conditions = sorted((c["type"], c["status"], c.get("reason", "")) for c in status.get("conditions", []))
    match kind:
        case "JobSet":
            if status.get("terminalState"):
                conditions = [c for c in conditions if c[0] != "PodGroupsScheduled"]
            return conditions, {key: status.get(key) for key in COUNTERS}, spec.get("suspend")
        case "Job":
            counted = {key: status.get(key, 0) for key in ("active", "succeeded", "failed", "ready")}
            return [c for c in conditions if c[0] != "Suspended"], _marks(obj, labels.RESTART_ATTEMPT), counted
        case "Workload":
            return spec["podGroupTemplates"]
        case "PodGroup":
            return spec["schedulingPolicy"]
    return None


def _marks(obj: Object, *keys: str) -> tuple[str, ...]:
    return tuple(obj["metadata"]["labels"].get(key, "") for key in keys)


def difference(expected: dict[str, Any], seen: dict[str, Any]) -> str:
    """A line for each thing that differs; empty when they are equal."""
    names = sorted(name for name in expected.keys() | seen.keys() if expected.get(name) != seen.get(name))
    return "\n".join(f"{n}: expected {expected.get(n, 'nothing')}, there is {seen.get(n, 'nothing')}" for n in names)
