"""The order of startup: which ReplicatedJobs may have their Jobs now (dependsOn, startupPolicy InOrder). Pure.

`dependsOn`: every named ReplicatedJob is Ready or Complete. InOrder: every earlier ReplicatedJob is ready. Replayed
on a restart and on resume by itself, because only the state of the current attempt's Jobs is looked at.
"""

from dataclasses import dataclass

from pyjobset.objects import conditions as words
from pyjobset.objects.jobset import ReplicatedJobStatus
from pyjobset.reconciler.decision import Reason
from pyjobset.reconciler.outcome import NOTHING, ConditionChange, Outcome
from pyjobset.reconciler.view import View


@dataclass(frozen=True, slots=True)
class Startup:
    allowed: frozenset[str]
    """Names of the ReplicatedJobs that may start."""
    outcome: Outcome


def startup(view: View, counts: tuple[ReplicatedJobStatus, ...]) -> Startup:
    spec = view.jobset.spec
    by_name = {c.name: c for c in counts}
    replicas = {rj.name: rj.replicas for rj in spec.replicated_jobs}

    def is_started(name: str, wanted: str) -> bool:
        count = by_name.get(name)
        if count is None:
            return False
        done = count.succeeded if wanted == "Complete" else count.ready + count.succeeded + count.failed
        return done == replicas[name]

    allowed: list[str] = []
    reasons: list[Reason] = []
    if spec.startup_policy is not None and spec.startup_policy.startup_policy_order == "InOrder":
        for replicated_job in spec.replicated_jobs:
            allowed.append(replicated_job.name)
            if not is_started(replicated_job.name, "Ready"):
                reasons.append(Reason("startup-in-order-waits", (("replicatedJob", replicated_job.name),)))
                return Startup(frozenset(allowed), Outcome(reasons=tuple(reasons)) + _in_progress(view))
        return Startup(frozenset(allowed), _completed(view))
    for replicated_job in spec.replicated_jobs:
        waits = [d for d in replicated_job.depends_on if not is_started(d.name, d.status)]
        if waits:
            arguments = (("replicatedJob", replicated_job.name), ("on", waits[0].name), ("status", waits[0].status))
            reasons.append(Reason("startup-depends-on", arguments))
        else:
            allowed.append(replicated_job.name)
    return Startup(frozenset(allowed), Outcome(reasons=tuple(reasons)))


def _in_progress(view: View) -> Outcome:
    if view.is_suspended:
        return NOTHING
    message = "in order startup policy is in progress"
    return Outcome(
        conditions=(
            ConditionChange(words.STARTUP_POLICY_IN_PROGRESS, "True", words.IN_ORDER_IN_PROGRESS, message),
            ConditionChange(
                words.STARTUP_POLICY_COMPLETED, "False", words.IN_ORDER_IN_PROGRESS, message, is_silent=True
            ),
        )
    )


def _completed(view: View) -> Outcome:
    if view.is_suspended:
        return NOTHING
    message = "in order startup policy has completed"
    return Outcome(
        conditions=(
            ConditionChange(words.STARTUP_POLICY_COMPLETED, "True", words.IN_ORDER_COMPLETED, message),
            ConditionChange(
                words.STARTUP_POLICY_IN_PROGRESS, "False", words.IN_ORDER_COMPLETED, message, is_silent=True
            ),
        )
    )
