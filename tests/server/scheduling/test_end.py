"""The end: whatever way a JobSet ends, its Workload and PodGroups go, and with it goes all that it owned."""

from tests.server.plane import wait_for
from tests.server.scheduling.lab import TERMINATE_AFTER, Lab

GROUPS = {
    "replicatedJobs": [
        {"targetReplicatedJobs": ["driver"], "schedulingPolicy": {"basic": {}}},
        {"targetReplicatedJobs": ["w"], "job": {"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}}},
    ]
}


def test_an_ended_jobset_reserves_nothing(lab: Lab) -> None:
    """Also where pods of a failed one take their time to go: their PodGroups go after them."""
    lab.add_nodes(10)
    workers = lab.job("w", "sleep infinity", 2, 2, notes={TERMINATE_AFTER: "4s"})
    lab.start(lab.job("driver", "sleep 1s"), workers, name="good", scheduling=GROUPS, successPolicy={
        "operator": "All", "targetReplicatedJobs": ["driver"]
    })  # fmt: skip
    lab.start(lab.job("driver", "sh", backoffLimit=0), workers, name="bad", scheduling=GROUPS)
    lab.wait_running(5, "bad")
    assert len(lab.of("podgroups", "bad")) == 3
    (driver,) = (p["metadata"]["name"] for p in lab.of("pods", "bad") if "-driver-" in p["metadata"]["name"])
    lab.run("delete", "pod", driver, "--wait=false")
    for name, type_ in (("good", "Completed"), ("bad", "Failed")):
        lab.wait_true(type_, name)
        assert wait_for(lambda n=name: not lab.of("workloads,podgroups", n), f"no reservation of {name} is left")
        assert not lab.nodes_of_pods(name)
        assert lab.get("jobset", name)["status"]["terminalState"] == type_


def test_a_deleted_jobset_leaves_nothing_also_while_its_gang_waits(lab: Lab) -> None:
    lab.add_nodes(1)
    lab.start(lab.job("driver"), lab.job("w", replicas=2), scheduling=GROUPS)
    lab.wait_unschedulable()
    lab.run("delete", "jobset", "js", "--wait=false")
    kinds = "jobsets,jobs,pods,services,workloads,podgroups"
    assert wait_for(lambda: not lab.all(kinds), "nothing is left")
