"""Rank: pods and their PodGroup have the same priority, and a higher gang takes the place of a lower one."""

import subprocess
import sys

import pytest

from pyjobset.localplane.plane import Plane
from pyjobset.objects import names
from tests.server.plane import wait_for
from tests.server.scheduling.lab import TERMINATE_AFTER, Lab, Object


def priority_class(lab: Lab, rank: str, value: int) -> str:
    """Its name. Classes are in no namespace."""
    name = f"{lab.namespace}-{rank}"
    lab.add(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
    )
    return name


def low_gang(lab: Lab, mode: str) -> Object:
    """Four pods of a low-ranking gang, running on all four nodes."""
    lab.add_nodes(4)
    low = priority_class(lab, "low", 10)
    # Four Jobs: the Job controller waits 10 s after the first failed pod of a Job, twice as long after each more.
    job = lab.job("w", replicas=4, notes={TERMINATE_AFTER: "3s"}, pod={"priorityClassName": low})
    lab.start(job, name="low", scheduling={"schedulingPolicy": {"gang": {}}, "disruptionMode": {mode: {}}})
    return lab.wait_running(4, "low")


def high(lab: Lab, pods: int) -> None:
    lab.start(lab.job("w", pods=pods, pod={"priorityClassName": priority_class(lab, "high", 1000)}), name="high")


def unplaced(lab: Lab) -> Object:
    """What is said of the lower gang once the scheduler has looked at its new pods."""
    found = lab.condition("PodGroupsScheduled", "low")
    assert "Insufficient cpu" in found["message"], found
    return found


@pytest.mark.decision(27)
def test_a_gang_that_is_disrupted_as_a_whole_goes_and_comes_back_as_a_whole(lab: Lab, plane: Plane) -> None:
    first = low_gang(lab, "all")
    high(lab, 2)
    told = lab.wait_condition("PodGroupsScheduled", "PodGroupPreempted", "low")
    assert "were preempted for a higher priority" in told["message"]
    lab.wait_running(2, "high")
    assert not lab.nodes_of_pods("low").keys() & first.keys(), "pods that were not needed were kept"
    lab.wait_event("PodGroupPreempted", "low")
    waiting = wait_for(lambda: unplaced(lab), "the scheduler's answer, once the Job controller has made the pods again")
    assert waiting["reason"] == "PodGroupPreempted", "it is said until the gang runs again"
    (group,) = lab.of("podgroups", "low")
    once = {c["type"]: c["status"] for c in group["status"]["conditions"]}
    assert (once["PodGroupInitiallyScheduled"], waiting["status"]) == ("True", "False")
    assert "0 of the 4 pods" in waiting["message"]
    assert "it was preempted for a higher priority" in waiting["message"]
    words = [sys.executable, "-m", "pyjobset", "explain", "low", "-n", lab.namespace]
    shown = subprocess.run(
        [*words, "--kubeconfig", plane.kubeconfig], capture_output=True, text=True, check=True
    ).stdout
    assert f"it had to make room for PodGroup {names.workload_name(lab.namespace, 'high')}" in shown, shown
    lab.run("delete", "jobset", "high")
    lab.wait_running(4, "low")
    lab.wait_condition("PodGroupsScheduled", "AllPodGroupsScheduled", "low")


def test_of_a_gang_that_is_disrupted_one_by_one_only_the_pod_that_is_needed_goes(lab: Lab) -> None:
    first = low_gang(lab, "single")
    high(lab, 1)
    lab.wait_condition("PodGroupsScheduled", "PodGroupPreempted", "low")
    lab.wait_running(1, "high")
    kept = {name for name, node in lab.nodes_of_pods("low").items() if node}
    assert kept < first.keys()
    assert len(kept) == 3


@pytest.mark.decision(33)
@pytest.mark.parametrize("spec", [{}, {"startupPolicy": {"startupPolicyOrder": "InOrder"}}], ids=["one", "sequenced"])
def test_a_class_that_is_missing_is_told_and_the_gang_runs_once_it_is_there(lab: Lab, spec: Object) -> None:
    lab.add_nodes(2)
    name = f"{lab.namespace}-late"
    pod = {"priorityClassName": name}
    lab.start(lab.job("driver", pod=pod), lab.job("w", pod=pod), scheduling={}, **spec)
    words = f"no PriorityClass with name {name} was found, and is tried again when there is one"
    lab.wait_true("Blocked", words=words)
    assert lab.of("jobs") == []
    lab.wait_event("SchedulingObjectsReconcileFailed")
    priority_class(lab, "late", 70)
    lab.wait_running(2)
    lab.wait_false("Blocked")
    assert {o["spec"]["priority"] for o in (*lab.of("pods"), *lab.of("podgroups"))} == {70}
