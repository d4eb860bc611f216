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
from pyjobset.simulation.job_rules import check_job, check_job_status, fill_job, plain_job

POD_GROUP_FINALIZER = "scheduling.k8s.io/podgroup-protection"
CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
Check = Callable[[Manifest, Manifest], str]
"""Given the old object and the new one: the field that may not become what it is, or nothing."""


@dataclass(frozen=True, slots=True)
class Kind:
    resource: Resource[Struct]
    status: Manifest | None = None
    """That of a new object. None: no status subresource. With one, a create drops the given status, and each of the
    two kinds of write leaves the other's part."""
    is_metadata_kept: bool = False
    """A write of status leaves metadata alone too, a wrong uid is not noticed."""
    is_custom: bool = False
    has_generation: bool = False
    is_told_when_gone: bool = False
    """The answer to a delete is the last state of the object, also when it is gone."""
    fill: Callable[[Manifest], Manifest] = lambda obj: obj
    """Defaults and finalizers at creation."""
    plain: Callable[[Manifest], Manifest] = lambda obj: obj
    """Defaults that come back when they are removed."""
    check: Check = lambda _old, _new: ""
    check_status: Check = lambda _old, _new: ""


def _filled(value: Any, defaults: Manifest) -> Manifest:
    """Null is as good as nothing."""
    return defaults | {key: each for key, each in (value or {}).items() if each is not None}


def _with_finalizer(obj: Manifest, finalizer: str) -> Manifest:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "finalizers": [*(metadata.get("finalizers") or ()), finalizer]}}


def _plain_pod_group(group: Manifest) -> Manifest:
    return {**group, "spec": _filled(group.get("spec"), {"disruptionMode": {"single": {}}, "priority": 0})}


def _fill_pod_group(group: Manifest) -> Manifest:
    return _with_finalizer(_plain_pod_group(group), POD_GROUP_FINALIZER)


def _fill_claim(claim: Manifest) -> Manifest:
    return _with_finalizer(claim, CLAIM_FINALIZER)


def _plain_jobset(jobset: Manifest) -> Manifest:
    """The defaults of the CRD's schema. Those of the webhook are another matter: there is none here."""
    spec: Manifest = _filled(jobset.get("spec"), {"network": {}, "successPolicy": {"operator": "All"}})
    spec["network"] = _filled(spec["network"], {"enableDNSHostnames": True, "publishNotReadyAddresses": True})
    spec.setdefault("startupPolicy", {"startupPolicyOrder": "AnyOrder"})
    if "failurePolicy" in spec:
        spec["failurePolicy"] = _filled(spec["failurePolicy"], {"maxRestarts": 0, "restartStrategy": "Recreate"})
    if "coordinator" in spec:
        spec["coordinator"] = _filled(spec["coordinator"], {"jobIndex": 0, "podIndex": 0})
    spec["replicatedJobs"] = [
        _filled(each, {"replicas": 1, "groupName": "default"}) for each in spec.get("replicatedJobs") or ()
    ]
    return {**jobset, "spec": spec}


_FIXED = ("network", "failurePolicy", "startupPolicy", "coordinator", "managedBy", "scheduling", "successPolicy")


def _check_jobset(old: Manifest, new: Manifest) -> str:
    """The CRD's own rules of change. The webhook's are more."""
    for field in (*_FIXED, "volumeClaimPolicies"):
        if new["spec"].get(field) != old["spec"].get(field):
            return f"spec.{field}"
    before = {each["name"]: each.get("dependsOn") or None for each in old["spec"]["replicatedJobs"]}
    for each in new["spec"]["replicatedJobs"]:
        if (each.get("dependsOn") or None) != before.get(each["name"], each.get("dependsOn") or None):
            return "spec.replicatedJobs"
    return ""


def _check_fixed(old: Manifest, new: Manifest) -> str:
    return "spec" if new.get("spec") != old.get("spec") else ""


def _check_claim(old: Manifest, new: Manifest) -> str:
    """A class may be given later. A bound claim could also grow: here none is bound."""
    given = {"storageClassName": new["spec"].get("storageClassName")}
    return _check_fixed({**old, "spec": {**given, **old["spec"]}}, {**new, "spec": {**given, **new["spec"]}})


def _check_but_quorum(old: Manifest, new: Manifest) -> str:
    return "spec" if _without_quorum(new.get("spec")) != _without_quorum(old.get("spec")) else ""


def _without_quorum(spec: Any) -> Any:
    if not isinstance(spec, dict):
        return [_without_quorum(each) for each in spec] if isinstance(spec, list) else spec
    return {key: _without_quorum(value) for key, value in spec.items() if key != "minCount"}


KINDS: Mapping[str, Kind] = {
    kind.resource.plural: kind
    for kind in (
        Kind(
            resources.JOBSETS,
            status={},
            is_metadata_kept=True,
            is_custom=True,
            has_generation=True,
            fill=_plain_jobset,
            plain=_plain_jobset,
            check=_check_jobset,
        ),
        Kind(
            resources.JOBS,
            status={},
            has_generation=True,
            fill=fill_job,
            plain=plain_job,
            check=check_job,
            check_status=check_job_status,
        ),
        Kind(resources.SERVICES, status={}, is_told_when_gone=True),
        Kind(
            resources.CLAIMS, status={"phase": "Pending"}, is_told_when_gone=True, fill=_fill_claim, check=_check_claim
        ),
        Kind(
            resources.PODS,
            status={"phase": "Pending"},
            has_generation=True,
            is_told_when_gone=True,
            check=_check_fixed,
        ),
        Kind(resources.WORKLOADS, check=_check_but_quorum),
        Kind(
            resources.POD_GROUPS,
            status={},
            is_metadata_kept=True,
            fill=_fill_pod_group,
            plain=_plain_pod_group,
            check=_check_but_quorum,
        ),
        Kind(resources.EVENTS),
        Kind(resources.LEASES),
    )
}
