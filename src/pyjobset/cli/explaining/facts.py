"""What `explain` knows of a JobSet and of the cluster around it: the objects, with the fields that it reads. Frozen.

The wire structs are wider than the controller's, which caches pods by the thousand: requests, taints, exit codes.
Made by cli.explain, read by the modules beside this one. What the person may not read is None.
"""

import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import field

from pyjobset.cli.view import Family
from pyjobset.objects import batch, labels
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Condition, ObjectMeta, Struct
from pyjobset.objects.resources import Resource

Quantities = dict[str, str]


class Resources(Struct, frozen=True):
    requests: Quantities = {}


class Port(Struct, frozen=True):
    host_port: int = 0


class Container(Struct, frozen=True):
    name: str = ""
    image: str = ""
    resources: Resources = Resources()
    ports: tuple[Port, ...] = ()
    restart_policy: str | None = None


class Toleration(Struct, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Volume(Struct, frozen=True):
    persistent_volume_claim: dict[str, Any] | None = None
    ephemeral: dict[str, Any] | None = None


class SchedulingGate(Struct, frozen=True):
    name: str = ""


class PodLabels(batch.ChildLabels, frozen=True):
    job_key: str = field(default="", name=labels.JOB_KEY)
    priority: str = field(default="", name=labels.PRIORITY)
    """Of a leader of exclusive placement."""


class PodMeta(batch.ChildMeta, frozen=True):
    labels: PodLabels = PodLabels()
    creation_timestamp: str | None = None


class PodSpec(batch.PodSpec, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: Resources | None = None
    """Of the pod as a whole: they take the place of the containers' sum."""
    overhead: Quantities = {}
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    affinity: dict[str, Any] | None = None
    topology_spread_constraints: tuple[dict[str, Any], ...] = ()
    resource_claims: tuple[dict[str, Any], ...] = ()
    volumes: tuple[Volume, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduler_name: str = "default-scheduler"


class Waiting(Struct, frozen=True):
    reason: str = ""
    message: str = ""


class Terminated(Struct, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""


class ContainerState(Struct, frozen=True):
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(batch.ContainerStatus, frozen=True):
    name: str = ""
    image: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(batch.PodStatus, frozen=True):
    reason: str = ""
    message: str = ""
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(batch.Pod, frozen=True):
    metadata: PodMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Struct, frozen=True):
    allocatable: Quantities = {}
    conditions: tuple[Condition, ...] = ()


class Node(Struct, frozen=True):
    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class PriorityClass(Struct, frozen=True):
    metadata: ObjectMeta


class ObjectReference(Struct, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Event(Struct, frozen=True):
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    """Of events.k8s.io, which has no last time: ours, and those of the scheduler."""
    related: ObjectReference | None = None
    """Of a preemption, for whom."""

    @property
    def at(self) -> str:
        return self.last_timestamp or self.event_time or ""


PODS = Resource("v1", "pods", "Pod", Pod)
NODES = Resource("v1", "nodes", "Node", Node, namespaced=False)
EVENTS = Resource("v1", "events", "Event", Event)
PRIORITY_CLASSES = Resource("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", PriorityClass, namespaced=False)


@dataclass(frozen=True, slots=True)
class Facts:
    family: Family
    now: datetime
    """UTC."""
    pods: tuple[Pod, ...] = ()
    """Those of the family, with all that is known of them."""
    nodes: tuple[Node, ...] | None = ()
    occupants: tuple[Pod, ...] | None = ()
    """All pods of the cluster that have a node and have not finished."""
    events: tuple[Event, ...] = ()
    """Warnings about the JobSet's Jobs and PodGroups, and of a gang that was preempted what befell its pods."""
    priority_classes: frozenset[str] | None = None
    pending: tuple[str, ...] = ()
    """What the controller should have done and has not, in words."""
    unreadable: tuple[str, ...] = ()
    """Kinds that the person has no right to read."""
    plane: str | None = None
    """The directory of the local plane, empty for the default one. None: nothing tells that it is a local plane."""

    @property
    def jobset(self) -> JobSet:
        return self.family.jobset

    @property
    def is_simulated(self) -> bool:
        """The cluster is a local plane: we know it, or its nodes are of kwok."""
        return self.plane is not None or any(node.metadata.labels.get("type") == "kwok" for node in self.nodes or ())

    def of_plane(self, *words: str) -> str:
        """A command line that acts on the local plane, empty where the cluster is none."""
        return shlex.join([*words, *(("--dir", self.plane) if self.plane else ())]) if self.is_simulated else ""
