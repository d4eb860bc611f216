"""What is admitted and worth a look all the same. Called by the webhooks (admission warnings) and `jobset plan`."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from pyjobset.errors import Problem
from pyjobset.objects import features as gates
from pyjobset.objects import labels
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import JobSet, ReplicatedJob, ReplicatedJobScheduling
from pyjobset.objects.scheduling import PodGroupResourceClaim
from pyjobset.objects.template import mapping_at, pod_spec
from pyjobset.rules import preemption, registry
from pyjobset.rules.rule import child
from pyjobset.rules.startup import is_in_order

_ANNOTATIONS = (labels.EXCLUSIVE_TOPOLOGY, labels.NODE_SELECTOR, labels.DISABLE_IN_PLACE_RESTART)
"""What people write on a JobSet, or on a template."""
_LIKENESS = 0.9
_KEY_LENGTH_MAX = 100


def breaches(jobset: JobSet, features: Features) -> Iterator[Problem]:
    yield from _in_place(jobset)
    yield from _metadata("metadata", jobset.metadata.annotations, jobset.metadata.labels)
    if not any(replicated_job.replicas > 0 for replicated_job in jobset.spec.replicated_jobs):
        yield registry.NO_JOBS.at("spec.replicatedJobs")
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        of_template = (mapping_at(replicated_job.template, "metadata", field) for field in ("annotations", "labels"))
        yield from _metadata(f"spec.replicatedJobs[{i}].template.metadata", *of_template)
        seconds = mapping_at(replicated_job.template, "spec").get("ttlSecondsAfterFinished")
        if seconds is not None:
            path = f"spec.replicatedJobs[{i}].template.spec.ttlSecondsAfterFinished"
            yield registry.JOB_TTL_IGNORED.at(path, seconds)
    if is_in_order(jobset):
        yield registry.STARTUP_POLICY_DEPRECATED.at("spec.startupPolicy", "InOrder")
    scheduling = jobset.spec.scheduling
    if scheduling is not None and gates.WORKLOAD_AWARE_SCHEDULING not in features:
        yield registry.SCHEDULING_IGNORED.at("spec.scheduling")
    yield from preemption.breaches(jobset, features)
    positions = {replicated_job.name: i for i, replicated_job in enumerate(jobset.spec.replicated_jobs)}
    for i, entry in enumerate((scheduling.replicated_jobs or ()) if scheduling else ()):
        for target in entry.target_replicated_jobs:
            if target in positions:
                position = positions[target]
                yield from _claims(i, entry, position, jobset.spec.replicated_jobs[position])


def _metadata(path: str, annotations: Mapping[str, object], as_labels: Mapping[str, object]) -> Iterator[Problem]:
    """Metadata is free, so a misspelled annotation is no error; the JobSet runs, and not as it was meant."""
    for key, value in annotations.items():
        near = get_close_matches(key, _ANNOTATIONS, n=1, cutoff=_LIKENESS) if len(key) <= _KEY_LENGTH_MAX else ()
        if near and key not in _ANNOTATIONS:
            path_of_key = child(f"{path}.annotations", key)
            yield registry.ANNOTATION_IGNORED.at(path_of_key, value, hint=f"did you mean {near[0]}?")
    for key in _ANNOTATIONS:
        if key in as_labels:
            message = "has no effect as a label"
            path_of_key = child(f"{path}.labels", key)
            yield registry.ANNOTATION_IGNORED.at(path_of_key, as_labels[key], message, "make it an annotation")


def _in_place(jobset: JobSet) -> Iterator[Problem]:
    policy = jobset.spec.failure_policy
    if policy is None or policy.restart_strategy != "InPlaceRestart":
        return
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        for j, dependency in enumerate(replicated_job.depends_on):
            if dependency.status == "Complete":
                path = f"spec.replicatedJobs[{i}].dependsOn[{j}].status"
                yield registry.IN_PLACE_RESTART_WAITS.at(path, dependency.status)


def _claims(index: int, entry: ReplicatedJobScheduling, position: int, job: ReplicatedJob) -> Iterator[Problem]:
    """A pod shares a PodGroup's claim only where its own entry of that name refers to the same one (decision 25)."""
    given = {
        claim.get("name"): (n, claim) for n, claim in enumerate(pod_spec(job.template).get("resourceClaims") or ())
    }
    for j, claim in enumerate(entry.job.resource_claims if entry.job else ()):
        if claim.name not in given:
            path = f"spec.scheduling.replicatedJobs[{index}].job.resourceClaims[{j}]"
            yield registry.CLAIM_UNUSED.at(path, claim.name, f"is used by no pod of {job.name!r}")
            continue
        n, of_pod = given[claim.name]
        same = PodGroupResourceClaim(
            claim.name, of_pod.get("resourceClaimName"), of_pod.get("resourceClaimTemplateName")
        )
        if same != claim:
            path = f"spec.replicatedJobs[{position}].template.spec.template.spec.resourceClaims[{n}]"
            message = f"is {_source(same)}, and {_source(claim)} in spec.scheduling, so it is not shared"
            yield registry.CLAIM_DIFFERS.at(path, claim.name, message)


def _source(claim: PodGroupResourceClaim) -> str:
    if claim.resource_claim_name is not None:
        return f"claim {claim.resource_claim_name!r}"
    return f"template {claim.resource_claim_template_name!r}"
