"""What the model API server knows of each kind: the status subresource, defaults, finalizers, immutable fields.

One table. It holds what the controller and the model controllers rely on, and tests/server/conformance asks the real
API server the same questions: what has no case there may not be relied on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyjobset.objects import resources
from pyjobset.objects.meta import Manifest, Struct
from pyjobset.objects.resources import Resource

POD_GROUP_FINALIZER = "scheduling.k8s.io/podgroup-protection"


@dataclass(frozen=True, slots=True)
class Kind:
    resource: Resource[Struct]
    has_status: bool = True
    """A status subresource: a create drops the status, and each of the two kinds of write leaves the other's part."""
    has_generation: bool = True
    complete: Callable[[Manifest], Manifest] = lambda obj: obj
    """Defaults and finalizers at creation."""
    frozen: Callable[[Manifest], Any] = lambda _: None
    """What may not change."""


def _job(job: Manifest) -> Manifest:
    """batch/v1 defaults, and the selector with the labels that it needs."""
    metadata, spec = job["metadata"], job.get("spec") or {}
    defaults: Manifest = {"backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    if spec.get("parallelism") is None:
        defaults["parallelism"] = 1
        if spec.get("completions") is None:
            defaults["completions"] = 1
    template = spec.get("template") or {}
    if not spec.get("manualSelector"):
        uid, name = metadata["uid"], metadata["name"]
        generated = {
            "batch.kubernetes.io/controller-uid": uid,
            "controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "job-name": name,
        }
        pod_metadata = template.get("metadata") or {}
        labels = {**(pod_metadata.get("labels") or {}), **generated}
        template = {**template, "metadata": {**pod_metadata, "labels": labels}}
        defaults["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    return {**job, "spec": {**defaults, **spec, "template": template}}


def _pod_group(group: Manifest) -> Manifest:
    spec = {"disruptionMode": {"single": {}}, "priority": 0, **(group.get("spec") or {})}
    finalizers = [*(group["metadata"].get("finalizers") or ()), POD_GROUP_FINALIZER]
    return {**group, "metadata": {**group["metadata"], "finalizers": finalizers}, "spec": spec}


def _without_quorum(spec: Any) -> Any:
    if not isinstance(spec, dict):
        return [_without_quorum(each) for each in spec] if isinstance(spec, list) else spec
    return {key: _without_quorum(value) for key, value in spec.items() if key != "minCount"}


KINDS: Mapping[str, Kind] = {
    kind.resource.plural: kind
    for kind in (
        Kind(resources.JOBSETS),
        Kind(resources.JOBS, complete=_job),
        Kind(resources.SERVICES, has_generation=False),
        Kind(resources.CLAIMS, has_generation=False),
        Kind(resources.PODS),
        Kind(resources.WORKLOADS, has_status=False, frozen=lambda o: _without_quorum(o.get("spec"))),
        Kind(resources.POD_GROUPS, complete=_pod_group, frozen=lambda o: _without_quorum(o.get("spec"))),
        Kind(resources.EVENTS, has_status=False, has_generation=False),
    )
}
