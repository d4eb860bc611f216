"""The PersistentVolumeClaims of volumeClaimPolicies: created before the Jobs that mount them. Pure."""

from pyjobset.reconciler.outcome import NOTHING, Outcome
from pyjobset.reconciler.view import View


def claims(_view: View) -> Outcome:
    return NOTHING
