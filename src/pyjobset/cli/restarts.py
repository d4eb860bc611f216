"""How often a JobSet was restarted: as a whole, single Jobs of it, and what of both counts towards maxRestarts. Pure.

`view` and `listing` show the numbers, `explaining.policy` tells what comes after them. They are those of the status,
which the controller writes before it touches a Job: a Job may lag behind them, and is then about to be made again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import UNSET

from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet
from pyjobset.reconciler.view import job_restarts, label_number


@dataclass(frozen=True, slots=True)
class Restarts:
    of_jobset: int
    of_job: Mapping[tuple[str, int], int]
    """By ReplicatedJob and index, of Jobs that were restarted alone."""
    counted: int
    """Of both kinds, towards maxRestarts."""
    most: int | None
    """maxRestarts. None: there is no failure policy."""

    @property
    def of_jobs(self) -> int:
        return sum(self.of_job.values())

    @property
    def left(self) -> int:
        return max(0, (self.most or 0) - self.counted)

    def of(self, job: Job) -> int:
        """Of that Job alone."""
        labels = job.metadata.labels
        made_for = label_number(labels.job_restart_attempt)
        return max(made_for, self.of_job.get((labels.replicated_job_name, label_number(labels.job_index)), 0))

    def is_due(self, job: Job) -> bool:
        """A restart has been counted that this Job is older than."""
        labels = job.metadata.labels
        is_old_of_all = label_number(labels.restart_attempt) < self.of_jobset
        return is_old_of_all or label_number(labels.job_restart_attempt) < self.of(job)


def restarts(jobset: JobSet) -> Restarts:
    status, policy = jobset.status, jobset.spec.failure_policy
    counts = (entry.job_restarts_count_towards_max for entry in status.replicated_jobs_status)
    return Restarts(
        of_jobset=status.restarts,
        of_job=job_restarts(jobset),
        counted=status.restarts_count_towards_max + sum(sum(count) for count in counts if count is not UNSET),
        most=policy.max_restarts if policy is not None else None,
    )


def in_words(of_jobset: int, of_jobs: int, counted: int, most: int | None) -> str:
    """Such as `3 restarts and 2 of single Jobs (4 of max 5 count)`. Empty where there were none."""
    whole = f"{of_jobset} restart{'s' * (of_jobset > 1)}" if of_jobset else ""
    noun = "" if whole else "restart " if of_jobs == 1 else "restarts "
    single = f"{of_jobs} {noun}of {'a single Job' if of_jobs == 1 else 'single Jobs'}" if of_jobs else ""
    said = " and ".join(filter(None, (whole, single)))
    if not said or most is None:
        return said
    return f"{said} ({counted} of max {most}{' count' * (counted < of_jobset + of_jobs)})"
