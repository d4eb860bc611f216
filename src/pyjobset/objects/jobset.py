"""jobset.x-k8s.io/v1alpha2: the JobSet. The one source of its types; the CRD is generated from here.

Constraints and descriptions are for the schema only (Meta), never enforced while decoding: an object that was stored
long ago must stay readable. Job templates are carried as plain mappings; `objects.template` reads them.
"""

from typing import Any

from msgspec import UNSET, UnsetType, field

from pyjobset.objects.meta import Condition, ObjectMeta, Struct
from pyjobset.objects.scheduling import (
    DisruptionMode,
    PodGroupResourceClaim,
    SchedulingConstraints,
    SchedulingPolicy,
)

GROUP = "jobset.x-k8s.io"
VERSION = "v1alpha2"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "JobSet"


class JobScheduling(Struct, frozen=True):
    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()


class ReplicatedJobScheduling(Struct, frozen=True):
    target_replicated_jobs: tuple[str, ...] = ()
    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    job: JobScheduling | None = None


class Scheduling(Struct, frozen=True):
    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    replicated_jobs: tuple[ReplicatedJobScheduling, ...] | None = None


class DependsOn(Struct, frozen=True):
    name: str
    status: str = ""


class ReplicatedJob(Struct, frozen=True):
    name: str
    template: dict[str, Any] = {}
    replicas: int = 1
    group_name: str = "default"
    depends_on: tuple[DependsOn, ...] = ()


class Network(Struct, frozen=True):
    enable_dns_hostnames: bool | None = field(default=None, name="enableDNSHostnames")
    subdomain: str | None = None
    publish_not_ready_addresses: bool | None = None


class SuccessPolicy(Struct, frozen=True):
    operator: str = "All"
    target_replicated_jobs: tuple[str, ...] = ()


class FailurePolicyRule(Struct, frozen=True):
    name: str = ""
    action: str = ""
    on_job_failure_reasons: tuple[str, ...] = ()
    on_job_failure_message_patterns: tuple[str, ...] = ()
    target_replicated_jobs: tuple[str, ...] = ()


class FailurePolicy(Struct, frozen=True):
    max_restarts: int = 0
    restart_strategy: str = "Recreate"
    rules: tuple[FailurePolicyRule, ...] = ()


class StartupPolicy(Struct, frozen=True):
    startup_policy_order: str = "AnyOrder"


class Coordinator(Struct, frozen=True):
    replicated_job: str = ""
    job_index: int = 0
    pod_index: int = 0


class RetentionPolicy(Struct, frozen=True):
    when_deleted: str = "Delete"


class VolumeClaimPolicy(Struct, frozen=True):
    templates: tuple[dict[str, Any], ...] = ()
    retention_policy: RetentionPolicy | None = None


class JobSetSpec(Struct, frozen=True):
    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    network: Network | None = None
    success_policy: SuccessPolicy | None = None
    failure_policy: FailurePolicy | None = None
    startup_policy: StartupPolicy | None = None
    suspend: bool | None = None
    coordinator: Coordinator | None = None
    managed_by: str | None = None
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    volume_claim_policies: tuple[VolumeClaimPolicy, ...] = ()
    scheduling: Scheduling | None = None


class ReplicatedJobStatus(Struct, frozen=True, omit_defaults=False):
    """Counts of the child Jobs of the current attempt; all are always serialised."""

    name: str
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    suspended: int = 0
    job_restarts: tuple[int, ...] | UnsetType = UNSET
    job_restarts_count_towards_max: tuple[int, ...] | UnsetType = UNSET


class JobSetStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()
    restarts: int = 0
    restarts_count_towards_max: int = 0
    terminal_state: str = ""
    replicated_jobs_status: tuple[ReplicatedJobStatus, ...] = ()
    start_time: str | None = None
    execution_attempts: int | None = None
    previous_in_place_restart_attempt: int | None = None
    current_in_place_restart_attempt: int | None = None


class JobSet(Struct, frozen=True):
    metadata: ObjectMeta
    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()
