"""The failure policy: what follows failed child Jobs (KEP-262). Pure.

Without spec.failurePolicy the first failed Job fails the JobSet. With one, the rules are asked in order: the first that
matches a failed Job decides, about the matching Job that failed earliest; when none matches, the JobSet restarts. A
restart is only counted here: the Jobs go because a later observation sees that they are of an older attempt (intent
before effect), so a restart is never counted twice or lost.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET

from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import FailurePolicyRule, JobSetStatus
from pyjobset.reconciler.decision import Event, Reason
from pyjobset.reconciler.execution import restarted
from pyjobset.reconciler.outcome import NOTHING, ConditionChange, Outcome, failed
from pyjobset.reconciler.restarts import counted
from pyjobset.reconciler.view import Child, State, View
from pyjobset.rules.failure_rules import (
    DEFAULT_RULE,
    FAIL,
    RESTART,
    RESTART_FREELY,
    RESTART_ONE,
    RESTART_ONE_FREELY,
    mismatch,
)
from pyjobset.rules.patterns import is_found
from pyjobset.rules.policies import JOB_RESTARTS_MAX

Result = tuple[Outcome, JobSetStatus]
"""The outcome, and the status with the restarts counted where there are any."""
Stored = tuple[int, ...] | msgspec.UnsetType


@dataclass(frozen=True, slots=True)
class _Match:
    rule: FailurePolicyRule
    children: tuple[Child, ...]
    """The failed Jobs that it is about, the earliest failure first. Never empty."""

    @property
    def first(self) -> Job:
        job = self.children[0].job
        assert job is not None
        return job


def failure(view: View, status: JobSetStatus) -> Result:
    failures = sorted((c for c in view.children if c.state is State.FAILED), key=_failed_at)
    if not failures:
        return NOTHING, status
    policy = view.jobset.spec.failure_policy
    if policy is None:
        message = f"jobset failed due to one or more job failures {_first(failures[0].job)}"
        return failed(words.FAILED_JOBS, message), status
    unread: list[Reason] = []
    for match in _matches(policy.rules, failures, unread):
        outcome, followed = _follow(view, status, match)
        return outcome + Outcome(reasons=tuple(unread)), followed
    raise AssertionError("the default rule matches every failed Job")


def _matches(rules: Sequence[FailurePolicyRule], failed: Sequence[Child], unread: list[Reason]) -> Iterator[_Match]:
    """The rules that match, in order; the last one is the default. `unread` gets the patterns that are none."""
    for rule in (*rules, DEFAULT_RULE):
        targets = frozenset(rule.target_replicated_jobs)
        aimed_at = (child for child in failed if not targets or child.replicated_job in targets)
        if children := tuple(child for child in aimed_at if _is_about(rule, child, unread)):
            yield _Match(rule, children)


def _is_about(rule: FailurePolicyRule, child: Child, unread: list[Reason]) -> bool:
    """Of a target: reason and message must both match; an empty list of them matches anything."""
    assert child.job is not None
    condition = child.job.condition("Failed")
    assert condition is not None
    field = mismatch(rule, condition.reason, condition.message)
    if field != "onJobFailureReasons":
        unread += (reason for reason in _unreadable(rule, condition.message) if reason not in unread)
    return field is None


def _unreadable(rule: FailurePolicyRule, message: str) -> Iterator[Reason]:
    """The patterns that were tried and are none."""
    for i, pattern in enumerate(rule.on_job_failure_message_patterns):
        found = is_found(pattern, message)
        if found:
            return
        if found is None:
            yield Reason("failure-pattern-unreadable", (("rule", rule.name), ("pattern", i)))


def _follow(view: View, status: JobSetStatus, match: _Match) -> Result:
    action = _possible(match, view)
    if action == FAIL:
        message = f"jobset failed due to FailJobSet failure policy action {_first(match.first)}"
        return failed(words.FAIL_JOBSET_ACTION, message), status
    if action in (RESTART_ONE, RESTART_ONE_FREELY):
        return _restart_jobs(view, status, match, counts=action == RESTART_ONE)
    return _restart_jobset(view, status, match, counts=action == RESTART)


def _possible(match: _Match, view: View) -> str:
    """Single Jobs restart with the gate RestartJob only, and where the status has room for each of them. A JobSet from
    before the gate was turned off restarts as a whole, and one that was stored without our webhooks."""
    action, most = match.rule.action, max(child.expected.replicated_job.replicas for child in match.children)
    if gates.RESTART_JOB in view.observation.features and most <= JOB_RESTARTS_MAX:
        return action
    return {RESTART_ONE: RESTART, RESTART_ONE_FREELY: RESTART_FREELY}.get(action, action)


def _restart_jobset(view: View, status: JobSetStatus, match: _Match, *, counts: bool) -> Result:
    if counts and _is_used_up(view, status):
        return _used_up(match.first), status
    after = msgspec.structs.replace(
        restarted(view, status),
        # Above what the failed Jobs have, also where somebody has set the status back: else they would never go.
        restarts=max(status.restarts, *(child.attempt for child in match.children)) + 1,
        restarts_count_towards_max=status.restarts_count_towards_max + counts,
    )
    attempt = _attempt(view, after) if counts else f"attempt {after.restarts}, which does not count"
    message = f"restarting jobset, {attempt} {_first(match.first)}"
    reason = f"{words.FAILURE_POLICY_PREFIX}{match.rule.name}" if match.rule.name else words.DEFAULT_FAILURE_POLICY
    change = ConditionChange(words.RESTARTING_JOBSET, "True", reason, message, is_warning=True)
    # Of its own: the condition stays True through several restarts, and each of them is worth an event.
    event = Event("Warning", words.action_event(RESTART if counts else RESTART_FREELY), message)
    return Outcome(conditions=(change,), events=(event,)), after


def _restart_jobs(view: View, status: JobSetStatus, match: _Match, *, counts: bool) -> Result:
    """All that the rule is about, as far as restarts are left. What is left over is decided next time."""
    total, most = counted(view, status), _max_restarts(view)
    if counts and total >= most:
        return _used_up(match.first), status
    entries = {entry.name: entry for entry in status.replicated_jobs_status}
    all_restarts, counted_restarts = _Numbers(), _Numbers()
    events: list[Event] = []
    for attempt, child in enumerate(match.children[: most - total] if counts else match.children, total + 1):
        entry = entries[child.replicated_job]
        restarts = all_restarts.add(child, entry.job_restarts)
        if counts:
            counted_restarts.add(child, entry.job_restarts_count_towards_max)
        which = f"attempt {attempt} of {most}" if counts else "which does not count"
        message = f"restarting job {child.expected.name}, its restart {restarts}, {which}"
        events.append(Event("Warning", words.action_event(RESTART_ONE if counts else RESTART_ONE_FREELY), message))
    changed = tuple(
        msgspec.structs.replace(
            entry,
            job_restarts=all_restarts.of(entry.name, entry.job_restarts),
            job_restarts_count_towards_max=counted_restarts.of(entry.name, entry.job_restarts_count_towards_max),
        )
        for entry in entries.values()
    )
    return Outcome(events=tuple(events)), msgspec.structs.replace(status, replicated_jobs_status=changed)


class _Numbers:
    """Lists of restarts by index, of the ReplicatedJobs that some were added to. Thousands of Jobs may fail at once."""

    def __init__(self) -> None:
        self._of: dict[str, list[int]] = {}

    def add(self, child: Child, stored: Stored) -> int:
        """The restarts of the Job with this one."""
        name, index = child.expected.key
        if name not in self._of:
            numbers = self._of[name] = list(stored) if stored is not UNSET else []
            numbers += [0] * (child.expected.replicated_job.replicas - len(numbers))
        self._of[name][index] = max(self._of[name][index], child.job_attempt) + 1
        return self._of[name][index]

    def of(self, name: str, stored: Stored) -> Stored:
        return tuple(self._of[name]) if name in self._of else stored


def _max_restarts(view: View) -> int:
    policy = view.jobset.spec.failure_policy
    assert policy is not None
    return policy.max_restarts


def _is_used_up(view: View, status: JobSetStatus) -> bool:
    return counted(view, status) >= _max_restarts(view)


def _attempt(view: View, status: JobSetStatus) -> str:
    return f"attempt {counted(view, status)} of {_max_restarts(view)}"


def _used_up(job: Job | None) -> Outcome:
    return failed(words.REACHED_MAX_RESTARTS, f"jobset failed due to reaching max number of restarts {_first(job)}")


def _failed_at(child: Child) -> str:
    """RFC 3339 in whole seconds. Of Jobs that failed in the same second the first in spec order is first."""
    condition = child.job.condition("Failed") if child.job else None
    return (condition.last_transition_time or "") if condition else ""


def _first(job: Job | None) -> str:
    assert job is not None
    return f"(first failed job: {job.metadata.name})"
