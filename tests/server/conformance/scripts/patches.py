"""Merge patches, JSON patches, server-side apply: what they change, and what makes a new version."""

from collections.abc import Mapping

from tests.server.conformance.bodies import claim, job, jobset, pod, pod_group, service, workload
from tests.server.conformance.player import Script, create, delete, patch
from tests.server.conformance.scripts.words import GANG_SIZE, RED, WORKLOAD_SIZE, condition, op, steps

PATCHES: Mapping[str, Script] = {
    "a patch of status leaves metadata and spec alone": steps(
        create("jobsets", jobset()),
        patch(
            "jobsets",
            "a",
            {"metadata": {"labels": {"x": "y"}}, "spec": {"suspend": True}, "status": {"restarts": 1}},
            "status",
        ),
        watch="jobsets",
    ),
    "a patch of a Job's status leaves spec alone": steps(
        create("jobs", job()),
        patch("jobs", "a", {"spec": {"backoffLimit": 1}, "status": {"active": 1}}, "status"),
        watch="jobs",
    ),
    "a patch of a PodGroup's status leaves spec alone": steps(
        create("podgroups", pod_group()),
        patch(
            "podgroups",
            "a",
            {**GANG_SIZE, "status": {"conditions": [condition("X", lastTransitionTime="2026-01-01T00:00:00Z")]}},
            "status",
        ),
    ),
    "what a patch of status does to metadata": steps(
        *(create(plural, body()) for plural, body in (("jobs", job), ("jobsets", jobset), ("podgroups", pod_group))),
        *(
            patch(plural, "a", {"metadata": {"labels": {"x": "y"}, "annotations": {"n": "1"}}}, "status")
            for plural in ("jobs", "jobsets", "podgroups")
        ),
        *(
            patch(plural, "a", {"metadata": {"finalizers": ["example.com/hold"]}}, "status")
            for plural in ("jobs", "jobsets", "podgroups")
        ),
    ),
    "a patch leaves status alone": steps(
        create("jobsets", jobset()),
        patch("jobsets", "a", {"status": {"restarts": 1}}, "status"),
        patch("jobsets", "a", {"spec": {"suspend": True}, "status": {"restarts": 2}}),
        watch="jobsets",
    ),
    "a patch of status alone by the other way changes nothing": steps(
        create("jobs", job()), patch("jobs", "a", {"status": {"active": 2}}), watch="jobs"
    ),
    "a patch of status where there is none": steps(
        create("workloads", workload()), patch("workloads", "a", {"status": {"x": 1}}, "status")
    ),
    "a patch that changes nothing makes no version": steps(
        create("jobs", job()),
        patch("jobs", "a", {"spec": {"suspend": True}}),
        patch("jobs", "a", {}),
        create("jobsets", jobset()),
        patch("jobsets", "a", {"metadata": {"labels": None}}),
        create("podgroups", pod_group()),
        patch("podgroups", "a", {"metadata": {"labels": {}}}),
        patch("podgroups", "a", {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}),
        watch="jobs",
    ),
    "the first status of a JobSet, also where it is empty": steps(
        create("jobsets", jobset()),
        patch("jobsets", "a", {"status": {"terminalState": None}}, "status"),
        patch("jobsets", "a", {"status": {"terminalState": None}}, "status"),
        patch("jobsets", "a", {"metadata": {"labels": {"x": "y"}}}, "status"),
        watch="jobsets",
    ),
    "empty conditions of a PodGroup are none": steps(
        create("podgroups", pod_group()),
        patch("podgroups", "a", {"status": {"conditions": []}}, "status"),
        watch="podgroups",
    ),
    "a status that is the same makes no version": steps(
        create("jobsets", jobset()),
        patch("jobsets", "a", {"status": {"restarts": 1}}, "status"),
        patch("jobsets", "a", {"status": {"restarts": 1, "terminalState": None}}, "status"),
        watch="jobsets",
    ),
    "generation counts changes of spec": steps(
        create("jobsets", jobset()),
        patch("jobsets", "a", RED),
        patch("jobsets", "a", {"spec": {"suspend": True}}),
        patch("jobsets", "a", {"status": {"restarts": 1}}, "status"),
        patch("jobsets", "a", {"spec": {"suspend": True}}),
        create("jobs", job()),
        patch("jobs", "a", RED),
        patch("jobs", "a", {"spec": {"backoffLimit": 2}}),
        patch("jobs", "a", {"spec": {"suspend": False}}),
        watch="jobsets",
    ),
    "generation of kinds that have none": steps(
        create("podgroups", pod_group()),
        patch("podgroups", "a", GANG_SIZE),
        create("workloads", workload()),
        patch("workloads", "a", WORKLOAD_SIZE),
        create("services", service()),
        patch("services", "a", {"spec": {"selector": {"x": "z"}}}),
        create("persistentvolumeclaims", claim()),
        patch("persistentvolumeclaims", "a", RED),
    ),
    "null removes a member": steps(
        create(
            "jobs", job(metadata={"labels": {"x": "1", "y": "2"}, "annotations": {"n": "1"}}, activeDeadlineSeconds=100)
        ),
        patch(
            "jobs",
            "a",
            {
                "metadata": {"labels": {"x": None, "z": None}, "annotations": None},
                "spec": {"activeDeadlineSeconds": None},
            },
        ),
        watch="jobs",
    ),
    "null in a status removes a member": steps(
        create("jobsets", jobset()),
        patch("jobsets", "a", {"status": {"restarts": 1, "terminalState": "Failed"}}, "status"),
        patch("jobsets", "a", {"status": {"terminalState": None}}, "status"),
        watch="jobsets",
    ),
    "a merge patch replaces lists": steps(
        create("jobsets", jobset()),
        patch(
            "jobsets",
            "a",
            {
                "status": {
                    "restarts": 0,
                    "conditions": [
                        condition("A", lastTransitionTime="2026-01-01T00:00:00Z"),
                        condition("B", lastTransitionTime="2026-01-01T00:00:00Z"),
                    ],
                }
            },
            "status",
        ),
        patch(
            "jobsets",
            "a",
            {"status": {"conditions": [condition("C", lastTransitionTime="2026-01-01T00:00:00Z")]}},
            "status",
        ),
    ),
    "a default that is removed comes back": steps(
        create("jobsets", jobset()),
        patch("jobsets", "a", {"spec": {"successPolicy": None, "startupPolicy": None}}),
        create("jobs", job()),
        patch("jobs", "a", {"spec": {"backoffLimit": None, "parallelism": None, "suspend": None}}),
        create("podgroups", pod_group()),
        patch("podgroups", "a", {"spec": {"disruptionMode": None}}),
        create("services", service()),
        patch("services", "a", {"spec": {"selector": None}}),
    ),
    "a patch with the right uid and version": steps(
        create("jobs", job()),
        patch(
            "jobs",
            "a",
            {"metadata": {"uid": "$uid:jobs/a", "resourceVersion": "$version:jobs/a", "labels": {"x": "y"}}},
        ),
    ),
    "a patch with the uid of another object": steps(
        create("jobs", job()),
        create("jobs", job("b")),
        patch("jobs", "a", {"metadata": {"uid": "$uid:jobs/b", "labels": {"x": "y"}}}),
        create("jobsets", jobset()),
        patch("jobsets", "a", {"metadata": {"uid": "$uid:jobs/b", "labels": {"x": "y"}}}),
        patch("jobsets", "a", {"metadata": {"uid": "$uid:jobs/b"}, "status": {"restarts": 1}}, "status"),
        patch("jobs", "a", {"metadata": {"uid": "$uid:jobs/b"}, "status": {"active": 1}}, "status"),
        create("podgroups", pod_group()),
        patch("podgroups", "a", {"metadata": {"uid": "$uid:jobs/b", "labels": {"x": "y"}}}),
        create("workloads", workload()),
        patch("workloads", "a", {"metadata": {"uid": "$uid:jobs/b", "labels": {"x": "y"}}}),
        create("services", service()),
        patch("services", "a", {"metadata": {"uid": "$uid:jobs/b", "labels": {"x": "y"}}}),
        watch="jobs",
    ),
    "a patch with the uid of an object that is gone": steps(
        create("jobs", job()),
        delete("jobs", "a"),
        create("jobs", job()),
        patch("jobs", "a", {"metadata": {"uid": "$first-uid:jobs/a"}, "spec": {"suspend": False}}),
        watch="jobs",
    ),
    "a patch with an old version": steps(
        create("jobsets", jobset()),
        patch("jobsets", "a", RED),
        patch("jobsets", "a", {"metadata": {"resourceVersion": "$first-version:jobsets/a"}, "spec": {"suspend": True}}),
        patch(
            "jobsets",
            "a",
            {"metadata": {"resourceVersion": "$first-version:jobsets/a"}, "status": {"restarts": 1}},
            "status",
        ),
        patch(
            "jobsets", "a", {"metadata": {"resourceVersion": "$version:jobsets/a"}, "status": {"restarts": 1}}, "status"
        ),
        create("jobs", job()),
        patch("jobs", "a", RED),
        patch("jobs", "a", {"metadata": {"resourceVersion": "$first-version:jobs/a"}, "spec": {"suspend": False}}),
        watch="jobsets",
    ),
    "a patch with an old version that changes nothing": steps(
        create("jobs", job()),
        patch("jobs", "a", RED),
        patch("jobs", "a", {"metadata": {"resourceVersion": "$first-version:jobs/a"}}),
    ),
    "a patch of what is not there": steps(
        patch("jobs", "a", {}),
        patch("jobs", "a", [op("remove", "/spec")]),
        patch("jobsets", "a", {"status": {}}, "status"),
    ),
    "a patch of the name": steps(create("workloads", workload()), patch("workloads", "a", {"metadata": {"name": "b"}})),
    "a patch of what the server decides": steps(
        create("jobs", job()),
        patch("jobs", "a", {"metadata": {"generation": 9}}),
        patch("jobs", "a", {"metadata": {"creationTimestamp": None}}),
        patch("jobs", "a", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        create("jobsets", jobset()),
        patch("jobsets", "a", {"metadata": {"generation": 9}}),
        watch="jobs",
    ),
    "a JSON patch: add, replace, remove, test": steps(
        create("jobs", job(metadata={"labels": {"x": "1"}})),
        patch(
            "jobs",
            "a",
            [
                op("test", "/metadata/uid", "$uid:jobs/a"),
                op("add", "/metadata/labels/y", "2"),
                op("replace", "/metadata/labels/x", "3"),
            ],
        ),
        patch("jobs", "a", [op("remove", "/metadata/labels/x")]),
        patch("jobs", "a", [op("add", "/metadata/annotations", {"n": "1"}), op("add", "/spec/suspend", False)]),
        watch="jobs",
    ),
    "a JSON patch whose test fails": steps(
        create("jobs", job()),
        create("jobs", job("b")),
        patch("jobs", "a", [op("test", "/metadata/uid", "$uid:jobs/b"), op("add", "/metadata/labels", {"x": "y"})]),
        patch("jobs", "a", [op("add", "/metadata/labels", {"x": "y"}), op("test", "/metadata/labels/x", "z")]),
        create("jobsets", jobset()),
        patch("jobsets", "a", [op("test", "/metadata/uid", "$uid:jobs/b")]),
        create("workloads", workload()),
        patch("workloads", "a", [op("test", "/metadata/uid", "$uid:jobs/b")]),
        watch="jobs",
    ),
    "a JSON patch of a path that is missing": steps(
        create("jobs", job()),
        patch("jobs", "a", [op("replace", "/metadata/labels/x", "1")]),
        patch("jobs", "a", [op("remove", "/metadata/annotations/x")]),
        patch("jobs", "a", [op("add", "/metadata/annotations/x", "1")]),
        patch("jobs", "a", [op("test", "/metadata/annotations/x", "1")]),
        patch("jobs", "a", [op("replace", "/spec/template/spec/containers/3/image", "i")]),
        patch("jobs", "a", [op("add", "/spec/template/spec/containers/7", {"name": "d", "image": "i"})]),
        patch("jobs", "a", [op("remove", "/spec/template/spec/containers/x")]),
        patch("jobs", "a", [op("test", "/spec/activeDeadlineSeconds", None)]),
    ),
    "a JSON patch of lists": steps(
        create("jobs", job(metadata={"finalizers": ["example.com/b"]})),
        patch(
            "jobs",
            "a",
            [
                op("add", "/metadata/finalizers/0", "example.com/a"),
                op("add", "/metadata/finalizers/-", "example.com/c"),
            ],
        ),
        patch(
            "jobs",
            "a",
            [op("replace", "/metadata/finalizers/1", "example.com/d"), op("remove", "/metadata/finalizers/0")],
        ),
        patch("jobs", "a", [op("add", "/spec/template/spec/tolerations", [{"key": "k", "operator": "Exists"}])]),
        patch("jobs", "a", [op("test", "/metadata/finalizers", ["example.com/d", "example.com/c"])]),
    ),
    "a JSON pointer with escapes": steps(
        create("jobs", job(metadata={"annotations": {"example.com/a": "1", "x": "1"}})),
        patch("jobs", "a", [op("replace", "/metadata/annotations/example.com~1a", "2")]),
        patch(
            "jobs",
            "a",
            [
                op("add", "/metadata/annotations/example.com~1b", "3"),
                op("test", "/metadata/annotations/example.com~1b", "3"),
            ],
        ),
        patch("jobs", "a", [op("remove", "/metadata/annotations/example.com~1a")]),
    ),
    "a JSON patch that changes nothing makes no version": steps(
        create("jobs", job()),
        patch("jobs", "a", [op("add", "/spec/suspend", True)]),
        patch("jobs", "a", [op("test", "/spec/suspend", True)]),
        watch="jobs",
    ),
    "applying a pod's condition": steps(
        create("pods", pod()),
        *(
            patch(
                "pods",
                "a",
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "a", "uid": f"${which}uid:pods/a"},
                    "status": {"conditions": [c]},
                },
                "status",
                "apply",
            )
            for which, c in (
                ("", condition("DisruptionTarget", lastTransitionTime="2026-01-01T00:00:00Z")),
                ("", condition("DisruptionTarget", lastTransitionTime="2026-01-01T00:00:00Z")),
                ("", condition("DisruptionTarget", "False", lastTransitionTime="2026-01-01T00:00:00Z")),
            )
        ),
        watch="pods",
    ),
    "applying a condition beside others": steps(
        create("pods", pod()),
        patch(
            "pods",
            "a",
            {
                "status": {
                    "phase": "Running",
                    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                }
            },
            "status",
        ),
        patch(
            "pods",
            "a",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "a", "uid": "$uid:pods/a"},
                "status": {"conditions": [condition("DisruptionTarget", lastTransitionTime="2026-01-01T00:00:00Z")]},
            },
            "status",
            "apply",
        ),
    ),
    "applying to another pod": steps(
        create("pods", pod()),
        create("pods", pod("b")),
        patch(
            "pods",
            "a",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "a", "uid": "$uid:pods/b"},
                "status": {"conditions": [condition("DisruptionTarget", lastTransitionTime="2026-01-01T00:00:00Z")]},
            },
            "status",
            "apply",
        ),
        watch="pods",
    ),
    "applying to a pod that is not there": steps(
        create("pods", pod("b")),
        patch(
            "pods",
            "a",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "a", "uid": "$uid:pods/b"},
                "status": {"conditions": [condition("DisruptionTarget", lastTransitionTime="2026-01-01T00:00:00Z")]},
            },
            "status",
            "apply",
        ),
    ),
}
