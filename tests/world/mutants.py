"""Faults that somebody could make, planted in the controller one at a time. The default run must notice each of them.

A mutant changes one function of the production code. `caught_by` are the checkers that may tell of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from pyjobset.compiler import jobs as compiling
from pyjobset.controller import apply as applying
from pyjobset.controller import reconcile as reconciling
from pyjobset.controller import refusals as refusing
from pyjobset.controller.refusals import Memory
from pyjobset.controller.writes import Writer
from pyjobset.kube import cache as caching
from pyjobset.kube.client import Client
from pyjobset.objects.resources import JOBS, JOBSETS
from pyjobset.reconciler import claims as claim_policy
from pyjobset.reconciler import decide as deciding
from pyjobset.reconciler import jobs as job_policy
from pyjobset.reconciler import quorum, scheduling, view
from pyjobset.reconciler.claims import Claims
from pyjobset.reconciler.decision import Decision, Delete
from pyjobset.reconciler.outcome import NOTHING, Outcome
from pyjobset.reconciler.startup import Startup

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    plant: Plant
    caught_by: tuple[str, ...]
    is_rare: bool = False
    """One world in some thousand tells of it: one that is kept, in regressions/."""


def _instead(owner: Any, name: str, make: Callable[[Any], Any]) -> Plant:
    """`make` gets the original."""
    return lambda patch: patch.setattr(owner, name, make(getattr(owner, name)))


def _nothing(owner: Any, name: str) -> Plant:
    return _instead(owner, name, lambda _: lambda *_, **__: NOTHING)


def _deciding(change: Callable[[Any, Decision], Decision]) -> Plant:
    """The whole decision is another one."""
    defaults = reconciling.Reconciler.__init__.__kwdefaults__
    original = defaults["decide"]
    return lambda patch: patch.setitem(defaults, "decide", lambda seen: change(seen, original(seen)))


def _counting(**more: Callable[[Any, Any], int]) -> Callable[[Any], Any]:
    """The failure policy, with other numbers in the status that it counted: each is made of the old and the new."""

    def make(original: Any) -> Any:
        def failure(seen: Any, status: Any) -> Any:
            outcome, counted = original(seen, status)
            fields = {name: number(status, counted) for name, number in more.items()}
            return outcome, counted if counted == status else with_fields(counted, **fields)

        return failure

    return make


def _all_allowed(original: Any) -> Any:
    def startup(seen: Any, counts: Any) -> Startup:
        return Startup(frozenset(rj.name for rj in seen.jobset.spec.replicated_jobs), original(seen, counts).outcome)

    return startup


def _quorum_of_one(original: Any) -> Any:
    def with_quorums(seen: Any, wanted: Any) -> Any:
        found, one = original(seen, wanted), quorum._gang(1)
        groups = (with_fields(g, spec=with_fields(g.spec, scheduling_policy=one)) for g in found.pod_groups)
        return type(found)(found.workload, tuple(groups), found.placements)

    return with_quorums


def _failed_as_succeeded(original: Any) -> Any:
    return lambda seen: tuple(with_fields(c, succeeded=c.succeeded + c.failed) for c in original(seen))


def _careless(original: Any) -> Any:
    async def run(wave: Any, chains: Any) -> bool:
        await original(wave, chains)
        return True

    return run


def _deaf(original: Any) -> Any:
    def apply(cache: Any, event: Any) -> None:
        if getattr(event, "type", "") != "DELETED":
            original(cache, event)

    return apply


def _forgetful(original: Any) -> Any:
    async def run(reconciler: Any, key: Any) -> Any:
        before = reconciler.counters.errors
        after_seconds = await original(reconciler, key)
        return None if reconciler.counters.errors != before else after_seconds

    return run


def _anyhow(original: Any) -> Any:
    async def patch(client: Any, resource: Any, namespace: Any, name: Any, body: Any, **more: Any) -> Any:
        if resource is JOBSETS and more.get("subresource") == "status":
            body = {"status": body["status"]}
        return await original(client, resource, namespace, name, body, **more)

    return patch


async def _agree(_: Any) -> None:
    """Without a look."""


def _by_another_clock(patch: pytest.MonkeyPatch) -> None:
    """The clock that a retry was noted by may have been set back since."""
    original = reconciling._Run._wake_after

    def wake_after(run: Any, *given: Any) -> float | None:
        run.observation = replace(run.observation, now=run._all.now())
        return original(run, *given)

    patch.setattr(reconciling._Run, "_wake_after", wake_after)
    patch.setattr(refusing, "is_due", lambda refusal, now: refusal.retry_at <= now)


def _disowned(original: Any) -> Any:
    def compile_claims(jobset: Any) -> Any:
        return tuple(
            {**claim, "metadata": {k: v for k, v in claim["metadata"].items() if k != "ownerReferences"}}
            for claim in original(jobset)
        )

    return compile_claims


def _next_one(original: Any) -> Any:
    return lambda *given: {key: str(int(number) + 1) for key, number in original(*given).items()}


def _as_it_was(original: Any) -> Any:
    return lambda *given: original(*given)[-1:]


def _restless(seen: Any, decision: Decision) -> Decision:
    conditions = seen.jobset.status.conditions
    if decision.status is not None or not conditions:
        return decision
    other = with_fields(conditions[0], reason="A" if conditions[0].reason == "B" else "B")
    return replace(decision, status=with_fields(seen.jobset.status, conditions=(other, *conditions[1:])))


def _without_status_of_the_end(_: Any, decision: Decision) -> Decision:
    is_end = decision.status is not None and decision.status.terminal_state
    return replace(decision, status=None) if is_end else decision


def _replacing_finished(original: Any) -> Any:
    def replace_jobs(seen: Any) -> Outcome:
        done = [c.job for c in seen.children if c.job is not None and c.job.is_succeeded]
        deletes = tuple(Delete(JOBS, job.metadata.name, job.metadata.uid) for job in done[:1])
        return original(seen) + Outcome(actions=deletes)  # type: ignore[no-any-return]

    return replace_jobs


def _groups_of_everybody(original: Any) -> Any:
    def observe(caches: Any, jobset: Any, **more: Any) -> Any:
        groups = tuple(caches.pod_groups) if caches.pod_groups is not None else ()
        return replace(original(caches, jobset, **more), pod_groups=groups)

    return observe


def _without_actions_on_what_goes(original: Any) -> Any:
    def step(stored: Any, *more: Any) -> Any:
        found = original(stored, *more)
        is_going = stored is not None and stored.metadata.deletion_timestamp is not None
        return replace(found, actions=()) if is_going else found

    return step


def _in_the_background(original: Any) -> Any:
    return lambda *job, **how: replace(original(*job, **how), propagation="Background")


def _among_old_pods(patch: pytest.MonkeyPatch) -> None:
    _instead(job_policy, "_delete", _in_the_background)(patch)
    _instead(job_policy, "_groups_being_emptied", lambda _: lambda *_: frozenset())(patch)


def _groups_at_once(original: Any) -> Any:
    def suspended(seen: Any) -> Outcome:
        found: Outcome = original(seen)
        is_there = any(isinstance(action, Delete) for action in found.actions)
        return found if is_there else found + scheduling.drop_groups(seen)

    return suspended


def _one_more(original: Any) -> Any:
    def child_jobs(jobset: Any) -> Any:
        replicated_jobs = tuple(with_fields(r, replicas=r.replicas + 1) for r in jobset.spec.replicated_jobs)
        return original(with_fields(jobset, spec=with_fields(jobset.spec, replicated_jobs=replicated_jobs)))

    return child_jobs


def _restarting_after_errors(original: Any) -> Any:
    def __init__(reconciler: Any, *parts: Any, **named: Any) -> None:  # noqa: N807
        known = 0

        def decide(seen: Any) -> Decision:
            nonlocal known
            before, known = known, reconciler.counters.errors
            status = seen.jobset.status
            if known != before and seen.jobs and not status.terminal_state:
                return Decision(status=with_fields(status, restarts=status.restarts + 1))
            return deciding.decide(seen)

        original(reconciler, *parts, **named, decide=decide)

    return __init__


def _backwards(patch: pytest.MonkeyPatch) -> None:
    waves = [wave for wave in applying.WAVES if wave != applying.DELETES]
    patch.setattr(applying, "WAVES", (applying.DELETES, *reversed(waves)))


STUCK = ("Status", "Quiet")

MUTANTS: dict[str, Mutant] = {
    "restarts skip a number": Mutant(
        _instead(deciding, "failure", _counting(restarts=lambda old, _: old.restarts + 2)), ("Counters",)
    ),
    "restarts never count": Mutant(
        _instead(
            deciding,
            "failure",
            _counting(restarts_count_towards_max=lambda old, _: old.restarts_count_towards_max),
        ),
        ("Counters", *STUCK),
    ),
    "old attempts are taken for new ones": Mutant(_instead(view, "_is_outdated", lambda _: lambda *_: False), STUCK),
    "everybody starts at once": Mutant(_instead(deciding, "startup", _all_allowed), ("Startup",)),
    "a finished JobSet runs on": Mutant(_nothing(deciding, "stop_jobs"), STUCK),
    "what is over keeps its groups": Mutant(_nothing(deciding, "drop_groups"), STUCK),
    "a suspended JobSet runs on": Mutant(_nothing(deciding, "suspend_jobs"), STUCK),
    "a resumed JobSet does not run": Mutant(_nothing(deciding, "resume_jobs"), STUCK),
    "success is not noticed": Mutant(_nothing(deciding, "success"), STUCK),
    "old Jobs are not removed": Mutant(_nothing(deciding, "replace_jobs"), STUCK),
    "a grown Job does not grow": Mutant(_nothing(deciding, "resize_jobs"), ("Quorums", *STUCK)),
    "failed Jobs count as succeeded": Mutant(
        _instead(deciding, "replicated_jobs_status", _failed_as_succeeded), ("Status",)
    ),
    "any quorum will do": Mutant(_instead(scheduling, "with_quorums", _quorum_of_one), ("Quorums",)),
    "Jobs come before their groups": Mutant(
        _instead(job_policy, "_may_join", lambda _: lambda *_: True), ("Groups", "Gangs", "Status")
    ),
    "waves go backwards": Mutant(_backwards, ("Groups",)),
    "a failed wave stops nothing": Mutant(_instead(applying._Wave, "run", _careless), ("Groups",)),
    "groups of everybody are ours": Mutant(_instead(reconciling, "observe", _groups_of_everybody), ("Foreigners",)),
    "who waits for a group that goes is left alone": Mutant(
        _instead(job_policy, "_stuck_groups", lambda _: lambda *_: frozenset()), STUCK, is_rare=True
    ),
    "a group that goes keeps its quorum": Mutant(
        _instead(scheduling, "_pod_group_step", _without_actions_on_what_goes), STUCK, is_rare=True
    ),
    "a new gang starts among the pods of the old one": Mutant(_among_old_pods, ("Gangs",)),
    "old pods are not waited for": Mutant(_instead(job_policy, "_delete", _in_the_background), ("Attempts",)),
    "a Job more than the spec asks for": Mutant(_instead(view, "child_jobs", _one_more), ("Orphans",)),
    "an error restarts what runs": Mutant(
        _instead(reconciling.Reconciler, "__init__", _restarting_after_errors), ("Endings",)
    ),
    "groups go before Jobs are told to stop": Mutant(
        _instead(deciding, "_suspended", _groups_at_once), ("Status", "Endings"), is_rare=True
    ),
    "deletions are not heard of": Mutant(_instead(caching.Cache, "_apply", _deaf), ("Startup", "Orphans", *STUCK)),
    "a failed run is not repeated": Mutant(_instead(reconciling.Reconciler, "run", _forgetful), STUCK),
    "a status is written whatever was written since": Mutant(_instead(Client, "patch", _anyhow), ("Counters", *STUCK)),
    "what was refused is not tried again": Mutant(_instead(Memory, "wait_seconds", lambda _: lambda *_: None), STUCK),
    "another try is waited for by another clock": Mutant(_by_another_clock, STUCK, is_rare=True),
    "what is to start is not asked about": Mutant(_instead(Writer, "confirm", lambda _: _agree), ("Duplicates",)),
    "claims belong to nobody": Mutant(_instead(claim_policy, "compile_claims", _disowned), ("Claims",)),
    "claims are not made": Mutant(_instead(deciding, "claims", lambda _: lambda _: Claims()), ("Claims",)),
    "a deadline is not noticed": Mutant(_nothing(deciding, "active_deadline"), ("Limits",)),
    "a finished JobSet stays": Mutant(_nothing(deciding, "ttl"), ("Limits",)),
    "JobSets of others are ours": Mutant(_instead(deciding, "is_managed", lambda _: lambda _: True), ("Management",)),
    "Jobs carry the next execution": Mutant(_instead(compiling, "_execution_attempt", _next_one), ("Executions",)),
    "a Job is resumed as it was": Mutant(_instead(job_policy, "resume_operations", _as_it_was), ("Places",)),
    "a quiet JobSet is written to": Mutant(_deciding(_restless), ("Quiet",)),
    "the end is not stored": Mutant(_deciding(_without_status_of_the_end), STUCK),
    "a Job that succeeded is replaced": Mutant(
        _instead(deciding, "replace_jobs", _replacing_finished), ("Duplicates",)
    ),
    "the end is not believed": Mutant(
        lambda patch: patch.setattr(view.View, "is_finished", property(lambda _: False)), ("Terminal",)
    ),
}
