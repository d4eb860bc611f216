"""An elastic gang: its quorum moves in place, up before the Job grows and down after it shrank."""

from itertools import pairwise

import pytest

from tests.server.plane import wait_for
from tests.server.scheduling.lab import Change, Lab, min_count


@pytest.mark.decision(34)
def test_a_gang_grows_as_a_whole_and_shrinks_under_the_same_objects(lab: Lab) -> None:
    lab.add_nodes(3)
    since = lab.version()
    lab.start(lab.job("w", pods=2))
    first = lab.wait_running(2)
    before = lab.uids("workloads,podgroups")

    lab.scale(4)
    lab.wait_unschedulable("2 of the 4 pods that must be placed together are placed", "Insufficient cpu")
    full = lab.version()
    assert sorted(map(bool, lab.nodes_of_pods().values())) == [False, False, True, True]
    lab.add_nodes(1)
    grown = lab.wait_running(4)
    assert first.items() < grown.items()
    new = [life for life in lab.lives(since) if life.name not in first]
    assert all(life.bound > full for life in new), "a new pod was bound before there was room for both"

    lab.scale(2)
    lab.wait_running(2)
    wait_for(lambda: [min_count(g) for g in lab.of("podgroups")] == [2], "the old quorum")
    wait_for(
        lambda: [min_count(w["spec"]["podGroupTemplates"][0]) for w in lab.of("workloads")] == [2], "the old template"
    )
    assert lab.uids("workloads,podgroups") == before
    lab.wait_condition("PodGroupsScheduled", "AllPodGroupsScheduled")

    quorum_up, quorum_down = _steps([(c, min_count(c.object)) for c in lab.history("podgroups", since)])
    jobs_up, jobs_down = _steps([(c, c.object["spec"]["parallelism"]) for c in lab.history("jobs", since)])
    assert quorum_up < jobs_up
    assert jobs_down < quorum_down


@pytest.mark.decision(34)
def test_a_gang_grows_as_a_whole_under_a_group_that_is_on_its_way_out(lab: Lab) -> None:
    """Its pods hold it, and those of one Job wait for those of the other: none may wait for a successor."""
    lab.add_nodes(4)
    lab.start(lab.job("a"), lab.job("b"))
    first = lab.wait_running(2)
    groups = lab.uids("podgroups")
    (name,) = groups
    lab.run("delete", "podgroup", name, "--wait=false")
    paths = [f"/spec/replicatedJobs/{n}/template/spec/{f}" for n in (0, 1) for f in ("parallelism", "completions")]
    lab.patch("jobset", "js", [{"op": "replace", "path": path, "value": 2} for path in paths])
    assert first.items() < lab.wait_running(4).items()
    assert lab.uids("podgroups") == groups
    (group,) = lab.of("podgroups")
    assert min_count(group) == 4
    assert "deletionTimestamp" in group["metadata"]


@pytest.mark.decision(21)
def test_a_group_without_pods_does_not_exist_and_comes_with_its_first_pods(lab: Lab) -> None:
    lab.add_nodes(3)
    entries = [{"targetReplicatedJobs": ["later"], "job": {}}, {"targetReplicatedJobs": ["now"]}]
    idle = lab.job("later", pods=0, completions=2)
    lab.start(idle, lab.job("now"), scheduling={"replicatedJobs": entries})
    first = lab.wait_running(1)
    assert [min_count(group) for group in lab.of("podgroups")] == [1]
    path = "/spec/replicatedJobs/0/template/spec/parallelism"
    lab.patch("jobset", "js", [{"op": "replace", "path": path, "value": 2}])
    assert first.items() < lab.wait_running(3).items()
    groups = {group["metadata"]["name"]: min_count(group) for group in lab.of("podgroups")}
    (later,) = (name for name in groups if "later" in name)
    assert groups[later] == 2
    members = [pod["spec"]["schedulingGroup"]["podGroupName"] for pod in lab.of("pods")]
    assert members.count(later) == 2
    (workload,) = lab.of("workloads")
    assert len(workload["spec"]["podGroupTemplates"]) == 2
    lab.wait_condition("PodGroupsScheduled", "AllPodGroupsScheduled")
    assert lab.condition("SchedulingDegraded")["status"] == "", "what its owner asked for is no drift"


def _steps(values: list[tuple[Change, int]]) -> list[int]:
    """The versions at which the value changed."""
    return [new.version for (_, before), (new, after) in pairwise(values) if before != after]
