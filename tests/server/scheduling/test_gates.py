"""Clusters and controllers with a gate turned off: the JobSet runs, says what it runs without, and has it back later.

Each plane is the test's own. That nothing changes can only be watched for a while: a minute here, in which the
controller looks at the JobSets at least twice because their labels change, and asks the API server for the gates. A
controller that undoes what the cluster did writes within milliseconds of each look.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import Plane
from tests.server.plane import MakePlane, wait_for
from tests.server.scheduling.lab import RACK, Change, Lab
from tests.server.test_controller import GANG, Object, manifest, replicated_job

WATCHED_SECONDS = 60
BACK_SECONDS = 90
"""More than a question for the gates takes at most, after the plane is up again."""
LAYOUT = NodeLayout(count=2)
CLAIM = {"name": "channel", "resourceClaimName": "shared"}
CLAIMS = {
    "replicatedJobs": [{"targetReplicatedJobs": ["w"], "job": {**GANG, "resourceClaims": [CLAIM]}}],
}
TOPOLOGY = {**GANG, "schedulingConstraints": {"topology": [{"key": RACK}]}}
DROPPED = {
    "topology": ("schedulingConstraints", "TopologyAwareWorkloadScheduling", TOPOLOGY),
    "claims": ("resourceClaims", "DRAWorkloadResourceClaims", CLAIMS),
}


def two_pods(lab: Lab, scheduling: Object, name: str = "js") -> None:
    lab.start(replicated_job("w", "sleep infinity", pods=2), name=name, scheduling=scheduling)
    lab.wait_running(2, name)


def watched(lab: Lab, *kinds: str) -> list[Change]:
    """What happens to them in WATCHED_SECONDS, while the controller looks at the JobSets twice."""
    since = lab.version()
    for look in ("once", "twice"):
        lab.run("label", "--overwrite", "jobset", "--all", f"look={look}")
    with ThreadPoolExecutor() as threads:
        told = threads.map(lambda kind: lab.watch(kind, since, seconds=WATCHED_SECONDS), kinds)
        return [change for changes in told for change in changes]


def warnings(lab: Lab, reason: str, name: str = "js") -> list[str]:
    """The texts of the warning events of that reason about a JobSet."""
    events = (e for e in lab.all("events") if e["involvedObject"]["name"] == name)
    return [e["message"] for e in events if (e["type"], e["reason"]) == ("Warning", reason)]


def with_all_gates(plane: Plane) -> None:
    """The same plane with its gates on: its API server, scheduler and controller-manager start anew."""
    Plane(plane.directory, PlaneOptions(layout=LAYOUT)).start()


def with_gate_off(plane: Plane) -> None:
    """The same plane with a controller that knows nothing of spec.scheduling."""
    Plane(plane.directory, PlaneOptions(feature_gates={"JobSetWorkloadAwareSchedulingAPI": False})).start()


def suspend_and_resume(lab: Lab, name: str = "js") -> None:
    lab.patch("jobset", name, {"spec": {"suspend": True}})
    wait_for(lambda: not lab.of("pods", name), f"the end of the pods of {name}")
    lab.patch("jobset", name, {"spec": {"suspend": False}})


def wait_told(lab: Lab, text: str, name: str = "js") -> None:
    def is_told() -> bool:
        found = lab.condition("SchedulingDegraded", name)
        assert text in found["message"], found
        return True

    wait_for(is_told, f"{text!r} of {name}")


def wait_right(lab: Lab, name: str = "js") -> None:
    def is_right() -> bool:
        found = lab.condition("SchedulingDegraded", name)
        assert found["status"] == "False", found
        return True

    wait_for(is_right, f"the end of SchedulingDegraded of {name}")


@pytest.mark.decision(22)
@pytest.mark.decision(35)
def test_dropped_fields_are_told_once_nothing_is_replaced_and_they_come_back_with_the_gates(
    make_plane: MakePlane,
) -> None:
    off = {gate: False for _, gate, _ in DROPPED.values()}
    plane = make_plane(controller=True, layout=LAYOUT, kubernetes_feature_gates=off)
    lab = Lab(plane, "default")
    told: dict[str, str] = {}
    for name, (field, gate, scheduling) in DROPPED.items():
        two_pods(lab, scheduling, name)
        found = lab.wait_condition("SchedulingDegraded", "FieldsDropped", name)
        assert found["status"] == "True"
        assert f"{field} (feature gate {gate})" in found["message"]
        (group,) = lab.of("podgroups", name)
        assert not group["spec"].get(field), "the cluster kept the field, so that this test proves nothing"
        told[name] = found["message"]

    before = [lab.uids("pods,workloads,podgroups", name) for name in DROPPED]
    assert [(c.type, c.name) for c in watched(lab, "podgroups", "workloads")] == []
    assert [lab.uids("pods,workloads,podgroups", name) for name in DROPPED] == before
    for name in DROPPED:
        assert warnings(lab, "FieldsDropped", name) == [told[name]]

    lab.start(lab.job("w", pods=2, cpu="1000", pod={"nodeSelector": {}}), name="waits", scheduling=TOPOLOGY)
    lab.wait_condition("SchedulingDegraded", "FieldsDropped", "waits")
    lab.wait_unschedulable(name="waits")
    with_all_gates(plane)
    wait_right(lab, "waits")
    (group,), (workload,) = lab.of("podgroups", "waits"), lab.of("workloads", "waits")
    assert group["spec"]["schedulingConstraints"] == TOPOLOGY["schedulingConstraints"]
    assert workload["spec"]["podGroupTemplates"][0]["schedulingConstraints"] == TOPOLOGY["schedulingConstraints"]
    lab.wait_unschedulable(name="waits")
    for name in DROPPED:
        wait_told(lab, "suspend and resume", name)
    assert [lab.uids("pods,workloads,podgroups", name) for name in DROPPED] == before, "running pods keep their group"
    suspend_and_resume(lab, "claims")
    wait_right(lab, "claims")
    (group,) = lab.of("podgroups", "claims")
    assert group["spec"]["resourceClaims"] == [CLAIM]


@pytest.mark.decision(22)
def test_without_the_scheduling_api_the_jobs_run_and_it_is_told_until_it_is_there(make_plane: MakePlane) -> None:
    plane = make_plane(controller=True, layout=LAYOUT, kubernetes_feature_gates={"GenericWorkload": False})
    lab = Lab(plane, "default")
    two_pods(lab, GANG)
    told = lab.wait_condition("SchedulingDegraded", "APINotServed")
    assert told["status"] == "True"
    assert "GenericWorkload" in told["message"]
    assert all("schedulingGroup" not in pod["spec"] for pod in lab.of("pods"))
    jobs = lab.uids("jobs")
    seen = [c.type for c in watched(lab, "jobs")]
    assert [t for t in seen if t != "MODIFIED"] == [], "the Job controller's counts may still change, nothing else"
    assert lab.uids("jobs") == jobs
    assert warnings(lab, "APINotServed") == [told["message"]]

    with_all_gates(plane)
    wait_told(lab, "suspend and resume")
    assert lab.uids("jobs") == jobs
    suspend_and_resume(lab)
    wait_right(lab)
    lab.wait_running(2)
    (group,) = lab.uids("podgroups")
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in lab.of("pods")} == {group}


def test_with_our_own_gate_off_a_stored_policy_is_as_if_it_were_not_there(make_plane: MakePlane) -> None:
    """On this cluster every other gate is on. The JobSet was stored before there was a controller to refuse it."""
    plane = make_plane()
    lab = Lab(plane, "default")
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
    lab = Lab(plane, "default")
    two_pods(lab, GANG)
    pods, jobs = lab.uids("pods"), lab.uids("jobs")
    with_gate_off(plane)
    lab.apply(manifest("next", replicated_job("w", "sleep 1")))
    lab.wait_true("Completed", "next")
    assert lab.uids("pods") == pods
    assert lab.uids("jobs") == jobs
    lab.patch("jobset", "js", {"spec": {"suspend": True}})
    wait_for(lambda: not lab.of("pods"), "suspended all the same")
