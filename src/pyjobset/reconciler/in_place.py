"""In-place restarts: which attempt the pods are in, and when there were too many. Pure."""

from pyjobset.objects.jobset import JobSet, JobSetStatus
from pyjobset.reconciler.outcome import NOTHING, Outcome
from pyjobset.reconciler.view import View


def in_place(_view: View, status: JobSetStatus) -> tuple[Outcome, JobSetStatus]:
    """Conditions (Failed) and the status with the attempts of an in-place restart."""
    return NOTHING, status


def is_in_place(jobset: JobSet) -> bool:
    policy = jobset.spec.failure_policy
    return policy is not None and policy.restart_strategy == "InPlaceRestart"
