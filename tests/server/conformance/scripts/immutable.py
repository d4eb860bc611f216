"""What may not change, and what may."""

from collections.abc import Mapping

from tests.server.conformance.bodies import MANAGER, claim, job, jobset, pod, pod_group, workload
from tests.server.conformance.player import Script, create, patch
from tests.server.conformance.scripts.words import GANG_SIZE, RED, WORKLOAD_SIZE, condition, op, steps

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
