"""spec.scheduling as it is written: one model, legal unions, each ReplicatedJob targeted once.

Called by rules.validation. KEP-969. What follows from the whole (quorums, counts, names, what pods must have in common)
is in rules.groups.
"""

from collections.abc import Iterator, Mapping

from pyjobset.errors import Problem
from pyjobset.objects import features as gates
from pyjobset.objects import names
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import JobScheduling, JobSet, ReplicatedJobScheduling, Scheduling
from pyjobset.objects.scheduling import PodGroupResourceClaim
from pyjobset.objects.template import mapping_at, pod_spec
from pyjobset.rules import references, registry

Leaf = Scheduling | ReplicatedJobScheduling | JobScheduling
"""Each has the three fields that say how one PodGroup is scheduled."""


def breaches(jobset: JobSet, features: Features) -> Iterator[Problem]:
    scheduling = jobset.spec.scheduling
    if scheduling is None:
        return
    path = "spec.scheduling"
    if gates.WORKLOAD_AWARE_SCHEDULING not in features:
        yield registry.SCHEDULING_GATE.at(path)
    yield from _leaf(scheduling, path)
    yield from _native(jobset)
    if scheduling.replicated_jobs is not None and _has_group_fields(scheduling):
        yield registry.SCHEDULING_TWO_MODELS.at(path)
    if scheduling.replicated_jobs:  # an empty list is as good as none: clients that decode to structs leave it out
        for i, entry in enumerate(scheduling.replicated_jobs):
            yield from _entry(entry, f"{path}.replicatedJobs[{i}]")
        yield from _targets(jobset, scheduling.replicated_jobs)


def _has_group_fields(leaf: Leaf) -> bool:
    fields = (leaf.scheduling_policy, leaf.scheduling_constraints, leaf.disruption_mode)
    return any(field is not None for field in fields)


def _entry(entry: ReplicatedJobScheduling, path: str) -> Iterator[Problem]:
    yield from _leaf(entry, path)
    if entry.job is None:
        return
    if len(entry.target_replicated_jobs) != 1:
        message = f"needs exactly one target; there are {len(entry.target_replicated_jobs)}"
        yield registry.JOB_ONE_TARGET.at(f"{path}.job", None, message)
    if _has_group_fields(entry):
        yield registry.JOB_WITH_GROUP_FIELDS.at(f"{path}.job")
    yield from _leaf(entry.job, f"{path}.job")
    for i, claim in enumerate(entry.job.resource_claims):
        yield from _claim(claim, f"{path}.job.resourceClaims[{i}]")


def _leaf(leaf: Leaf, path: str) -> Iterator[Problem]:
    policy, disruption = leaf.scheduling_policy, leaf.disruption_mode
    if policy is not None:
        yield from _union({"basic": policy.basic, "gang": policy.gang}, f"{path}.schedulingPolicy")
        if policy.gang is not None and policy.gang.min_count is not None and not isinstance(leaf, JobScheduling):
            yield registry.MIN_COUNT_COMPUTED.at(f"{path}.schedulingPolicy.gang.minCount", policy.gang.min_count)
    if disruption is not None:
        yield from _union({"single": disruption.single, "all": disruption.all}, f"{path}.disruptionMode")
        if disruption.all is not None and policy is not None and policy.basic is not None:
            yield registry.BASIC_DISRUPTION_ALL.at(f"{path}.disruptionMode.all")
    if leaf.scheduling_constraints is not None:
        for i, constraint in enumerate(leaf.scheduling_constraints.topology):
            if not names.is_label_key(constraint.key):
                key_path = f"{path}.schedulingConstraints.topology[{i}].key"
                yield registry.TOPOLOGY_KEY.at(key_path, constraint.key)


def _claim(claim: PodGroupResourceClaim, path: str) -> Iterator[Problem]:
    sources = {
        "resourceClaimName": claim.resource_claim_name,
        "resourceClaimTemplateName": claim.resource_claim_template_name,
    }
    yield from _union(sources, path)
    if not names.is_dns_label(claim.name):
        yield registry.RESOURCE_CLAIM_NAME.at(f"{path}.name", claim.name, "must be a DNS label")
    for key, value in sources.items():
        if value is not None and not names.is_dns_subdomain(value):
            yield registry.RESOURCE_CLAIM_NAME.at(f"{path}.{key}", value, "must be a DNS subdomain")


def _union(members: Mapping[str, object], path: str) -> Iterator[Problem]:
    """Exactly one member is set. The messages are the API server's."""
    choice = ", ".join(f"`{member}`" for member in members)
    count = sum(value is not None for value in members.values())
    if count == 0:
        yield registry.UNION_MEMBER.at(path, None, f"must specify one of: {choice}", f"set {' or '.join(members)}")
    elif count > 1:
        yield registry.UNION_MEMBER.at(path, None, f"must specify exactly one of: {choice}")


def _targets(jobset: JobSet, entries: tuple[ReplicatedJobScheduling, ...]) -> Iterator[Problem]:
    known = references.known(jobset)
    first: dict[str, int] = {}
    for i, entry in enumerate(entries):
        path = f"spec.scheduling.replicatedJobs[{i}].targetReplicatedJobs"
        yield from references.unknown(path, entry.target_replicated_jobs, known)
        for j, target in enumerate(entry.target_replicated_jobs):
            if first.setdefault(target, i) != i:
                message = f"is also a target of spec.scheduling.replicatedJobs[{first[target]}]"
                yield registry.TARGET_TWICE.at(f"{path}[{j}]", target, message)
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        if replicated_job.name not in first:
            yield registry.NOT_TARGETED.at(f"spec.replicatedJobs[{i}].name", replicated_job.name)


def _native(jobset: JobSet) -> Iterator[Problem]:
    """A Job template with scheduling of its own would have two masters."""
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        path = f"spec.replicatedJobs[{i}].template.spec"
        if mapping_at(replicated_job.template, "spec").get("scheduling") is not None:
            yield registry.NATIVE_SCHEDULING.at(f"{path}.scheduling")
        if pod_spec(replicated_job.template).get("schedulingGroup") is not None:
            yield registry.NATIVE_SCHEDULING.at(f"{path}.template.spec.schedulingGroup")
