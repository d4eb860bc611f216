"""jobset.x-k8s.io/v1alpha2: the JobSet. The one source of its types; the CRD is generated from here.

The text below a class or a field is its description in the CRD, `schema(...)` what its schema has beyond the type.
Neither is looked at while decoding (objects.schema says why). Job templates and claims are carried as plain mappings;
`objects.template` reads them.
"""

from typing import Annotated, Any

from msgspec import UNSET, UnsetType, field

from pyjobset.objects.meta import Condition, ObjectMeta, Struct
from pyjobset.objects.scheduling import (
    CLAIMS_MAX,
    DisruptionMode,
    PodGroupResourceClaim,
    SchedulingConstraints,
    SchedulingPolicy,
)
from pyjobset.objects.schema import schema

GROUP = "jobset.x-k8s.io"
VERSION = "v1alpha2"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "JobSet"

JOBS_MAX = 20_000
"""Most Jobs of one JobSet. All of them are in memory, and looked at, at once: a number that is free, as replicas is,
would end the controller for everybody."""


class JobScheduling(Struct, frozen=True):
    scheduling_policy: SchedulingPolicy | None = None
    """How the pods of each Job are scheduled. Default: gang, with all pods of the Job."""
    scheduling_constraints: SchedulingConstraints | None = None
    """Where the pods of each Job must be."""
    disruption_mode: DisruptionMode | None = None
    """What a preemption takes: one pod, or all pods of the Job."""
    resource_claims: Annotated[
        tuple[PodGroupResourceClaim, ...], schema(listType="map", listMapKeys=["name"], maxItems=CLAIMS_MAX)
    ] = ()
    """Devices that all pods of a Job share. At most 4."""


class ReplicatedJobScheduling(Struct, frozen=True):
    target_replicated_jobs: Annotated[
        tuple[Annotated[str, schema(maxLength=256)], ...],
        schema(required=True, listType="set", minItems=1, maxItems=50),
    ] = ()
    """The names of the ReplicatedJobs that this entry is about: 1 to 50. A ReplicatedJob belongs to one entry."""
    scheduling_policy: Annotated[SchedulingPolicy | None, schema(without=["gang.minCount"])] = None
    """How the pods of all targets together are scheduled. Default: gang, with all of these pods."""
    scheduling_constraints: SchedulingConstraints | None = None
    """Where the pods of all targets together must be."""
    disruption_mode: DisruptionMode | None = None
    """What a preemption takes: one pod, or all pods of all targets."""
    job: JobScheduling | None = None
    """A PodGroup for each Job of the target instead of one for the entry. Only with exactly one target, and without the
    entry's own schedulingPolicy, schedulingConstraints and disruptionMode."""


class Scheduling(Struct, frozen=True):
    scheduling_policy: Annotated[SchedulingPolicy | None, schema(without=["gang.minCount"])] = None
    """How the pods of the JobSet are scheduled. Default: gang, with all pods of the JobSet. When startup is sequenced
    (dependsOn or InOrder) each ReplicatedJob is a gang of its own, and gang cannot be asked for here."""
    scheduling_constraints: SchedulingConstraints | None = None
    """Where the pods of the JobSet must be."""
    disruption_mode: DisruptionMode | None = None
    """What a preemption takes: one pod, or all pods of the JobSet."""
    replicated_jobs: Annotated[tuple[ReplicatedJobScheduling, ...] | None, schema(maxItems=50)] = None
    """Schedules ReplicatedJobs apart from each other, one entry for each PodGroup. Every ReplicatedJob must be the
    target of exactly one entry. Not together with the other fields. At most 50 entries."""


class DependsOn(Struct, frozen=True):
    name: Annotated[str, schema(maxLength=63)]
    """An earlier ReplicatedJob of the list."""
    status: Annotated[str, schema(required=True, enum=["Ready", "Complete"])] = ""
    """What all its Jobs must be: Ready (its pods are ready) or Complete (it succeeded)."""


class ReplicatedJob(Struct, frozen=True):
    name: Annotated[str, schema(maxLength=63)]
    """Unique in the JobSet. It becomes part of the names of the Jobs: JOBSET-NAME-INDEX."""
    template: Annotated[dict[str, Any], schema(required=True, native="io.k8s.api.batch.v1.JobTemplateSpec")] = {}
    """The Job to create. Defaults: completionMode Indexed, and restartPolicy OnFailure for its pods."""
    replicas: Annotated[int, schema(default=1, minimum=0)] = 1
    """How many Jobs to create from the template. Default 1. It cannot be changed."""
    group_name: Annotated[str, schema(default="default", maxLength=63)] = "default"
    """Puts the Jobs into a group: their labels carry its name, its size and the Job's index in it. A DNS label."""
    depends_on: Annotated[tuple[DependsOn, ...], schema(listType="map", listMapKeys=["name"], maxItems=5)] = ()
    """Creates the Jobs only when all of these hold. At most 5. It cannot be changed, and not be combined with startup
    policy InOrder."""


class Network(Struct, frozen=True):
    enable_dns_hostnames: Annotated[bool | None, schema(default=True)] = field(default=None, name="enableDNSHostnames")
    """Gives each pod a DNS name, JOBSET-NAME-JOBINDEX-PODINDEX.SUBDOMAIN, through a headless Service. Default true."""
    subdomain: Annotated[str | None, schema(maxLength=63)] = None
    """The name of the headless Service. Default: the JobSet's name. A DNS label."""
    publish_not_ready_addresses: Annotated[bool | None, schema(default=True)] = None
    """Makes the DNS names known before the pods are ready. Default true."""


class SuccessPolicy(Struct, frozen=True):
    operator: Annotated[str, schema(required=True, enum=["All", "Any"])] = "All"
    """All: every Job of the targets must succeed. Any: one of them is enough."""
    target_replicated_jobs: tuple[str, ...] = ()
    """The ReplicatedJobs that count. Default: all."""


class FailurePolicyRule(Struct, frozen=True):
    name: Annotated[str, schema(default="", maxLength=128)] = ""
    """Unique among the rules; conditions refer to it. Default: failurePolicyRule and the rule's index."""
    action: Annotated[
        str,
        schema(
            required=True,
            enum=[
                "FailJobSet",
                "RestartJobSet",
                "RestartJobSetAndIgnoreMaxRestarts",
                "RestartJob",
                "RestartJobAndIgnoreMaxRestarts",
            ],
        ),
    ] = ""
    """What to do when a failed Job matches. FailJobSet: nothing is restarted. RestartJobSet: all Jobs are recreated.
    RestartJob: only the failed Job is (feature gate RestartJob). AndIgnoreMaxRestarts: it does not count towards
    maxRestarts."""
    on_job_failure_reasons: Annotated[
        tuple[
            Annotated[
                str,
                schema(
                    enum=[
                        "BackoffLimitExceeded",
                        "DeadlineExceeded",
                        "FailedIndexes",
                        "MaxFailedIndexesExceeded",
                        "PodFailurePolicy",
                    ]
                ),
            ],
            ...,
        ],
        schema(listType="set", maxItems=5),
    ] = ()
    """Matches Jobs whose Failed condition has one of these reasons. Default: any reason."""
    on_job_failure_message_patterns: tuple[str, ...] = ()
    """Matches Jobs whose Failed condition has a message in which one of these RE2 patterns is found. Default: any."""
    target_replicated_jobs: tuple[str, ...] = ()
    """Matches Jobs of these ReplicatedJobs. Default: all."""


class FailurePolicy(Struct, frozen=True):
    max_restarts: Annotated[int, schema(default=0, minimum=0)] = 0
    """How often the JobSet may restart before it fails. Default 0."""
    restart_strategy: Annotated[
        str, schema(default="Recreate", enum=["Recreate", "BlockingRecreate", "InPlaceRestart"])
    ] = "Recreate"
    """Recreate (the default): each Job is created again as soon as the old one is gone. BlockingRecreate: when all old
    Jobs are gone. InPlaceRestart: containers restart inside their pods (feature gate InPlaceRestart)."""
    rules: Annotated[tuple[FailurePolicyRule, ...], schema(maxItems=64)] = ()
    """What to do about a failed Job. The first rule that matches decides; when none does, the JobSet restarts. At most
    64."""


class StartupPolicy(Struct, frozen=True):
    startup_policy_order: Annotated[str, schema(required=True, enum=["AnyOrder", "InOrder"])] = "AnyOrder"
    """AnyOrder: all Jobs are started at once. InOrder: a ReplicatedJob starts when the one before it is ready."""


class Coordinator(Struct, frozen=True):
    replicated_job: Annotated[str, schema(required=True)] = ""
    """The ReplicatedJob that the coordinator's pod is in."""
    job_index: Annotated[int, schema(default=0, minimum=0)] = 0
    """The index of the Job in it. Default 0."""
    pod_index: Annotated[int, schema(default=0, minimum=0)] = 0
    """The completion index of the pod in that Job. Default 0."""


class RetentionPolicy(Struct, frozen=True):
    when_deleted: Annotated[str, schema(default="Delete", enum=["Delete", "Retain"])] = "Delete"
    """Delete (the default): the claims are deleted with the JobSet. Retain: they stay."""


class VolumeClaimPolicy(Struct, frozen=True):
    templates: Annotated[
        tuple[Annotated[dict[str, Any], schema(native="io.k8s.api.core.v1.PersistentVolumeClaim")], ...],
        schema(maxItems=50),
    ] = ()
    """The claims to create, named CLAIM-JOBSET. Containers mount them by the template's name, which is unique in the
    JobSet; the volume is added for them. At most 50."""
    retention_policy: Annotated[RetentionPolicy | None, schema(default={})] = None
    """What becomes of the claims."""


class JobSetSpec(Struct, frozen=True):
    replicated_jobs: Annotated[tuple[ReplicatedJob, ...], schema(listType="map", listMapKeys=["name"])] = ()
    """The groups of Jobs. Only parts of a template can be changed later, and most of these only while suspended."""
    network: Annotated[Network | None, schema(default={})] = None
    """How the pods find each other. It cannot be changed."""
    success_policy: Annotated[SuccessPolicy | None, schema(default={"operator": "All"})] = None
    """When the JobSet is completed. Default: when all Jobs have succeeded. It cannot be changed."""
    failure_policy: FailurePolicy | None = None
    """What happens when a Job fails. Default: the JobSet fails. It cannot be changed."""
    startup_policy: Annotated[StartupPolicy | None, schema(default={"startupPolicyOrder": "AnyOrder"})] = None
    """The order in which ReplicatedJobs start. Deprecated: use dependsOn. It cannot be changed."""
    suspend: bool | None = None
    """Suspends all Jobs: their pods are deleted and none is created until it is false again. Default false."""
    coordinator: Coordinator | None = None
    """The pod that leads: all Jobs and pods carry its address as label and annotation. It cannot be changed."""
    managed_by: Annotated[str | None, schema(maxLength=63)] = None
    """The controller in charge, as DOMAIN/NAME. Default: this one. It cannot be changed."""
    ttl_seconds_after_finished: Annotated[int | None, schema(minimum=0)] = None
    """Deletes the JobSet so many seconds after it has completed or failed. Default: never."""
    active_deadline_seconds: Annotated[int | None, schema(minimum=1, format="int64")] = None
    """Fails the JobSet when it has been active for so many seconds (feature gate JobSetActiveDeadlineSeconds)."""
    volume_claim_policies: Annotated[tuple[VolumeClaimPolicy, ...], schema(maxItems=50)] = ()
    """PersistentVolumeClaims that the JobSet creates for its pods. At most 50 policies. They cannot be changed."""
    scheduling: Scheduling | None = None
    """Workload-Aware Scheduling: which pods are scheduled together, and where. The controller makes a Workload and
    PodGroups of it; {} makes the whole JobSet a gang. Without it there are none. Use either schedulingPolicy,
    schedulingConstraints and disruptionMode for the whole JobSet, or replicatedJobs. It cannot be set, changed or
    removed later. Needs feature gate JobSetWorkloadAwareSchedulingAPI."""


class ReplicatedJobStatus(Struct, frozen=True, omit_defaults=False):
    """Counts of the child Jobs of the current attempt; all are always serialised."""

    name: str
    """The ReplicatedJob."""
    ready: Annotated[int, schema(required=True)] = 0
    """Active Jobs whose pods are all ready or succeeded."""
    succeeded: Annotated[int, schema(required=True)] = 0
    """Jobs that succeeded."""
    failed: Annotated[int, schema(required=True)] = 0
    """Jobs that failed."""
    active: Annotated[int, schema(required=True)] = 0
    """Jobs with pods that are pending or running."""
    suspended: Annotated[int, schema(required=True)] = 0
    """Jobs that are suspended."""
    job_restarts: Annotated[tuple[int, ...] | UnsetType, schema(maxItems=1024)] = UNSET
    """How often each Job was restarted on its own, by index (feature gate RestartJob)."""
    job_restarts_count_towards_max: Annotated[tuple[int, ...] | UnsetType, schema(maxItems=1024)] = UNSET
    """Those of jobRestarts that count towards maxRestarts, by index."""


class JobSetStatus(Struct, frozen=True):
    conditions: Annotated[
        tuple[Annotated[Condition, schema(native="io.k8s.apimachinery.pkg.apis.meta.v1.Condition")], ...],
        schema(listType="map", listMapKeys=["type"]),
    ] = ()
    """What is true of the JobSet: Completed, Failed, Suspended, and conditions of startup, restart and scheduling."""
    restarts: int = 0
    """How often the JobSet was restarted."""
    restarts_count_towards_max: int = 0
    """Those of restarts that count towards maxRestarts."""
    terminal_state: str = ""
    """Completed or Failed once the JobSet is finished."""
    replicated_jobs_status: Annotated[
        tuple[ReplicatedJobStatus, ...], schema(listType="map", listMapKeys=["name"])
    ] = ()
    """The Jobs of the current attempt, counted for each ReplicatedJob."""
    start_time: Annotated[str | None, schema(format="date-time")] = None
    """Since when the JobSet is active, while activeDeadlineSeconds may be used."""
    execution_attempts: Annotated[int | None, schema(minimum=0)] = None
    """How often the Jobs were started: the first time, after a suspension, after a restart (feature gate
    ExecutionAttemptsTracking). Unset: never."""
    previous_in_place_restart_attempt: Annotated[int | None, schema(minimum=0)] = None
    """The newest attempt that is over: pods that still are in it restart (restart strategy InPlaceRestart)."""
    current_in_place_restart_attempt: Annotated[int | None, schema(minimum=0)] = None
    """The attempt in which all pods are: they may run (restart strategy InPlaceRestart)."""


class JobSet(Struct, frozen=True):
    """A JobSet runs groups of Jobs as one workload: they start, restart, finish and are scheduled together."""

    metadata: ObjectMeta
    spec: Annotated[JobSetSpec, schema(default={})] = JobSetSpec()
    """What to run. Most of it cannot be changed; suspend, ttlSecondsAfterFinished and activeDeadlineSeconds can."""
    status: JobSetStatus = JobSetStatus()
    """What the controller saw. Only the controller writes it."""
