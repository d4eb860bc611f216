"""The defaults of a JobSet: those of the CRD's schema are in the types, those of the mutating webhook are here.

The webhook, the reconciler (a JobSet may have missed the webhook, decision 10) and `jobset plan` call it. It never
mutates: what needs no default is handed back as it is, so that a JobSet that has them all costs nothing.
"""

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from pyjobset.objects.jobset import (
    FailurePolicy,
    JobSet,
    JobSetSpec,
    Network,
    ReplicatedJob,
    RetentionPolicy,
    StartupPolicy,
    SuccessPolicy,
    VolumeClaimPolicy,
)
from pyjobset.objects.meta import Manifest

T = TypeVar("T")

COMPLETION_MODE = "Indexed"
RESTART_POLICY = "OnFailure"


def with_defaults(jobset: JobSet) -> JobSet:
    """The JobSet with every default set. Applied to its own result it hands back the same object."""
    spec = _spec(jobset.spec)
    return jobset if spec is jobset.spec else replace(jobset, spec=spec)


def _spec(spec: JobSetSpec) -> JobSetSpec:
    changes = {
        "replicated_jobs": _each(spec.replicated_jobs, _replicated_job),
        "network": _network(spec.network or Network()),
        "success_policy": spec.success_policy or SuccessPolicy(),
        "failure_policy": _failure_policy(spec.failure_policy),
        "startup_policy": spec.startup_policy or StartupPolicy(),
        "volume_claim_policies": _each(spec.volume_claim_policies, _volume_claim_policy),
    }
    changes = {name: value for name, value in changes.items() if value is not getattr(spec, name)}
    return replace(spec, **changes) if changes else spec


def _each(items: tuple[T, ...], default: Callable[[T], T]) -> tuple[T, ...]:
    defaulted = tuple(default(item) for item in items)
    unchanged = all(new is old for new, old in zip(defaulted, items, strict=True))
    return items if unchanged else defaulted


def _network(network: Network) -> Network:
    if network.enable_dns_hostnames is not None and network.publish_not_ready_addresses is not None:
        return network
    return replace(
        network,
        enable_dns_hostnames=network.enable_dns_hostnames is not False,
        publish_not_ready_addresses=network.publish_not_ready_addresses is not False,
    )


def _failure_policy(policy: FailurePolicy | None) -> FailurePolicy | None:
    if policy is None or all(rule.name for rule in policy.rules):
        return policy
    rules = (r if r.name else replace(r, name=f"failurePolicyRule{i}") for i, r in enumerate(policy.rules))
    return replace(policy, rules=tuple(rules))


def _volume_claim_policy(policy: VolumeClaimPolicy) -> VolumeClaimPolicy:
    return policy if policy.retention_policy else replace(policy, retention_policy=RetentionPolicy())


def _replicated_job(job: ReplicatedJob) -> ReplicatedJob:
    template = _template(job.template)
    return job if template is job.template else replace(job, template=template)


def _template(template: Manifest) -> Manifest:
    """batch/v1 JobTemplateSpec: completionMode, and the restartPolicy of its pods."""
    spec = template.get("spec") or {}
    pod = spec.get("template") or {}
    pod_spec = pod.get("spec") or {}
    if spec.get("completionMode") and pod_spec.get("restartPolicy"):
        return template
    pod_spec = {**pod_spec, "restartPolicy": pod_spec.get("restartPolicy") or RESTART_POLICY}
    mode = spec.get("completionMode") or COMPLETION_MODE
    return {**template, "spec": {**spec, "completionMode": mode, "template": {**pod, "spec": pod_spec}}}
