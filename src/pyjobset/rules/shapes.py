"""The shapes of what a JobSet only carries: Job templates and claim templates, as far as anyone here reads them.

rules.parse checks the templates against these, so that the readers of a template (objects.template, the compiler) can
trust the types of what they find. Nothing is decoded into them. An open shape lets fields pass that it does not know.
"""

from typing import Annotated, Any

from pyjobset.objects.jobset import ReplicatedJob, VolumeClaimPolicy
from pyjobset.objects.meta import Struct
from pyjobset.objects.schema import schema

Count = Annotated[int | None, schema(minimum=0)]
Required = Annotated[str | None, schema(required=True)]


class Open(Struct, frozen=True):
    """The base of shapes whose other fields are carried unseen."""


class TemplateMeta(Open, frozen=True):
    name: str | None = None
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: tuple[str, ...] | None = None


class Port(Open, frozen=True):
    name: str | None = None
    container_port: int | None = None
    protocol: str | None = None


class Mount(Open, frozen=True):
    name: Required = None
    mount_path: Required = None


class Device(Open, frozen=True):
    name: Required = None
    device_path: Required = None


class Container(Open, frozen=True):
    name: Required = None
    ports: tuple[Port, ...] | None = None
    volume_mounts: tuple[Mount, ...] | None = None
    volume_devices: tuple[Device, ...] | None = None
    resources: dict[str, Any] | None = None


class Volume(Open, frozen=True):
    name: Required = None


class PodClaim(Open, frozen=True):
    name: Required = None
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Open, frozen=True):
    containers: Annotated[tuple[Container, ...] | None, schema(required=True, minItems=1)] = None
    init_containers: tuple[Container, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[PodClaim, ...] | None = None
    restart_policy: Annotated[str | None, schema(enum=["OnFailure", "Never"])] = None
    priority_class_name: str | None = None
    scheduler_name: str | None = None
    subdomain: str | None = None
    node_selector: dict[str, str] | None = None
    tolerations: tuple[dict[str, Any], ...] | None = None
    scheduling_gates: tuple[dict[str, Any], ...] | None = None
    scheduling_group: dict[str, Any] | None = None


class PodTemplate(Struct, frozen=True):
    metadata: TemplateMeta | None = None
    spec: Annotated[PodSpec | None, schema(required=True)] = None


class JobSpec(Open, frozen=True):
    parallelism: Count = None
    completions: Count = None
    completion_mode: Annotated[str | None, schema(enum=["Indexed", "NonIndexed"])] = None
    backoff_limit: Count = None
    pod_replacement_policy: Annotated[str | None, schema(enum=["TerminatingOrFailed", "Failed"])] = None
    suspend: bool | None = None
    template: Annotated[PodTemplate | None, schema(required=True)] = None
    scheduling: dict[str, Any] | None = None


class JobTemplate(Struct, frozen=True):
    """batch/v1 JobTemplateSpec."""

    metadata: TemplateMeta | None = None
    spec: Annotated[JobSpec | None, schema(required=True)] = None


class ClaimTemplate(Open, frozen=True):
    """v1 PersistentVolumeClaim."""

    metadata: TemplateMeta | None = None
    spec: dict[str, Any] | None = None


SHAPES: dict[tuple[type, str], type[Struct]] = {
    (ReplicatedJob, "template"): JobTemplate,
    (VolumeClaimPolicy, "templates"): ClaimTemplate,
}
"""The shape of a plain mapping, or of each item of a list of them, by the struct and the field that carries it."""
