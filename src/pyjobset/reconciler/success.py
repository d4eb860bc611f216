"""The success policy: when a JobSet is Completed (jobset-api: successPolicy; decisions 4 and 5). Pure.

It is looked at before the failure policy: a JobSet whose success was met completes, even when a sibling failed
meanwhile.
"""

from pyjobset.objects import conditions as words
from pyjobset.reconciler.outcome import NOTHING, ConditionChange, Outcome
from pyjobset.reconciler.view import State, View


def success(view: View) -> Outcome:
    spec = view.jobset.spec
    if not view.children:
        return _completed("jobset completed: it has no Jobs to run (no replicatedJobs, or all replicas are 0)")
    policy = spec.success_policy
    targets = frozenset(policy.target_replicated_jobs) if policy else frozenset()
    relevant = [c for c in view.children if not targets or c.replicated_job in targets]
    if not relevant:  # the targets have no Jobs: then all the others must succeed
        relevant = list(view.children)
        policy = None
    succeeded = sum(c.state is State.SUCCEEDED for c in relevant)
    if succeeded == 0:
        return NOTHING
    if (policy is not None and policy.operator == "Any") or succeeded == len(relevant):
        return _completed("jobset completed successfully")
    return NOTHING


def _completed(message: str) -> Outcome:
    return Outcome(conditions=(ConditionChange(words.COMPLETED, "True", words.ALL_JOBS_COMPLETED, message),))
