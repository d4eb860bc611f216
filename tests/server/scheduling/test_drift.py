"""Scheduling objects that someone changed: put right where no pod is disturbed, told where one would be."""

import json
import os
import signal

import pytest

from pyjobset.localplane.options import NodeLayout
from pyjobset.localplane.plane import Plane
from pyjobset.objects import names
from tests.server.plane import MakePlane, wait_for
from tests.server.scheduling.lab import Lab, Object
from tests.server.test_controller import replicated_job

BASIC = {"basic": {}}
OTHER_SPECS: dict[str, Object] = {
    "Workload": {"podGroupTemplates": [{"name": "other", "schedulingPolicy": BASIC}]},
    "PodGroup": {"schedulingPolicy": BASIC},
}


def other(kind: str, name: str, owner: Object | None = None) -> Object:
    """An object of that name as we would not make it."""
    metadata: Object = {"name": name}
    if owner is not None:
        reference = {"apiVersion": owner["apiVersion"], "kind": "JobSet", "name": owner["metadata"]["name"]}
        metadata["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"], "controller": True}]
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": kind,
        "metadata": metadata,
        "spec": OTHER_SPECS[kind],
    }


@pytest.mark.decision(35)
@pytest.mark.parametrize("kind", OTHER_SPECS)
def test_a_changed_object_without_pods_is_replaced(lab: Lab, kind: str) -> None:
    """It is made before the JobSet and then given to it, so that the JobSet has an object of another policy."""
    lab.add_nodes(2)
    group = names.workload_name(lab.namespace, "js")
    lab.apply(other(kind, group))
    lab.start(lab.job("w", pods=2))
    lab.wait_true("Blocked", words=f"{kind} {group}")
    before = lab.get(kind, group)["metadata"]["uid"]
    owned = other(kind, group, lab.get("jobset", "js"))["metadata"]["ownerReferences"]
    lab.patch(kind, group, {"metadata": {"ownerReferences": owned}})
    lab.wait_running(2)
    after = lab.get(kind, group)
    assert after["metadata"]["uid"] != before
    assert json.dumps(after["spec"]).count('"gang": {"minCount": 2}') == 1
    lab.wait_false("Blocked")


def test_a_workload_that_someone_deleted_comes_back(lab: Lab) -> None:
    lab.add_nodes(3)
    lab.start(lab.job("driver"), lab.job("w", pods=2))
    pods = lab.wait_running(3)
    (before,), groups = lab.of("workloads"), lab.uids("podgroups")
    lab.run("delete", "workload", before["metadata"]["name"], "--wait=false")  # kubectl may take its successor for it

    def is_back() -> bool:
        new = [w for w in lab.of("workloads") if w["metadata"]["uid"] != before["metadata"]["uid"]]
        assert [w["spec"] for w in new] == [before["spec"]]
        return True

    wait_for(is_back, "the Workload")
    assert lab.uids("podgroups") == groups
    assert lab.wait_running(3) == pods


def stop_controller(plane: Plane) -> None:
    def pid() -> int:
        return next(c.pid for c in plane.status().components if c.name == "jobset-controller")

    os.kill(pid(), signal.SIGTERM)
    wait_for(lambda: not pid(), "the end of the controller")


@pytest.mark.decision(35)
def test_running_pods_are_not_disturbed_for_a_changed_object(make_plane: MakePlane) -> None:
    """Both kinds are replaced while the controller is away: it would put a deleted object back at once."""
    plane = make_plane(controller=True, layout=NodeLayout(count=2))
    lab = Lab(plane, "default")
    leader, worker = replicated_job("leader", "sleep infinity"), replicated_job("w", "sleep infinity")
    lab.start(leader, worker, scheduling={}, startupPolicy={"startupPolicyOrder": "InOrder"})
    lab.wait_running(2)
    pods, owner = lab.uids("pods"), lab.get("jobset", "js")
    workload = names.workload_name("default", "js")
    group = next(g for g in lab.uids("podgroups") if "-leader-" in g)

    stop_controller(plane)
    lab.run("delete", "workload", workload)
    lab.run("delete", "podgroup", group, "--wait=false")
    lab.patch("podgroup", group, {"metadata": {"finalizers": None}})
    lab.run("create", "-f", "-", stdin=json.dumps(other("Workload", workload, owner)))
    lab.run("create", "-f", "-", stdin=json.dumps(other("PodGroup", group, owner)))
    changed = {lab.get(kind, name)["metadata"]["uid"] for kind, name in (("workload", workload), ("podgroup", group))}
    # A Job that is missing now has no part in what was changed: its own group is right.
    lab.run("delete", "job", "js-w-0")
    plane.start()

    told = lab.wait_true("SchedulingDegraded", words=f"Workload {workload}")
    assert told["reason"] == "ObjectsDrifted"
    assert f"PodGroup {group}" in told["message"]
    lab.wait_event("ObjectsDrifted")
    lab.wait_running(2)
    kept = lab.uids("pods")
    assert len(kept.items() & pods.items()) == 1, "the leader's pod was disturbed"
    assert changed <= {o["metadata"]["uid"] for o in lab.all("workloads,podgroups")}

    lab.patch("jobset", "js", {"spec": {"suspend": True}})
    wait_for(lambda: not lab.all("workloads,podgroups"), "nothing is reserved")
    lab.patch("jobset", "js", {"spec": {"suspend": False}})
    lab.wait_running(2)
    lab.wait_condition("SchedulingDegraded", "Restored")
    assert {json.dumps(g["spec"]["schedulingPolicy"]) for g in lab.of("podgroups")} == {'{"gang": {"minCount": 1}}'}
