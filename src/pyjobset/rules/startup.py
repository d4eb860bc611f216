"""The order of start: dependsOn and startupPolicy. Called by rules.validation.

KEP-672 (dependsOn) and KEP-104 (startupPolicy). A ReplicatedJob may only wait for one that comes before it, so that
there is no circle; itself is not before it (decision 2).
"""

from collections.abc import Iterator

from pyjobset.errors import Problem
from pyjobset.objects.jobset import JobSet
from pyjobset.rules import registry


def is_in_order(jobset: JobSet) -> bool:
    policy = jobset.spec.startup_policy
    return policy is not None and policy.startup_policy_order == "InOrder"


def is_sequenced(jobset: JobSet) -> bool:
    """Jobs are created one ReplicatedJob after the other: not all pods exist at the same time from the start."""
    return is_in_order(jobset) or any(replicated_job.depends_on for replicated_job in jobset.spec.replicated_jobs)


def breaches(jobset: JobSet) -> Iterator[Problem]:
    earlier: dict[str, None] = {}
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        path = f"spec.replicatedJobs[{i}].dependsOn"
        if i == 0 and replicated_job.depends_on:
            yield registry.DEPENDS_ON_FIRST.at(path)
        else:
            for j, dependency in enumerate(replicated_job.depends_on):
                if dependency.name not in earlier:
                    hint = f"earlier ones are: {', '.join(earlier)}" if len(earlier) <= 10 else ""
                    yield registry.DEPENDS_ON_ORDER.at(f"{path}[{j}].name", dependency.name, hint=hint)
        earlier[replicated_job.name] = None
    if is_in_order(jobset) and any(r.depends_on for r in jobset.spec.replicated_jobs):
        yield registry.STARTUP_TWO_MODELS.at("spec.startupPolicy.startupPolicyOrder", "InOrder")
