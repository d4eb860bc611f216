"""A restart under the failure policy: the groups stay, and the new attempt starts as one gang."""

import pytest

from tests.server.plane import wait_for
from tests.server.scheduling.lab import ATTEMPT, TERMINATE_AFTER, Lab, Object

MAPPING = "scheduling.k8s.io/group-template-name"


def mapping(job: Object) -> tuple[str, str]:
    template = job["metadata"]["annotations"][MAPPING]
    return template, job["spec"]["template"]["spec"]["schedulingGroup"]["podGroupName"]


def fail_driver(lab: Lab) -> None:
    """The driver's Job has no second try, so its pod's end is its own."""
    (driver,) = (p["metadata"]["name"] for p in lab.of("pods") if "-driver-" in p["metadata"]["name"])
    lab.run("delete", "pod", driver, "--wait=false")


def wait_attempt(lab: Lab, attempt: str, pods: int) -> None:
    def is_running() -> bool:
        running = lab.wait_running(pods)
        assert {p["metadata"]["labels"][ATTEMPT] for p in lab.of("pods")} == {attempt}, running
        return True

    wait_for(is_running, f"attempt {attempt} runs")


@pytest.mark.decision(31)
@pytest.mark.parametrize("strategy", ["Recreate", "BlockingRecreate"])
def test_a_restarted_gang_waits_for_its_last_old_pod_and_keeps_its_groups(lab: Lab, strategy: str) -> None:
    lab.add_nodes(6)  # room for the new pods next to the old ones, so that only the controller keeps them apart
    since = lab.version()
    driver = lab.job("driver", backoffLimit=0)
    workers = lab.job("w", replicas=2, notes={TERMINATE_AFTER: "8s"})
    lab.start(driver, workers, failurePolicy={"maxRestarts": 1, "restartStrategy": strategy})
    lab.wait_running(3)
    groups, jobs = lab.uids("workloads,podgroups"), {j["metadata"]["name"]: mapping(j) for j in lab.of("jobs")}

    fail_driver(lab)
    wait_attempt(lab, "1", 3)
    assert lab.uids("workloads,podgroups") == groups
    assert {j["metadata"]["name"]: mapping(j) for j in lab.of("jobs")} == jobs
    assert {p["spec"]["schedulingGroup"]["podGroupName"] for p in lab.of("pods")} == {g for _, g in jobs.values()}

    lives = lab.lives(since)
    old, new = ([life for life in lives if life.attempt == attempt] for attempt in "01")
    assert len(old) == len(new) == 3
    assert min(life.born for life in new) > max(life.gone for life in old) > 0
    lab.wait_condition("PodGroupsScheduled", "AllPodGroupsScheduled")


def test_a_group_that_someone_deleted_comes_back_between_two_attempts(lab: Lab) -> None:
    """It lasts as long as its pods do; until then nothing is touched."""
    lab.add_nodes(3)
    lab.start(lab.job("driver", backoffLimit=0), lab.job("w", pods=2), failurePolicy={"maxRestarts": 1}, scheduling={})
    pods = lab.wait_running(3)
    (group,) = lab.uids("podgroups")
    lab.run("delete", "podgroup", group, "--wait=false")
    lab.run("label", "jobset", "js", "look=again")
    assert "deletionTimestamp" in lab.get("podgroup", group)["metadata"]
    old = lab.uids("podgroups")
    assert lab.wait_running(3) == pods

    fail_driver(lab)
    wait_attempt(lab, "1", 3)
    new = lab.uids("podgroups")
    assert new.keys() == old.keys()
    assert new[group] != old[group]
