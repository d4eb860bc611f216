"""What the failure policy decides about a failed Job, rule by rule, what follows, and how often it restarted. Pure.

The rules are asked with the controller's own question (rules.failure_rules). A Job that was restarted is gone; then the
event that it left has its failure. Called by explanation; nothing is said of a JobSet in which nothing has failed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyjobset.cli.explaining.commands import turn_on_controller
from pyjobset.cli.explaining.facts import Event, Facts
from pyjobset.cli.explaining.reasons import Evidence, Finding, advice, finding
from pyjobset.cli.restarts import Restarts, in_words, restarts
from pyjobset.objects import conditions as words
from pyjobset.objects import features
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import FailurePolicy, FailurePolicyRule
from pyjobset.objects.meta import Condition
from pyjobset.reconciler.conditions import find
from pyjobset.reconciler.view import label_number
from pyjobset.rules.failure_rules import (
    COUNTED,
    DEFAULT_RULE,
    FAIL,
    RESTART,
    RESTART_FREELY,
    RESTART_ONE,
    RESTART_ONE_FREELY,
    Field,
    found_pattern,
    mismatch,
)
from pyjobset.rules.patterns import why_not

RULES_TOLD_MAX = 10
"""Rules that do not match and are told one by one; of more the number is enough."""
NAMED_MAX = 5
REASONS = ("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy")
"""With these the Job controller fails a Job, and sends an event."""
_FIRST = re.compile(r"\(first failed job: ([^)\s]+)\)")
_STRATEGIES = {
    "Recreate": "each Job is created again when its old one is gone (Recreate)",
    "BlockingRecreate": "its Jobs are created again when all old ones are gone (BlockingRecreate)",
    "InPlaceRestart": "a failed Job cannot restart in place, so its Jobs are created again (InPlaceRestart)",
}


_WHOLE = {RESTART_ONE: RESTART, RESTART_ONE_FREELY: RESTART_FREELY}
"""What the controller does in place of each without its gate."""


@dataclass(frozen=True, slots=True)
class _Failure:
    job: str
    replicated_job: str
    reason: str
    message: str
    where: str
    """Who says so: the Job's condition, or an event."""
    is_counted: bool
    """The restart that follows has been counted."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Of one rule. `failure` is the one that it matches, `field` the first of its fields that matches none."""

    rule: FailurePolicyRule
    index: int
    failure: _Failure | None
    field: Field | None


def failure_policy(facts: Facts) -> Iterator[Finding]:
    made = restarts(facts.jobset)
    failures = _failures(facts, made)
    ended = _true(facts, words.FAILED)
    if ended is not None and ended.reason == words.DEADLINE_EXCEEDED:
        seconds = facts.jobset.spec.active_deadline_seconds
        yield finding("deadline-exceeded", _name(facts), (), [advice("longer-deadline")], seconds=seconds)
    elif failures:
        yield _decided(facts, made, failures)
    elif ended is not None and ended.reason == words.REACHED_MAX_RESTARTS:
        evidence = [Evidence(_name(facts), f"condition {ended.type}", ended.message)]
        counts = {"max": made.most or 0, "used_up": _used_up(made.most or 0)}
        yield finding("restarts-used-up", _name(facts), evidence, [advice("more-restarts")], **counts)
    if said := in_words(made.of_jobset, made.of_jobs, made.counted, made.most):
        left = f", {made.left} left" if made.most is not None else ""
        counts = {"restarts": made.of_jobset, "job_restarts": made.of_jobs, "counted": made.counted}
        limits = {"max": made.most or 0, "left": made.left}
        yield finding("restarted", _name(facts), _told(facts), (), said=said + left, **counts, **limits)


def _true(facts: Facts, type_: str) -> Condition | None:
    found = find(facts.jobset.status.conditions, type_)
    return found if found is not None and found.status == "True" else None


def _failures(facts: Facts, made: Restarts) -> list[_Failure]:
    """Those that the policy has to decide about, or has decided about last; as the controller sorts them."""
    ended = _true(facts, words.FAILED)
    until = ended.last_transition_time if ended is not None else None
    positions = {replicated_job.name: i for i, replicated_job in enumerate(facts.jobset.spec.replicated_jobs)}
    named = _named(facts)

    def order(pair: tuple[Condition, Job]) -> tuple[bool, str, int, int]:
        """Times are in whole seconds: of Jobs that failed in the same one the first in spec order is first."""
        condition, job = pair
        labels = job.metadata.labels
        index = label_number(labels.job_index)
        at = condition.last_transition_time or ""
        return job.metadata.name != named, at, positions.get(labels.replicated_job_name, 0), index

    failed = [(c, j) for j in facts.family.jobs if (c := j.condition("Failed")) is not None and _is_before(c, until)]
    failed.sort(key=order)
    fresh = [_failure(c, j, is_counted=False) for c, j in failed if not made.is_due(j)]
    return fresh or [_failure(c, j, is_counted=True) for c, j in failed] or _remembered(facts, made)


def _named(facts: Facts) -> str:
    """The Job that the controller has decided about, where a condition says so."""
    told = _true(facts, words.FAILED) or _true(facts, words.RESTARTING_JOBSET)
    match = _FIRST.search(told.message) if told is not None else None
    return match[1] if match is not None else ""


def _is_before(condition: Condition, until: str | None) -> bool:
    return until is None or (condition.last_transition_time or "") <= until


def _failure(condition: Condition, job: Job, *, is_counted: bool) -> _Failure:
    labels = job.metadata.labels
    return _Failure(
        job.metadata.name,
        labels.replicated_job_name,
        condition.reason,
        condition.message,
        "condition Failed",
        is_counted,
    )


def _remembered(facts: Facts, made: Restarts) -> list[_Failure]:
    """The Job is gone. The condition of the restart names it; of a single Job the newest event does."""
    if not (made.of_jobset or made.of_jobs) or facts.jobset.status.terminal_state:
        return []
    named = _named(facts)
    born = facts.jobset.metadata.creation_timestamp or ""
    known = {replicated_job.name for replicated_job in facts.jobset.spec.replicated_jobs}
    found = [
        (event, of)
        for event in facts.events
        if event.involved_object.kind == "Job"
        and event.reason in REASONS
        and (of := _replicated_job(facts, event.involved_object.name)) in known
        and named in ("", event.involved_object.name)
        and (event.at or born) >= born
    ]
    if not found:
        return []
    last, of = max(found, key=lambda pair: pair[0].at)
    where = f"event {last.reason}"
    return [_Failure(last.involved_object.name, of, last.reason, last.message, where, is_counted=True)]


def _replicated_job(facts: Facts, job: str) -> str:
    """Of a Job that is gone, by its name. Empty: it was none of this JobSet."""
    jobset = f"{facts.jobset.metadata.name}-"
    return job.removeprefix(jobset).rpartition("-")[0] if job.startswith(jobset) else ""


def _decided(facts: Facts, made: Restarts, failures: Sequence[_Failure]) -> Finding:
    policy = facts.jobset.spec.failure_policy
    if policy is None:
        failure = failures[0]
        decided = f"there is no failurePolicy, and Job {failure.job} failed"
        counts = {
            "job": failure.job,
            "outcome": "fails",
            "decided": decided,
            "then": "the first failed Job fails the JobSet",
        }
        return finding("failure-policy", _name(facts), [_seen(failure)], (), **counts)
    verdicts = list(_verdicts(policy.rules, failures))
    last = verdicts[-1] if verdicts else None
    is_matched = last is not None and last.failure is not None
    rule = last.rule if is_matched and last is not None else DEFAULT_RULE
    failure = last.failure if last is not None and last.failure is not None else failures[0]
    action = _followed(facts, rule.action, failure)
    outcome, then = _then(action, policy, made, failure)
    if action != rule.action:
        then += f". Not that Job alone: the controller's gate {features.RESTART_JOB} is off, so all Jobs restarted"
    if is_matched and last is not None:
        decided = f"rule {_called(last)} matches Job {failure.job} ({rule.action})"
    elif policy.rules:
        decided = f"no rule matches Job {failure.job}, which means {rule.action}"
    else:
        decided = f"Job {failure.job} failed and there are no rules, which means {rule.action}"
    help_ = [advice("change-rule")] if outcome == "fails" and rule.action == FAIL else []
    if action != rule.action:
        help_.append(turn_on_controller(facts, features.RESTART_JOB))
    return finding(
        "failure-policy", _name(facts), [_seen(failure), *_asked(policy.rules, verdicts, failures)], help_,
        decided=decided, then=then, outcome=outcome, rule=rule.name, action=rule.action, job=failure.job,
        reason=failure.reason, strategy=policy.restart_strategy, counted=made.counted, max=policy.max_restarts,
        rules=[_plain(v) for v in verdicts],
    )  # fmt: skip


def _verdicts(rules: Sequence[FailurePolicyRule], failures: Sequence[_Failure]) -> Iterator[_Verdict]:
    """Of each rule until one matches."""
    for index, rule in enumerate(rules):
        targets = frozenset(rule.target_replicated_jobs)
        aimed_at = [f for f in failures if not targets or f.replicated_job in targets]
        field: Field | None = None if aimed_at else "targetReplicatedJobs"
        for failure in aimed_at:
            missed = mismatch(rule, failure.reason, failure.message)
            if missed is None:
                yield _Verdict(rule, index, failure, None)
                return
            field = field or missed
        yield _Verdict(rule, index, None, field)


def _followed(facts: Facts, action: str, failure: _Failure) -> str:
    """What the controller did about a rule for single Jobs: without its gate it restarts all. The gates cannot be read,
    but what it has said of this failure can."""
    events = _action_events(facts)
    told = max(events, key=lambda e: e.at) if events else _true(facts, words.RESTARTING_JOBSET)
    if action not in _WHOLE or not failure.is_counted or told is None:
        return action
    whole = _WHOLE[action]
    named = _FIRST.search(told.message)
    is_whole = told.reason == words.action_event(whole) if isinstance(told, Event) else True
    return whole if is_whole and named is not None and named[1] == failure.job else action


def _then(action: str, policy: FailurePolicy, made: Restarts, failure: _Failure) -> tuple[str, str]:
    """What comes of it, as a code and in words."""
    if action == FAIL:
        return "fails", "the JobSet fails, however many restarts are left"
    number = made.counted if failure.is_counted else made.counted + 1
    if action in COUNTED and number > policy.max_restarts:
        return "fails", f"{_used_up(policy.max_restarts)}, and the JobSet fails"
    which = f"restart {number} of {policy.max_restarts}" if action in COUNTED else "a restart that does not count"
    if action in (RESTART_ONE, RESTART_ONE_FREELY):
        return "restarts-job", f"{which}; that Job alone is created again, the others go on"
    return "restarts", f"{which}; {_STRATEGIES.get(policy.restart_strategy, policy.restart_strategy)}"


def _used_up(most: int) -> str:
    if not most:
        return "maxRestarts is 0"
    return (
        f"the {most} restarts of maxRestarts are used up" if most > 1 else "the one restart of maxRestarts is used up"
    )


def _asked(
    rules: Sequence[FailurePolicyRule], verdicts: Sequence[_Verdict], failures: Sequence[_Failure]
) -> Iterator[Evidence]:
    """One line for each rule that was asked, and one for the rest."""
    missed = [v for v in verdicts if v.failure is None]
    for verdict in missed[:RULES_TOLD_MAX]:
        yield Evidence(
            f"rule {_called(verdict)}", verdict.rule.action, f"does not match: {_why_not(verdict, failures)}"
        )
    if more := missed[RULES_TOLD_MAX:]:
        yield Evidence(f"{len(more)} more rules", f"rules[{more[0].index}] to rules[{more[-1].index}]", "do not match")
    for verdict in verdicts:
        if verdict.failure is not None:
            says = f"matches: {_why(verdict.rule, verdict.failure)}"
            yield Evidence(f"rule {_called(verdict)}", verdict.rule.action, says)
    if verdicts and (left := len(rules) - len(verdicts)):
        name = f"rules[{len(verdicts)}]" if left == 1 else f"rules[{len(verdicts)}] to rules[{len(rules) - 1}]"
        yield Evidence(name, "later", "not asked: the first rule that matches decides")


def _why_not(verdict: _Verdict, failures: Sequence[_Failure]) -> str:
    rule, failure = verdict.rule, failures[0]
    if verdict.field == "targetReplicatedJobs":
        said = f"it is about {_list(rule.target_replicated_jobs)}, and Job {failure.job} is of {failure.replicated_job}"
    elif verdict.field == "onJobFailureReasons":
        said = f"the reason is {failure.reason}, and not {_list(rule.on_job_failure_reasons, 'or')}"
    else:
        patterns = rule.on_job_failure_message_patterns
        none = [p for p in patterns if why_not(p) is not None]
        said = f"not found in the message: {_list([repr(p) for p in patterns], 'or')}"
        said += f" ({_list([repr(p) for p in none])} is no RE2 pattern)" if none else ""
    others = len(failures) - 1
    return said + (f"; {others} more failed {'Job' if others == 1 else 'Jobs'} neither" if others else "")


def _why(rule: FailurePolicyRule, failure: _Failure) -> str:
    parts = []
    if rule.target_replicated_jobs:
        parts.append(f"Job {failure.job} is of {failure.replicated_job}")
    if rule.on_job_failure_reasons:
        parts.append(f"the reason is {failure.reason}")
    if rule.on_job_failure_message_patterns:
        parts.append(
            f"{found_pattern(rule.on_job_failure_message_patterns, failure.message)!r} is found in the message"
        )
    return ", ".join(parts) or "it is about every failed Job"


def _plain(verdict: _Verdict) -> dict[str, Any]:
    failure = verdict.failure
    told = {"rule": verdict.rule.name, "index": verdict.index, "action": verdict.rule.action, "matches": bool(failure)}
    return told | ({"job": failure.job} if failure else {"field": verdict.field})


def _told(facts: Facts) -> Iterator[Evidence]:
    """The newest event of a restart."""
    if events := _action_events(facts):
        last = max(events, key=lambda e: e.at)
        yield Evidence(_name(facts), f"event {last.reason}", last.message)


def _action_events(facts: Facts) -> list[Event]:
    ending = words.action_event("")
    return [e for e in facts.events if e.involved_object.kind == "JobSet" and e.reason.endswith(ending)]


def _seen(failure: _Failure) -> Evidence:
    reason = "" if failure.where.endswith(failure.reason) else f"{failure.reason}: "
    return Evidence(f"Job {failure.job}", failure.where, f"{reason}{failure.message}")


def _called(verdict: _Verdict) -> str:
    return f"{verdict.rule.name or 'without a name'} (rules[{verdict.index}])"


def _list(items: Sequence[str], word: str = "and") -> str:
    shown = [*items[:NAMED_MAX], *([f"{len(items) - NAMED_MAX} more"] if len(items) > NAMED_MAX else [])]
    return f" {word} ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _name(facts: Facts) -> str:
    return f"JobSet {facts.jobset.metadata.name}"
