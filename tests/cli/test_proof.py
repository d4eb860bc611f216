"""The demo's verdict: what must have been seen, and what each miss is called."""

from dataclasses import replace

import pytest

from pyjobset.cli.proof import Proof
from tests.cli.families import FULL, family, group, job, jobset, pod

RUNNING = [pod(f"p{n}", node=f"n{n % 2}") for n in range(5)]
DONE = family(jobset(terminalState="Completed"))


def proof(*families: object) -> Proof:
    seen = Proof(pods=5)
    for one in families:
        seen.see(one)  # type: ignore[arg-type]
    return seen


def test_a_gang_that_ran() -> None:
    good = proof(family(group(), job()), family(group(), job(), *RUNNING), DONE)
    assert good.failures() == []
    assert good.summary(31.4) == [
        "JobSet Completed after 31 s.",
        "Workload js-workload had one PodGroup with minCount 5: all pods or none.",
        "5 pods ran on 2 nodes: n0, n1.",
    ]


MISSES = {
    "not completed": (proof(family(group(), job(), *RUNNING)), "the JobSet is Running, not Completed"),
    "failed": (
        proof(family(group(), job(), *RUNNING), family(jobset(terminalState="Failed"))),
        "the JobSet is Failed, not Completed",
    ),
    "no Workload": (proof(family(group(), job(), *RUNNING, workload=False), DONE), "there were 0 Workloads, not 1"),
    "another quorum": (
        proof(family(group(3), job(), *RUNNING), DONE),
        "there were PodGroups with minCount [3], not one with 5",
    ),
    "two groups": (
        proof(family(group(), group(name="g2"), job(), *RUNNING), DONE),
        "there were PodGroups with minCount [5, 5], not one with 5",
    ),
    "a pod too few": (proof(family(group(), job(), *RUNNING[:4]), DONE), "4 pods ran on nodes, not 5"),
    "never on a node": (
        proof(family(group(), job(), *(pod(f"p{n}", phase="Running") for n in range(5))), DONE),
        "0 pods ran on nodes, not 5",
    ),
}


@pytest.mark.parametrize(("bad", "failure"), MISSES.values(), ids=MISSES.keys())
def test_each_miss_is_named(bad: Proof, failure: str) -> None:
    assert bad.failures() == [failure]


def test_one_line_says_where_things_are() -> None:
    waiting = proof(family(group(), job(), *(pod(f"p{n}", told=FULL) for n in range(5))))
    assert waiting.line() == (
        "JobSet Waiting, 0 of 5 pods have run: js-group needs 5 pods at once (scheduler: "
        "0/1 nodes are available: 1 Insufficient cpu)"
    )
    assert replace(waiting, reason="").line() == "JobSet Waiting, 0 of 5 pods have run"
