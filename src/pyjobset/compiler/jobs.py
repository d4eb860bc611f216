"""JobSet -> its child Jobs: which there are, and what each carries.

Called by the reconciler for every Job that it creates and by `jobset plan`. It never decides when a Job is created.
JobSets have thousands of Jobs that differ in an index: what they share is prepared once per ReplicatedJob, and a Job
copies only the mappings in which it differs. A manifest is therefore read-only: its parts are shared with its siblings.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from pyjobset.compiler.ownership import owner_manifest
from pyjobset.compiler.scheduling import Placement
from pyjobset.compiler.service import has_hostnames
from pyjobset.compiler.volumes import claim_volumes
from pyjobset.objects import features as gates
from pyjobset.objects import labels, names
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import JobSet, ReplicatedJob
from pyjobset.objects.meta import Manifest
from pyjobset.objects.placement import annotations_of as placement_annotations
from pyjobset.objects.template import mapping_at, saturated
from pyjobset.rules.defaults import with_defaults

TTL = "ttlSecondsAfterFinished"
"""Left out of a Job: one that deletes itself takes its result along, and would be created and run again."""


class ChildJob(msgspec.Struct, frozen=True, eq=False):
    """One expected child Job. Made by `child_jobs`, by the thousand, which is why it is a msgspec struct."""

    replicated_job: ReplicatedJob
    index: int
    name: str
    global_index: int
    """Its place among all Jobs of the JobSet, in spec order."""
    group_index: int
    """Its place among the Jobs of ReplicatedJobs with the same groupName."""
    shared: "_Shared"

    @property
    def key(self) -> tuple[str, int]:
        return self.replicated_job.name, self.index


@dataclass(frozen=True, slots=True)
class _Base:
    """What all Jobs of one ReplicatedJob have in common."""

    namespace: str
    job_labels: dict[str, str]
    job_annotations: dict[str, str]
    pod_labels: dict[str, str]
    pod_annotations: dict[str, str]
    spec: Manifest
    """Without the pod template."""
    pod_template: Manifest
    """Without metadata and spec: what Kubernetes may add one day."""
    pod_metadata: Manifest
    pod_spec: Manifest
    owner_references: list[Manifest]
    by_node_selector: bool
    job_restarts: tuple[int, ...] | None
    """Per index; None where the gate RestartJob is off."""


class _Siblings:
    """What is counted over all ReplicatedJobs of a JobSet: once, as there may be thousands."""

    __slots__ = ("_jobset", "global_replicas", "group_replicas", "job_restarts")

    def __init__(self) -> None:
        self._jobset: JobSet | None = None

    def of(self, jobset: JobSet) -> "_Siblings":
        if self._jobset is not jobset:
            self._jobset = jobset
            self.group_replicas: Counter[str] = Counter()
            for replicated_job in jobset.spec.replicated_jobs:
                self.group_replicas[replicated_job.group_name] += replicated_job.replicas
            self.global_replicas = self.group_replicas.total()
            entries = jobset.status.replicated_jobs_status
            self.job_restarts = {e.name: e.job_restarts for e in entries if e.job_restarts is not UNSET}
        return self


class _Shared:
    """Remembers the base of one ReplicatedJob for as long as the same JobSet and features are asked for."""

    __slots__ = ("_base", "_features", "_jobset", "_siblings")

    def __init__(self, siblings: _Siblings) -> None:
        self._siblings = siblings
        self._base: _Base | None = None
        self._features: Features | None = None
        self._jobset: JobSet | None = None

    def base(self, jobset: JobSet, replicated_job: ReplicatedJob, features: Features) -> _Base:
        if self._base is None or self._jobset is not jobset or self._features != features:
            self._base = _base(jobset, replicated_job, features, self._siblings.of(jobset))
            self._features, self._jobset = features, jobset
        return self._base


def child_jobs(jobset: JobSet) -> Iterator[ChildJob]:
    """Every Job that the spec asks for, in spec order."""
    name = jobset.metadata.name
    global_index = 0
    in_group: dict[str, int] = {}
    siblings = _Siblings()
    for replicated_job in with_defaults(jobset).spec.replicated_jobs:
        shared = _Shared(siblings)
        group_index = in_group.get(replicated_job.group_name, 0)
        for index in range(replicated_job.replicas):
            job = names.job_name(name, replicated_job.name, index)
            yield ChildJob(replicated_job, index, job, global_index + index, group_index + index, shared)
        global_index += max(0, replicated_job.replicas)
        in_group[replicated_job.group_name] = group_index + max(0, replicated_job.replicas)


def compile_job(
    jobset: JobSet, child: ChildJob, *, placement: Placement | None, features: Features, suspend: bool
) -> Manifest:
    """The manifest of one child Job, read-only. `child` comes from `child_jobs` of this JobSet."""
    base = child.shared.base(jobset, child.replicated_job, features)
    own = {
        labels.JOB_INDEX: str(child.index),
        labels.JOB_GLOBAL_INDEX: str(child.global_index),
        labels.JOB_GROUP_INDEX: str(child.group_index),
        labels.JOB_KEY: names.job_key(base.namespace, child.name),
    }
    if base.job_restarts is not None:
        restarts = base.job_restarts[child.index] if child.index < len(base.job_restarts) else 0
        own[labels.JOB_RESTART_ATTEMPT] = _attempt(restarts)
    annotations = base.job_annotations | own
    pod_spec = base.pod_spec
    if placement is not None:
        annotations[labels.GROUP_TEMPLATE_NAME] = placement.template_name
        pod_spec = {**pod_spec, "schedulingGroup": {"podGroupName": placement.pod_group_name}}
    if base.by_node_selector:
        chosen = f"{base.namespace}_{child.name}"
        selector = {**mapping_at(pod_spec, "nodeSelector"), labels.NAMESPACED_JOB: chosen}
        pod_spec = {**pod_spec, "nodeSelector": selector}
    pod_metadata = {
        **base.pod_metadata,
        "labels": base.pod_labels | own,
        "annotations": base.pod_annotations | own,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": child.name,
            "namespace": base.namespace,
            "labels": base.job_labels | own,
            "annotations": annotations,
            "ownerReferences": base.owner_references,
        },
        "spec": {
            **base.spec,
            "suspend": suspend,
            "template": {"metadata": pod_metadata, **base.pod_template, "spec": pod_spec},
        },
    }


def _base(jobset: JobSet, replicated_job: ReplicatedJob, features: Features, siblings: _Siblings) -> _Base:
    """Of the template's own metadata a Job takes labels and annotations, as a Job of a CronJob does."""
    template = replicated_job.template
    job_metadata = mapping_at(template, "metadata")
    pod_template = mapping_at(template, "spec", "template")
    pod_metadata = mapping_at(pod_template, "metadata")
    exclusive = placement_annotations(jobset, replicated_job)
    by_node_selector = exclusive.keys() >= {labels.EXCLUSIVE_TOPOLOGY, labels.NODE_SELECTOR}
    both = _common_labels(jobset, replicated_job, siblings)
    annotations = both | exclusive | _execution_attempt(jobset, features)
    return _Base(
        namespace=jobset.metadata.namespace,
        job_labels={**mapping_at(job_metadata, "labels"), **both},
        job_annotations={**mapping_at(job_metadata, "annotations"), **annotations},
        pod_labels={**mapping_at(pod_metadata, "labels"), **both},
        pod_annotations={**mapping_at(pod_metadata, "annotations"), **annotations},
        spec=_without(mapping_at(template, "spec"), "template", TTL),
        pod_template=_without(pod_template, "metadata", "spec"),
        pod_metadata=dict(pod_metadata),
        pod_spec=_pod_spec(jobset, mapping_at(pod_template, "spec"), by_node_selector=by_node_selector),
        owner_references=[owner_manifest(jobset)],
        by_node_selector=by_node_selector,
        job_restarts=siblings.job_restarts.get(replicated_job.name, ()) if gates.RESTART_JOB in features else None,
    )


def _without(mapping: Mapping[str, Any], *keys: str) -> Manifest:
    return {key: value for key, value in mapping.items() if key not in keys}


def _common_labels(jobset: JobSet, replicated_job: ReplicatedJob, siblings: _Siblings) -> dict[str, str]:
    """The labels, which are annotations too, that all Jobs of a ReplicatedJob share."""
    common = {
        labels.JOBSET_NAME: jobset.metadata.name,
        labels.JOBSET_UID: jobset.metadata.uid,
        labels.REPLICATED_JOB_NAME: replicated_job.name,
        labels.REPLICATED_JOB_REPLICAS: str(replicated_job.replicas),
        labels.GLOBAL_REPLICAS: str(saturated(siblings.global_replicas)),
        labels.GROUP_NAME: replicated_job.group_name,
        labels.GROUP_REPLICAS: str(saturated(siblings.group_replicas[replicated_job.group_name])),
        labels.RESTART_ATTEMPT: _attempt(jobset.status.restarts),
    }
    coordinator = names.coordinator_endpoint(jobset)
    return common if coordinator is None else {**common, labels.COORDINATOR: coordinator}


def _attempt(number: int) -> str:
    """A negative one, which only a hand puts into a status, would be no label value."""
    return str(max(0, number))


def _execution_attempt(jobset: JobSet, features: Features) -> dict[str, str]:
    attempts = jobset.status.execution_attempts
    if gates.EXECUTION_ATTEMPTS_TRACKING not in features or attempts is None:
        return {}
    return {labels.EXECUTION_ATTEMPT: str(attempts)}


def _pod_spec(jobset: JobSet, given: Mapping[str, Any], *, by_node_selector: bool) -> Manifest:
    pod_spec = dict(given)
    if has_hostnames(jobset):
        pod_spec["subdomain"] = names.subdomain(jobset)
    volumes = claim_volumes(jobset, given)
    if volumes:
        pod_spec["volumes"] = [*(given.get("volumes") or ()), *volumes]
    if by_node_selector:
        toleration = {"key": labels.NO_SCHEDULE_TAINT, "operator": "Exists", "effect": "NoSchedule"}
        pod_spec["tolerations"] = [*(given.get("tolerations") or ()), toleration]
    return pod_spec
