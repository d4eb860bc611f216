"""What explain says of failed Jobs and restarts: which rule decides, what each was compared with, and what follows."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from pyjobset.cli.explaining.explanation import explain
from pyjobset.cli.explaining.facts import Event, Facts
from pyjobset.cli.explaining.obstacles import pending
from pyjobset.cli.explaining.reasons import Finding
from pyjobset.objects import conditions as words
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet
from tests.cli import families
from tests.cli.clusters import asking, facts
from tests.cli.clusters import node as at_node

AT = "2026-11-30T11:30:00Z"
EXIT_42 = "Container c for pod ns/js-w-0-0 failed with exit code 42 matching FailJob rule at index 0"
COUNTS = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
Condition = tuple[str, str, str, str]


def restarting(reason: str = "FailurePolicy_oom", job: str = "js-w-0") -> Condition:
    return words.RESTARTING_JOBSET, "True", reason, f"restarting jobset, attempt 1 of 3 (first failed job: {job})"


OVER: Condition = (words.RESTARTING_JOBSET, "False", words.JOBS_READY, "the restart of the jobset is over")


def ended(reason: str, message: str = "why") -> Condition:
    return words.FAILED, "True", reason, message


def rule(name: str, action: str = "RestartJobSet", **fields: Any) -> dict[str, Any]:
    return {"name": name, "action": action, **fields}


def jobset(*conditions: Condition, rules: Any = None, most: int | None = 3, **more: Any) -> JobSet:
    """Of a driver and two workers. `most` None is no failure policy; `of_jobs` are restarts of the workers alone."""
    of_jobs = more.pop("of_jobs", ())
    entry = {"jobRestarts": of_jobs, "jobRestartsCountTowardsMax": of_jobs} if of_jobs else {}
    strategy = more.pop("strategy", "Recreate")
    policy = {"maxRestarts": most, "rules": rules or [], "restartStrategy": strategy} if most is not None else None
    listed = [
        {"type": t, "status": s, "reason": r, "message": m, "lastTransitionTime": AT} for t, s, r, m in conditions
    ]
    is_over = any(t == words.FAILED for t, *_ in conditions)
    template = {"spec": {"parallelism": 1, "completions": 1}}
    value = {
        "metadata": {
            "name": "js",
            "namespace": "ns",
            "uid": "uid-js",
            "creationTimestamp": "2026-11-30T11:00:00Z",
            "annotations": more.pop("annotations", {}),
        },
        "spec": {
            "replicatedJobs": [
                {"name": name, "template": template, "replicas": 2 if name == "w" else 1}
                for name in more.pop("replicated", ("driver", "w"))
            ],
            "failurePolicy": policy,
            "activeDeadlineSeconds": more.pop("deadline", None),
        },
        "status": {
            "conditions": listed,
            "terminalState": "Failed" if is_over else "",
            "replicatedJobsStatus": [{"name": "w", **COUNTS, **entry}],
            **more,
        },
    }
    return msgspec.convert(value, JobSet)


def lost(
    name: str = "js-w-0", reason: str = "BackoffLimitExceeded", message: str = "too often", at: str = AT, **labels: str
) -> Job:
    """`labels` are `attempt` and `alone`."""
    keys = {"attempt": "jobset.sigs.k8s.io/restart-attempt", "alone": "jobset.sigs.k8s.io/job-restart-attempt"}
    condition = {"type": "Failed", "status": "True", "reason": reason, "message": message, "lastTransitionTime": at}
    made_for = {keys[key]: value for key, value in labels.items()}
    return families.job(name, group="", failed=1, conditions=[condition], labels=made_for)


def event(kind: str, name: str, reason: str, message: str, at: str = AT) -> Event:
    about = {"kind": kind, "name": name, "uid": f"uid-{name}"}
    return msgspec.convert({"involvedObject": about, "reason": reason, "message": message, "lastTimestamp": at}, Event)


OOM = rule("oom", onJobFailureMessagePatterns=[r"exit code \d+"])
NEVER = rule("config", "FailJobSet", onJobFailureReasons=["PodFailurePolicy"])
POLICY: dict[str, tuple[Facts, str, list[str]]] = {
    "a rule fails the JobSet": (
        facts(jobset(ended(words.FAIL_JOBSET_ACTION), rules=[rule("any", "FailJobSet")]), lost()),
        "has failed: why", ["job-failed", "failure-policy change-rule"],
    ),
    "restarts are used up": (
        facts(jobset(ended(words.REACHED_MAX_RESTARTS), restarts=3, restartsCountTowardsMax=3), lost(attempt="3")),
        "has failed: why", ["job-failed allow-restarts", "failure-policy", "restarted"],
    ),
    "restarts in place are used up": (
        facts(jobset(ended(words.REACHED_MAX_RESTARTS, "pod p is in attempt 4"), strategy="InPlaceRestart")),
        "has failed: pod p is in attempt 4", ["restarts-used-up more-restarts"],
    ),
    "the deadline has passed": (
        facts(jobset(ended(words.DEADLINE_EXCEEDED), deadline=60), lost()),
        "has failed: why", ["job-failed", "deadline-exceeded longer-deadline"],
    ),
    "a restart by a rule": (
        facts(jobset(restarting(), rules=[OOM], restarts=1, restartsCountTowardsMax=1),
              event("Job", "js-w-0", "PodFailurePolicy", EXIT_42)),
        "is in restart 1: rule oom (rules[0]) matches Job js-w-0 (RestartJobSet)", ["failure-policy", "restarted"],
    ),
    "it has restarted": (
        facts(jobset(OVER, restarts=1, restartsCountTowardsMax=1)), "starts: 0 of 0 pods placed", ["restarted"],
    ),
    "a Job was to restart alone, without the gate": (
        facts(jobset(restarting("FailurePolicy_one"), rules=[rule("one", "RestartJob")], restarts=1,
                     restartsCountTowardsMax=1), lost()),
        "is in restart 1: rule one (rules[0]) matches Job js-w-0 (RestartJob)",
        ["job-failed", "failure-policy turn-on-controller", "restarted"],
    ),
    "a Job restarts alone": (
        facts(jobset(rules=[rule("one", "RestartJob")], of_jobs=(1, 0)), lost()),
        "runs with trouble: Job js-w-0 failed", ["job-failed", "failure-policy", "restarted"],
    ),
}  # fmt: skip


def in_place(*said: str | None, current: int | None = 1, node: str = "n", phase: str = "", **more: Any) -> Facts:
    """Three pods, of three Jobs, and the attempt that each says it is in."""
    key = "jobset.sigs.k8s.io/in-place-restart-attempt"
    jobs = ("js-driver-0", "js-w-0", "js-w-1")
    pods = [
        asking(
            families.pod(f"{job}-0", job=job, node=node, group="", phase=phase, annotations={key: word} if word else {})
        )
        for job, word in zip(jobs, said, strict=False)
    ]
    made = jobset(strategy="InPlaceRestart", currentInPlaceRestartAttempt=current, **more)
    return facts(made, *(families.job(job, group="", active=1) for job in jobs), *pods, at_node("n", cpu="9"))


POLICY |= {
    "all pods are in one attempt": (
        in_place("1", "1", "1"), "runs: 3 of 3 pods placed, 3 ready", ["restarted-in-place"],
    ),
    "a pod is late": (
        in_place("2", "1", None),
        "waits: its workers start when all pods are in one attempt", ["in-place-barrier look-at-agent"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "about", "text"),
    [
        (in_place("2", "1", "2"), "js-w-0-0", "2 of 3 pods are in attempt 2, 0 said nothing yet"),
        (in_place("2", "2", None), "js-w-1-0", "2 of 3 pods are in attempt 2, 1 said nothing yet"),
        (in_place(None, None, None, current=None), "js-driver-0-0", "0 of 3 pods are in attempt 0, 3 said nothing yet"),
        (in_place("2", "2", "x"), "js-w-1-0", "2 of 3 pods are in attempt 2, 1 said nothing yet"),
        (in_place("2", "2", "2"), "js-driver-0-0", "3 of 3 pods are in attempt 2, 0 said nothing yet"),
    ],
    ids=["one is older", "one is silent", "all are silent", "one says no number", "the controller has not seen it"],
)
def test_whose_word_the_workers_wait_for(seen: Facts, about: str, text: str) -> None:
    (found,) = explain(seen).findings
    assert (found.code, found.about) == ("in-place-barrier", f"Pod {about}")
    assert found.text == f"workers start when all 3 are in the same attempt: {text}"
    assert found.advice[0].command == f"kubectl logs {about} -n ns --all-containers"


def test_a_pod_that_succeeded_is_waited_for_no_more() -> None:
    done = families.pod("js-w-1-0", job="js-w-1", node="n", group="", phase="Succeeded")
    seen = in_place("2", "1")
    (found,) = explain(replace(seen, pods=(*seen.pods, done))).findings
    assert (found.code, found.arguments["pods"]) == ("in-place-barrier", 2)


@pytest.mark.parametrize(
    ("seen", "codes"),
    [
        (in_place("0", "0", "0", current=0), []),
        (in_place("2", "1"), []),
        (in_place("2", "1", "1", annotations={"jobset.sigs.k8s.io/disable-in-place-restart": ""}), []),
    ],
    ids=["the first attempt", "a pod is not there yet", "it is switched off"],
)
def test_nothing_to_say_of_restarts_in_place(seen: Facts, codes: list[str]) -> None:
    assert [f.code for f in explain(seen).findings] == codes


def told(seen: Facts) -> Finding:
    return next(f for f in explain(seen).findings if f.code == "failure-policy")


FREELY = "RestartJobSetAndIgnoreMaxRestarts"
ALL_AGAIN = "each Job is created again when its old one is gone (Recreate)"
GATE_OFF = "Not that Job alone: the controller's gate RestartJob is off, so all Jobs restarted"
DECIDED: dict[str, tuple[Facts, str, str]] = {
    "no policy": (
        facts(jobset(ended(words.FAILED_JOBS), most=None), lost()),
        "there is no failurePolicy, and Job js-w-0 failed: the first failed Job fails the JobSet", "fails",
    ),
    "no rules": (
        facts(jobset(), lost()),
        f"Job js-w-0 failed and there are no rules, which means RestartJobSet: restart 1 of 3; {ALL_AGAIN}",
        "restarts",
    ),
    "no rule matches": (
        facts(jobset(rules=[NEVER]), lost()),
        f"no rule matches Job js-w-0, which means RestartJobSet: restart 1 of 3; {ALL_AGAIN}",
        "restarts",
    ),
    "maxRestarts is 0": (
        facts(jobset(most=0), lost()),
        ("Job js-w-0 failed and there are no rules, which means RestartJobSet: maxRestarts is 0, and the JobSet "
        "fails"), "fails",
    ),
    "the first of two rules": (
        facts(jobset(rules=[rule("a", "RestartJob"), rule("b", "FailJobSet")], of_jobs=(1, 0)), lost("js-w-1")),
        ("rule a (rules[0]) matches Job js-w-1 (RestartJob): restart 2 of 3; that Job alone is created again, the "
        "others go on"), "restarts-job",
    ),
    "a free restart": (
        facts(jobset(rules=[rule("a", FREELY)], most=0, strategy="BlockingRecreate"), lost()),
        ("rule a (rules[0]) matches Job js-w-0 (RestartJobSetAndIgnoreMaxRestarts): a restart that does not count; "
        "its Jobs are created again when all old ones are gone (BlockingRecreate)"), "restarts",
    ),
    "a free restart of a Job": (
        facts(jobset(rules=[rule("a", "RestartJobAndIgnoreMaxRestarts")], most=0), lost()),
        ("rule a (rules[0]) matches Job js-w-0 (RestartJobAndIgnoreMaxRestarts): a restart that does not count; "
        "that Job alone is created again, the others go on"), "restarts-job",
    ),
    "a rule that fails it": (
        facts(jobset(ended(words.FAIL_JOBSET_ACTION), rules=[OOM, rule("b", "FailJobSet")]), lost()),
        "rule b (rules[1]) matches Job js-w-0 (FailJobSet): the JobSet fails, however many restarts are left", "fails",
    ),
    "used up": (
        facts(jobset(ended(words.REACHED_MAX_RESTARTS), most=1, restarts=1, restartsCountTowardsMax=1),
              lost(attempt="1")),
        ("Job js-w-0 failed and there are no rules, which means RestartJobSet: the one restart of maxRestarts is "
        "used up, and the JobSet fails"), "fails",
    ),
    "a Job that fails in spite of restarts in place": (
        facts(jobset(strategy="InPlaceRestart"), lost()),
        ("Job js-w-0 failed and there are no rules, which means RestartJobSet: restart 1 of 3; a failed Job cannot "
        "restart in place, so its Jobs are created again (InPlaceRestart)"), "restarts",
    ),
    "a Job whose restart is counted": (
        facts(jobset(rules=[rule("a", "RestartJob")], of_jobs=(1, 0)), lost()),
        ("rule a (rules[0]) matches Job js-w-0 (RestartJob): restart 1 of 3; that Job alone is created again, the "
        "others go on"), "restarts-job",
    ),
    "a Job that does not restart alone, by the condition": (
        facts(jobset(restarting("FailurePolicy_a"), rules=[rule("a", "RestartJob")], restarts=1,
                     restartsCountTowardsMax=1), lost()),
        f"rule a (rules[0]) matches Job js-w-0 (RestartJob): restart 1 of 3; {ALL_AGAIN}. {GATE_OFF}", "restarts",
    ),
    "a Job that does not restart alone, by the event": (
        facts(jobset(OVER, rules=[rule("a", "RestartJobAndIgnoreMaxRestarts")], restarts=1),
              event("JobSet", "js", f"{FREELY}FailurePolicyAction", "attempt 1 (first failed job: js-w-0)"), lost()),
        (f"rule a (rules[0]) matches Job js-w-0 (RestartJobAndIgnoreMaxRestarts): a restart that does not count; "
         f"{ALL_AGAIN}. {GATE_OFF}"), "restarts",
    ),
    "a Job that restarts alone after a restart of all": (
        facts(jobset(restarting(), rules=[rule("a", "RestartJob")], restarts=1, of_jobs=(1, 0)),
              event("JobSet", "js", "RestartJobFailurePolicyAction", "restarting job js-w-0"), lost(attempt="1")),
        ("rule a (rules[0]) matches Job js-w-0 (RestartJob): restart 1 of 3; that Job alone is created again, the "
        "others go on"), "restarts-job",
    ),
    "the rule goes before the time": (
        facts(jobset(rules=[rule("a", targetReplicatedJobs=["driver"])]), lost(at="2026-11-30T11:20:00Z"),
              lost("js-driver-0")),
        f"rule a (rules[0]) matches Job js-driver-0 (RestartJobSet): restart 1 of 3; {ALL_AGAIN}",
        "restarts",
    ),
    "the earliest of those that match": (
        facts(jobset(), lost("js-driver-0"), lost(at="2026-11-30T11:20:00Z")),
        f"Job js-w-0 failed and there are no rules, which means RestartJobSet: restart 1 of 3; {ALL_AGAIN}",
        "restarts",
    ),
    "of the same second, by the order of the spec": (
        facts(jobset(replicated=("w", "driver")), lost("js-driver-0"), lost("js-w-1"), lost("js-w-0")),
        f"Job js-w-0 failed and there are no rules, which means RestartJobSet: restart 1 of 3; {ALL_AGAIN}",
        "restarts",
    ),
    "the one that the controller names": (
        facts(jobset(restarting(job="js-w-1"), restarts=1, restartsCountTowardsMax=1), lost(), lost("js-w-1")),
        f"Job js-w-1 failed and there are no rules, which means RestartJobSet: restart 1 of 3; {ALL_AGAIN}",
        "restarts",
    ),
    "what failed after the end": (
        facts(jobset(ended(words.FAILED_JOBS), most=None), lost(), lost("js-driver-0", at="2026-11-30T11:40:00Z")),
        "there is no failurePolicy, and Job js-w-0 failed: the first failed Job fails the JobSet", "fails",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("seen", "text", "outcome"), DECIDED.values(), ids=DECIDED.keys())
def test_what_is_decided(seen: Facts, text: str, outcome: str) -> None:
    found = told(seen)
    assert found.text == text
    assert found.arguments["outcome"] == outcome


@pytest.mark.parametrize(
    ("plane", "text", "command"),
    [
        ("", "turn on the controller's gate RestartJob", "jobset up --feature-gates RestartJob=true"),
        ("/p", "turn on the controller's gate RestartJob", "jobset up --feature-gates RestartJob=true --dir /p"),
        (
            None,
            "turn on the controller's gate RestartJob, in the manager's Configuration or with its flag --feature-gates",
            "",
        ),
    ],
)
def test_where_the_gate_is_turned_on(plane: str | None, text: str, command: str) -> None:
    seen, _, _ = POLICY["a Job was to restart alone, without the gate"]
    (help_,) = told(replace(seen, plane=plane)).advice
    assert (help_.text, help_.command) == (text, command)


def test_help_that_comes_too_late_for_this_jobset_says_so() -> None:
    codes = {"allow-restarts", "change-rule", "more-restarts"}
    over = [explain(seen) for seen, _, _ in POLICY.values() if seen.jobset.status.terminal_state]
    said = {a.code: a.text for e in over for f in e.findings for a in f.advice if a.code in codes}
    assert said.keys() == codes
    assert all(text.startswith("for the next JobSet (failurePolicy cannot be changed): ") for text in said.values())


ASKED: dict[str, tuple[dict[str, Any], Job, str]] = {
    "any": (rule("a"), lost(), "matches: it is about every failed Job"),
    "a target": (rule("a", targetReplicatedJobs=["w"]), lost(), "matches: Job js-w-0 is of w"),
    "another target": (
        rule("a", targetReplicatedJobs=["driver"]), lost(),
        "does not match: it is about driver, and Job js-w-0 is of w",
    ),
    "a reason": (
        rule("a", onJobFailureReasons=["PodFailurePolicy", "BackoffLimitExceeded"]), lost(),
        "matches: the reason is BackoffLimitExceeded",
    ),
    "other reasons": (
        rule("a", onJobFailureReasons=["PodFailurePolicy", "DeadlineExceeded"]), lost(),
        "does not match: the reason is BackoffLimitExceeded, and not PodFailurePolicy or DeadlineExceeded",
    ),
    "a pattern": (
        rule("a", onJobFailureMessagePatterns=["none", "exit code 4."]), lost(message=EXIT_42),
        "matches: 'exit code 4.' is found in the message",
    ),
    "other patterns": (
        rule("a", onJobFailureMessagePatterns=["^exit", "43", "q1", "q2", "q3", "q4", "q5"]), lost(message=EXIT_42),
        "does not match: not found in the message: '^exit', '43', 'q1', 'q2', 'q3' or 2 more",
    ),
    "a pattern that is none": (
        rule("a", onJobFailureMessagePatterns=["(", "43"]), lost(message=EXIT_42),
        "does not match: not found in the message: '(' or '43' ('(' is no RE2 pattern)",
    ),
    "all of it": (
        rule("a", targetReplicatedJobs=["w"], onJobFailureReasons=["PodFailurePolicy"],
             onJobFailureMessagePatterns=["42"]),
        lost(reason="PodFailurePolicy", message=EXIT_42),
        "matches: Job js-w-0 is of w, the reason is PodFailurePolicy, '42' is found in the message",
    ),
    "one of it does not": (
        rule("a", targetReplicatedJobs=["w"], onJobFailureReasons=["PodFailurePolicy"],
             onJobFailureMessagePatterns=["43"]),
        lost(reason="PodFailurePolicy", message=EXIT_42), "does not match: not found in the message: '43'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "job", "says"), ASKED.values(), ids=ASKED.keys())
def test_what_a_rule_was_compared_with(asked: dict[str, Any], job: Job, says: str) -> None:
    found = told(facts(jobset(rules=[asked]), job))
    failure, verdict = found.evidence
    condition = job.status.conditions[0]
    assert (failure.object, failure.where) == ("Job js-w-0", "condition Failed")
    assert failure.says == f"{condition.reason}: {condition.message}"
    assert (verdict.object, verdict.where, verdict.says) == ("rule a (rules[0])", "RestartJobSet", says)
    assert found.arguments["rules"][0]["matches"] is says.startswith("matches")


def test_the_rules_in_their_order() -> None:
    rules = [NEVER, rule("driver", targetReplicatedJobs=["driver"]), OOM, rule("late"), rule("later")]
    found = told(facts(jobset(rules=rules), lost(message=EXIT_42), lost("js-w-1")))
    assert [(e.object, e.says.partition(":")[0]) for e in found.evidence[1:]] == [
        ("rule config (rules[0])", "does not match"),
        ("rule driver (rules[1])", "does not match"),
        ("rule oom (rules[2])", "matches"),
        ("rules[3] to rules[4]", "not asked"),
    ]
    assert found.evidence[1].says.endswith("; 1 more failed Job neither")
    assert found.arguments["rules"] == [
        {"rule": "config", "index": 0, "action": "FailJobSet", "matches": False, "field": "onJobFailureReasons"},
        {"rule": "driver", "index": 1, "action": "RestartJobSet", "matches": False, "field": "targetReplicatedJobs"},
        {"rule": "oom", "index": 2, "action": "RestartJobSet", "matches": True, "job": "js-w-0"},
    ]
    assert [(found.arguments[key]) for key in ("rule", "action", "job", "max")] == ["oom", "RestartJobSet", "js-w-0", 3]


def test_of_many_rules_some_are_counted() -> None:
    rules = [rule(f"r{n}", targetReplicatedJobs=["driver"]) for n in range(60)]
    found = told(facts(jobset(rules=[*rules, rule("last")]), lost()))
    assert [(e.object, e.where) for e in found.evidence[-2:]] == [
        ("50 more rules", "rules[10] to rules[59]"),
        ("rule last (rules[60])", "RestartJobSet"),
    ]


REMEMBERED: dict[str, tuple[list[Event], str]] = {
    "the Job that the condition names": (
        [event("Job", "js-w-1", "PodFailurePolicy", "43", "2026-11-30T11:50:00Z"),
         event("Job", "js-w-0", "PodFailurePolicy", EXIT_42)], EXIT_42,
    ),
    "its last failure": (
        [event("Job", "js-w-0", "PodFailurePolicy", "b", "2026-11-30T11:50:00Z"),
         event("Job", "js-w-0", "PodFailurePolicy", "a", "2026-11-30T11:40:00Z")], "b",
    ),
    "not of one before this JobSet": ([event("Job", "js-w-0", "PodFailurePolicy", "a", "2026-11-30T10:00:00Z")], ""),
    "not of other events": ([event("Job", "js-w-0", "FailedCreate", "a")], ""),
}  # fmt: skip


@pytest.mark.parametrize(("events", "says"), REMEMBERED.values(), ids=REMEMBERED.keys())
def test_the_failure_of_a_job_that_is_gone(events: list[Event], says: str) -> None:
    seen = facts(jobset(restarting(), rules=[OOM], restarts=1, restartsCountTowardsMax=1), *events)
    found = [f for f in explain(seen).findings if f.code == "failure-policy"]
    assert [f.evidence[0].says for f in found] == ([says] if says else [])


def test_jobs_of_a_jobset_with_a_longer_name_are_not_its() -> None:
    seen = facts(jobset(OVER, restarts=1), event("Job", "js-x-w-0", "PodFailurePolicy", "a"))
    assert [f.code for f in explain(seen).findings] == ["restarted"]


def test_how_often_it_restarted() -> None:
    at = "2026-11-30T11:40:00.123456Z"
    told_ = event("JobSet", "js", "RestartJobFailurePolicyAction", "restarting job js-w-0, its restart 1", at)
    told_ = msgspec.structs.replace(told_, last_timestamp=None, event_time=at)  # as the controller writes them
    before = event("JobSet", "js", "RestartJobSetFailurePolicyAction", "restarting jobset, attempt 1 of 3")
    made = jobset(OVER, restarts=2, restartsCountTowardsMax=1, of_jobs=(1, 0))
    (found,) = explain(facts(made, before, told_)).findings
    assert found.text == "so far 2 restarts and 1 of a single Job (2 of max 3 count), 1 left"
    assert [(e.where, e.says) for e in found.evidence] == [("event RestartJobFailurePolicyAction", told_.message)]
    numbers = ("restarts", "job_restarts", "counted", "max", "left")
    assert [found.arguments[key] for key in numbers] == [2, 1, 2, 3, 1]


def test_where_nothing_failed_nothing_is_said() -> None:
    assert explain(facts(jobset(rules=[NEVER, OOM]))).findings == ()


OTHERS = [families.job(f"js-{name}", group="") for name in ("driver-0", "w-1")]


@pytest.mark.parametrize(
    ("seen", "owed"),
    [
        (facts(jobset(rules=[rule("a", "RestartJob")]), *OTHERS, lost()), ("write its status",)),
        (facts(jobset(rules=[rule("a", "RestartJob")], of_jobs=(1, 0)), *OTHERS, lost()), ("delete Job js-w-0",)),
    ],
    ids=["to count", "to make it again"],
)
def test_what_the_controller_owes_a_single_job(seen: Facts, owed: tuple[str, ...]) -> None:
    """It has the gate on: it would not have taken the JobSet without."""
    assert pending(seen) == owed
