"""Where the scheduler puts a gang, and in which order its Jobs come: all or none, one rack, leader first."""

from typing import Any

import pytest

from tests.server.plane import wait_for
from tests.server.scheduling.lab import RACK, READY_AFTER, Lab

ON_ONE_RACK = {"schedulingPolicy": {"gang": {}}, "schedulingConstraints": {"topology": [{"key": RACK}]}}


@pytest.mark.decision(26)
def test_a_gang_without_room_binds_no_pod_until_there_is_room_for_all(lab: Lab) -> None:
    lab.add_nodes(2)
    since = lab.version()
    lab.start(lab.job("driver"), lab.job("w", pods=2))
    lab.wait_unschedulable("0 of the 3 pods that must be placed together are placed", "Insufficient cpu")
    lab.wait_event("PodGroupUnschedulable")
    full = lab.version()
    lab.add_nodes(1)
    assert len(set(lab.wait_running(3).values())) == 3
    assert all(life.bound > full for life in lab.lives(since)), "a pod was bound before there was room for all"
    lab.wait_condition("PodGroupsScheduled", "AllPodGroupsScheduled")


def test_a_gang_of_one_rack_is_not_spread_even_where_the_cluster_has_room(lab: Lab) -> None:
    for rack in ("a", "b"):
        lab.add_nodes(2, rack=rack)
    since = lab.version()
    lab.start(lab.job("w", pods=3), name="wide", scheduling=ON_ONE_RACK)
    lab.wait_unschedulable(name="wide")
    lab.start(lab.job("w", pods=3), name="free")
    lab.wait_running(3, "free")
    lab.run("delete", "jobset", "free")
    lab.start(lab.job("w", pods=2), name="fits", scheduling=ON_ONE_RACK)
    nodes = lab.wait_running(2, "fits").values()
    assert len({lab.get("node", node)["metadata"]["labels"][RACK] for node in nodes}) == 1
    assert [life.bound for life in lab.lives(since, "wide")] == [0, 0, 0]
    assert lab.condition("PodGroupsScheduled", "wide")["status"] == "False"


@pytest.mark.parametrize(
    ("depends_on", "spec"),
    [
        ([{"name": "leader", "status": "Ready"}], {}),
        (None, {"startupPolicy": {"startupPolicyOrder": "InOrder"}}),
    ],
    ids=["dependsOn", "InOrder"],
)
def test_the_workers_come_after_the_leader_is_ready(lab: Lab, depends_on: Any, spec: Any) -> None:
    lab.add_nodes(3)
    since = lab.version()
    leader = lab.job("leader", "sleep 4s", notes={READY_AFTER: "2s"})
    lab.start(leader, lab.job("w", "sleep 1s", pods=2, depends_on=depends_on), scheduling={}, **spec)
    lab.wait_true("Completed")
    jobs = lab.history("jobs", since)
    ready = next(c.version for c in jobs if c.name == "js-leader-0" and c.object["status"].get("ready"))
    made = {c.name: c.version for c in jobs if c.type == "ADDED"}
    assert made["js-w-0"] > ready > made["js-leader-0"]
    groups = [c.version for c in lab.history("podgroups", since) if c.type == "ADDED"]
    assert len(groups) == 2
    assert max(groups) < made["js-leader-0"]


@pytest.mark.decision(36)
def test_many_replicas_are_as_many_gangs_under_one_template(lab: Lab) -> None:
    lab.add_nodes(2, cpu="64")
    entry = {"targetReplicatedJobs": ["w"], "job": {"schedulingPolicy": {"gang": {}}}}
    lab.start(lab.job("w", replicas=20, pods=2, cpu="100m"), scheduling={"replicatedJobs": [entry]})
    lab.wait_running(40)
    (workload,) = lab.of("workloads")
    (template,) = workload["spec"]["podGroupTemplates"]
    groups = lab.of("podgroups")
    assert [(g["spec"]["workloadRef"]["templateName"], g["spec"]["schedulingPolicy"]) for g in groups] == [
        (template["name"], {"gang": {"minCount": 2}})
    ] * 20
    used = [p["spec"]["schedulingGroup"]["podGroupName"] for p in lab.of("pods")]
    assert {name: used.count(name) for name in used} == {g["metadata"]["name"]: 2 for g in groups}
    wait_for(
        lambda: lab.condition("PodGroupsScheduled")["message"] == "20 of 20 pod groups are scheduled", "the condition"
    )
