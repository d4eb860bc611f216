"""Short words for the facts that explain looks at: a family, the nodes around it and who is on them."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from pyjobset.cli.explaining.facts import Event, Facts, Node, Pod
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.names import workload_name
from pyjobset.objects.scheduling import PodGroup
from tests.cli import families

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
RACK = "topology.kubernetes.io/rack"
GROUP = workload_name("ns", "js")
"""The PodGroup that the JobSet of `jobset` compiles to."""


def node(
    name: str = "n", *, cpu: str = "1", taint: str = "", ready: bool = True, cordoned: bool = False, **more: Any
) -> Node:
    """`more` are labels, with _ for every other character, or `memory`, `pods`, `gpu`. `taint` has no value."""
    amounts = {"cpu": cpu, "memory": more.pop("memory", "16Gi"), "pods": more.pop("pods", "110")}
    if gpu := more.pop("gpu", ""):
        amounts["nvidia.com/gpu"] = gpu
    names = {"rack": RACK}
    labels = {names.get(key, key): value for key, value in more.items()}
    value = {
        "metadata": {"name": name, "labels": {"type": "kwok", **labels}},
        "spec": {"unschedulable": cordoned, "taints": [{"key": taint, "effect": "NoSchedule"}] if taint else []},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": str(ready)}]},
    }
    return msgspec.convert(value, Node)


def asking(pod: Pod, cpu: str = "600m", *, seconds: int = 5, **spec: Any) -> Pod:
    """The pod with a request, as old as `seconds`, and with more fields of its spec by their names on the wire."""
    value = msgspec.to_builtins(pod)
    asked = {"cpu": cpu, **spec.pop("requests", {})}
    value["spec"] |= {"containers": [{"name": "c", "image": "i", "resources": {"requests": asked}}], **spec}
    created = datetime.fromtimestamp(NOW.timestamp() - seconds, UTC).isoformat()
    value["metadata"]["creationTimestamp"] = created
    return msgspec.convert(value, Pod)


def pods(count: int, cpu: str = "600m", *, told: str = "", node: str = "", seconds: int = 5, **spec: Any) -> list[Pod]:
    """Pods of the gang, alike."""
    made = (families.pod(f"js-w-0-{n}", told=told, node=node, group=GROUP) for n in range(count))
    return [asking(each, cpu, seconds=seconds, **spec) for each in made]


def occupant(on: str, cpu: str = "1", *, jobset: str = "other") -> Pod:
    """A pod of somebody else."""
    labels = {"jobset.sigs.k8s.io/jobset-name": jobset} if jobset else {}
    return asking(families.pod("o", node=on, group="", labels=labels), cpu)


def group(min_count: int | None = 4, **more: Any) -> PodGroup:
    return families.group(min_count, name=GROUP, **more)


def job(count: int = 4, **more: Any) -> Job:
    return families.job("js-w-0", pods=count, group=GROUP, **more)


def jobset(count: int = 4, *, conditions: Any = (), status: Any = None, labels: Any = None, **spec: Any) -> JobSet:
    """A gang of one Job; `conditions` are (type, status, reason, message)."""
    listed = [dict(zip(("type", "status", "reason", "message"), c, strict=True)) for c in conditions]
    template = {"spec": {"parallelism": count, "completions": count, "template": {"spec": spec.pop("pod", {})}}}
    value = {
        "metadata": {"name": "js", "namespace": "ns", "uid": "uid-js", "labels": labels or {}},
        "spec": {"replicatedJobs": [{"name": "w", "template": template}], "scheduling": {}, **spec},
        "status": {"conditions": listed, **(status or {})},
    }
    return msgspec.convert(value, JobSet)


def event(job: Job | PodGroup, message: str, kind: str = "Job") -> Event:
    about = {"kind": kind, "name": job.metadata.name, "uid": job.metadata.uid}
    return msgspec.convert({"involvedObject": about, "reason": "FailedCreate", "message": message}, Event)


def facts(*things: JobSet | PodGroup | Job | Pod | Node | Event, occupants: Any = (), **more: Any) -> Facts:
    """The pods of the family are occupants too where they have a node."""
    own = tuple(t for t in things if isinstance(t, Pod))
    family = families.family(*(t for t in things if isinstance(t, JobSet | PodGroup | Job | Pod)))
    values = {
        "nodes": tuple(t for t in things if isinstance(t, Node)),
        "occupants": (*occupants, *(p for p in own if p.spec.node_name)) if occupants is not None else None,
        "events": tuple(t for t in things if isinstance(t, Event)),
        **more,
    }
    return Facts(family, NOW, own, **values)
