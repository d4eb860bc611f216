"""scheduling.k8s.io/v1beta1: Workload and PodGroup, and the leaf types that JobSet's spec.scheduling shares.

Typed completely, because the reconciler compares what it wrote with what the API server stored.
A union (policy, disruption mode) is a struct of which exactly one member is set.
"""

from pyjobset.objects.meta import Condition, ObjectMeta, Struct

API_VERSION = "scheduling.k8s.io/v1beta1"
TEMPLATES_MAX = 8
"""Most podGroupTemplates of one Workload (Kubernetes 1.37)."""
CLAIMS_MAX = 4


class Empty(Struct, frozen=True):
    """A union member without fields, `{}` on the wire."""


class Gang(Struct, frozen=True):
    """All-or-nothing: at least `min_count` pods are bound together. None or 0 in a JobSet means computed."""

    min_count: int | None = None


class SchedulingPolicy(Struct, frozen=True):
    basic: Empty | None = None
    gang: Gang | None = None


class DisruptionMode(Struct, frozen=True):
    single: Empty | None = None
    all: Empty | None = None


class TopologyConstraint(Struct, frozen=True):
    key: str = ""


class SchedulingConstraints(Struct, frozen=True):
    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupResourceClaim(Struct, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupTemplate(Struct, frozen=True):
    name: str
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    priority_class_name: str | None = None


class ControllerRef(Struct, frozen=True):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class WorkloadSpec(Struct, frozen=True):
    controller_ref: ControllerRef | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class Workload(Struct, frozen=True):
    metadata: ObjectMeta
    spec: WorkloadSpec = WorkloadSpec()


class WorkloadReference(Struct, frozen=True):
    workload_name: str = ""
    template_name: str = ""


class PodGroupSpec(Struct, frozen=True):
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    workload_ref: WorkloadReference | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    priority_class_name: str | None = None


class PodGroupStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()


class PodGroup(Struct, frozen=True):
    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
