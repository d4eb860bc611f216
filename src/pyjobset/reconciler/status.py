"""Counts the child Jobs of the current attempt for status.replicatedJobsStatus. Called by decide.

The words are those of the API: a Job is ready when its ready and succeeded pods are all that run at once; succeeded
and failed Jobs are counted as such only. Nothing here looks at pods.
"""

import msgspec

from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSetStatus, ReplicatedJobStatus
from pyjobset.reconciler.view import Child, State, View


def is_ready(job: Job) -> bool:
    """Of an unfinished Job: succeeded + ready pods reach min(parallelism, completions). What a Job says of its pods is
    of before while it is suspended, and until its controller has seen that it no longer is."""
    if job.spec.suspend or job.condition("Suspended") is not None:
        return False
    wanted = job.parallelism if job.spec.completions is None else min(job.parallelism, job.spec.completions)
    return job.status.succeeded + job.status.ready >= wanted


def replicated_jobs_status(view: View) -> tuple[ReplicatedJobStatus, ...]:
    """One entry a ReplicatedJob in spec order. What other policies keep there (jobRestarts) is kept."""
    stored = {s.name: s for s in view.jobset.status.replicated_jobs_status}
    counts = {rj.name: [0, 0, 0, 0, 0] for rj in view.jobset.spec.replicated_jobs}
    for child in view.children:
        _count(counts[child.replicated_job], child)
    result: list[ReplicatedJobStatus] = []
    for name, (ready, succeeded, failed, active, suspended) in counts.items():
        base = stored.get(name) or ReplicatedJobStatus(name=name)
        result.append(
            msgspec.structs.replace(
                base, ready=ready, succeeded=succeeded, failed=failed, active=active, suspended=suspended
            )
        )
    return tuple(result)


def _count(counts: list[int], child: Child) -> None:
    job = child.job
    if child.state is State.SUCCEEDED:
        counts[1] += 1
    elif child.state is State.FAILED:
        counts[2] += 1
    elif child.state is State.LIVE:
        assert job is not None
        counts[0] += is_ready(job)
        counts[3] += job.status.active > 0
        counts[4] += bool(job.spec.suspend)


def with_counts(status: JobSetStatus, counts: tuple[ReplicatedJobStatus, ...]) -> JobSetStatus:
    """The status with these counts. All zeros are not worth a first write: nothing has happened yet."""
    untouched = not status.replicated_jobs_status and not any(
        c.ready or c.succeeded or c.failed or c.active or c.suspended for c in counts
    )
    return status if untouched else msgspec.structs.replace(status, replicated_jobs_status=counts)
