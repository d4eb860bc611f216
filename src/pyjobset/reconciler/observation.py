"""What the controller saw of one JobSet, as one frozen value. Built by controller.observe, read by decide.

It holds everything that decide may look at: nothing else is consulted, so the same observation always gives the
same decision. Children are those whose controller ownerReference has the JobSet's uid.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pyjobset.objects.batch import Claim, Job, Node, Pod, Service
from pyjobset.objects.features import DEFAULTS, Features
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.scheduling import PodGroup, Workload

OWN_VERDICT = 0
"""The code of a refusal that is no answer of the API server: we ourselves cannot use what has the name."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the API server answered to one of our last actions. Kept until that object's next action succeeds.

    decide leaves the object alone until `retry_at`, which the shell moves further away with each refusal. `owner` is
    set when the object exists and belongs to someone else (`Kind/name`, or "nobody"). The message of our own verdict
    goes on after the object's name.
    """

    kind: str
    name: str
    code: int
    reason: str
    message: str
    retry_at: datetime
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    jobset: JobSet
    now: datetime
    """UTC."""
    jobs: tuple[Job, ...] = ()
    service: Service | None = None
    workloads: tuple[Workload, ...] = ()
    pod_groups: tuple[PodGroup, ...] = ()
    pods: tuple[Pod, ...] | None = ()
    """Filled only where `decide.needs_pods` says that they are read. None: they cannot be seen."""
    claims: tuple[Claim, ...] = ()
    """Those that have the names of its volumeClaimPolicies, whoever's they are."""
    nodes: tuple[Node, ...] = ()
    """Filled only where `decide.needs_nodes(jobset)` says that they are read."""
    refusals: tuple[Refusal, ...] = ()
    features: Features = DEFAULTS
    has_scheduling_api: bool = True
    """The cluster serves scheduling.k8s.io/v1beta1."""
    defers_suspended: bool = False
    """The Configuration says so: a JobSet that is suspended from the start has no Jobs before its first resume."""
    accepts: Mapping[str, str] = field(default_factory=dict)
    """Fields of spec.scheduling that the cluster keeps, asked while it had dropped some, and since when (RFC 3339)."""
