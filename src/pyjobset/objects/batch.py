"""batch/v1 Job and the v1 Service, Pod, PersistentVolumeClaim and Node, only the fields that we read.

They are cached by the thousand. Labels and annotations are structs with our own keys, so that a cached Job costs about
a kilobyte.
"""

from typing import Any

from msgspec import field

from pyjobset.objects import labels
from pyjobset.objects.meta import Condition, OwnerReference, Struct


class ChildLabels(Struct, frozen=True):
    jobset_name: str = field(default="", name=labels.JOBSET_NAME)
    replicated_job_name: str = field(default="", name=labels.REPLICATED_JOB_NAME)
    job_index: str = field(default="", name=labels.JOB_INDEX)
    restart_attempt: str = field(default="", name=labels.RESTART_ATTEMPT)
    job_restart_attempt: str = field(default="", name=labels.JOB_RESTART_ATTEMPT)


class ChildAnnotations(Struct, frozen=True):
    group_template_name: str | None = field(default=None, name=labels.GROUP_TEMPLATE_NAME)
    exclusive_topology: str | None = field(default=None, name=labels.EXCLUSIVE_TOPOLOGY)
    node_selector: str | None = field(default=None, name=labels.NODE_SELECTOR)
    completion_index: str | None = field(default=None, name=labels.COMPLETION_INDEX)
    """Of a pod."""
    in_place_restart_attempt: str | None = field(default=None, name=labels.IN_PLACE_RESTART_ATTEMPT)


class ChildMeta(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: ChildLabels = ChildLabels()
    annotations: ChildAnnotations = ChildAnnotations()
    owner_references: tuple[OwnerReference, ...] = ()


class SchedulingGroup(Struct, frozen=True):
    pod_group_name: str | None = None


class PodTemplateSpec(Struct, frozen=True):
    scheduling_group: SchedulingGroup | None = None


class PodTemplate(Struct, frozen=True):
    spec: PodTemplateSpec = PodTemplateSpec()


class JobSpec(Struct, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    template: PodTemplate = PodTemplate()


class JobStatus(Struct, frozen=True):
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    failed_indexes: str | None = None
    """Indexes that failed for good, as `1,3-5` (backoffLimitPerIndex)."""
    start_time: str | None = None
    conditions: tuple[Condition, ...] = ()


class Job(Struct, frozen=True):
    metadata: ChildMeta
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type if its status is True."""
        return next((c for c in self.status.conditions if c.type == type_ and c.status == "True"), None)

    @property
    def parallelism(self) -> int:
        """spec.parallelism, 1 when unset."""
        return 1 if self.spec.parallelism is None else self.spec.parallelism

    @property
    def pod_group(self) -> str | None:
        """The PodGroup that the Job's pods join."""
        group = self.spec.template.spec.scheduling_group
        return group.pod_group_name if group is not None else None

    @property
    def failed_index_count(self) -> int:
        """How many indexes failed for good."""
        parts = (part.partition("-") for part in (self.status.failed_indexes or "").split(",") if part)
        return sum(int(last or first) - int(first) + 1 for first, _, last in parts)

    @property
    def is_succeeded(self) -> bool:
        return self.condition("Complete") is not None

    @property
    def is_failed(self) -> bool:
        return self.condition("Failed") is not None


class ServicePort(Struct, frozen=True):
    name: str = ""
    port: int = 0
    protocol: str = "TCP"


class ServiceSpec(Struct, frozen=True):
    publish_not_ready_addresses: bool = False
    ports: tuple[ServicePort, ...] = ()


class Service(Struct, frozen=True):
    metadata: ChildMeta
    spec: ServiceSpec = ServiceSpec()


class PodSpec(Struct, frozen=True):
    node_name: str = ""
    node_selector: dict[str, str] = {}
    scheduling_group: SchedulingGroup | None = None


class ContainerStatus(Struct, frozen=True):
    restart_count: int = 0


class PodStatus(Struct, frozen=True):
    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Struct, frozen=True):
    metadata: ChildMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_live(self) -> bool:
        """Neither over nor on its way out."""
        return self.metadata.deletion_timestamp is None and self.status.phase not in ("Succeeded", "Failed")


class ClaimAnnotations(Struct, frozen=True):
    jobset_uid: str | None = field(default=None, name=labels.JOBSET_UID)


class ClaimMeta(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: ChildLabels = ChildLabels()
    annotations: ClaimAnnotations = ClaimAnnotations()
    owner_references: tuple[OwnerReference, ...] = ()


class Claim(Struct, frozen=True):
    """A PersistentVolumeClaim. Its spec stays a plain mapping: it is compared with what a template sets."""

    metadata: ClaimMeta
    spec: dict[str, Any] = {}


class NodeMeta(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    """A node has none; every cache asks for it."""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()


class Node(Struct, frozen=True):
    metadata: NodeMeta
