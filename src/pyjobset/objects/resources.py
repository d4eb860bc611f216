"""The API resources that we deal in, in one table: group, version, plural, kind, and the struct we decode."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from pyjobset.objects import batch, certificates, coordination, jobset, scheduling
from pyjobset.objects.meta import Struct

T_co = TypeVar("T_co", bound=Struct, covariant=True)


@dataclass(frozen=True, slots=True)
class Resource(Generic[T_co]):
    api_version: str
    plural: str
    kind: str
    type: type[T_co]
    namespaced: bool = True

    def __str__(self) -> str:
        group, _, _ = self.api_version.rpartition("/")
        return f"{self.plural}.{group}" if group else self.plural

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """`/apis/batch/v1/namespaces/ns/jobs/name/status`. Without a namespace: all namespaces."""
        prefix = "/apis/" if "/" in self.api_version else "/api/"
        parts = [prefix + self.api_version]
        if namespace is not None and self.namespaced:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        return "/".join(parts)


JOBSETS = Resource(jobset.API_VERSION, "jobsets", "JobSet", jobset.JobSet)
JOBS = Resource("batch/v1", "jobs", "Job", batch.Job)
SERVICES = Resource("v1", "services", "Service", batch.Service)
PODS = Resource("v1", "pods", "Pod", batch.Pod)
CLAIMS = Resource("v1", "persistentvolumeclaims", "PersistentVolumeClaim", batch.Claim)
NODES = Resource("v1", "nodes", "Node", batch.Node, namespaced=False)
WORKLOADS = Resource(scheduling.API_VERSION, "workloads", "Workload", scheduling.Workload)
POD_GROUPS = Resource(scheduling.API_VERSION, "podgroups", "PodGroup", scheduling.PodGroup)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", scheduling.PriorityClass, namespaced=False
)
LEASES = Resource(coordination.API_VERSION, "leases", "Lease", coordination.Lease)
EVENTS = Resource("events.k8s.io/v1", "events", "Event", Struct)
SECRETS = Resource("v1", "secrets", "Secret", certificates.Secret)
MUTATING_CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io/v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    certificates.WebhookConfiguration,
    namespaced=False,
)
VALIDATING_CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io/v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    certificates.WebhookConfiguration,
    namespaced=False,
)
