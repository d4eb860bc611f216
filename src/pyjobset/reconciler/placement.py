"""Exclusive placement: followers that are not where their leader is go. Pure."""

from pyjobset.objects.jobset import JobSet
from pyjobset.reconciler.outcome import NOTHING, Outcome
from pyjobset.reconciler.view import View


def placement(_view: View) -> Outcome:
    return NOTHING


def is_exclusive(_jobset: JobSet) -> bool:
    return False
