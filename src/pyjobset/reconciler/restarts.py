"""How many restarts of a JobSet there were, of the whole and of single Jobs: those that count and those that do not.

Pure. The failure policy holds the first against maxRestarts; in-place restarts take the second off the attempts of
pods, which every restart raises. Those of single Jobs are looked at where the gate RestartJob is on.
"""

from msgspec import UNSET, UnsetType

from pyjobset.objects import features as gates
from pyjobset.objects.jobset import JobSetStatus
from pyjobset.reconciler.view import View


def counted(view: View, status: JobSetStatus) -> int:
    """Towards maxRestarts."""
    return status.restarts_count_towards_max + _of_jobs(view, status)[1]


def uncounted(view: View, status: JobSetStatus) -> int:
    """By rules that say AndIgnoreMaxRestarts."""
    return status.restarts - status.restarts_count_towards_max + uncounted_of_jobs(view, status)


def uncounted_of_jobs(view: View, status: JobSetStatus) -> int:
    """Jobs that restarted together are as many, though one attempt: rather one restart too many than one that counts
    and should not."""
    every, counted = _of_jobs(view, status)
    return every - counted


def _of_jobs(view: View, status: JobSetStatus) -> tuple[int, int]:
    """All of them, and those that count."""
    if gates.RESTART_JOB not in view.observation.features:
        return 0, 0
    entries = status.replicated_jobs_status
    return sum(_sum(e.job_restarts) for e in entries), sum(_sum(e.job_restarts_count_towards_max) for e in entries)


def _sum(restarts: tuple[int, ...] | UnsetType) -> int:
    return 0 if restarts is UNSET else sum(restarts)
