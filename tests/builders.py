"""Builders of objects for tests: short words for the JobSets and children that a case talks about.

A JobSet is built from plain values through the same decoding as in production.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import msgspec

from pyjobset.objects import features as gates
from pyjobset.objects.batch import ChildMeta, Claim, Job, Pod, PodSpec, PodStatus, Service
from pyjobset.objects.jobset import JobSet, JobSetStatus
from pyjobset.objects.meta import Manifest, Struct
from pyjobset.objects.resources import CLAIMS, JOBS, POD_GROUPS, SERVICES, WORKLOADS
from pyjobset.objects.scheduling import PodGroup, Workload
from pyjobset.reconciler.decide import decide
from pyjobset.reconciler.decision import Create, Decision, Delete, JsonPatch, Patch
from pyjobset.reconciler.observation import Observation

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
FEATURES = gates.resolve({gates.WORKLOAD_AWARE_SCHEDULING: True, gates.ELASTIC_JOBSET: True})


def replicated_job(name: str, *, replicas: int = 1, pods: int = 1, **more: Any) -> Manifest:
    template = {
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "template": {"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "i"}]}},
        }
    }
    return {"name": name, "replicas": replicas, "template": template, **more}


def jobset(*replicated_jobs: Manifest, name: str = "js", status: Manifest | None = None, **spec: Any) -> JobSet:
    jobs = list(replicated_jobs) or [replicated_job("w", replicas=2, pods=2)]
    value = {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {"replicatedJobs": jobs, **spec},
        "status": status or {},
    }
    return msgspec.convert(value, JobSet)


@dataclass
class TinyServer:
    """Holds the children of one JobSet and applies Decisions to them, as far as the tables and laws need it.

    It says nothing about the real API server: the world and server tests do.
    """

    jobset: JobSet
    jobs: dict[str, Job] = field(default_factory=dict)
    workloads: dict[str, Workload] = field(default_factory=dict)
    pod_groups: dict[str, PodGroup] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    service: Service | None = None
    serial: int = 0
    features: gates.Features = FEATURES
    now: datetime = NOW

    def observe(self, **more: Any) -> Observation:
        observation = Observation(
            jobset=self.jobset,
            now=self.now,
            jobs=tuple(self.jobs.values()),
            service=self.service,
            workloads=tuple(self.workloads.values()),
            pod_groups=tuple(self.pod_groups.values()),
            claims=tuple(self.claims.values()),
            pods=tuple(pod for job in self.jobs.values() for pod in pods_of(job)),
            features=self.features,
        )
        return replace(observation, **more)

    def step(self, **more: Any) -> Decision:
        decision = decide(self.observe(**more))
        self.apply(decision)
        return decision

    def settle(self, limit: int = 20) -> None:
        """Decide and apply until nothing is decided. AssertionError when it does not end."""
        for _ in range(limit):
            decision = self.step()
            if not decision.actions and decision.status is None:
                return
        raise AssertionError(f"still deciding after {limit} rounds: {decision}")

    def apply(self, decision: Decision) -> None:
        for action in decision.actions:
            stores = {JOBS: self.jobs, WORKLOADS: self.workloads, POD_GROUPS: self.pod_groups, CLAIMS: self.claims}
            store = stores.get(action.resource)
            match action:
                case Create(resource, name, body):
                    made = self._made(resource.type, body)
                    if resource is SERVICES:
                        assert self.service is None
                        self.service = made
                    else:
                        assert store is not None
                        assert name not in store, f"{name} exists"
                        store[name] = made
                case Patch(resource, name, uid, patch):
                    assert store is not None
                    assert store[name].metadata.uid == uid
                    store[name] = merged(store[name], patch)
                case JsonPatch(resource, name, uid, operations):
                    assert store is not None
                    assert store[name].metadata.uid == uid
                    store[name] = json_patched(store[name], operations)
                case Delete(resource, name, uid):
                    assert store is not None
                    assert store[name].metadata.uid == uid
                    del store[name]
        if decision.status is not None:
            self.jobset = msgspec.structs.replace(self.jobset, status=decision.status)

    def _made(self, kind: type[Struct], body: Manifest | Struct) -> Any:
        self.serial += 1
        value = plain(body)
        value["metadata"] |= {"uid": f"u{self.serial}", "resourceVersion": str(self.serial)}
        return msgspec.convert(value, kind)

    def set_status(self, job: str, **status: Any) -> None:
        """Set fields of a Job's status by their wire names."""
        self.jobs[job] = merged(self.jobs[job], {"status": status})

    def finish(
        self, *names: str, failed: bool = False, at: str = "2026-11-30T12:00:00Z", reason: str = "", message: str = ""
    ) -> None:
        condition = {"type": "Failed" if failed else "Complete", "status": "True", "lastTransitionTime": at}
        condition |= {"reason": reason, "message": message}
        for name in names:
            self.set_status(name, active=0, ready=0, conditions=[condition])


def pods_of(job: Job) -> list[Pod]:
    """The pods that a Job's counts speak of: ready ones have a node, other active ones have none."""

    def pod(index: int, node: str, phase: str) -> Pod:
        return Pod(
            ChildMeta(name=f"{job.metadata.name}-{index}"),
            PodSpec(node_name=node, scheduling_group=job.spec.template.spec.scheduling_group),
            PodStatus(phase=phase),
        )

    status = job.status
    ready = [pod(i, "node", "Running") for i in range(status.ready)]
    pending = [pod(status.ready + i, "", "Pending") for i in range(max(0, status.active - status.ready))]
    return ready + pending + [pod(100 + i, "node", "Succeeded") for i in range(status.succeeded)]


def plain(obj: Any) -> Any:
    """JSON values, with lists where structs have tuples."""
    return msgspec.json.decode(msgspec.json.encode(obj))


def merged(obj: Struct, patch: Manifest) -> Any:
    """RFC 7396, for values without nulls."""

    def merge(old: Any, new: Any) -> Any:
        if isinstance(old, dict) and isinstance(new, dict):
            return {**old, **{k: merge(old.get(k), v) for k, v in new.items()}}
        return new

    return msgspec.convert(merge(plain(obj), patch), type(obj))


def json_patched(obj: Struct, operations: Iterable[Manifest]) -> Any:
    """RFC 6902 test, replace and add. What a struct does not hold may be added all the same: it is not seen."""
    value = plain(obj)
    for operation in operations:
        path = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].strip("/").split("/")]
        target: Any = value
        for part in path[:-1]:
            if isinstance(target, list):
                target = target[int(part)]
            else:
                target = target.setdefault(part, {}) if operation["op"] == "add" else target[part]
        if operation["op"] == "test":
            assert target[path[-1]] == operation["value"]
        else:
            assert operation["op"] in ("add", "replace")
            target[path[-1]] = operation["value"]
    return msgspec.convert(value, type(obj))


def with_status(js: JobSet, **status: Any) -> JobSet:
    return msgspec.structs.replace(js, status=msgspec.convert(status, JobSetStatus))


def calls(work: Callable[[], object]) -> int:
    """How many Python calls it takes: what it costs, on any machine."""
    count = 0

    def seen(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
