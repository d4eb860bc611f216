"""The coordinator: the pod it names must be one that the JobSet has, with an address short enough for a label.

Called by rules.validation. Also when an elastic JobSet shrinks: the coordinator's pod must not go.
"""

from collections.abc import Iterator

from pyjobset.errors import Problem
from pyjobset.objects import names
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.template import completions, is_indexed
from pyjobset.rules import references, registry


def breaches(jobset: JobSet) -> Iterator[Problem]:
    coordinator = jobset.spec.coordinator
    if coordinator is None:
        return
    by_name = {replicated_job.name: replicated_job for replicated_job in jobset.spec.replicated_jobs}
    target = by_name.get(coordinator.replicated_job)
    if target is None:
        yield from references.unknown_one("spec.coordinator.replicatedJob", coordinator.replicated_job, by_name)
        return
    if not 0 <= coordinator.job_index < target.replicas:
        message = f"must be the index of one of the {target.replicas} Jobs of {target.name!r}"
        yield registry.COORDINATOR_JOB_INDEX.at("spec.coordinator.jobIndex", coordinator.job_index, message)
    count = completions(target.template)
    if count is None or not is_indexed(target.template):
        yield registry.COORDINATOR_TEMPLATE.at("spec.coordinator.replicatedJob", coordinator.replicated_job)
    elif not 0 <= coordinator.pod_index < count:
        message = f"must be the index of one of the {count} pods of the Job"
        yield registry.COORDINATOR_POD_INDEX.at("spec.coordinator.podIndex", coordinator.pod_index, message)
    endpoint = names.coordinator_endpoint(jobset) or ""
    if not names.is_label_value(endpoint):
        message = f"has the address {endpoint!r}, which is not a label value"
        yield registry.COORDINATOR_ENDPOINT.at("spec.coordinator", None, message)
