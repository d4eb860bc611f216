"""Failure policy rules against the failure of a Job: which match, and by which field one does not."""

from typing import Any

import pytest

from pyjobset.objects.jobset import FailurePolicyRule
from pyjobset.rules.failure_rules import DEFAULT_RULE, deciding, found_pattern, mismatch

REASON, MESSAGE = "PodFailurePolicy", "Container c for pod ns/p failed with exit code 42"


def rule(**fields: Any) -> FailurePolicyRule:
    return FailurePolicyRule(**{"name": "r", "action": "FailJobSet", **fields})


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, None),
        ({"on_job_failure_reasons": ("PodFailurePolicy",)}, None),
        ({"on_job_failure_reasons": ("DeadlineExceeded",)}, "onJobFailureReasons"),
        ({"on_job_failure_message_patterns": ("exit code 4[0-9]",)}, None),
        ({"on_job_failure_message_patterns": ("^exit code",)}, "onJobFailureMessagePatterns"),
        ({"on_job_failure_message_patterns": ("(", "code")}, None),
        ({"on_job_failure_message_patterns": ("(",)}, "onJobFailureMessagePatterns"),
        (
            {"on_job_failure_reasons": ("PodFailurePolicy",), "on_job_failure_message_patterns": ("none",)},
            "onJobFailureMessagePatterns",
        ),
        (
            {"on_job_failure_reasons": ("DeadlineExceeded",), "on_job_failure_message_patterns": ("code",)},
            "onJobFailureReasons",
        ),
    ],
)
def test_which_field_does_not_match(fields: dict[str, Any], field: str | None) -> None:
    assert mismatch(rule(**fields), REASON, MESSAGE) == field


def test_the_first_pattern_that_is_found() -> None:
    assert found_pattern(("none", "(", "code", "exit"), MESSAGE) == "code"


def test_the_first_rule_decides() -> None:
    rules = (
        rule(name="others", target_replicated_jobs=("driver",)),
        rule(name="reason", on_job_failure_reasons=("DeadlineExceeded",)),
        rule(name="first", target_replicated_jobs=("w", "driver")),
        rule(name="second"),
    )
    assert deciding(rules, "w", REASON, MESSAGE).name == "first"
    assert deciding(rules, "driver", REASON, MESSAGE).name == "others"
    assert deciding(rules[:2], "w", REASON, MESSAGE) is DEFAULT_RULE
