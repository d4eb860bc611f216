"""The names of everything that a JobSet owns, and the checks of Kubernetes names and labels.

Names are computed, never random: the same JobSet always gets the same names, so that a lost reply costs a second look
and nothing else. Rules check them, the compiler writes them, the reconciler and the CLI look things up by them.
"""

import re
from collections.abc import Iterable
from hashlib import sha1

from pyjobset.objects.jobset import JobSet

LABEL_LENGTH_MAX = 63
SUBDOMAIN_LENGTH_MAX = 253
HASH_LENGTH = 10

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_RFC1035_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def digest(text: str) -> str:
    """The first 10 hex digits of SHA-1. For telling names apart, not for security."""
    return sha1(text.encode(), usedforsecurity=False).hexdigest()[:HASH_LENGTH]


def identity(kind: str, namespace: str, name: str) -> str:
    return digest(f"{kind}/{namespace}/{name}")


def hashed(prefix: str, hash_: str) -> str:
    """`prefix-hash`. Where that is too long for a DNS label the prefix is cut, so that it is exactly 63."""
    return f"{prefix[: LABEL_LENGTH_MAX - 1 - len(hash_)]}-{hash_}"


def workload_name(namespace: str, jobset: str) -> str:
    """The Workload, and the template and the PodGroup that hold the whole JobSet."""
    return hashed(jobset, identity("JobSet", namespace, jobset))


def replicated_job_template_name(namespace: str, jobset: str, replicated_job: str) -> str:
    """The template of one ReplicatedJob: of sequenced startup, or shared by its Jobs (decision 36)."""
    return hashed(replicated_job, identity("ReplicatedJob", namespace, f"{jobset}/{replicated_job}"))


def group_template_name(namespace: str, jobset: str, targets: Iterable[str]) -> str:
    """The template of an entry of spec.scheduling.replicatedJobs without `job`."""
    group = "-".join(targets)
    return hashed(group, identity("ReplicatedJobGroup", namespace, f"{jobset}/{group}"))


def job_template_name(namespace: str, jobset: str, replicated_job: str, index: int) -> str:
    """The template of one child Job; its PodGroup is named after it also where the template is shared."""
    return hashed(f"{replicated_job}-{index}", identity("Job", namespace, f"{jobset}/{replicated_job}/{index}"))


def pod_group_name(jobset: str, template: str) -> str:
    """The PodGroup of a template that does not hold the whole JobSet."""
    name = f"{jobset}-{template}"
    return name if len(name) <= LABEL_LENGTH_MAX else hashed(jobset, digest(f"{jobset}/{template}"))


def job_name(jobset: str, replicated_job: str, index: int) -> str:
    return f"{jobset}-{replicated_job}-{index}"


def job_key(namespace: str, job: str) -> str:
    """The value of the label job-key: 40 hex digits, the same for every pod of one Job."""
    return sha1(f"{namespace}/{job}".encode(), usedforsecurity=False).hexdigest()


def pod_hostname(job: str, index: int) -> str:
    """The hostname of a pod of an Indexed Job."""
    return f"{job}-{index}"


def subdomain(jobset: JobSet) -> str:
    """The name of the headless Service, which is the subdomain of every pod."""
    network = jobset.spec.network
    return (network.subdomain if network else None) or jobset.metadata.name


def coordinator_endpoint(jobset: JobSet) -> str | None:
    """The stable address of the coordinator's pod, or None where the JobSet has no coordinator."""
    coordinator = jobset.spec.coordinator
    if coordinator is None:
        return None
    job = job_name(jobset.metadata.name, coordinator.replicated_job, coordinator.job_index)
    return f"{pod_hostname(job, coordinator.pod_index)}.{subdomain(jobset)}"


def claim_name(template: str, jobset: str) -> str:
    """The PersistentVolumeClaim of one template of spec.volumeClaimPolicies."""
    return f"{template}-{jobset}"


def is_dns_label(text: str) -> bool:
    """RFC 1123 label."""
    return len(text) <= LABEL_LENGTH_MAX and _DNS_LABEL.fullmatch(text) is not None


def is_rfc1035_label(text: str) -> bool:
    """RFC 1035 label: as RFC 1123, and starts with a letter."""
    return len(text) <= LABEL_LENGTH_MAX and _RFC1035_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """RFC 1123 subdomain as Kubernetes reads it: 253 in all, no limit for one part."""
    return len(text) <= SUBDOMAIN_LENGTH_MAX and all(_DNS_LABEL.fullmatch(part) for part in text.split("."))


def is_label_key(text: str) -> bool:
    """A qualified name: `name` or `prefix.example.com/name`. Annotation keys are the same."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_dns_subdomain(prefix)) and _is_qualified(name)


def is_label_value(text: str) -> bool:
    return not text or _is_qualified(text)


def _is_qualified(text: str) -> bool:
    return len(text) <= LABEL_LENGTH_MAX and _QUALIFIED.fullmatch(text) is not None
