"""The view of a JobSet as lines of text, with a style for each. Pure.

`tree` prints them; what they say was decided in `view`. Three levels of detail, so that a live display of a large
JobSet can fit on the screen.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pyjobset.cli.output import GAP, printable
from pyjobset.cli.view import GroupView, JobSetView, JobView, PodView

Detail = Literal["groups", "jobs", "pods"]
DETAILS: tuple[Detail, ...] = ("pods", "jobs", "groups")
"""From the longest to the shortest."""


@dataclass(frozen=True, slots=True)
class Branches:
    """The characters that draw the tree."""

    middle: str
    last: str
    pass_by: str
    blank: str = "   "


LINES = Branches("├─ ", "└─ ", "│  ")
ASCII = Branches("|- ", "`- ", "|  ")


@dataclass(frozen=True, slots=True)
class Row:
    """One line before alignment. `style` is one word: good, bad, busy or calm."""

    name: str
    state: str
    details: str
    style: str = "calm"


_STYLES = {
    **dict.fromkeys(("Completed", "Complete", "Running", "Succeeded", "Finished"), "good"),
    **dict.fromkeys(("Failed", "Missing", "Blocked"), "bad"),
    **dict.fromkeys(("Waiting", "Pending", "Starting", "NotReady", "Resuming", "Suspending", "Terminating"), "busy"),
}

_Node = tuple[Row, list["_Node"]]


def rows(view: JobSetView, detail: Detail = "pods", branches: Branches = LINES) -> list[Row]:
    """The tree from top to bottom."""
    return [Row("NAME", "STATE", "DETAILS"), *_draw(_jobset(view, detail), "", "", branches)]


def lines(rows_: Sequence[Row]) -> list[str]:
    """Aligned, with no space at the end of a line."""
    name = max(len(row.name) for row in rows_) + GAP
    state = max(len(row.state) for row in rows_) + GAP
    return [f"{row.name:<{name}}{row.state:<{state}}{row.details}".rstrip() for row in rows_]


def _draw(node: _Node, head: str, below: str, branches: Branches) -> Iterator[Row]:
    row, children = node
    yield Row(head + printable(row.name), printable(row.state), printable(row.details), row.style)
    for child in children:
        is_last = child is children[-1]
        branch = branches.last if is_last else branches.middle
        yield from _draw(child, below + branch, below + (branches.blank if is_last else branches.pass_by), branches)


def _row(kind: str, name: str, state: str, details: str = "") -> Row:
    return Row(f"{kind} {name}", state, details, _STYLES.get(state, "calm"))


def _jobset(view: JobSetView, detail: Detail) -> _Node:
    restarts = f"{view.restarts} restart{'s' * (view.restarts > 1)}" if view.restarts else ""
    top = _row("JobSet", f"{view.namespace}/{view.name}", view.state, "; ".join(filter(None, (restarts, *view.notes))))
    groups = [_group(group, detail) for group in view.groups]
    jobs = [_job(job, detail) for job in view.jobs] if detail != "groups" else []
    if view.workload:
        return top, [(_row("Workload", view.workload, ""), groups), *jobs]
    return top, [*groups, *jobs]


def _group(group: GroupView, detail: Detail) -> _Node:
    policy = f"gang of {group.min_count}" if group.min_count is not None else group.policy
    topology = f"same {group.topology}" if group.topology and not group.why else ""
    bound = f"{group.bound} bound" if group.bound else ""
    why = f"waits: {group.why}" if group.why else ""
    row = _row("PodGroup", group.name, group.state, ", ".join(filter(None, (policy, topology, bound, why))))
    return row, [_job(job, detail) for job in group.jobs] if detail != "groups" else []


def _job(job: JobView, detail: Detail) -> _Node:
    if job.state == "Complete" or job.succeeded:
        progress = f"{job.succeeded} succeeded"
    else:
        progress = f"{job.ready}/{job.expected_pods} ready" if job.state != "Suspended" else f"{job.expected_pods} pods"
    attempt = f"attempt {job.attempt + 1}" if job.attempt else ""
    row = _row("Job", job.name, job.state, ", ".join(filter(None, (progress, attempt))))
    return row, [_pod(pod) for pod in job.pods] if detail == "pods" else []


def _pod(pod: PodView) -> _Node:
    return _row("Pod", pod.name, pod.state, " ".join(filter(None, (pod.node, pod.why)))), []
