"""Suspend and resume: nothing is reserved meanwhile, and a resume waits for what the suspension still has to clear."""

import pytest

from pyjobset.objects import names
from tests.server.plane import wait_for
from tests.server.scheduling.lab import TERMINATE_AFTER, Change, Lab

SUSPEND = {"spec": {"suspend": True}}
RESUME = {"spec": {"suspend": False}}


def test_a_suspended_gang_reserves_nothing_and_comes_back_under_the_same_names(lab: Lab) -> None:
    lab.add_nodes(3)
    lab.start(lab.job("driver"), lab.job("w", pods=2))
    lab.wait_running(3)
    jobs, groups = lab.uids("jobs"), lab.uids("workloads,podgroups")
    lab.patch("jobset", "js", SUSPEND)
    assert wait_for(lambda: not lab.of("workloads,podgroups,pods"), "nothing is reserved")
    lab.wait_true("Suspended")
    lab.wait_false("PodGroupsScheduled")
    lab.patch("jobset", "js", RESUME)
    lab.wait_running(3)
    again = lab.uids("workloads,podgroups")
    assert again.keys() == groups.keys()
    assert not set(again.values()) & set(groups.values())
    assert lab.uids("jobs") == jobs


@pytest.mark.decision(35)
def test_a_resume_waits_until_the_old_pods_and_their_group_are_gone(lab: Lab) -> None:
    """One JobSet is resumed in the same breath, the other when its old group and pods are seen to terminate."""
    lab.add_nodes(8)
    both = ("breath", "glance")
    since = lab.version()
    for name in both:
        notes = {TERMINATE_AFTER: "1h"}
        lab.start(lab.job("driver", notes=notes), lab.job("w", pods=2, notes=notes), name=name)
    old = {name: (lab.wait_running(3, name), lab.uids("jobs", name)) for name in both}
    for name in both:
        lab.patch("jobset", name, SUSPEND)
    lab.patch("jobset", "breath", RESUME)
    wait_for(lambda: "deletionTimestamp" in lab.of("podgroups", "glance")[0]["metadata"], "the old group terminates")
    lab.patch("jobset", "glance", RESUME)
    lab.wait_looked()
    for name in both:
        lab.run("annotate", "pod", *old[name][0], f"{TERMINATE_AFTER}=0s", "--overwrite")
        lab.wait_running(3, name)
        lab.wait_condition("PodGroupsScheduled", "AllPodGroupsScheduled", name)
        assert lab.uids("jobs", name) == old[name][1], "a Job was lost"
        assert lab.condition("Suspended", name)["status"] != "True"
    assert not lab.nodes_of_pods("glance").keys() & old["glance"][0].keys()

    lives = lab.lives(since, "glance")
    assert all(life.gone for life in lives[:3])
    over = max(life.over for life in lives)
    assert [life.born > over for life in lives] == [False] * 3 + [True] * 3
    made = [c.version for c in lab.history("podgroups", since, "glance") if c.type == "ADDED"]
    resumed = [c.version for c in _resumes(lab, since)]
    assert len(made) == 2
    assert len(resumed) == 2
    assert min(resumed) > made[1], "a Job was resumed before its PodGroup was made"


def _resumes(lab: Lab, since: int) -> list[Change]:
    """The changes that resumed a Job of `glance`."""
    suspended: set[str] = set()
    found = []
    for change in lab.history("jobs", since, "glance"):
        if change.object["spec"]["suspend"]:
            suspended.add(change.name)
        elif change.name in suspended:
            suspended.remove(change.name)
            found.append(change)
    return found


def test_nothing_is_resumed_into_a_group_of_someone_else(lab: Lab) -> None:
    lab.add_nodes(2)
    lab.start(lab.job("w", pods=2), suspend=True)
    lab.wait_true("Suspended")
    group = names.workload_name(lab.namespace, "js")
    foreign = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": group}}
    lab.apply({**foreign, "spec": {"schedulingPolicy": {"basic": {}}}})
    lab.patch("jobset", "js", RESUME)
    lab.wait_true("Blocked", words=group)
    lab.run("label", "jobset", "js", "look=again")
    lab.wait_event("SchedulingObjectsReconcileFailed")
    (job,) = lab.of("jobs")
    assert job["spec"]["suspend"], "it was resumed, and its pods joined the group of someone else"
    assert lab.of("pods") == []
    lab.run("delete", "podgroup", group, "--wait=false")  # kubectl may take its successor for it
    lab.wait_running(2)
    lab.wait_false("Blocked")
