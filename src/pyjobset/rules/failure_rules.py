"""Does a failure policy rule match a failed Job, and if not, by which of its fields (KEP-262)? Pure.

Asked by the reconciler's failure policy, which acts on it, by `jobset explain`, which tells it, and at admission, for a
failure that can be foreseen. A Job fails with the reason and the message of its condition Failed.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from pyjobset.objects.jobset import FailurePolicyRule
from pyjobset.rules.patterns import is_found

FAIL = "FailJobSet"
RESTART, RESTART_FREELY = "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"
RESTART_ONE, RESTART_ONE_FREELY = "RestartJob", "RestartJobAndIgnoreMaxRestarts"
COUNTED = (RESTART, RESTART_ONE)
"""Actions that use up maxRestarts."""
DEFAULT_RULE = FailurePolicyRule(name="", action=RESTART)
"""What happens when no rule matches."""

Field = Literal["targetReplicatedJobs", "onJobFailureReasons", "onJobFailureMessagePatterns"]


def mismatch(rule: FailurePolicyRule, reason: str, message: str) -> Field | None:
    """Which field of the rule the failure of a Job of its targets does not match. All that are set must."""
    if rule.on_job_failure_reasons and reason not in rule.on_job_failure_reasons:
        return "onJobFailureReasons"
    patterns = rule.on_job_failure_message_patterns
    if patterns and found_pattern(patterns, message) is None:
        return "onJobFailureMessagePatterns"
    return None


def found_pattern(patterns: Sequence[str], message: str) -> str | None:
    """The first that is found anywhere in the message. What is no pattern is found nowhere."""
    return next((pattern for pattern in patterns if is_found(pattern, message)), None)


def deciding(rules: Iterable[FailurePolicyRule], replicated_job: str, reason: str, message: str) -> FailurePolicyRule:
    """The first rule that matches such a failure, or the default one."""
    for rule in rules:
        targets = rule.target_replicated_jobs
        if (not targets or replicated_job in targets) and mismatch(rule, reason, message) is None:
            return rule
    return DEFAULT_RULE
