"""The rules of structure and schema: one manifest that each refuses, with the field, and one that it lets pass."""

from typing import Any

import pytest

from tests.manifests import (
    ABSENT,
    ALL_GATES,
    DRIVER,
    DRIVER_POD,
    ENTRIES,
    L63,
    RULE,
    WORKERS,
    Case,
    by_job,
    entry,
    jobs,
    mounted,
    problems_of_create,
    seen,
)

STRUCTURE = [
    Case("not-an-object", "manifest", {"": ["a list"]}, {}),
    Case("not-an-object", "manifest", {"": None}, {}),
    Case("wrong-api-version", "apiVersion", {"apiVersion": "jobset.x-k8s.io/v1alpha1"}, {}),
    Case("wrong-api-version", "apiVersion", {"apiVersion": ABSENT}, {}),
    Case("wrong-kind", "kind", {"kind": "Job"}, {}),
    Case("wrong-kind", "kind", {"kind": "jobset"}, {}),
    Case("wrong-kind", "kind", {"kind": ABSENT}, {}),
    Case("name-required", "metadata.name", {"metadata.name": ABSENT}, {"metadata": {"generateName": "js-"}}),
    Case("name-required", "metadata.name", {"metadata": {}}, {"metadata": {"name": "a"}}),
    Case("required-field", "metadata", {"metadata": None}, {}),
    Case("required-field", f"{DRIVER}.name", {f"{DRIVER}.name": ABSENT}, {}),
    Case("required-field", f"{DRIVER}.template", {f"{DRIVER}.template": ABSENT}, {}),
    Case("required-field", f"{DRIVER}.template.spec", {f"{DRIVER}.template": {}}, {}),
    Case("required-field", f"{DRIVER_POD}.containers", {f"{DRIVER_POD}.containers": None}, {}),
    Case("required-field", f"{DRIVER_POD}.containers[0].name", {f"{DRIVER_POD}.containers[0]": {}}, {}),
    Case("unknown-field", "spec.suspended", {"spec.suspended": True}, {"spec.suspend": True}),
    Case("unknown-field", "metadata.label", {"metadata.label": {}}, {"metadata.labels": {}}),
    Case("unknown-field", "replicatedJobs", {"replicatedJobs": []}, {}),
    Case("unknown-field", f"{DRIVER}.template.parallelism", {f"{DRIVER}.template.parallelism": 2}, {}),
    Case("wrong-type", f"{DRIVER}.replicas", {f"{DRIVER}.replicas": "3"}, {f"{DRIVER}.replicas": 3.0}),
    Case("wrong-type", f"{DRIVER}.replicas", {f"{DRIVER}.replicas": 3.5}, {f"{DRIVER}.replicas": None}),
    Case("wrong-type", f"{DRIVER}.replicas", {f"{DRIVER}.replicas": True}, {f"{DRIVER}.replicas": 3}),
    Case("wrong-type", "spec.suspend", {"spec.suspend": "true"}, {"spec.suspend": None}),
    Case("wrong-type", "metadata.name", {"metadata.name": 7}, {"metadata.name": "js7"}),
    Case("wrong-type", "spec", {"spec": []}, {"spec.replicatedJobs": jobs("w")}),
    Case("wrong-type", "metadata.labels.a", {"metadata.labels": {"a": 1}}, {"metadata.labels": {"a": "1"}}),
    Case("wrong-type", f"{DRIVER_POD}.nodeSelector", {f"{DRIVER_POD}.nodeSelector": []}, {}),
    Case("null-value", "spec.replicatedJobs[2]", {"spec.replicatedJobs[2]": None}, {"spec.suspend": None}),
    Case(
        "null-value",
        f"{DRIVER_POD}.tolerations[0]",
        {f"{DRIVER_POD}.tolerations": [None]},
        {f"{DRIVER_POD}.tolerations": None, f"{DRIVER_POD}.nodeSelector": {"a": None}, "metadata.labels": {"a": None}},
    ),
    Case("number-range", f"{DRIVER}.replicas", {f"{DRIVER}.replicas": 2**31}, {}),
    Case("number-range", "spec.ttlSecondsAfterFinished", {"spec.ttlSecondsAfterFinished": 2**31}, {}),
    Case(
        "number-range",
        "spec.activeDeadlineSeconds",
        {"spec.activeDeadlineSeconds": 2**63},
        {"spec.activeDeadlineSeconds": 2**63 - 1},
    ),
    Case(
        "number-range",
        f"{DRIVER}.template.spec.backoffLimit",
        {f"{DRIVER}.template.spec.backoffLimit": 2**31},
        {f"{DRIVER}.template.spec.backoffLimit": 2**31 - 1},
    ),
    Case("too-small", f"{DRIVER}.replicas", {f"{DRIVER}.replicas": -1}, {f"{DRIVER}.replicas": 0}),
    Case("too-small", "spec.ttlSecondsAfterFinished", {"spec.ttlSecondsAfterFinished": -1}, {}),
    Case(
        "too-small",
        "spec.failurePolicy.maxRestarts",
        {"spec.failurePolicy.maxRestarts": -1},
        {"spec.failurePolicy.maxRestarts": 0},
    ),
    Case("too-small", "spec.activeDeadlineSeconds", {"spec.activeDeadlineSeconds": 0}, {}),
    Case(
        "too-small",
        f"{ENTRIES}[1].job.schedulingPolicy.gang.minCount",
        by_job(schedulingPolicy={"gang": {"minCount": -1}}),
        by_job(schedulingPolicy={"gang": {"minCount": 0}}),
    ),
    Case("too-small", f"{DRIVER}.template.spec.parallelism", {f"{DRIVER}.template.spec.parallelism": -1}, {}),
    Case("too-long", f"{DRIVER}.name", {f"{DRIVER}.name": "a" * 64}, {}),
    Case("too-long", "spec.managedBy", {"spec.managedBy": f"a.b/{L63}"}, {"spec.managedBy": "a.b/c"}),
    Case(
        "too-many-items",
        "spec.scheduling.schedulingConstraints.topology",
        {"spec.scheduling.schedulingConstraints.topology": [{"key": "a"}, {"key": "b"}]},
        {"spec.scheduling.schedulingConstraints.topology": [{"key": "a"}]},
    ),
    Case(
        "too-many-items",
        f"{ENTRIES}[1].job.resourceClaims",
        by_job(resourceClaims=[{"name": f"c{i}", "resourceClaimName": "a"} for i in range(5)]),
        by_job(resourceClaims=[{"name": f"c{i}", "resourceClaimName": "a"} for i in range(4)]),
    ),
    Case(
        "too-many-items",
        "spec.replicatedJobs[6].dependsOn",
        {
            "spec.replicatedJobs": jobs(*"abcdefg"),
            "spec.replicatedJobs[6].dependsOn": [{"name": n, "status": "Ready"} for n in "abcdef"],
        },
        {
            "spec.replicatedJobs": jobs(*"abcdefg"),
            "spec.replicatedJobs[6].dependsOn": [{"name": n, "status": "Ready"} for n in "abcde"],
        },
    ),
    Case("too-few-items", f"{DRIVER_POD}.containers", {f"{DRIVER_POD}.containers": []}, {}),
    Case(
        "too-few-items",
        f"{ENTRIES}[1].targetReplicatedJobs",
        {ENTRIES: [entry("driver", "workers"), entry()]},
        {ENTRIES: [entry("driver", "workers")]},
    ),
    Case(
        "unsupported-value",
        f"{RULE}.action",
        {RULE: {"action": "RestartJobset"}},
        {RULE: {"action": "RestartJobSet"}},
    ),
    Case(
        "unsupported-value",
        f"{RULE}.onJobFailureReasons[0]",
        {RULE: {"action": "FailJobSet", "onJobFailureReasons": ["Because"]}},
        {RULE: {"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}},
    ),
    Case("unsupported-value", "spec.successPolicy.operator", {"spec.successPolicy.operator": "Some"}, {}),
    Case(
        "unsupported-value",
        "spec.startupPolicy.startupPolicyOrder",
        {"spec.startupPolicy.startupPolicyOrder": "Backwards"},
        {"spec.startupPolicy.startupPolicyOrder": "AnyOrder"},
    ),
    Case(
        "unsupported-value",
        "spec.failurePolicy.restartStrategy",
        {"spec.failurePolicy.restartStrategy": "Never"},
        {"spec.failurePolicy.restartStrategy": "BlockingRecreate"},
    ),
    Case(
        "unsupported-value",
        f"{WORKERS}.dependsOn[0].status",
        {f"{WORKERS}.dependsOn[0]": {"name": "driver", "status": "Done"}},
        {f"{WORKERS}.dependsOn[0]": {"name": "driver", "status": "Complete"}},
    ),
    Case(
        "unsupported-value",
        "spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted",
        {**mounted(), "spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted": "Keep"},
        {**mounted(), "spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted": "Retain"},
    ),
    Case("unsupported-value", f"{DRIVER_POD}.restartPolicy", {f"{DRIVER_POD}.restartPolicy": "Always"}, {}),
    Case(
        "unsupported-value",
        f"{DRIVER}.template.spec.completionMode",
        {f"{DRIVER}.template.spec.completionMode": "indexed"},
        {f"{DRIVER}.template.spec.completionMode": "NonIndexed"},
    ),
    Case("duplicate", "spec.replicatedJobs[2].name", {"spec.replicatedJobs[2]": jobs("driver")[0]}, {}),
    Case(
        "duplicate",
        f"{WORKERS}.dependsOn[1].name",
        {f"{WORKERS}.dependsOn": [{"name": "driver", "status": s} for s in ("Ready", "Complete")]},
        {f"{WORKERS}.dependsOn": [{"name": "driver", "status": "Ready"}]},
    ),
    Case(
        "duplicate",
        f"{RULE}.onJobFailureReasons[1]",
        {RULE: {"action": "FailJobSet", "onJobFailureReasons": ["FailedIndexes", "FailedIndexes"]}},
        {RULE: {"action": "FailJobSet", "onJobFailureReasons": ["FailedIndexes", "DeadlineExceeded"]}},
    ),
    Case(
        "duplicate",
        "spec.failurePolicy.rules[1].name",
        {"spec.failurePolicy.rules": [{"name": "a", "action": "FailJobSet"}] * 2},
        {"spec.failurePolicy.rules": [{"action": "FailJobSet"}] * 2},
    ),
    Case(
        "duplicate",
        f"{ENTRIES}[0].targetReplicatedJobs[1]",
        {ENTRIES: [entry("driver", "driver", "workers")]},
        {ENTRIES: [entry("driver", "workers")]},
    ),
    Case(
        "duplicate",
        f"{ENTRIES}[1].job.resourceClaims[1].name",
        by_job(resourceClaims=[{"name": "c", "resourceClaimName": n} for n in "ab"]),
        by_job(resourceClaims=[{"name": n, "resourceClaimName": n} for n in "ab"]),
    ),
    Case(
        "duplicate",
        "spec.volumeClaimPolicies[1].templates[0].metadata.name",
        {**mounted(), "spec.volumeClaimPolicies[1].templates": [{"metadata": {"name": "data"}}]},
        mounted(),
    ),
]


def nested(levels: int) -> Any:
    return {"x": nested(levels - 1)} if levels else 1


BOUNDS = [
    Case(
        "too-deep",
        ".".join(["spec.replicatedJobs[0].template.spec.template.spec.affinity", *["x"] * 92]),
        {f"{DRIVER_POD}.affinity": nested(93)},
        {f"{DRIVER_POD}.affinity": nested(92)},
    ),
    Case(
        "too-large",
        "manifest",
        {"metadata.annotations": {"a": "x" * (3 * 1024 * 1024)}},
        {"metadata.annotations": {"a": "x" * (2 * 1024 * 1024)}},
    ),
]

CASES = [*STRUCTURE, *BOUNDS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_create(case: Case) -> None:
    assert seen(problems_of_create(case.bad, ALL_GATES - case.off)) == [(case.code, case.path)]
    assert seen(problems_of_create(case.good, ALL_GATES)) == []
