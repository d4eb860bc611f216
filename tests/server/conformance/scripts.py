"""Hand-written scripts for every behaviour that the model API server claims, by what they show."""

from collections.abc import Mapping
from typing import Any

from pyjobset.objects.meta import Manifest
from tests.server.conformance.bodies import MANAGER, claim, job, jobset, pod, pod_group, service, template, workload
from tests.server.conformance.player import Script, Step, Watch, create, delete, get, list_, patch

HOLD = {"finalizers": ["example.com/hold"]}
STATUS_PATCH = {"metadata": {"annotations": {"x": "y"}}, "spec": {"suspend": False}, "status": {"active": 1}}
RED, BLUE = {"metadata": {"labels": {"colour": "red"}}}, {"metadata": {"labels": {"colour": "blue"}}}
TEMPLATE = "/spec/template"
GANG_SIZE = {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
WORKLOAD_SIZE = [{"op": "replace", "path": "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount", "value": 3}]
NO_WATCH: tuple[Watch, ...] = ()


def steps(*each: Step, watch: str = "", lists: tuple[str, ...] = (), selector: str = "") -> Script:
    """All are played; `watch` is a kind that is watched from the beginning, and listed at the end."""
    watches = (Watch(watch, selector),) if watch else NO_WATCH
    return Script(each, watches, lists or ((watch,) if watch else ()))


def owned(plural_kind: str, name: str, *, blocks: bool = False) -> Manifest:
    plural, kind, version = {
        "job": ("jobs", "Job", "batch/v1"),
        "pod_group": ("podgroups", "PodGroup", "scheduling.k8s.io/v1beta1"),
    }[plural_kind]
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": f"$uid:{plural}/{name}"}
    return {"ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": blocks}]}


def op(operation: str, path: str, value: Any = None) -> Manifest:
    return {"op": operation, "path": path} | ({} if operation == "remove" else {"value": value})


def condition(type_: str, status: str = "True", **more: Any) -> Manifest:
    return {"type": type_, "status": status, "reason": "R", "message": "m", **more}


CREATION: Mapping[str, Script] = {
    "what a Job is filled up with": steps(create("jobs", job()), get("jobs", "a"), watch="jobs"),
    "what a NonIndexed Job is filled up with": steps(
        create("jobs", {"metadata": {"name": "a"}, "spec": {"suspend": True, "template": template()}})
    ),
    "parallelism is filled up beside completions": steps(create("jobs", job(parallelism=None, completions=3))),
    "labels of the Job's template are kept beside the generated ones": steps(
        create("jobs", job(template={"metadata": {"labels": {"x": "y"}, "annotations": {"n": "1"}}, **template()}))
    ),
    "what a PodGroup is filled up with": steps(create("podgroups", pod_group()), watch="podgroups"),
    "a PodGroup of the basic policy": steps(
        create("podgroups", pod_group(schedulingPolicy={"basic": {}}, workloadRef=None))
    ),
    "a PodGroup keeps its disruption mode and finalizers": steps(
        create("podgroups", pod_group(metadata=HOLD, disruptionMode={"all": {}}))
    ),
    "what a Workload is filled up with": steps(create("workloads", workload()), watch="workloads"),
    "what a Service is filled up with": steps(create("services", service()), watch="services"),
    "what a claim is filled up with": steps(create("persistentvolumeclaims", claim()), watch="persistentvolumeclaims"),
    "what a pod is filled up with": steps(create("pods", pod()), watch="pods"),
    "what a JobSet is filled up with": steps(create("jobsets", jobset()), watch="jobsets"),
    "what a JobSet's policies are filled up with": steps(
        create(
            "jobsets",
            jobset(
                failurePolicy={"rules": [{"name": "r", "action": "FailJobSet"}]},
                network={},
                startupPolicy={"startupPolicyOrder": "InOrder"},
            ),
        ),
        create("jobsets", jobset("b", network={"enableDNSHostnames": False}, coordinator={"replicatedJob": "w"})),
        create(
            "jobsets",
            jobset(
                "c", failurePolicy={"maxRestarts": 3}, successPolicy={"operator": "Any", "targetReplicatedJobs": ["w"]}
            ),
        ),
    ),
    "create twice": steps(create("jobs", job()), create("jobs", job()), watch="jobs"),
    "create twice in each kind": steps(
        *(
            create(plural, body())
            for plural, body in (("podgroups", pod_group), ("jobsets", jobset), ("services", service))
            for _ in range(2)
        )
    ),
    "create while the old one is terminating": steps(
        create("jobs", job(metadata=HOLD)), delete("jobs", "a"), create("jobs", job()), watch="jobs"
    ),
    "create a PodGroup while the old one is terminating": steps(
        create("podgroups", pod_group()), delete("podgroups", "a"), create("podgroups", pod_group()), watch="podgroups"
    ),
    "create again after the old one is gone": steps(
        create("jobs", job()), delete("jobs", "a"), create("jobs", job()), watch="jobs"
    ),
    "a name that is generated": steps(create("workloads", {**workload(), "metadata": {"generateName": "made-"}})),
    "neither a name nor a prefix": steps(create("workloads", {**workload(), "metadata": {}})),
    "a dry run answers and stores nothing": steps(
        create("workloads", workload(), dry_run=True),
        get("workloads", "a"),
        create("podgroups", pod_group(), dry_run=True),
        lists=("workloads", "podgroups"),
    ),
    "a dry run of what is there": steps(create("workloads", workload()), create("workloads", workload(), dry_run=True)),
    "a dry run of a Job and a JobSet": steps(
        create("jobs", job(), dry_run=True), create("jobsets", jobset(), dry_run=True)
    ),
    "what the server decides cannot be given": steps(
        create(
            "jobs",
            job(
                metadata={
                    "uid": "11111111-2222-4333-8444-555555555555",
                    "generation": 7,
                    "creationTimestamp": "2020-01-01T00:00:00Z",
                    "deletionTimestamp": "2020-01-01T00:00:00Z",
                }
            ),
        ),
        create(
            "jobsets",
            jobset(
                metadata={
                    "uid": "11111111-2222-4333-8444-555555555555",
                    "generation": 7,
                    "creationTimestamp": "2020-01-01T00:00:00Z",
                }
            ),
        ),
    ),
    "a version cannot be given": steps(create("workloads", workload(metadata={"resourceVersion": "7"}))),
    "another namespace cannot be given": steps(create("workloads", workload(metadata={"namespace": "other"}))),
    "status is dropped at creation": steps(
        create("jobs", {**job(), "status": {"active": 3}}),
        create("jobsets", {**jobset(), "status": {"restarts": 3}}),
        create("podgroups", {**pod_group(), "status": {"conditions": [condition("X")]}}),
        create("pods", {**pod(), "status": {"phase": "Running"}}),
    ),
}

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

IMMUTABLE: Mapping[str, Script] = {
    "a PodGroup's spec may not change but for minCount": steps(
        create("podgroups", pod_group()),
        patch("podgroups", "a", GANG_SIZE),
        patch("podgroups", "a", {"spec": {"workloadRef": {"workloadName": "b"}}}),
        patch("podgroups", "a", {"spec": {"disruptionMode": {"single": None, "all": {}}}}),
        patch("podgroups", "a", {"spec": {"schedulingPolicy": {"gang": None, "basic": {}}}}),
        patch("podgroups", "a", {"spec": {"schedulingConstraints": {"topology": [{"key": "k"}]}}}),
        patch("podgroups", "a", {"metadata": {"labels": {"x": "y"}, "ownerReferences": None}}),
        watch="podgroups",
    ),
    "a Workload's spec may not change but for minCount": steps(
        create("workloads", workload()),
        patch("workloads", "a", WORKLOAD_SIZE),
        patch("workloads", "a", {"spec": {"controllerRef": {"name": "b"}}}),
        patch("workloads", "a", [op("replace", "/spec/podGroupTemplates/0/name", "h")]),
        patch(
            "workloads", "a", [op("add", "/spec/podGroupTemplates/-", {"name": "h", "schedulingPolicy": {"basic": {}}})]
        ),
        patch("workloads", "a", RED),
        watch="workloads",
    ),
    "a suspended Job: what may change": steps(
        create("jobs", job()),
        *(
            patch("jobs", "a", [op("add", path, value)])
            for path, value in (
                ("/spec/template/metadata/labels/x", "y"),
                ("/spec/template/metadata/annotations", {"n": "1"}),
                ("/spec/template/spec/nodeSelector", {"n": "1"}),
                ("/spec/template/spec/tolerations", [{"key": "k", "operator": "Exists"}]),
                ("/spec/template/spec/schedulingGates", [{"name": "example.com/g"}]),
                ("/spec/template/spec/affinity", {"nodeAffinity": {}}),
                ("/spec/template/spec/containers/0/resources", {"requests": {"cpu": "1"}}),
                ("/spec/parallelism", 1),
                ("/spec/backoffLimit", 3),
                ("/spec/activeDeadlineSeconds", 30),
                ("/spec/ttlSecondsAfterFinished", 30),
            )
        ),
    ),
    "a suspended Job: what may not change": steps(
        create("jobs", job()),
        *(
            patch("jobs", "a", [op("add", path, value)])
            for path, value in (
                ("/spec/template/spec/containers/0/image", "other"),
                ("/spec/template/spec/containers/0/command", ["x"]),
                ("/spec/template/spec/schedulingGroup", {"podGroupName": "g"}),
                ("/spec/template/spec/priorityClassName", "system-node-critical"),
                ("/spec/template/spec/schedulerName", "other"),
                ("/spec/template/spec/restartPolicy", "OnFailure"),
                ("/spec/template/spec/terminationGracePeriodSeconds", 5),
                ("/spec/completions", 3),
                ("/spec/completionMode", "NonIndexed"),
                ("/spec/selector/matchLabels", {"x": "y"}),
                ("/spec/backoffLimitPerIndex", 1),
                ("/spec/managedBy", MANAGER),
                ("/spec/podReplacementPolicy", "Failed"),
                (
                    "/spec/podFailurePolicy",
                    {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
                ),
                ("/spec/successPolicy", {"rules": [{"succeededCount": 1}]}),
                ("/spec/manualSelector", True),
            )
        ),
    ),
    "a running Job: what may and may not change": steps(
        create("jobs", job(suspend=False)),
        *(
            patch("jobs", "a", [op("add", path, value)])
            for path, value in (
                ("/spec/template/metadata/labels/x", "y"),
                ("/spec/template/metadata/annotations", {"n": "1"}),
                ("/spec/template/spec/nodeSelector", {"n": "1"}),
                ("/spec/template/spec/tolerations", [{"key": "k", "operator": "Exists"}]),
                ("/spec/template/spec/containers/0/resources", {"requests": {"cpu": "1"}}),
                ("/spec/parallelism", 1),
                ("/spec/completions", 1),
                ("/spec/backoffLimit", 3),
                ("/spec/suspend", True),
                ("/spec/template/spec/nodeSelector", {"n": "2"}),
            )
        ),
    ),
    "an Indexed Job grows and shrinks when both numbers change": steps(
        create("jobs", job()),
        patch("jobs", "a", {"spec": {"parallelism": 4, "completions": 4}}),
        patch("jobs", "a", {"spec": {"parallelism": 1, "completions": 1}}),
        patch("jobs", "a", {"spec": {"completions": 2}}),
        patch("jobs", "a", {"spec": {"parallelism": 2}}),
        patch("jobs", "a", {"spec": {"completions": None}}),
    ),
    "a resumed Job gets its template in the same patch": steps(
        create("jobs", job()),
        patch(
            "jobs",
            "a",
            [
                op("test", "/metadata/uid", "$uid:jobs/a"),
                op("add", "/spec/template/spec/nodeSelector", {"n": "1"}),
                op("add", "/spec/suspend", False),
            ],
        ),
        patch(
            "jobs", "a", [op("add", "/spec/template/spec/nodeSelector", {"n": "2"}), op("add", "/spec/suspend", True)]
        ),
        watch="jobs",
    ),
    "a Job suspended after it had started": steps(
        create("jobs", job(suspend=False)),
        patch(
            "jobs",
            "a",
            {"status": {"startTime": "2026-01-01T00:00:00Z", "active": 1, "ready": 0, "terminating": 0}},
            "status",
        ),
        patch("jobs", "a", {"spec": {"suspend": True}}),
        patch("jobs", "a", [op("add", "/spec/template/spec/nodeSelector", {"n": "1"})]),
        patch(
            "jobs",
            "a",
            {
                "status": {
                    "active": 0,
                    "conditions": [
                        condition(
                            "Suspended", lastTransitionTime="2026-01-01T00:00:00Z", lastProbeTime="2026-01-01T00:00:00Z"
                        )
                    ],
                }
            },
            "status",
        ),
        patch("jobs", "a", [op("add", "/spec/template/spec/nodeSelector", {"n": "2"})]),
        patch("jobs", "a", {"status": {"startTime": None}}, "status"),
        patch(
            "jobs", "a", [op("add", "/spec/template/spec/nodeSelector", {"n": "3"}), op("add", "/spec/suspend", False)]
        ),
        watch="jobs",
    ),
    "startTime of a running Job": steps(
        create("jobs", job(suspend=False)),
        patch("jobs", "a", {"status": {"startTime": "2026-01-01T00:00:00Z"}}, "status"),
        patch("jobs", "a", {"status": {"startTime": "2026-01-02T00:00:00Z"}}, "status"),
        patch("jobs", "a", {"status": {"startTime": None}}, "status"),
    ),
    "a pod's spec may not change": steps(
        create("pods", pod()),
        patch("pods", "a", {"spec": {"nodeName": "node-0"}}),
        patch("pods", "a", {"spec": {"nodeSelector": {"n": "1"}}}),
        patch("pods", "a", {"spec": {"schedulingGroup": {"podGroupName": "g"}}}),
        patch("pods", "a", RED),
        patch("pods", "a", {"spec": {"terminationGracePeriodSeconds": 3}}),
    ),
    "a claim's spec may not change": steps(
        create("persistentvolumeclaims", claim()),
        patch("persistentvolumeclaims", "a", {"spec": {"accessModes": ["ReadOnlyMany"]}}),
        patch("persistentvolumeclaims", "a", {"spec": {"storageClassName": "x"}}),
        patch("persistentvolumeclaims", "a", RED),
    ),
    "a JobSet: what may not change": steps(
        create("jobsets", jobset(network={"subdomain": "x"}, failurePolicy={"maxRestarts": 1}, managedBy=MANAGER)),
        *(
            patch("jobsets", "a", {"spec": spec})
            for spec in (
                {"network": {"subdomain": "y"}},
                {"network": None},
                {"failurePolicy": None},
                {"failurePolicy": {"maxRestarts": 2}},
                {"startupPolicy": {"startupPolicyOrder": "InOrder"}},
                {"coordinator": {"replicatedJob": "w"}},
                {"managedBy": None},
                {"scheduling": {"schedulingPolicy": {"gang": {}}}},
                {"successPolicy": {"operator": "Any"}},
                {"suspend": True},
                {"ttlSecondsAfterFinished": 3},
            )
        ),
    ),
}

READING: Mapping[str, Script] = {
    "lists with a label selector": steps(
        create("workloads", workload("a", {"labels": {"colour": "red", "x": "1"}})),
        create("workloads", workload("b", {"labels": {"colour": "blue"}})),
        create("workloads", workload("c")),
        *(
            list_("workloads", label_selector=selector)
            for selector in (
                "",
                "colour",
                "colour=red",
                "colour==red",
                "colour=red,x=1",
                "colour=red,x=2",
                "x",
                "colour=green",
                "colour,x",
            )
        ),
        list_("jobs"),
    ),
    "lists with a field selector": steps(
        create("workloads", workload("a")),
        create("workloads", workload("b")),
        *(list_("workloads", field_selector=f"metadata.name={name}") for name in ("a", "c")),
        list_("jobs", field_selector="metadata.name=a"),
        list_("jobsets", field_selector="metadata.name=a"),
    ),
    "a watch with a selector, as labels change": steps(
        create("workloads", workload()),
        patch("workloads", "a", RED),
        patch("workloads", "a", {"metadata": {"annotations": {"n": "1"}}}),
        patch("workloads", "a", BLUE),
        patch("workloads", "a", WORKLOAD_SIZE),
        patch("workloads", "a", RED),
        delete("workloads", "a"),
        create("workloads", workload("b", {"labels": {"colour": "blue"}})),
        delete("workloads", "b"),
        watch="workloads",
        selector="colour=red",
    ),
    "a watch with a selector of a key": steps(
        create("jobs", job()),
        patch("jobs", "a", RED),
        patch("jobs", "a", BLUE),
        patch("jobs", "a", {"metadata": {"labels": {"colour": None}}}),
        delete("jobs", "a"),
        watch="jobs",
        selector="colour",
    ),
    "a watch from a version tells what came after it": Script(
        (
            create("jobs", job()),
            create("jobs", job("b")),
            patch("jobs", "a", RED),
            delete("jobs", "b"),
            patch("jobs", "a", BLUE),
        ),
        (Watch("jobs", first=2), Watch("jobs", first=3, selector="colour=red")),
        ("jobs",),
    ),
    "a streaming list tells what there is, a bookmark, then what comes": Script(
        (
            create("jobs", job()),
            create("jobs", job("b", {"labels": {"colour": "red"}})),
            create("jobs", job("c")),
            delete("jobs", "c"),
            patch("jobs", "a", RED),
            delete("jobs", "a"),
        ),
        (
            Watch("jobs", first=4, is_streaming_list=True),
            Watch("jobs", first=4, selector="colour=red", is_streaming_list=True),
        ),
        ("jobs",),
    ),
    "a streaming list of nothing": Script(
        (get("jobs", "a"),),
        (
            Watch("jobs", is_streaming_list=True),
            Watch("jobsets", is_streaming_list=True),
            Watch("podgroups", is_streaming_list=True),
        ),
    ),
    "what a watch tells of a deletion": steps(
        create("jobsets", jobset()),
        delete("jobsets", "a"),
        create("jobsets", jobset(metadata=HOLD)),
        delete("jobsets", "a"),
        patch("jobsets", "a", {"metadata": {"finalizers": None}}),
        watch="jobsets",
    ),
}

SCRIPTS: Mapping[str, Script] = {**CREATION, **PATCHES, **DELETION, **IMMUTABLE, **READING}
