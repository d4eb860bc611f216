"""Clusters and controllers with a gate turned off: the JobSet runs, and says what it runs without.

Each plane is the test's own. That nothing changes can only be watched for a while: 20 seconds here, in which the
controller looks at the JobSet at least twice because its labels change. A controller that undoes what the cluster did
writes within milliseconds of each look.
"""

from typing import Any

import pytest

from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import Plane
from tests.server.plane import MakePlane, wait_for
from tests.server.scheduling.lab import RACK, Lab
from tests.server.test_controller import GANG, Object, manifest, replicated_job

WATCHED_SECONDS = 20
CLAIM = {"name": "channel", "resourceClaimName": "shared"}
CLAIMS = {
    "replicatedJobs": [{"targetReplicatedJobs": ["w"], "job": {**GANG, "resourceClaims": [CLAIM]}}],
}
TOPOLOGY = {**GANG, "schedulingConstraints": {"topology": [{"key": RACK}]}}


def lab_without(make_plane: MakePlane, **options: Any) -> Lab:
    plane = make_plane(controller=True, layout=NodeLayout(count=2), **options)
    return Lab(plane.run_kubectl, "default")


def two_pods(lab: Lab, scheduling: Object) -> None:
    lab.start(replicated_job("w", "sleep infinity", pods=2), scheduling=scheduling)
    lab.wait_running(2)


def look_twice(lab: Lab) -> None:
    for look in ("once", "twice"):
        lab.run("label", "--overwrite", "jobset", "js", f"look={look}")


def warnings(lab: Lab, reason: str) -> list[str]:
    """The texts of the warning events of that reason."""
    return [e["message"] for e in lab.all("events") if (e["type"], e["reason"]) == ("Warning", reason)]


def with_gate_off(plane: Plane) -> None:
    """The same plane with a controller that knows nothing of spec.scheduling."""
    Plane(plane.directory, PlaneOptions(feature_gates={"JobSetWorkloadAwareSchedulingAPI": False})).start()


@pytest.mark.parametrize(
    ("gate", "field", "scheduling"),
    [
        ("TopologyAwareWorkloadScheduling", "schedulingConstraints", TOPOLOGY),
        ("DRAWorkloadResourceClaims", "resourceClaims", CLAIMS),
    ],
)
def test_a_dropped_field_is_told_once_and_nothing_is_replaced(
    make_plane: MakePlane, gate: str, field: str, scheduling: Object
) -> None:
    lab = lab_without(make_plane, kubernetes_feature_gates={gate: False})
    two_pods(lab, scheduling)
    told = lab.wait_condition("SchedulingDegraded", "FieldsDropped")
    assert told["status"] == "True"
    assert f"{field} (feature gate {gate})" in told["message"]
    (group,) = lab.of("podgroups")
    assert not group["spec"].get(field), "the cluster kept the field, so that this test proves nothing"

    pods, objects, since = lab.uids("pods"), lab.uids("workloads,podgroups"), lab.version()
    look_twice(lab)
    assert [(c.type, c.name) for c in lab.watch("podgroups", since, seconds=WATCHED_SECONDS)] == []
    assert [(c.type, c.name) for c in lab.watch("workloads", since, seconds=1)] == []
    assert lab.uids("workloads,podgroups") == objects
    assert lab.uids("pods") == pods
    assert warnings(lab, "FieldsDropped") == [told["message"]]


def test_without_the_scheduling_api_the_jobs_run_and_it_is_told(make_plane: MakePlane) -> None:
    lab = lab_without(make_plane, kubernetes_feature_gates={"GenericWorkload": False})
    two_pods(lab, GANG)
    told = lab.wait_condition("SchedulingDegraded", "APINotServed")
    assert told["status"] == "True"
    assert "GenericWorkload" in told["message"]
    assert all("schedulingGroup" not in pod["spec"] for pod in lab.of("pods"))
    jobs, since = lab.uids("jobs"), lab.version()
    look_twice(lab)
    seen = [c.type for c in lab.watch("jobs", since, seconds=WATCHED_SECONDS)]
    assert [t for t in seen if t != "MODIFIED"] == [], "the Job controller's counts may still change, nothing else"
    assert lab.uids("jobs") == jobs
    assert warnings(lab, "APINotServed") == [told["message"]]


def test_with_our_own_gate_off_a_stored_policy_is_as_if_it_were_not_there(make_plane: MakePlane) -> None:
    """On this cluster every other gate is on. The JobSet was stored before there was a controller to refuse it."""
    plane = make_plane()
    lab = Lab(plane.run_kubectl, "default")
    lab.start(replicated_job("w", "sleep 1", pods=2), scheduling=GANG)
    with_gate_off(plane)
    lab.wait_true("Completed")
    assert lab.all("workloads,podgroups") == []
    (job,) = lab.of("jobs")
    assert "schedulingGroup" not in job["spec"]["template"]["spec"]
    assert not [key for key in job["metadata"]["annotations"] if "scheduling.k8s.io" in key]
    types = {c["type"] for c in lab.get("jobset", "js")["status"]["conditions"]}
    assert types == {"Completed"}


def test_turning_our_own_gate_off_leaves_a_running_gang_alone(make_plane: MakePlane) -> None:
    plane = make_plane(controller=True, layout=NodeLayout(count=2))
    lab = Lab(plane.run_kubectl, "default")
    two_pods(lab, GANG)
    pods, jobs = lab.uids("pods"), lab.uids("jobs")
    with_gate_off(plane)
    lab.apply(manifest("next", replicated_job("w", "sleep 1")))
    lab.wait_true("Completed", "next")
    assert lab.uids("pods") == pods
    assert lab.uids("jobs") == jobs
    lab.patch("jobset", "js", {"spec": {"suspend": True}})
    wait_for(lambda: not lab.of("pods"), "suspended all the same")
