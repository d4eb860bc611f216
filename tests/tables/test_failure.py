"""The failure policy: which rule decides about which failed Job, and what is counted. One case a rule."""

from typing import Any

import msgspec
import pytest

from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects.jobset import JobSet, JobSetStatus
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import JOBS
from pyjobset.reconciler.decide import decide
from pyjobset.reconciler.decision import Create, Decision, Delete
from tests.builders import FEATURES, TinyServer, calls, jobset, merged, plain, replicated_job

SINGLE = FEATURES | {gates.RESTART_JOB}


def running(js: JobSet, features: gates.Features = SINGLE) -> TinyServer:
    server = TinyServer(js, features=features)
    server.settle()
    for name, job in server.jobs.items():
        server.set_status(name, active=job.spec.parallelism, ready=job.spec.parallelism)
    server.settle()
    return server


def with_rules(*rules: Manifest, max_restarts: int = 3, **policy: Any) -> JobSet:
    """Two ReplicatedJobs: `a` with two Jobs, `b` with one."""
    failure_policy = {"maxRestarts": max_restarts, "rules": list(rules), **policy}
    return jobset(replicated_job("a", replicas=2), replicated_job("b"), failurePolicy=failure_policy)


def rule(action: str, name: str = "r", **match: Any) -> Manifest:
    return {"name": name, "action": action, **match}


def what(decision: Decision) -> str:
    """What was decided, as an outsider sees it."""
    assert decision.status is not None
    failed = next((c for c in decision.status.conditions if c.type == words.FAILED), None)
    if failed is not None:
        return f"failed: {failed.reason}"
    singles = {s.name: s.job_restarts for s in decision.status.replicated_jobs_status if s.job_restarts}
    return f"restart {decision.status.restarts}" if decision.status.restarts else f"restart of {singles}"


FAIL_A = rule("FailJobSet", targetReplicatedJobs=["a"])
IGNORE = rule("RestartJobSetAndIgnoreMaxRestarts", name="host", onJobFailureReasons=["PodFailurePolicy"])


@pytest.mark.parametrize(
    ("rules", "reason", "message", "decided"),
    [
        ([], "BackoffLimitExceeded", "", "restart 1"),
        ([FAIL_A], "BackoffLimitExceeded", "", "failed: FailJobSetFailurePolicyAction"),
        ([rule("FailJobSet", targetReplicatedJobs=["b"])], "BackoffLimitExceeded", "", "restart 1"),
        ([rule("FailJobSet", onJobFailureReasons=["PodFailurePolicy"])], "BackoffLimitExceeded", "", "restart 1"),
        ([rule("FailJobSet", onJobFailureReasons=["PodFailurePolicy"])], "PodFailurePolicy", "", "failed: FailJobSet"),
        (
            [rule("FailJobSet", onJobFailureMessagePatterns=["exit code 1[0-9]{2}"])],
            "",
            "exit code 137",
            "failed: Fail",
        ),
        ([rule("FailJobSet", onJobFailureMessagePatterns=["^137"])], "", "exit code 137", "restart 1"),
        ([rule("FailJobSet", onJobFailureMessagePatterns=["x", "137$"])], "", "exit code 137", "failed: FailJobSet"),
        (
            [rule("FailJobSet", onJobFailureReasons=["PodFailurePolicy"], onJobFailureMessagePatterns=["137"])],
            "BackoffLimitExceeded",
            "exit code 137",
            "restart 1",
        ),
        ([IGNORE, FAIL_A], "PodFailurePolicy", "", "restart 1"),
        ([FAIL_A, IGNORE], "PodFailurePolicy", "", "failed: FailJobSetFailurePolicyAction"),
        ([rule("RestartJob")], "", "", "restart of {'a': (1, 0)}"),
        ([rule("RestartJobAndIgnoreMaxRestarts")], "", "", "restart of {'a': (1, 0)}"),
    ],
)
def test_the_first_rule_that_matches_decides(rules: Any, reason: str, message: str, decided: str) -> None:
    """Reason, message and target must all match."""
    server = running(with_rules(*rules))
    server.finish("js-a-0", failed=True, reason=reason, message=message)
    assert what(decide(server.observe())).startswith(decided)


def test_an_earlier_rule_wins_over_an_earlier_failure() -> None:
    server = running(with_rules(rule("FailJobSet", targetReplicatedJobs=["b"]), rule("RestartJobSet", name="rest")))
    server.finish("js-a-0", failed=True, at="2026-11-30T11:00:00Z")
    server.finish("js-b-0", failed=True, at="2026-11-30T12:00:00Z")
    decision = decide(server.observe())
    assert what(decision) == "failed: FailJobSetFailurePolicyAction"
    assert decision.status is not None
    assert decision.status.conditions[-1].message.endswith("(first failed job: js-b-0)")


def test_of_the_jobs_that_match_the_earliest_failure_is_named() -> None:
    server = running(with_rules(rule("RestartJobSet", name="any")))
    server.finish("js-a-1", failed=True, at="2026-11-30T12:00:00Z")
    server.finish("js-b-0", failed=True, at="2026-11-30T11:00:00Z")
    decision = decide(server.observe())
    assert {e.reason: e.message for e in decision.events} == {
        "FailurePolicy_any": "restarting jobset, attempt 1 of 3 (first failed job: js-b-0)",
        "RestartJobSetFailurePolicyAction": "restarting jobset, attempt 1 of 3 (first failed job: js-b-0)",
    }
    assert {e.type for e in decision.events} == {"Warning"}


def test_a_restart_only_writes_status_and_the_jobs_go_after_it() -> None:
    server = running(with_rules())
    server.finish("js-a-0", failed=True)
    first = server.step()
    assert first.actions == ()
    second = server.step()
    assert [(type(a), a.name) for a in second.actions] == [
        (Delete, "js-a-0"),
        (Delete, "js-a-1"),
        (Delete, "js-b-0"),
    ]
    server.settle()
    assert {j.metadata.labels.restart_attempt for j in server.jobs.values()} == {"1"}


@pytest.mark.parametrize(("action", "counts"), [("RestartJobSet", True), ("RestartJobSetAndIgnoreMaxRestarts", False)])
def test_what_counts_towards_max_restarts(action: str, counts: bool) -> None:
    server = running(with_rules(rule(action), max_restarts=1))
    for _ in range(2):
        server.finish("js-a-0", failed=True)
        server.settle()
    status = server.jobset.status
    assert (status.restarts, status.restarts_count_towards_max) == ((1, 1) if counts else (2, 0))
    assert status.terminal_state == ("Failed" if counts else "")
    reasons = [c.reason for c in status.conditions if c.type == words.FAILED]
    assert reasons == (["ReachedMaxRestarts"] if counts else [])


def test_only_the_failed_job_restarts_and_the_others_are_not_touched() -> None:
    server = running(with_rules(rule("RestartJob")))
    before = {name: job.metadata.uid for name, job in server.jobs.items()}
    server.finish("js-a-1", failed=True)
    counted = server.step()
    assert counted.actions == ()
    assert [e.reason for e in counted.events] == ["RestartJobFailurePolicyAction"]
    assert counted.events[0].message == "restarting job js-a-1, its restart 1, attempt 1 of 3"
    server.settle()
    after = {name: job.metadata.uid for name, job in server.jobs.items()}
    assert {name for name in after if after[name] != before[name]} == {"js-a-1"}
    assert server.jobs["js-a-1"].metadata.labels.job_restart_attempt == "1"
    assert server.jobs["js-a-0"].metadata.labels.job_restart_attempt == "0"
    assert server.jobset.status.restarts == 0
    assert not any(c.type == words.RESTARTING_JOBSET for c in server.jobset.status.conditions)


@pytest.mark.parametrize(
    ("action", "event", "restarting", "wire"),
    [
        ("RestartJobSet", "RestartJobSetFailurePolicyAction", True, {"restarts": 1, "restartsCountTowardsMax": 1}),
        (
            "RestartJobSetAndIgnoreMaxRestarts",
            "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction",
            True,
            {"restarts": 1},
        ),
        (
            "RestartJob",
            "RestartJobFailurePolicyAction",
            False,
            {"jobRestarts": [0, 1], "jobRestartsCountTowardsMax": [0, 1]},
        ),
        (
            "RestartJobAndIgnoreMaxRestarts",
            "RestartJobAndIgnoreMaxRestartsFailurePolicyAction",
            False,
            {"jobRestarts": [0, 1]},
        ),
    ],
)
def test_restarts_are_told_in_the_words_of_the_api(
    action: str, event: str, restarting: bool, wire: dict[str, Any]
) -> None:
    """One warning, the status, and of single Jobs no condition."""
    server = running(with_rules(rule(action)))
    server.finish("js-a-1", failed=True)
    decision = server.step()
    assert [(e.type, e.reason) for e in decision.events if e.reason.endswith("Action")] == [("Warning", event)]
    stored = plain(server.jobset.status)
    assert (words.RESTARTING_JOBSET in [c["type"] for c in stored.get("conditions", [])]) is restarting
    (a,) = [entry for entry in stored["replicatedJobsStatus"] if entry["name"] == "a"]
    names = ("restarts", "restartsCountTowardsMax", "jobRestarts", "jobRestartsCountTowardsMax")
    assert {name: value for name in names if (value := a.get(name) or stored.get(name))} == wire


@pytest.mark.decision(40)
def test_all_jobs_that_a_rule_is_about_restart_at_once_in_one_write() -> None:
    server = running(with_rules(rule("RestartJob"), max_restarts=5))
    server.finish("js-a-0", "js-a-1", "js-b-0", failed=True)
    decision = server.step()
    assert decision.status is not None
    assert {s.name: s.job_restarts for s in decision.status.replicated_jobs_status} == {"a": (1, 1), "b": (1,)}
    assert len(decision.events) == 3


def test_restarts_of_single_jobs_use_up_max_restarts_too() -> None:
    server = running(with_rules(rule("RestartJob"), max_restarts=2))
    server.finish("js-a-0", "js-a-1", "js-b-0", failed=True)
    server.settle()
    status = server.jobset.status
    assert status.terminal_state == "Failed"
    assert [c.reason for c in status.conditions if c.type == words.FAILED] == ["ReachedMaxRestarts"]
    assert {s.name: s.job_restarts_count_towards_max for s in status.replicated_jobs_status} == {
        "a": (1, 1),
        "b": msgspec.UNSET,
    }


def test_single_restarts_that_do_not_count_never_fail_the_jobset() -> None:
    server = running(with_rules(rule("RestartJobAndIgnoreMaxRestarts"), max_restarts=0))
    for _ in range(4):
        server.finish("js-b-0", failed=True)
        server.settle()
    (entry,) = [s for s in server.jobset.status.replicated_jobs_status if s.name == "b"]
    assert (entry.job_restarts, entry.job_restarts_count_towards_max) == ((4,), msgspec.UNSET)
    assert server.jobset.status.terminal_state == ""


def test_without_the_gate_a_single_restart_is_one_of_the_jobset() -> None:
    """Such a JobSet is refused at admission; this one is from before the gate was turned off."""
    server = running(with_rules(rule("RestartJob")), features=FEATURES)
    server.finish("js-a-0", failed=True)
    assert what(decide(server.observe())) == "restart 1"


def test_a_pattern_that_is_none_matches_nothing_and_is_told() -> None:
    server = running(with_rules(rule("FailJobSet", onJobFailureMessagePatterns=["(?=x)"])))
    server.finish("js-a-0", "js-a-1", failed=True, message="x")
    decision = decide(server.observe())
    assert what(decision) == "restart 1"
    told = [r.arguments for r in decision.reasons if r.code == "failure-pattern-unreadable"]
    assert told == [(("rule", "r"), ("pattern", 0))]


@pytest.mark.decision(17)
def test_deciding_twice_about_one_failure_counts_it_once() -> None:
    """The write carries the version that was observed: of two controllers, or two tries, one gets through."""
    server = running(with_rules(rule("RestartJob")))
    server.finish("js-a-0", failed=True)
    observation = server.observe()
    assert decide(observation) == decide(observation)
    server.step()
    server.settle()
    assert server.jobset.status.replicated_jobs_status[0].job_restarts == (1, 0)


@pytest.mark.decision(4)
def test_success_comes_before_the_rules() -> None:
    js = with_rules(rule("FailJobSet"))
    policy = {"operator": "Any", "targetReplicatedJobs": ["b"]}
    server = running(merged(js, {"spec": {"successPolicy": policy}}))
    server.finish("js-a-0", failed=True)
    server.finish("js-b-0")
    server.settle()
    assert server.jobset.status.terminal_state == "Completed"


def terminate(server: TinyServer, name: str) -> None:
    server.jobs[name] = merged(server.jobs[name], {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}})


def creates(decision: Decision) -> list[str]:
    return [a.name for a in decision.actions if isinstance(a, Create) and a.resource is JOBS]


@pytest.mark.parametrize(("strategy", "at_once"), [("Recreate", ["js-a-0", "js-b-0"]), ("BlockingRecreate", [])])
def test_restart_strategies(strategy: str, at_once: list[str]) -> None:
    """Recreate: each Job as soon as its own name is free. BlockingRecreate: when the last old Job is gone."""
    server = running(with_rules(restartStrategy=strategy))
    server.finish("js-a-0", failed=True)
    server.step()
    terminate(server, "js-a-1")
    server.step()  # the others are deleted
    decision = server.step()
    assert creates(decision) == at_once
    codes = [r.code for r in decision.reasons]
    assert ("jobs-wait-for-old-jobs" in codes) == (strategy == "BlockingRecreate")
    del server.jobs["js-a-1"]
    server.settle()
    assert {j.metadata.labels.restart_attempt for j in server.jobs.values()} == {"1"}


def test_blocking_recreate_holds_for_a_single_job_too() -> None:
    server = running(with_rules(rule("RestartJob"), restartStrategy="BlockingRecreate", max_restarts=9))
    server.finish("js-a-0", "js-b-0", failed=True)
    server.step()
    terminate(server, "js-a-0")
    server.step()
    assert creates(server.step()) == []
    del server.jobs["js-a-0"]
    assert creates(server.step()) == ["js-a-0", "js-b-0"]


@pytest.mark.decision(31)
def test_a_single_restart_within_a_gang_waits_for_the_old_pods_of_its_group() -> None:
    js = merged(with_rules(rule("RestartJob")), {"spec": {"scheduling": {"schedulingPolicy": {"gang": {}}}}})
    server = running(js)
    groups = {name: group.metadata.uid for name, group in server.pod_groups.items()}
    server.finish("js-a-0", failed=True)
    server.step()
    terminate(server, "js-a-0")
    assert creates(server.step()) == []
    del server.jobs["js-a-0"]
    server.settle()
    assert len(server.jobs) == 3
    assert {name: group.metadata.uid for name, group in server.pod_groups.items()} == groups


def test_the_restart_is_over_when_all_jobs_are_ready() -> None:
    server = running(with_rules())
    server.finish("js-a-0", failed=True)
    server.settle()
    restarting = {c.type: (c.status, c.reason) for c in server.jobset.status.conditions}
    assert restarting[words.RESTARTING_JOBSET] == ("True", words.DEFAULT_FAILURE_POLICY)
    for name in server.jobs:
        server.set_status(name, active=1, ready=1)
    server.settle()
    restarting = {c.type: (c.status, c.reason) for c in server.jobset.status.conditions}
    assert restarting[words.RESTARTING_JOBSET] == ("False", words.JOBS_READY)


@pytest.mark.parametrize(("action", "restarts", "single"), [("RestartJobSet", 3, None), ("RestartJob", 0, (3, 0))])
@pytest.mark.parametrize("back_to", [0, -5])
def test_a_status_that_was_set_back_costs_one_restart(
    action: str, restarts: int, single: tuple[int, ...] | None, back_to: int
) -> None:
    """The Jobs have a higher attempt than it says: each look at the failed one would count another restart."""
    server = running(with_rules(rule(action)))
    for _ in range(2):
        server.finish("js-a-0", failed=True)
        server.settle()
    [a, b] = server.jobset.status.replicated_jobs_status
    numbers: tuple[int, ...] = () if single is None else (back_to, 0)
    a = msgspec.structs.replace(a, job_restarts=numbers, job_restarts_count_towards_max=())
    server.jobset = msgspec.structs.replace(
        server.jobset, status=JobSetStatus(restarts=back_to if single is None else 0, replicated_jobs_status=(a, b))
    )
    server.finish("js-a-0", failed=True)
    server.settle()
    status = server.jobset.status
    assert (status.restarts, status.replicated_jobs_status[0].job_restarts or None) == (restarts, single)
    assert status.terminal_state == ""
    assert server.jobs["js-a-0"].status.conditions == (), "it was made again"


@pytest.mark.parametrize("label", ["-1", "x", "", "9" * 63, "2147483648"])
def test_an_attempt_that_is_none_is_the_oldest(label: str) -> None:
    server = running(with_rules())
    server.finish("js-b-0", failed=True)
    server.settle()
    key = "jobset.sigs.k8s.io/restart-attempt"
    server.jobs["js-a-0"] = merged(server.jobs["js-a-0"], {"metadata": {"labels": {key: label}}})
    decision = server.step()
    assert [a.name for a in decision.actions if isinstance(a, Delete)] == ["js-a-0"]


def costs(replicated_jobs: int) -> tuple[int, int]:
    """Python calls to create one Job of each, and to restart them all after they failed."""
    policy = {"maxRestarts": replicated_jobs, "rules": [rule("RestartJob")]}
    js = jobset(*(replicated_job(f"r{i}") for i in range(replicated_jobs)), failurePolicy=policy)
    server = TinyServer(js, features=SINGLE)
    created = calls(lambda: decide(server.observe()))
    server.step()
    server.finish(*server.jobs, failed=True)
    restarted = calls(lambda: decide(server.observe()))
    server.step()
    assert [s.job_restarts for s in server.jobset.status.replicated_jobs_status] == [(1,)] * replicated_jobs
    return created, restarted


def test_many_replicated_jobs_cost_as_much_as_each() -> None:
    """Looking at all of them for each of them took seconds with some thousand, in which nothing else was done."""
    few, many = costs(100), costs(400)
    assert many[0] < 4.5 * few[0]
    assert many[1] < 4.5 * few[1]
