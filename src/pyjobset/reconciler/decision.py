"""What to do about an observation: actions with preconditions, the new status, events, reasons. Data only.

Actions are a closed union. controller.apply executes them in waves (WAVES); a failed wave stops the later ones.
Every action carries its precondition: Create expects absence, the others name a uid (and a resourceVersion).
"""

from dataclasses import dataclass
from typing import Literal

from pyjobset.objects.jobset import JobSetStatus
from pyjobset.objects.meta import Manifest, Struct
from pyjobset.objects.resources import CLAIMS, JOBS, POD_GROUPS, SERVICES, WORKLOADS, Resource

Propagation = Literal["Foreground", "Background"]


@dataclass(frozen=True, slots=True)
class Create:
    """POST. If the name is taken by an object that this JobSet controls, it is done; by another, ForeignObject."""

    resource: Resource[Struct]
    name: str
    body: Manifest | Struct


@dataclass(frozen=True, slots=True)
class Patch:
    """JSON merge patch of our fields only. `resource_version` only where a lost update would matter. `is_apply`: by
    server-side apply instead, for an element of a list that others write too, such as a condition of a pod."""

    resource: Resource[Struct]
    name: str
    uid: str
    patch: Manifest
    resource_version: str | None = None
    subresource: str | None = None
    is_apply: bool = False


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """RFC 6902 patch, for a list element such as one template of a Workload. Tests of values come with it."""

    resource: Resource[Struct]
    name: str
    uid: str
    operations: tuple[Manifest, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE with a uid precondition. `resource_version` where the reason may be over by now: a Job that had not run
    may have finished since, and its result would be lost; a finished JobSet may have been given more time."""

    resource: Resource[Struct]
    name: str
    uid: str
    propagation: Propagation = "Foreground"
    resource_version: str | None = None


Action = Create | Patch | JsonPatch | Delete

CREATION_ORDER: tuple[Resource[Struct], ...] = (WORKLOADS, POD_GROUPS, SERVICES, CLAIMS, JOBS)
"""No pod ever names a PodGroup that was not created before it: a kind is created after the kinds left of it."""


@dataclass(frozen=True, slots=True)
class Event:
    """An events.k8s.io event about the JobSet, sent only after the status write succeeded."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why: a stable code and its arguments. Logs, events, `jobset explain` and the dashboard render the same ones."""

    code: str
    arguments: tuple[tuple[str, str | int], ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    actions: tuple[Action, ...] = ()
    status: JobSetStatus | None = None
    """The whole status to store, or None when the stored one is right."""
    events: tuple[Event, ...] = ()
    wake_after_seconds: float | None = None
    reasons: tuple[Reason, ...] = ()
