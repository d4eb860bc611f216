"""Success policy, failure policy, managedBy and deadline. Called by rules.validation.

KEP-262 (failure policy), KEP-467 (in-place restart), KEP-1186 (activeDeadlineSeconds).
"""

import re
from collections.abc import Iterator

from pyjobset.errors import Problem
from pyjobset.objects import features as gates
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import FailurePolicy, JobSet
from pyjobset.objects.names import is_dns_subdomain
from pyjobset.objects.template import INT32_MAX, completions, mapping_at, parallelism
from pyjobset.rules import references, registry
from pyjobset.rules.patterns import COMPILED_MAX, why_not

JOB_RESTARTS_MAX = 1024
"""Most replicas whose single restarts status.replicatedJobsStatus can count."""

_RULE_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_RESTART_ONE = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")


def breaches(jobset: JobSet, features: Features) -> Iterator[Problem]:
    spec = jobset.spec
    if spec.success_policy is not None:
        targets = spec.success_policy.target_replicated_jobs
        yield from references.unknown("spec.successPolicy.targetReplicatedJobs", targets, references.known(jobset))
    if spec.failure_policy is not None:
        yield from _failure_rules(jobset, spec.failure_policy, features)
        yield from _restart_single_jobs(jobset, spec.failure_policy)
        if spec.failure_policy.restart_strategy == "InPlaceRestart":
            yield from _in_place_restart(jobset, features)
    if spec.managed_by is not None and not _is_managed_by(spec.managed_by):
        yield registry.MANAGED_BY.at("spec.managedBy", spec.managed_by)
    if spec.active_deadline_seconds is not None and gates.ACTIVE_DEADLINE_SECONDS not in features:
        yield registry.ACTIVE_DEADLINE_GATE.at("spec.activeDeadlineSeconds", spec.active_deadline_seconds)


def _failure_rules(jobset: JobSet, policy: FailurePolicy, features: Features) -> Iterator[Problem]:
    known, seen, patterns = references.known(jobset), set[str](), 0
    for i, rule in enumerate(policy.rules):
        path = f"spec.failurePolicy.rules[{i}]"
        if not _RULE_NAME.fullmatch(rule.name):
            yield registry.RULE_NAME.at(f"{path}.name", rule.name)
        if rule.name in seen:
            yield registry.DUPLICATE.at(f"{path}.name", rule.name, hint="give each rule a name of its own")
        seen.add(rule.name)
        if rule.action in _RESTART_ONE and gates.RESTART_JOB not in features:
            yield registry.RESTART_JOB_GATE.at(f"{path}.action", rule.action)
        patterns += len(rule.on_job_failure_message_patterns)
        if patterns <= COMPILED_MAX:
            yield from _patterns(f"{path}.onJobFailureMessagePatterns", rule.on_job_failure_message_patterns)
        elif rule.on_job_failure_message_patterns:
            message = f"makes {patterns} patterns together with the rules before; at most {COMPILED_MAX} are allowed"
            yield registry.TOO_MANY_ITEMS.at(f"{path}.onJobFailureMessagePatterns", None, message)
        yield from references.unknown(f"{path}.targetReplicatedJobs", rule.target_replicated_jobs, known)


def _patterns(path: str, patterns: tuple[str, ...]) -> Iterator[Problem]:
    for i, pattern in enumerate(patterns):
        wrong = why_not(pattern)
        if wrong:
            message = f"must be an RE2 regular expression; RE2 says: {wrong}"
            yield registry.MESSAGE_PATTERN.at(f"{path}[{i}]", pattern, message)


def _restart_single_jobs(jobset: JobSet, policy: FailurePolicy) -> Iterator[Problem]:
    if not any(rule.action in _RESTART_ONE for rule in policy.rules):
        return
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        if replicated_job.replicas > JOB_RESTARTS_MAX:
            yield registry.RESTART_JOB_REPLICAS.at(f"spec.replicatedJobs[{i}].replicas", replicated_job.replicas)


def _in_place_restart(jobset: JobSet, features: Features) -> Iterator[Problem]:
    if gates.IN_PLACE_RESTART not in features:
        yield registry.IN_PLACE_RESTART_GATE.at("spec.failurePolicy.restartStrategy", "InPlaceRestart")
    rule = registry.IN_PLACE_RESTART_TEMPLATE
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        path = f"spec.replicatedJobs[{i}].template.spec"
        spec = mapping_at(replicated_job.template, "spec")
        for key, wanted in (("backoffLimit", INT32_MAX), ("podReplacementPolicy", "Failed")):
            if spec.get(key) != wanted:
                yield rule.at(f"{path}.{key}", spec.get(key), f"must be {wanted} with restartStrategy InPlaceRestart")
        count = completions(replicated_job.template)
        if spec.get("parallelism") is None or count is None or count != parallelism(replicated_job.template):
            message = "must be set and equal to parallelism with restartStrategy InPlaceRestart"
            yield rule.at(f"{path}.completions", count, message)


def _is_managed_by(text: str) -> bool:
    """A domain-prefixed path as Kubernetes reads it: a DNS subdomain, a slash, a URL path."""
    domain, _, path = text.partition("/")
    return is_dns_subdomain(domain) and _PATH.fullmatch(path) is not None
