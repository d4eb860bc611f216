"""What the API server makes of an object that is created."""

from collections.abc import Mapping

from tests.server.conformance.bodies import claim, job, jobset, pod, pod_group, service, template, workload
from tests.server.conformance.player import Script, create, delete, get
from tests.server.conformance.scripts.words import HOLD, condition, steps

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
