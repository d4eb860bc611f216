"""scheduling.k8s.io: Workload and PodGroup, and the leaf types that JobSet's spec.scheduling shares.

Typed completely, because the reconciler compares what it wrote with what the API server stored.
A union (policy, disruption mode) is a struct of which exactly one member is set.
The texts of the leaf types are also their descriptions in JobSet's CRD (see objects.schema).
"""

from typing import Annotated

from pyjobset.objects.meta import Condition, ObjectMeta, Struct
from pyjobset.objects.schema import schema

API_VERSION = "scheduling.k8s.io/v1beta1"
TEMPLATES_MAX = 8
"""Most podGroupTemplates of one Workload (Kubernetes 1.37)."""
CLAIMS_MAX = 4


class Empty(Struct, frozen=True):
    """A union member without fields, `{}` on the wire."""


class Gang(Struct, frozen=True):
    min_count: Annotated[int | None, schema(minimum=0)] = None
    """How many pods must fit at the same time. Unset or 0: all pods of the group, and the number follows them."""


class SchedulingPolicy(Struct, frozen=True):
    basic: Empty | None = None
    """Pods are scheduled one by one, as if there were no group."""
    gang: Gang | None = None
    """All or nothing: no pod starts before all that are needed fit at the same time."""


class DisruptionMode(Struct, frozen=True):
    single: Empty | None = None
    """Pods may be preempted one by one. This is the default."""
    all: Empty | None = None
    """When a pod must be preempted, the whole group is. Needs the gang policy."""


class TopologyConstraint(Struct, frozen=True):
    key: Annotated[str, schema(required=True, maxLength=317)] = ""
    """A node label, for example topology.kubernetes.io/rack. All pods of the group get nodes with the same value."""


class SchedulingConstraints(Struct, frozen=True):
    topology: Annotated[tuple[TopologyConstraint, ...], schema(maxItems=1)] = ()
    """Where the pods must be together. At most one key."""


class PodGroupResourceClaim(Struct, frozen=True):
    name: Annotated[str, schema(required=True, maxLength=63)] = ""
    """The name by which the pods' own resourceClaims refer to it."""
    resource_claim_name: Annotated[str | None, schema(maxLength=253)] = None
    """A ResourceClaim of the namespace that all PodGroups share."""
    resource_claim_template_name: Annotated[str | None, schema(maxLength=253)] = None
    """A ResourceClaimTemplate of the namespace: each PodGroup gets a ResourceClaim of its own from it."""


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


class PriorityClass(Struct, frozen=True):
    """Of scheduling.k8s.io/v1. Only that it is there matters: the API server knows the rest."""

    metadata: ObjectMeta
