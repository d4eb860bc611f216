"""The warning about gangs that their first preemption would fail: where it is due, and where nothing is to be said."""

from typing import Any

import pytest

from pyjobset.objects import features as gates
from pyjobset.rules.registry import GANG_BACKOFF_LIMIT
from pyjobset.rules.rule import Stage
from pyjobset.rules.validation import check, warnings
from tests.manifests import ALL_GATES, BASIC, ENTRIES, GANG, JOBSET, WORKERS, edited, entry

SPEC = f"{WORKERS}.template.spec"
LARGE = {"spec.scheduling": {}, f"{SPEC}.parallelism": 7, f"{SPEC}.completions": 7}
"""More pods than the default backoffLimit."""
SPARED = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
LOST = {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
EXITS = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]}
RULES = "spec.failurePolicy.rules"


def rule(action: str, **more: Any) -> dict[str, Any]:
    return {RULES: [{"action": action, **more}]}


DUE = {
    "the default limit": {},
    "a limit": {f"{SPEC}.backoffLimit": 6},
    "one pod and no retry": {f"{SPEC}.backoffLimit": 0, f"{SPEC}.parallelism": 1, f"{SPEC}.completions": 1},
    "a gang by name": {"spec.scheduling": {"schedulingPolicy": GANG}},
    "a gang for each Job": {ENTRIES: [entry("driver"), entry("workers", job={"schedulingPolicy": GANG})]},
    "a gang of the entry": {ENTRIES: [entry("driver", schedulingPolicy=BASIC), entry("workers")]},
    "a policy without restarts": {"spec.failurePolicy": {"maxRestarts": 0}},
    "a rule that fails it": {"spec.failurePolicy.maxRestarts": 3, **rule("FailJobSet")},
    "a rule that fails it for that reason": {
        "spec.failurePolicy.maxRestarts": 3, **rule("FailJobSet", onJobFailureReasons=["BackoffLimitExceeded"])
    },
    "a rule that fails it for that message": {
        "spec.failurePolicy.maxRestarts": 3, **rule("FailJobSet", onJobFailureMessagePatterns=["backoff limit$"])
    },
    "a restart of the Job of which none is left": rule("RestartJob"),
    "a free restart of others": rule("RestartJobSetAndIgnoreMaxRestarts", targetReplicatedJobs=["driver"]),
    "another pod failure policy": {f"{SPEC}.podFailurePolicy": LOST},
    "a pod failure policy about exit codes": {f"{SPEC}.podFailurePolicy": EXITS},
    "a pod failure policy that is none": {
        f"{SPEC}.podFailurePolicy": {"rules": [None, {"action": "Ignore", "onPodConditions": 7}]}
    },
}  # fmt: skip
SILENT = {
    "as many as the limit": {f"{SPEC}.parallelism": 6, f"{SPEC}.completions": 6},
    "fewer at once": {f"{SPEC}.completions": 6},
    "a larger limit": {f"{SPEC}.backoffLimit": 7},
    "a limit for each index": {f"{SPEC}.backoffLimitPerIndex": 1},
    "evicted pods are spared": {f"{SPEC}.podFailurePolicy": SPARED},
    "it restarts": {"spec.failurePolicy.maxRestarts": 1},
    "it restarts by a rule": {"spec.failurePolicy.maxRestarts": 1, **rule("RestartJobSet")},
    "it restarts freely": rule("RestartJobSetAndIgnoreMaxRestarts"),
    "the Job restarts freely": rule("RestartJobAndIgnoreMaxRestarts", targetReplicatedJobs=["workers"]),
    "a rule that fails it for another reason": {
        "spec.failurePolicy.maxRestarts": 3, **rule("FailJobSet", onJobFailureReasons=["DeadlineExceeded"])
    },
    "a rule that fails it for another message": {
        "spec.failurePolicy.maxRestarts": 3, **rule("FailJobSet", onJobFailureMessagePatterns=["exit code 3"])
    },
    "no gang": {"spec.scheduling": {"schedulingPolicy": BASIC}},
    "no gang of these": {ENTRIES: [entry("driver"), entry("workers", schedulingPolicy=BASIC)]},
    "no Jobs": {f"{WORKERS}.replicas": 0},
}  # fmt: skip


@pytest.mark.parametrize("edits", DUE.values(), ids=DUE.keys())
def test_it_is_due(edits: dict[str, Any]) -> None:
    jobset = check(edited(JOBSET, LARGE | edits), ALL_GATES)
    (problem,) = warnings(jobset, ALL_GATES)
    assert (problem.code, problem.path) == ("gang-backoff-limit", f"{SPEC}.backoffLimit")


@pytest.mark.parametrize("edits", SILENT.values(), ids=SILENT.keys())
def test_there_is_nothing_to_say(edits: dict[str, Any]) -> None:
    jobset = check(edited(JOBSET, LARGE | edits), ALL_GATES)
    assert [problem.code for problem in warnings(jobset, ALL_GATES)] == []


def test_without_scheduling_pods_are_evicted_one_by_one() -> None:
    jobset = check(edited(JOBSET, {f"{SPEC}.backoffLimit": 0}), ALL_GATES)
    assert warnings(jobset, ALL_GATES) == ()


def test_where_the_gate_is_off_there_are_no_gangs() -> None:
    off = ALL_GATES - {gates.WORKLOAD_AWARE_SCHEDULING}
    found = warnings(check(edited(JOBSET, LARGE), ALL_GATES), off)
    assert [problem.code for problem in found] == ["scheduling-ignored"]


def test_what_a_person_reads() -> None:
    (problem,) = warnings(check(edited(JOBSET, LARGE), ALL_GATES), ALL_GATES)
    assert str(problem) == (
        "spec.replicatedJobs[1].template.spec.backoffLimit: is less than the 7 pods of a Job: a preemption of the gang "
        "fails the Job and the JobSet (got 6). set failurePolicy.maxRestarts, a larger backoffLimit, or a "
        "podFailurePolicy that ignores DisruptionTarget [gang-backoff-limit]"
    )
    stage: Stage = "warning"
    assert GANG_BACKOFF_LIMIT.stage == stage
