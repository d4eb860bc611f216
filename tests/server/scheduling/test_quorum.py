"""Finished pods do not count for a gang on Kubernetes 1.37. The quorum moves, so that the rest is not left waiting."""

import pytest

from tests.server.plane import wait_for
from tests.server.scheduling.lab import FAIL_AFTER, RUN_FOR, Lab, Object, min_count


def quorums(lab: Lab, since: int, name: str = "js") -> list[tuple[int, int]]:
    """(version, minCount) each time that the PodGroup's minCount moved."""
    found: list[tuple[int, int]] = []
    for change in lab.history("podgroups", since, name):
        if not found or found[-1][1] != min_count(change.object):
            found.append((change.version, min_count(change.object)))
    return found


def replacement(lab: Lab, old: Object) -> str:
    """The pod that the Job controller made for one that failed, once its backoff is over."""
    new = wait_for(lambda: lab.nodes_of_pods().keys() - old.keys(), "a replacement")
    return str(*new)


@pytest.mark.decision(20)
def test_a_failed_pod_is_replaced_after_its_peers_succeeded(lab: Lab) -> None:
    lab.add_nodes(3)
    since = lab.version()
    lab.start(lab.job("w", pods=3))
    pods = lab.wait_running(3)
    one, two, three = pods
    lab.note([one, two], RUN_FOR, "0s")
    wait_for(lambda: lab.nodes_of_pods().keys() == {three}, "the first two have ended")
    lab.note([three], FAIL_AFTER, "0s")
    new = replacement(lab, pods)
    wait_for(lambda: lab.nodes_of_pods().get(new), "the replacement is bound")
    ((_, full), (moved, live)) = quorums(lab, since)
    assert (full, live) == (3, 1)
    (bound,) = (life.bound for life in lab.lives(since) if life.name == new)
    assert bound > moved, "it did not wait for the quorum, so that this test proves nothing"
    lab.note([new], RUN_FOR, "0s")
    lab.wait_true("Completed")


@pytest.mark.decision(20)
def test_a_failed_pod_is_replaced_after_a_job_of_its_gang_succeeded(lab: Lab) -> None:
    lab.add_nodes(3)
    since = lab.version()
    lab.start(lab.job("driver"), lab.job("w", pods=2))
    pods = lab.wait_running(3)
    lab.note([name for name in pods if "-driver-" in name], RUN_FOR, "0s")
    wait_for(lambda: lab.get("job", "js-driver-0")["status"].get("succeeded"), "the driver's end")
    failing = next(name for name in pods if "-w-" in name)
    lab.note([failing], FAIL_AFTER, "0s")
    new = replacement(lab, pods)
    wait_for(lambda: lab.nodes_of_pods().get(new), "the replacement is bound")
    assert [quorum for _, quorum in quorums(lab, since)] == [3, 2]
    lab.note(lab.nodes_of_pods(), RUN_FOR, "0s")
    lab.wait_true("Completed")


@pytest.mark.decision(20)
@pytest.mark.parametrize("mode", ["Indexed", "NonIndexed"])
def test_the_tail_of_a_work_queue_finishes(lab: Lab, mode: str) -> None:
    lab.add_nodes(2)
    since = lab.version()
    lab.start(lab.job("w", "sleep 1s", pods=2, completions=5, completionMode=mode))
    lab.wait_true("Completed")
    moved = {quorum: version for version, quorum in quorums(lab, since)}
    assert moved.keys() == {2, 1}
    lives = lab.lives(since)
    assert len(lives) == 5
    assert max(life.bound for life in lives) > moved[1], (
        "no pod waited for the quorum, so that this test proves nothing"
    )


@pytest.mark.decision(20)
def test_a_quorum_that_the_user_fixed_is_kept_and_what_it_blocks_is_told(lab: Lab) -> None:
    lab.add_nodes(3)
    since = lab.version()
    job = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    scheduling = {"replicatedJobs": [{"targetReplicatedJobs": ["w"], "job": job}]}
    lab.start(lab.job("w", pods=3), scheduling=scheduling)
    pods = lab.wait_running(3)
    one, two, three = pods
    lab.note([one, two], RUN_FOR, "0s")
    wait_for(lambda: lab.nodes_of_pods().keys() == {three}, "the first two have ended")
    lab.note([three], FAIL_AFTER, "0s")
    new = replacement(lab, pods)
    told = lab.wait_condition("PodGroupsScheduled", "PodGroupQuorumOutOfReach")
    assert "finished pods do not count" in told["message"]
    assert "spec.scheduling" in told["message"]
    assert lab.nodes_of_pods() == {new: ""}
    assert [quorum for _, quorum in quorums(lab, since)] == [2]


@pytest.mark.decision(19)
def test_a_gang_with_fewer_completions_than_parallelism_forms(lab: Lab) -> None:
    lab.add_nodes(2)
    lab.start(lab.job("w", pods=4, completions=2))
    pods = lab.wait_running(2)
    assert [min_count(group) for group in lab.of("podgroups")] == [2]
    lab.note(pods, RUN_FOR, "0s")
    lab.wait_true("Completed")
