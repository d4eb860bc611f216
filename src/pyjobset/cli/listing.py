"""The JobSets of a namespace, or of all, with a word on each: what `tree` and `explain` print when no name is given.

One request: what is said follows from the JobSets alone, so that a list of thousands is as cheap as `kubectl get`.
Whether a JobSet waits its controller has written on it; `tree NAME` looks at its pods.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from shlex import quote
from typing import TYPE_CHECKING, Literal

from pyjobset.cli.cluster import NOT_FOUND, age_seconds, bounded, not_installed, open_client
from pyjobset.cli.output import note, say, table, to_json, to_yaml
from pyjobset.cli.restarts import restarts
from pyjobset.cli.view import own_state, waiting_condition
from pyjobset.errors import Refused, UsageError
from pyjobset.objects import conditions as words
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Condition, Struct
from pyjobset.objects.resources import JOBSETS
from pyjobset.reconciler.conditions import find

if TYPE_CHECKING:
    from pyjobset.kube.client import Client

WHY_LENGTH_MAX = 80
NAMESPACES_NAMED_MAX = 5
_TROUBLES = (words.FAILED, words.BLOCKED, words.SCHEDULING_DEGRADED, words.EXCLUSIVE_PLACEMENT_DEGRADED)
"""Conditions that are bad news where they are True, the gravest first."""


class Line(Struct, frozen=True):
    """`ready` are Jobs that are ready or have succeeded. `why` is the message of the gravest condition."""

    namespace: str
    name: str
    state: str
    jobs: int = 0
    ready: int = 0
    restarts: int = 0
    max_restarts: int | None = None
    age_seconds: int = 0
    why: str = ""


def line(jobset: JobSet, now: datetime) -> Line:
    counts = jobset.status.replicated_jobs_status
    ready = sum(c.ready + c.succeeded for c in counts)
    waits = _waits(jobset)
    state = own_state(jobset) or ("Waiting" if waits is not None else "Running" if ready else "Starting")
    made = restarts(jobset)
    return Line(
        namespace=jobset.metadata.namespace,
        name=jobset.metadata.name,
        state=state,
        jobs=sum(replicated_job.replicas for replicated_job in jobset.spec.replicated_jobs),
        ready=ready,
        restarts=made.of_jobset + made.of_jobs,
        max_restarts=made.most,
        age_seconds=int(age_seconds(jobset, now)),
        why=_why(jobset, waits if state == "Waiting" else None),
    )


def _waits(jobset: JobSet) -> Condition | None:
    """Of gangs, or of Jobs that are placed exclusively."""
    groups = find(jobset.status.conditions, words.POD_GROUPS_SCHEDULED)
    return groups if groups is not None and groups.status == "False" else waiting_condition(jobset)


def _why(jobset: JobSet, waits: Condition | None) -> str:
    conditions = jobset.status.conditions
    found = [c for type_ in _TROUBLES if (c := find(conditions, type_)) is not None and c.status == "True"]
    found += [waits] if waits is not None else []
    return (found[0].message or found[0].reason) if found else ""


async def list_jobsets(
    namespace: str, *, everywhere: bool, kubeconfig: str | None, context: str | None
) -> tuple[str | None, list[Line]]:
    """The namespace that was looked at, None for all, and what is there by namespace and name."""
    async with open_client(kubeconfig, context) as client, bounded():
        where = None if everywhere else namespace or client.namespace
        found = await _jobsets(client, where)
        if not found:
            await _say_where_there_are_some(client, where)
    now = datetime.now(UTC)
    return where, sorted((line(jobset, now) for jobset in found), key=lambda each: (each.namespace, each.name))


async def _jobsets(client: "Client", namespace: str | None) -> Sequence[JobSet]:
    try:
        return await client.list(JOBSETS, namespace)
    except Refused as error:
        raise not_installed() if error.code == NOT_FOUND else error from error


async def _say_where_there_are_some(client: "Client", empty: str | None) -> None:
    if empty is None:
        note("there are no JobSets")
        return
    note(f"namespace {empty} has no JobSets")
    try:
        others = sorted({jobset.metadata.namespace for jobset in await client.list(JOBSETS)})
    except Refused:
        return  # the person may look into this namespace only
    if others:
        more = f" and {len(others) - NAMESPACES_NAMED_MAX} more" if len(others) > NAMESPACES_NAMED_MAX else ""
        note(f"hint: {', '.join(others[:NAMESPACES_NAMED_MAX])}{more} have some; -A lists all")


def show(lines: Sequence[Line], output: Literal["table", "text", "json", "yaml"], *, everywhere: bool) -> None:
    if output in ("json", "yaml"):
        import msgspec

        plain = msgspec.to_builtins(lines)
        say(to_json(plain) if output == "json" else to_yaml(plain))
    elif lines:
        headers = ("NAMESPACE", "NAME", "STATE", "JOBS", "RESTARTS", "AGE", "WHY")
        first = 0 if everywhere else 1
        say("\n".join(table(headers[first:], (tuple(_cells(each))[first:] for each in lines))))


def _cells(each: Line) -> Iterator[str]:
    yield from (each.namespace, each.name, each.state, f"{each.ready}/{each.jobs}")
    yield str(each.restarts) if each.max_restarts is None else f"{each.restarts} (max {each.max_restarts})"
    yield _age(each.age_seconds)
    yield each.why if len(each.why) <= WHY_LENGTH_MAX else f"{each.why[:WHY_LENGTH_MAX]}..."


def _age(seconds: int) -> str:
    """As kubectl has it, in one unit."""
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def check_words(name: str | None, *, everywhere: bool, namespace: str) -> None:
    """Raises UsageError for what cannot be meant together."""
    if everywhere and name is not None:
        raise UsageError(f"-A is for a list, and {name} is one JobSet", hint="give its namespace with -n")
    if name is not None and "/" in name:
        kind, _, last = name.rpartition("/")
        place = "" if kind.partition(".")[0].lower() in ("jobset", "jobsets") else f" -n {quote(kind)}"
        raise UsageError(f"{name!r} is no name of a JobSet", hint=f"give the name alone: {quote(last)}{place}")
    if everywhere and namespace:
        raise UsageError(f"-A is for all namespaces, and -n {namespace} for one", hint="give one of them")
