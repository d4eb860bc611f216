"""Facts -> Explanation: one sentence on the state of a JobSet, then what holds it up, the gravest first. Pure.

The parts come from obstacles, waits and failures; the order, and what of it makes the headline, is here. Called by
cli.explain.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from pyjobset.cli.explaining.facts import Facts
from pyjobset.cli.explaining.failures import failed_jobs, failed_pods, nodes_not_ready, stuck_containers
from pyjobset.cli.explaining.in_place import in_place
from pyjobset.cli.explaining.obstacles import (
    condition,
    degraded,
    evicted,
    expected,
    obstacles,
    preemption,
    startup,
    suspension,
)
from pyjobset.cli.explaining.policy import failure_policy
from pyjobset.cli.explaining.reasons import Evidence, Explanation, Finding, advice, finding, sentence
from pyjobset.cli.explaining.sentences import STATES
from pyjobset.cli.explaining.waits import waits
from pyjobset.cli.view import view
from pyjobset.cli.waiting import is_finished, is_placed
from pyjobset.objects import conditions

UNSAID = "not-allowed"
"""The code of what explain itself could not do: no news of the JobSet."""
TROUBLES = frozenset(
    {
        "containers-wait",
        "node-not-ready",
        "fields-dropped",
        "fields-returned",
        "api-not-served",
        "scheduling-ignored",
        "drifted",
        "pods-failed",
        "job-failed",
        UNSAID,
    }
)
"""Codes of what does not keep pods from getting a node."""

QUIET = frozenset({UNSAID, "failure-policy", "restarted", "restarted-in-place", "startup-goes-on"})
"""Codes of what may be worth knowing and holds nothing up."""

_Story = tuple[str, dict[str, Any], Iterable[Finding]]


def explain(facts: Facts) -> Explanation:
    code, arguments, told = _story(facts)
    findings = tuple(_merged([*told, *_unsaid(facts)]))
    news = [f for f in findings if f.code not in QUIET]
    if code == "runs":
        code = _how_it_runs(facts, news, arguments)
    arguments["because"] = _cause(code, news, findings)
    metadata = facts.jobset.metadata
    headline = f"JobSet {metadata.namespace}/{metadata.name} {sentence(STATES[code], arguments)}"
    return Explanation(metadata.namespace, metadata.name, view(facts.family).state, code, headline, findings)


def _story(facts: Facts) -> _Story:
    jobset, jobs = facts.jobset, facts.family.jobs
    live = sum(not is_finished(p) for p in facts.pods)
    if jobset.metadata.deletion_timestamp is not None:
        name, holders = f"JobSet {jobset.metadata.name}", ", ".join(jobset.metadata.finalizers)
        evidence = [Evidence(name, "metadata.finalizers", holders)]
        children = len(jobs) + len(facts.pods)
        return "terminating", {}, [finding("deleting", name, evidence, [advice("wait")], children=children)]
    if jobset.status.terminal_state == conditions.TERMINAL_COMPLETED:
        if not jobs:
            return "completed-empty", {"message": _message(facts, conditions.COMPLETED)}, ()
        return "completed", {"succeeded": sum(j.is_succeeded for j in jobs), "jobs": len(jobs)}, ()
    if jobset.status.terminal_state:
        return (
            "failed",
            {"message": _message(facts, conditions.FAILED)},
            [
                *failed_jobs(facts),
                *failure_policy(facts),
                *evicted(facts),
            ],
        )
    if jobset.spec.suspend:
        return "suspending" if live else "suspended", {"live": live}, [*obstacles(facts), suspension(facts)]
    found = [
        *obstacles(facts),
        *preemption(facts),
        *waits(facts, expected(facts)),
        *startup(facts),
        *stuck_containers(facts),
        *in_place(facts),
        *nodes_not_ready(facts),
        *failed_jobs(facts),
        *failure_policy(facts),
        *failed_pods(facts),
        *degraded(facts),
    ]
    return "runs", {}, found


def _how_it_runs(facts: Facts, news: Sequence[Finding], arguments: dict[str, Any]) -> str:
    there = [p for p in facts.pods if is_placed(p)]
    placed = len(there)
    wanted = sum(_wanted(job.parallelism, job.spec.completions, job.status.succeeded)
                 for job in facts.family.jobs if not (job.is_succeeded or job.is_failed))  # fmt: skip
    ready = sum(any(c.type == "Ready" and c.status == "True" for c in p.status.conditions) for p in there)
    pods = max(placed, wanted)
    arguments |= {"placed": placed, "pods": pods, "ready": ready, "restart": facts.jobset.status.restarts}
    if condition(facts.jobset, conditions.RESTARTING_JOBSET) is not None:
        return "restarting"
    if any(f.code not in TROUBLES for f in news):
        return "waits"
    if news:
        return "troubled"
    return "running" if pods and placed == pods else "starting"


def _cause(code: str, news: Sequence[Finding], findings: Sequence[Finding]) -> str:
    """The gravest of what holds it up; a restart is explained by its policy before a Job that failed is."""
    decided = [f for f in findings if f.code == "failure-policy"] if code == "restarting" else []
    told = [*(f for f in news if f.code not in TROUBLES), *decided, *news] if decided else news
    return told[0].headline if told else "its Jobs are created again"


def _wanted(parallelism: int, completions: int | None, succeeded: int) -> int:
    return parallelism if completions is None else max(0, min(parallelism, completions - succeeded))


def _message(facts: Facts, type_: str) -> str:
    found = condition(facts.jobset, type_)
    return (found.message or found.reason) if found is not None else "no condition says why"


def _unsaid(facts: Facts) -> Iterator[Finding]:
    if facts.unreadable:
        yield finding(UNSAID, f"JobSet {facts.jobset.metadata.name}", kinds=", ".join(facts.unreadable))


def _merged(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The same of many objects is said once: a JobSet may have a thousand PodGroups."""
    first: dict[tuple[str, str], Finding] = {}
    objects: dict[tuple[str, str], set[str]] = {}
    for each in findings:
        key = (each.code, each.text)
        known = first.setdefault(key, each)
        if each.evidence and not known.evidence:
            first[key] = each
        objects.setdefault(key, set()).add(each.about)
    for key, found in first.items():
        yield msgspec.structs.replace(found, more=len(objects[key]) - 1)
