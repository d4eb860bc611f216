"""Job templates: what batch/v1 refuses at once, so that the JobSet would be accepted and no Job ever appear.

Called by rules.validation. The rest of a template is checked by the API server itself (decision 6).
"""

from collections.abc import Iterator

from pyjobset.errors import Problem
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.template import INT32_MAX, completions, is_indexed, mapping_at, parallelism
from pyjobset.rules import registry


def breaches(jobset: JobSet) -> Iterator[Problem]:
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        path, template = f"spec.replicatedJobs[{i}]", replicated_job.template
        if replicated_job.replicas * parallelism(template) > INT32_MAX:
            pods = f"{replicated_job.replicas} x {parallelism(template)}"
            message = f"times parallelism is more than {INT32_MAX}: {pods}"
            yield registry.PODS_OVERFLOW.at(f"{path}.replicas", replicated_job.replicas, message)
        given = mapping_at(template, "spec").get("parallelism")
        if is_indexed(template) and completions(template) is None and given is not None:
            yield registry.COMPLETIONS_REQUIRED.at(f"{path}.template.spec.completions")
