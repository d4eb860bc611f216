"""Short words for what a cluster has of one JobSet. Messages are those of a real scheduler 1.37."""

from typing import Any

import msgspec

from pyjobset.cli.explaining.facts import Pod
from pyjobset.cli.view import Family
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.scheduling import PodGroup, Workload

GROUP = "js-group"
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"
THREE_FIT = "minCount (5) cannot be satisfied: 3 scheduled, 1 remaining"
UNSCHEDULABLE = f"pod group is unschedulable, 0/1 placements are available, first placement status: {THREE_FIT}"
FULL = "0/1 nodes are available: 1 Insufficient cpu."


def pod(
    name: str = "p",
    *,
    job: str = "js-w-0",
    node: str = "",
    phase: str = "",
    told: str = "",
    group: str = GROUP,
    **more: Any,
) -> Pod:
    """Bound and Running where it has a node, else Pending; `told` is what the scheduler wrote on it."""
    conditions = (
        [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": told}] if told else []
    )
    phase = phase or ("Running" if node else "Pending")
    if phase == "Running":
        conditions.append({"type": "Ready", "status": "True"})
    value: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "ownerReferences": _owner("Job", job),
            **more,
        },
        "spec": {"nodeName": node, "schedulingGroup": {"podGroupName": group} if group else None},
        "status": {"phase": phase, "conditions": conditions},
    }
    return msgspec.convert(value, Pod)


def group(
    min_count: int | None = 5, *, name: str = GROUP, said: str = "", reason: str = "", key: str = "", **more: Any
) -> PodGroup:
    """A gang, or policy basic without `min_count`. `said` is its condition; reason Scheduled makes that True."""
    policy: dict[str, Any] = {"gang": {"minCount": min_count}} if min_count is not None else {"basic": {}}
    status = "True" if reason == "Scheduled" else "False"
    condition = {
        "type": "PodGroupInitiallyScheduled",
        "status": status,
        "reason": reason or "Unschedulable",
        "message": said,
    }
    value = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "ownerReferences": _owner("JobSet", "js"),
            **more,
        },
        "spec": {
            "schedulingPolicy": policy,
            "schedulingConstraints": {"topology": [{"key": key}]} if key else None,
        },
        "status": {"conditions": [condition] if said or reason else []},
    }
    return msgspec.convert(value, PodGroup)


def job(
    name: str = "js-w-0", *, pods: int = 1, group: str = GROUP, labels: dict[str, str] | None = None, **status: Any
) -> Job:
    more = {"suspend": True} if status.pop("suspend", False) else {}
    value = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "ownerReferences": _owner("JobSet", "js"),
            "labels": {
                "jobset.sigs.k8s.io/replicatedjob-name": name.rsplit("-", 2)[-2],
                "jobset.sigs.k8s.io/job-index": name.rsplit("-", 1)[-1],
                **(labels or {}),
            },
        },
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {"spec": {"schedulingGroup": {"podGroupName": group}} if group else {}},
            **more,
        },
        "status": status,
    }
    return msgspec.convert(value, Job)


def jobset(*conditions: tuple[str, str, str], suspend: bool = False, **status: Any) -> JobSet:
    """Conditions are (type, status, message)."""
    listed = [{"type": t, "status": s, "reason": "R", "message": m} for t, s, m in conditions]
    value = {
        "metadata": {"name": "js", "namespace": "ns", "uid": "uid-js"},
        "spec": {"suspend": suspend, "replicatedJobs": [{"name": "w"}]},
        "status": {"conditions": listed, **status},
    }
    return msgspec.convert(value, JobSet)


def family(*things: JobSet | PodGroup | Job | Pod, workload: bool = True, age_seconds: float = 0.0) -> Family:
    jobsets = [t for t in things if isinstance(t, JobSet)]
    groups = tuple(t for t in things if isinstance(t, PodGroup))
    meta = {"name": "js-workload", "namespace": "ns", "ownerReferences": _owner("JobSet", "js")}
    return Family(
        jobset=jobsets[0] if jobsets else jobset(("X", "True", "")),
        workloads=(msgspec.convert({"metadata": meta}, Workload),) if workload and groups else (),
        pod_groups=groups,
        jobs=tuple(t for t in things if isinstance(t, Job)),
        pods=tuple(t for t in things if isinstance(t, Pod)),
        age_seconds=age_seconds,
    )


def _owner(kind: str, name: str) -> list[dict[str, Any]]:
    return [{"kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}]
