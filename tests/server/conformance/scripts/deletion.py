"""The ways of deletion: finalizers, preconditions, pods that terminate, deletes that are repeated."""

from collections.abc import Mapping

from tests.server.conformance.bodies import claim, job, jobset, pod, pod_group, service, workload
from tests.server.conformance.player import Script, create, delete, get, list_, patch
from tests.server.conformance.scripts.words import GANG_SIZE, HOLD, RED, steps

DELETION: Mapping[str, Script] = {
    "delete in the background": steps(create("jobs", job()), delete("jobs", "a"), get("jobs", "a"), watch="jobs"),
    "delete in each kind": steps(
        create("workloads", workload()),
        delete("workloads", "a"),
        create("jobsets", jobset()),
        delete("jobsets", "a"),
        create("podgroups", pod_group()),
        delete("podgroups", "a"),
        create("services", service()),
        delete("services", "a"),
        create("pods", pod()),
        delete("pods", "a"),
        create("persistentvolumeclaims", claim()),
        delete("persistentvolumeclaims", "a"),
        lists=("workloads", "jobsets", "podgroups", "services", "pods", "persistentvolumeclaims"),
    ),
    "delete in the foreground": steps(
        create("jobs", job()),
        delete("jobs", "a", "Foreground"),
        get("jobs", "a"),
        patch("jobs", "a", {"metadata": {"finalizers": None}}),
        get("jobs", "a"),
        watch="jobs",
    ),
    "delete a JobSet in the foreground": steps(
        create("jobsets", jobset()),
        delete("jobsets", "a", "Foreground"),
        patch("jobsets", "a", {"metadata": {"finalizers": []}}),
        watch="jobsets",
    ),
    "delete with a finalizer": steps(
        create("jobs", job(metadata=HOLD)),
        delete("jobs", "a"),
        patch("jobs", "a", RED),
        patch("jobs", "a", {"metadata": {"finalizers": []}}),
        get("jobs", "a"),
        watch="jobs",
    ),
    "delete in the foreground with a finalizer": steps(
        create("jobs", job(metadata=HOLD)),
        delete("jobs", "a", "Foreground"),
        patch("jobs", "a", {"metadata": {"finalizers": ["foregroundDeletion"]}}),
        patch("jobs", "a", {"metadata": {"finalizers": []}}),
        watch="jobs",
    ),
    "delete twice with a finalizer": steps(
        create("jobs", job(metadata=HOLD)),
        delete("jobs", "a"),
        delete("jobs", "a"),
        delete("jobs", "a", "Foreground"),
        watch="jobs",
    ),
    "delete twice in the foreground": steps(
        create("jobs", job()), delete("jobs", "a", "Foreground"), delete("jobs", "a", "Foreground"), watch="jobs"
    ),
    "delete in the foreground, then in the background": steps(
        create("jobs", job()), delete("jobs", "a", "Foreground"), delete("jobs", "a"), watch="jobs"
    ),
    "delete in the background with a finalizer, then in the foreground, then in the background": steps(
        create("jobs", job(metadata=HOLD)),
        delete("jobs", "a"),
        delete("jobs", "a", "Foreground"),
        delete("jobs", "a"),
        watch="jobs",
    ),
    "a PodGroup is held by its finalizer": steps(
        create("podgroups", pod_group()),
        delete("podgroups", "a"),
        delete("podgroups", "a"),
        patch("podgroups", "a", GANG_SIZE),
        patch("podgroups", "a", {"metadata": {"finalizers": []}}),
        watch="podgroups",
    ),
    "the last finalizer goes with other changes": steps(
        create("jobsets", jobset(metadata=HOLD)),
        delete("jobsets", "a"),
        patch("jobsets", "a", {"metadata": {"finalizers": None, "labels": {"x": "y"}}, "spec": {"suspend": True}}),
        watch="jobsets",
    ),
    "no finalizer is added to what is terminating": steps(
        create("jobs", job(metadata=HOLD)),
        delete("jobs", "a"),
        patch("jobs", "a", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}),
        create("jobsets", jobset(metadata=HOLD)),
        delete("jobsets", "a"),
        patch("jobsets", "a", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}),
    ),
    "status of what is terminating": steps(
        create("jobsets", jobset(metadata=HOLD)),
        delete("jobsets", "a"),
        patch("jobsets", "a", {"status": {"restarts": 1}}, "status"),
        watch="jobsets",
    ),
    "spec of what is terminating": steps(
        create("jobsets", jobset(metadata=HOLD)),
        delete("jobsets", "a"),
        patch("jobsets", "a", {"spec": {"suspend": True}}),
        create("jobs", job(metadata=HOLD)),
        delete("jobs", "a"),
        patch("jobs", "a", {"spec": {"suspend": False}}),
    ),
    "delete with preconditions": steps(
        create("jobs", job()),
        create("jobs", job("b")),
        delete("jobs", "a", uid="$uid:jobs/b"),
        patch("jobs", "a", RED),
        delete("jobs", "a", version="$first-version:jobs/a"),
        delete("jobs", "a", "Foreground", uid="$uid:jobs/b"),
        delete("jobs", "a", uid="$uid:jobs/a", version="$version:jobs/a"),
        watch="jobs",
    ),
    "delete a PodGroup and a JobSet with the wrong uid": steps(
        create("podgroups", pod_group()),
        create("jobsets", jobset()),
        delete("podgroups", "a", uid="$uid:jobsets/a"),
        delete("jobsets", "a", uid="$uid:podgroups/a"),
        create("pods", pod()),
        delete("pods", "a", uid="$uid:podgroups/a"),
        create("workloads", workload()),
        delete("workloads", "a", uid="$uid:podgroups/a"),
    ),
    "delete what is not there": steps(
        delete("jobs", "a"), create("jobs", job()), delete("jobs", "a"), delete("jobs", "a", uid="$uid:jobs/a")
    ),
    "read what is not there": steps(
        get("jobs", "a"), get("jobsets", "a"), get("podgroups", "a"), get("pods", "a"), list_("jobs")
    ),
    "a pod that is asked to go again": steps(
        create("pods", pod("a", metadata=HOLD, nodeName="node-0")),
        delete("pods", "a", "Foreground"),
        delete("pods", "a"),
        create("pods", pod("b", metadata=HOLD)),
        delete("pods", "b", "Foreground"),
        delete("pods", "b"),
        create("pods", pod("c")),
        delete("pods", "c", "Foreground"),
        delete("pods", "c"),
        watch="pods",
    ),
    "a pod on no node goes at once": steps(create("pods", pod()), delete("pods", "a"), watch="pods"),
    "a pod on a node terminates": steps(
        create("pods", pod(nodeName="node-0")), delete("pods", "a"), delete("pods", "a"), get("pods", "a"), watch="pods"
    ),
    "a pod on a node that has ended goes at once": steps(
        create("pods", pod(nodeName="node-0")),
        patch("pods", "a", {"status": {"phase": "Succeeded"}}, "status"),
        delete("pods", "a"),
        create("pods", pod("b", nodeName="node-0")),
        patch("pods", "b", {"status": {"phase": "Failed"}}, "status"),
        delete("pods", "b", "Foreground"),
        watch="pods",
    ),
    "a pod that terminates with a finalizer": steps(
        create("pods", pod(nodeName="node-0", metadata=HOLD)),
        delete("pods", "a"),
        patch("pods", "a", {"metadata": {"finalizers": []}}),
        get("pods", "a"),
        watch="pods",
    ),
    "a pod on no node with a finalizer": steps(
        create("pods", pod(metadata=HOLD)),
        delete("pods", "a"),
        patch("pods", "a", {"metadata": {"finalizers": []}}),
        get("pods", "a"),
        watch="pods",
    ),
    "an ended pod with a finalizer": steps(
        create("pods", pod(nodeName="node-0", metadata=HOLD)),
        delete("pods", "a"),
        patch("pods", "a", {"status": {"phase": "Failed"}}, "status"),
        delete("pods", "a"),
        patch("pods", "a", {"metadata": {"finalizers": []}}),
        get("pods", "a"),
        watch="pods",
    ),
}
