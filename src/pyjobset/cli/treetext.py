"""The view of a JobSet as lines of text, with a style for each. Pure.

`tree` prints them; what they say was decided in `view`. Three levels of detail, so that a live display of a large
JobSet can fit on the screen. Of many brothers and sisters that are alike one row is enough, unless all are asked for.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pyjobset.cli.output import GAP, printable
from pyjobset.cli.restarts import in_words
from pyjobset.cli.view import GroupView, JobSetView, JobView, PodView

Detail = Literal["groups", "jobs", "pods"]
DETAILS: tuple[Detail, ...] = ("pods", "jobs", "groups")
"""From the longest to the shortest."""
FOLD_ABOVE = 12
"""More groups, Jobs of a group or pods of a Job than this are folded, where several are alike."""


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
    **dict.fromkeys(
        ("Waiting", "Pending", "Starting", "NotReady", "Resuming", "Suspending", "Terminating", "Restarting"), "busy"
    ),
}

_Node = tuple[Row, list["_Node"]]


@dataclass(frozen=True, slots=True)
class _Look:
    detail: Detail
    is_folded: bool


def rows(view: JobSetView, detail: Detail = "pods", branches: Branches = LINES, *, is_folded: bool = True) -> list[Row]:
    """The tree from top to bottom."""
    return [Row("NAME", "STATE", "DETAILS"), *_draw(_jobset(view, _Look(detail, is_folded)), "", "", branches)]


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


def _jobset(view: JobSetView, look: _Look) -> _Node:
    restarted = in_words(view.restarts, view.job_restarts, view.restarts_count_towards_max, view.max_restarts)
    in_place = f"in-place attempt {view.in_place_attempt}" if view.in_place_attempt else ""
    details = "; ".join(filter(None, (restarted, in_place, *view.notes)))
    top = _row("JobSet", f"{view.namespace}/{view.name}", view.state, details)
    groups = [_groups(alike, look) for alike in _fold(view.groups, _group_looks, look)]
    jobs = _jobs(view.jobs, look)
    if view.workload:
        return top, [(_row("Workload", view.workload, ""), groups), *jobs]
    return top, [*groups, *jobs]


Item = TypeVar("Item", GroupView, JobView, PodView)


def _fold(
    items: Sequence[Item], looks: Callable[[Item], object], look: _Look, *, parents: int = 1
) -> Iterable[list[Item]]:
    """Those that look alike together, in the order of the first of each; each alone where there are few, of one
    parent."""
    if not look.is_folded or (len(items) <= FOLD_ABOVE and parents == 1):
        return ([item] for item in items)
    alike: dict[object, list[Item]] = {}
    for item in items:
        alike.setdefault(looks(item), []).append(item)
    return alike.values()


def _span(items: Sequence[Item]) -> str:
    """`js-w-0 … js-w-999`; ASCII, because the terminal may be."""
    return items[0].name if len(items) == 1 else f"{items[0].name} .. {items[-1].name}"


def _often(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _times(items: Sequence[Item], noun: str) -> str:
    return f"{len(items)} {noun}" if len(items) > 1 else ""


def _stem(name: str) -> str:
    """A Job's name without its index."""
    return name.rpartition("-")[0]


def _group_looks(group: GroupView) -> object:
    stems = tuple(sorted({_stem(job.name) for job in group.jobs}))
    return stems, group.policy, group.state, group.min_count, group.topology, group.bound, group.terminating, group.why


def _groups(groups: Sequence[GroupView], look: _Look) -> _Node:
    group = groups[0]
    policy = f"gang of {group.min_count}" if group.min_count is not None else group.policy
    topology = f"same {group.topology}" if group.topology and not group.why else ""
    bound = f"{sum(g.bound for g in groups)} bound" if group.bound else ""
    terminating = f"{sum(g.terminating for g in groups)} terminating" if group.terminating else ""
    why = f"waits: {group.why}" if group.why else ""
    details = (_times(groups, "groups"), policy, topology, bound, terminating, why)
    row = _row("PodGroup", _span(groups), group.state, ", ".join(filter(None, details)))
    return row, _jobs([job for g in groups for job in g.jobs], look, parents=len(groups))


def _job_looks(job: JobView) -> object:
    return _stem(job.name), job.state, job.attempt, job.restarts


def _jobs(jobs: Sequence[JobView], look: _Look, *, parents: int = 1) -> list[_Node]:
    if look.detail == "groups":
        return []
    return [_job(alike, look) for alike in _fold(jobs, _job_looks, look, parents=parents)]


def _job(jobs: Sequence[JobView], look: _Look) -> _Node:
    job = jobs[0]
    succeeded, expected = sum(j.succeeded for j in jobs), sum(j.expected_pods for j in jobs)
    if job.state == "Complete" or succeeded:
        progress = f"{succeeded} succeeded"
    else:
        progress = f"{sum(j.ready for j in jobs)}/{expected} ready" if job.state != "Suspended" else f"{expected} pods"
    restart = f"restart {job.attempt}" if job.attempt else ""
    alone = f"restarted alone {_often(job.restarts)}" if job.restarts else ""
    details = (_times(jobs, "Jobs"), progress, restart, alone)
    row = _row("Job", _span(jobs), job.state, ", ".join(filter(None, details)))
    if look.detail != "pods":
        return row, []
    pods = [pod for j in jobs for pod in j.pods]
    return row, [_pod(alike) for alike in _fold(pods, _pod_looks, look, parents=len(jobs))]


def _pod_looks(pod: PodView) -> object:
    return pod.state, bool(pod.node), pod.why, pod.in_place_attempt


def _pod(pods: Sequence[PodView]) -> _Node:
    pod = pods[0]
    nodes = len({p.node for p in pods})
    where = pod.node if nodes == 1 or not pod.node else f"on {nodes} nodes"
    attempt = f"in-place attempt {pod.in_place_attempt}" if pod.in_place_attempt else ""
    details = (_times(pods, "pods"), " ".join(filter(None, (where, pod.why))), attempt)
    return _row("Pod", _span(pods), pod.state, ", ".join(filter(None, details))), []
