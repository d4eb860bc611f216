"""Why a PodGroup waits: what the scheduler of Kubernetes 1.37 wrote, or did not write, in plain words."""

import pytest

from pyjobset.cli.waiting import why_waiting
from pyjobset.objects.batch import Pod
from pyjobset.objects.scheduling import PodGroup
from tests.cli.families import FULL, NO_VICTIMS, THREE_FIT, UNSCHEDULABLE, group, pod

RACKS_FULL = "0/2 nodes are available: 2 Insufficient cpu"
RACK = "topology.kubernetes.io/rack"
SAID = f"{UNSCHEDULABLE}, {NO_VICTIMS}"
FITTED = f"pod group is unschedulable, {UNSCHEDULABLE}, {NO_VICTIMS}"


def pods(count: int, **each: str) -> list[Pod]:
    return [pod(f"p{n}", **each) for n in range(count)]  # type: ignore[arg-type]


CASES: dict[str, tuple[PodGroup, list[Pod], str]] = {
    "no pods": (group(5), [], ""),
    "all bound": (group(5, reason="Scheduled"), pods(5, node="n"), ""),
    "all finished": (group(5, reason="Scheduled"), pods(5, node="n", phase="Succeeded"), ""),
    "pods are missing, and nobody says so": (group(5), pods(3), "needs 5 pods at once, only 3 exist"),
    "one pod of two": (group(2), pods(1), "needs 2 pods at once, only 1 exists"),
    "too small a cluster": (
        group(5, said=SAID),
        [*pods(3, told=FITTED), pod("q", told=FULL), pod("r", told=UNSCHEDULABLE)],
        "needs 5 pods at once, 3 fit (scheduler: 0/1 nodes are available: 1 Insufficient cpu)",
    ),
    "without the placement part": (
        group(6, said=f"minCount (6) cannot be satisfied: 4 scheduled, 1 remaining, {NO_VICTIMS}"),
        pods(6),
        "needs 6 pods at once, 4 fit (scheduler: minCount (6) cannot be satisfied: 4 scheduled, 1 remaining)",
    ),
    "the pods say it when the group does not yet": (
        group(5),
        [*pods(4, told=FITTED), pod("q", told=FULL)],
        "needs 5 pods at once, 3 fit (scheduler: 0/1 nodes are available: 1 Insufficient cpu)",
    ),
    "a quorum of one pod": (group(1, said=FULL), pods(1, told=FULL), f"needs 1 pod at once (scheduler: {FULL[:-1]})"),
    "the scheduler has not looked": (group(5), pods(5), "needs 5 pods at once, the scheduler has not tried yet"),
    "finished pods do not count": (
        group(3, reason="Scheduled"),
        [*pods(2, node="n", phase="Succeeded"), pod("q")],
        "needs 3 pods at once, only 1 exists; 2 finished, and finished pods do not count",
    ),
    "True of long ago says nothing": (
        group(5, reason="Scheduled"),
        [*pods(4, told=FITTED), pod("q", told=FULL)],
        "needs 5 pods at once, 3 fit (scheduler: 0/1 nodes are available: 1 Insufficient cpu)",
    ),
    "more than the quorum, the rest waits": (
        group(2, reason="Scheduled"),
        [*pods(2, node="n"), pod("q", told=FULL)],
        "1 of 3 pods wait (scheduler: 0/1 nodes are available: 1 Insufficient cpu)",
    ),
    "growing a gang": (
        group(4, said="minCount (4) cannot be satisfied: 3 scheduled, 0 remaining"),
        [*pods(2, node="n"), pod("q"), pod("r", told=FULL)],
        "needs 4 pods at once, 3 fit (scheduler: 0/1 nodes are available: 1 Insufficient cpu)",
    ),
    "terminating pods count while they have a node": (
        group(3),
        [*pods(2, node="n", deletionTimestamp="2026-11-30T00:00:00Z"), pod("q")],
        "needs 3 pods at once, the scheduler has not tried yet",
    ),
    "terminating pods without a node do not": (
        group(3),
        [*pods(2, deletionTimestamp="2026-11-30T00:00:00Z"), pod("q")],
        "needs 3 pods at once, only 1 exists",
    ),
    "no rack has room": (
        group(4, key=RACK, said=SAID.replace("0/1", "0/2").replace("3 scheduled", "2 scheduled")),
        [*pods(3), pod("q", told=RACKS_FULL)],
        f"needs 4 pods at once with the same {RACK}, 2 fit in the first of 2 places (scheduler: {RACKS_FULL})",
    ),
    "no node has the label": (
        group(4, key=RACK, said=f"no feasible placements found, {NO_VICTIMS}"),
        pods(4, told="no feasible placements found"),
        f"needs 4 pods at once with the same {RACK}, but no node has that label",
    ),
    "priorities differ": (
        group(2, reason="SchedulerError", said="all pods in a single pod group should have the same priority"),
        pods(2, told="all pods in a single pod group should have the same priority"),
        "the scheduler cannot place it: all pods in a single pod group should have the same priority",
    ),
    "basic": (
        group(None, reason="Scheduled"),
        [*pods(4, node="n"), pod("q", told=FULL), pod("r", told=FULL)],
        "2 of 6 pods wait (scheduler: 0/1 nodes are available: 1 Insufficient cpu)",
    ),
    "basic, nothing said": (group(None), pods(1), "1 of 1 pods wait"),
    "a very long message": (group(1, said="x" * 1000), pods(1), f"needs 1 pod at once (scheduler: {'x' * 200}...)"),
}


@pytest.mark.parametrize(("waiting", "members", "why"), CASES.values(), ids=CASES.keys())
def test_why_it_waits(waiting: PodGroup, members: list[Pod], why: str) -> None:
    assert why_waiting(waiting, members) == why


def test_the_message_of_the_facts_is_recognised() -> None:
    assert THREE_FIT in SAID
    assert "3 fit" in why_waiting(group(5, said=SAID), pods(5))
