"""Gangs that do not survive their first preemption: a warning. Pure; called by rules.warnings.

A preemption may evict all pods of a gang at once. The Job controller counts an evicted pod as failed, and a Job with
more of them than its backoffLimit fails. Nothing is said where the JobSet would restart then, or where the Job does not
count evicted pods.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pyjobset.errors import Problem
from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.template import INT32_MAX, mapping_at, pods
from pyjobset.rules import registry
from pyjobset.rules.failure_rules import COUNTED, FAIL, deciding
from pyjobset.rules.groups import groups_of

BACKOFF_LIMIT = 6
"""batch/v1's default, without backoffLimitPerIndex."""
_REASON, _MESSAGE = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
"""The Job controller's words."""


def breaches(jobset: JobSet, features: Features) -> Iterator[Problem]:
    if jobset.spec.scheduling is None or gates.WORKLOAD_AWARE_SCHEDULING not in features:
        return
    in_gangs = {member.name for group in groups_of(jobset) if group.is_gang for member in group.members}
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        spec = mapping_at(replicated_job.template, "spec")
        limit, together = _backoff_limit(spec), pods(replicated_job.template)
        is_at_risk = replicated_job.name in in_gangs and replicated_job.replicas > 0 and together > limit
        if is_at_risk and not _spares_evicted(spec) and _would_fail(jobset, replicated_job.name):
            message = (
                f"is less than the {together} pods of a Job: a preemption of the gang fails the Job and the JobSet"
            )
            yield registry.GANG_BACKOFF_LIMIT.at(f"spec.replicatedJobs[{i}].template.spec.backoffLimit", limit, message)


def _backoff_limit(spec: Mapping[str, Any]) -> int:
    given = spec.get("backoffLimit")
    if isinstance(given, int):
        return given
    return BACKOFF_LIMIT if spec.get("backoffLimitPerIndex") is None else INT32_MAX


def _spares_evicted(spec: Mapping[str, Any]) -> bool:
    """Its podFailurePolicy ignores pods with the condition DisruptionTarget. The policy is carried unseen: it may be
    anything."""
    return any(
        rule.get("action") == "Ignore"
        and any(condition.get("type") == words.DISRUPTION_TARGET for condition in _items(rule, "onPodConditions"))
        for rule in _items(spec.get("podFailurePolicy"), "rules")
    )


def _items(value: object, key: str) -> Iterator[Mapping[str, Any]]:
    """The mappings in that list."""
    items = value.get(key) if isinstance(value, Mapping) else None
    return (item for item in (items if isinstance(items, list) else ()) if isinstance(item, Mapping))


def _would_fail(jobset: JobSet, replicated_job: str) -> bool:
    policy = jobset.spec.failure_policy
    if policy is None:
        return True
    action = deciding(policy.rules, replicated_job, _REASON, _MESSAGE).action
    return action == FAIL or (action in COUNTED and policy.max_restarts == 0)
