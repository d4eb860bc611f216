"""Job templates: what batch/v1 refuses at once, so that the JobSet would be accepted and no Job ever appear.

Called by rules.validation. The rest of a template is checked by the API server itself (decision 6).
"""

from collections.abc import Iterator

from pyjobset.errors import Problem
from pyjobset.objects.jobset import JOBS_MAX, JobSet
from pyjobset.objects.template import INT32_MAX, completions, is_indexed, mapping_at, parallelism
from pyjobset.rules import registry


def breaches(jobset: JobSet) -> Iterator[Problem]:
    yield from _too_many_jobs(jobset)
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        path, template = f"spec.replicatedJobs[{i}]", replicated_job.template
        if replicated_job.replicas * parallelism(template) > INT32_MAX:
            pods = f"{replicated_job.replicas} x {parallelism(template)}"
            message = f"times parallelism is more than {INT32_MAX}: {pods}"
            yield registry.PODS_OVERFLOW.at(f"{path}.replicas", replicated_job.replicas, message)
        given = mapping_at(template, "spec").get("parallelism")
        if is_indexed(template) and completions(template) is None and given is not None:
            yield registry.COMPLETIONS_REQUIRED.at(f"{path}.template.spec.completions")


def _too_many_jobs(jobset: JobSet) -> Iterator[Problem]:
    """Told of the ReplicatedJob that is one too many."""
    total = 0
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        total += max(0, replicated_job.replicas)
        if total > JOBS_MAX:
            path = f"spec.replicatedJobs[{i}].replicas"
            message = f"makes more than {JOBS_MAX} Jobs, all ReplicatedJobs together"
            hint = "make fewer Jobs with more pods each (parallelism and completions), or several JobSets"
            yield registry.JOBS_OVERFLOW.at(path, replicated_job.replicas, message, hint)
            return
