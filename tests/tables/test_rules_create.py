"""The rules of names, templates, startup, policies, coordinator and volumes: a manifest refused, and one not."""

import pytest

from pyjobset.objects import features as gates
from pyjobset.objects.jobset import JOBS_MAX
from tests.manifests import (
    ABSENT,
    ALL_GATES,
    CLAIM,
    DRIVER,
    DRIVER_POD,
    ENTRIES,
    EXCLUSIVE,
    L63,
    NODE_SELECTOR,
    RULE,
    WORKERS,
    Case,
    entry,
    jobs,
    mounted,
    problems_of_create,
    seen,
)

IN_PLACE = {
    "spec.failurePolicy.restartStrategy": "InPlaceRestart",
    f"{DRIVER}.template.spec.backoffLimit": 2147483647,
    f"{DRIVER}.template.spec.podReplacementPolicy": "Failed",
    f"{WORKERS}.template.spec.backoffLimit": 2147483647,
    f"{WORKERS}.template.spec.podReplacementPolicy": "Failed",
}


# NonIndexed, of which Kubernetes takes more than 100,000 pods in a Job
HUGE = {
    f"{WORKERS}.template.spec.parallelism": 2**30,
    f"{WORKERS}.template.spec.completions": 2**30,
    f"{WORKERS}.template.spec.completionMode": "NonIndexed",
}
ONE_POD = {f"{WORKERS}.template.spec.parallelism": ABSENT, f"{WORKERS}.template.spec.completions": ABSENT}

NAMES = [
    Case("jobset-name", "metadata.name", {"metadata.name": "1js"}, {"metadata.name": "j-1"}),
    Case("jobset-name", "metadata.name", {"metadata.name": "a.b"}, {"metadata": {"name": "js", "generateName": "J_"}}),
    Case("jobset-name", "metadata.generateName", {"metadata": {"generateName": "Js-"}}, {}),
    Case("namespace-name", "metadata.namespace", {"metadata.namespace": "Prod"}, {"metadata.namespace": "0-prod"}),
    Case("label-key", "metadata.labels[a b]", {"metadata.labels": {"a b": "c"}}, {"metadata.labels": {"a.b/c": "c"}}),
    Case(
        "label-key",
        f"{DRIVER}.template.spec.template.metadata.annotations[/a]",
        {f"{DRIVER}.template.spec.template.metadata.annotations": {"/a": "any thing"}},
        {f"{DRIVER}.template.spec.template.metadata.annotations": {"a": "any thing"}},
    ),
    Case("label-value", "metadata.labels.a", {"metadata.labels": {"a": "-b"}}, {"metadata.labels": {"a": "b_C.1"}}),
    Case(
        "label-value",
        f"{DRIVER}.template.metadata.labels.a",
        {f"{DRIVER}.template.metadata.labels": {"a": L63 + "a"}},
        {f"{DRIVER}.template.metadata.labels": {"a": L63}},
    ),
    Case("replicated-job-name", f"{DRIVER}.name", {f"{DRIVER}.name": "Driver"}, {f"{DRIVER}.name": "0driver"}),
    Case("replicated-job-name", f"{DRIVER}.name", {f"{DRIVER}.name": ""}, {}),
    # js-NAME-1 has 63 characters with a name of 58; the pods' names are longer, but only Indexed ones have fixed names
    Case(
        "job-name",
        f"{WORKERS}.name",
        {f"{WORKERS}.name": "w" * 59, f"{WORKERS}.template.spec.completionMode": "NonIndexed"},
        {f"{WORKERS}.name": "w" * 58, f"{WORKERS}.template.spec.completionMode": "NonIndexed"},
    ),
    Case(
        "job-name",
        f"{WORKERS}.name",
        {
            f"{WORKERS}.name": "w" * 58,
            f"{WORKERS}.replicas": 11,
            f"{WORKERS}.template.spec.completionMode": "NonIndexed",
        },
        {
            f"{WORKERS}.name": "w" * 58,
            f"{WORKERS}.replicas": 10,
            f"{WORKERS}.template.spec.completionMode": "NonIndexed",
        },
    ),
    # without completions there is one pod, and batch/v1 asks for a hostname of 63: js-NAME-1-0
    Case(
        "pod-name",
        f"{WORKERS}.name",
        {f"{WORKERS}.name": "w" * 57, **ONE_POD},
        {f"{WORKERS}.name": "w" * 56, **ONE_POD},
    ),
    # js-NAME-1-1-xxxxx has 63 characters with a name of 50
    Case("pod-name", f"{WORKERS}.name", {f"{WORKERS}.name": "w" * 51}, {f"{WORKERS}.name": "w" * 50}),
    Case(
        "pod-name",
        f"{WORKERS}.name",
        {f"{WORKERS}.name": "w" * 50, f"{WORKERS}.template.spec.completions": 11},
        {f"{WORKERS}.name": "w" * 50, f"{WORKERS}.template.spec.completions": 10},
    ),
    # a generateName is judged with the 5 characters that it will get: NAME-xxxxx-workers-1-1-xxxxx
    Case(
        "pod-name",
        f"{WORKERS}.name",
        {"metadata": {"generateName": "j" * 41}},
        {"metadata": {"generateName": "j" * 40}},
    ),
    Case("group-name", f"{DRIVER}.groupName", {f"{DRIVER}.groupName": "G"}, {f"{DRIVER}.groupName": "g-1"}),
    Case("group-name", f"{DRIVER}.groupName", {f"{DRIVER}.groupName": ""}, {f"{DRIVER}.groupName": None}),
    Case("subdomain", "spec.network.subdomain", {"spec.network.subdomain": "1a"}, {"spec.network.subdomain": "a-1"}),
    Case("subdomain", "spec.network.subdomain", {"spec.network.subdomain": "a.b"}, {"spec.network.subdomain": ""}),
]

TEMPLATES_AND_STARTUP = [
    Case(
        "exclusive-placement-index",
        f"{WORKERS}.template.spec.completionMode",
        {f"{WORKERS}.template.spec.completionMode": "NonIndexed", "metadata.annotations": {EXCLUSIVE: "rack"}},
        {
            f"{WORKERS}.template.spec.completionMode": "NonIndexed",
            "metadata.annotations": {EXCLUSIVE: "rack", NODE_SELECTOR: "true"},
        },
    ),
    Case(
        "exclusive-placement-index",
        f"{WORKERS}.template.spec.completionMode",
        {
            f"{WORKERS}.template.spec.completionMode": "NonIndexed",
            f"{WORKERS}.template.metadata.annotations": {EXCLUSIVE: "rack"},
        },
        {
            f"{WORKERS}.template.spec.completionMode": "NonIndexed",
            f"{DRIVER}.template.metadata.annotations": {EXCLUSIVE: "rack"},
        },
    ),
    Case(
        "topology-key",
        f"metadata.annotations[{EXCLUSIVE}]",
        {"metadata.annotations": {EXCLUSIVE: "a rack"}},
        {"metadata.annotations": {EXCLUSIVE: "example.com/rack"}},
    ),
    Case(
        "topology-key",
        f"{WORKERS}.template.metadata.annotations[{EXCLUSIVE}]",
        {f"{WORKERS}.template.metadata.annotations": {EXCLUSIVE: ""}},
        {f"{WORKERS}.template.metadata.annotations": {EXCLUSIVE: "rack"}},
    ),
    Case(
        "completions-required",
        f"{WORKERS}.template.spec.completions",
        {f"{WORKERS}.template.spec.completions": ABSENT},
        {f"{WORKERS}.template.spec.completions": ABSENT, f"{WORKERS}.template.spec.completionMode": "NonIndexed"},
    ),
    Case(
        "completions-required",
        f"{WORKERS}.template.spec.completions",
        {f"{WORKERS}.template.spec.completions": ABSENT, f"{WORKERS}.template.spec.completionMode": ABSENT},
        {f"{WORKERS}.template.spec.completions": ABSENT, f"{WORKERS}.template.spec.parallelism": ABSENT},
    ),
    Case(
        "pods-overflow",
        f"{WORKERS}.replicas",
        {**HUGE, f"{WORKERS}.replicas": 2},
        {**HUGE, f"{WORKERS}.replicas": 1},
    ),
    Case(
        "jobs-overflow",
        f"{WORKERS}.replicas",
        {f"{DRIVER}.replicas": 1, f"{WORKERS}.replicas": JOBS_MAX},
        {f"{DRIVER}.replicas": 1, f"{WORKERS}.replicas": JOBS_MAX - 1},
    ),
    Case(
        "depends-on-first",
        f"{DRIVER}.dependsOn",
        {f"{DRIVER}.dependsOn": [{"name": "workers", "status": "Ready"}]},
        {f"{DRIVER}.dependsOn": []},
    ),
    Case(
        "depends-on-order",
        f"{WORKERS}.dependsOn[0].name",
        {f"{WORKERS}.dependsOn": [{"name": "workers", "status": "Ready"}]},
        {f"{WORKERS}.dependsOn": [{"name": "driver", "status": "Ready"}]},
    ),
    Case(
        "depends-on-order",
        f"{WORKERS}.dependsOn[0].name",
        {f"{WORKERS}.dependsOn": [{"name": "late", "status": "Ready"}], "spec.replicatedJobs[2]": jobs("late")[0]},
        {f"{WORKERS}.dependsOn": [{"name": "driver", "status": "Complete"}]},
    ),
    Case(
        "startup-two-models",
        "spec.startupPolicy.startupPolicyOrder",
        {
            f"{WORKERS}.dependsOn": [{"name": "driver", "status": "Ready"}],
            "spec.startupPolicy.startupPolicyOrder": "InOrder",
        },
        {
            f"{WORKERS}.dependsOn": [{"name": "driver", "status": "Ready"}],
            "spec.startupPolicy.startupPolicyOrder": "AnyOrder",
        },
    ),
]

POLICIES = [
    Case(
        "unknown-replicated-job",
        "spec.successPolicy.targetReplicatedJobs[1]",
        {"spec.successPolicy": {"operator": "Any", "targetReplicatedJobs": ["driver", "worker"]}},
        {"spec.successPolicy": {"operator": "Any", "targetReplicatedJobs": ["driver", "workers"]}},
    ),
    Case(
        "unknown-replicated-job",
        f"{RULE}.targetReplicatedJobs[0]",
        {RULE: {"action": "FailJobSet", "targetReplicatedJobs": ["x"]}},
        {RULE: {"action": "FailJobSet", "targetReplicatedJobs": ["driver"]}},
    ),
    Case(
        "unknown-replicated-job",
        "spec.coordinator.replicatedJob",
        {"spec.coordinator.replicatedJob": "x"},
        {"spec.coordinator.replicatedJob": "driver"},
    ),
    Case(
        "unknown-replicated-job",
        f"{ENTRIES}[0].targetReplicatedJobs[2]",
        {ENTRIES: [entry("driver", "workers", "x")]},
        {ENTRIES: [entry("driver", "workers")]},
    ),
    Case(
        "rule-name",
        f"{RULE}.name",
        {RULE: {"action": "FailJobSet", "name": "1st"}},
        {RULE: {"action": "FailJobSet", "name": "a_,:1"}},
    ),
    Case(
        "rule-name",
        f"{RULE}.name",
        {RULE: {"action": "FailJobSet", "name": "a:"}},
        {RULE: {"action": "FailJobSet", "name": "a" * 128}},
    ),
    Case(
        "message-pattern",
        f"{RULE}.onJobFailureMessagePatterns[1]",
        {RULE: {"action": "FailJobSet", "onJobFailureMessagePatterns": ["ok", "(?=x)"]}},
        {RULE: {"action": "FailJobSet", "onJobFailureMessagePatterns": ["ok", "^exit [[:digit:]]+$"]}},
    ),
    Case(
        "restart-job-gate",
        f"{RULE}.action",
        {RULE: {"action": "RestartJobAndIgnoreMaxRestarts"}},
        {RULE: {"action": "RestartJob"}},
        off=frozenset({gates.RESTART_JOB}),
    ),
    Case(
        "restart-job-replicas",
        f"{WORKERS}.replicas",
        {RULE: {"action": "RestartJob"}, f"{WORKERS}.replicas": 1025},
        {RULE: {"action": "RestartJob"}, f"{WORKERS}.replicas": 1024},
    ),
    Case(
        "in-place-restart-gate",
        "spec.failurePolicy.restartStrategy",
        IN_PLACE,
        IN_PLACE,
        off=frozenset({gates.IN_PLACE_RESTART}),
    ),
    Case(
        "in-place-restart-template",
        f"{DRIVER}.template.spec.backoffLimit",
        IN_PLACE | {f"{DRIVER}.template.spec.backoffLimit": 6},
        IN_PLACE,
    ),
    Case(
        "in-place-restart-template",
        f"{WORKERS}.template.spec.podReplacementPolicy",
        IN_PLACE | {f"{WORKERS}.template.spec.podReplacementPolicy": ABSENT},
        IN_PLACE,
    ),
    Case(
        "in-place-restart-template",
        f"{WORKERS}.template.spec.completions",
        IN_PLACE | {f"{WORKERS}.template.spec.completions": 3},
        IN_PLACE,
    ),
    Case("managed-by", "spec.managedBy", {"spec.managedBy": "kueue"}, {"spec.managedBy": "kueue.x-k8s.io/multikueue"}),
    Case("managed-by", "spec.managedBy", {"spec.managedBy": "A.b/c"}, {"spec.managedBy": "a/b/c"}),
    Case("managed-by", "spec.managedBy", {"spec.managedBy": ""}, {"spec.managedBy": None}),
    Case(
        "active-deadline-gate",
        "spec.activeDeadlineSeconds",
        {"spec.activeDeadlineSeconds": 1},
        {"spec.activeDeadlineSeconds": 1},
        off=frozenset({gates.ACTIVE_DEADLINE_SECONDS}),
    ),
]

COORDINATOR = [
    Case(
        "coordinator-job-index",
        "spec.coordinator.jobIndex",
        {"spec.coordinator": {"replicatedJob": "workers", "jobIndex": 2}},
        {"spec.coordinator": {"replicatedJob": "workers", "jobIndex": 1}},
    ),
    Case(
        "coordinator-template",
        "spec.coordinator.replicatedJob",
        {"spec.coordinator.replicatedJob": "driver", f"{DRIVER}.template.spec.completionMode": "NonIndexed"},
        {"spec.coordinator.replicatedJob": "driver", f"{DRIVER}.template.spec.completionMode": ABSENT},
    ),
    Case(
        "coordinator-pod-index",
        "spec.coordinator.podIndex",
        {"spec.coordinator": {"replicatedJob": "workers", "podIndex": 2}},
        {"spec.coordinator": {"replicatedJob": "workers", "podIndex": 1}},
    ),
    # js-driver-0-0.SUBDOMAIN has 63 characters with a subdomain of 49
    Case(
        "coordinator-endpoint",
        "spec.coordinator",
        {"spec.coordinator.replicatedJob": "driver", "spec.network.subdomain": "s" * 50},
        {"spec.coordinator.replicatedJob": "driver", "spec.network.subdomain": "s" * 49},
    ),
]

VOLUMES = [
    Case("claim-template-name", f"{CLAIM}.metadata.name", mounted("a.b"), mounted("a-b")),
    Case(
        "claim-template-namespace",
        f"{CLAIM}.metadata.namespace",
        mounted() | {f"{CLAIM}.metadata.namespace": "default"},
        mounted() | {f"{CLAIM}.metadata.namespace": ""},
    ),
    Case("claim-name", f"{CLAIM}.metadata.name", mounted("d" * 61), mounted("d" * 60)),
    Case("claim-not-mounted", f"{CLAIM}.metadata.name", {CLAIM: {"metadata": {"name": "data"}}}, mounted()),
    Case(
        "claim-not-mounted",
        f"{CLAIM}.metadata.name",
        {CLAIM: {"metadata": {"name": "data"}}},
        {
            CLAIM: {"metadata": {"name": "data"}},
            f"{DRIVER_POD}.initContainers": [
                {"name": "i", "image": "i", "volumeDevices": [{"name": "data", "devicePath": "/d"}]}
            ],
        },
    ),
    Case(
        "claim-volume-taken",
        f"{DRIVER_POD}.volumes[1].name",
        mounted() | {f"{DRIVER_POD}.volumes": [{"name": "other"}, {"name": "data"}]},
        mounted() | {f"{DRIVER_POD}.volumes": [{"name": "other"}]},
    ),
]

CASES = [*NAMES, *TEMPLATES_AND_STARTUP, *POLICIES, *COORDINATOR, *VOLUMES]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_create(case: Case) -> None:
    assert seen(problems_of_create(case.bad, ALL_GATES - case.off)) == [(case.code, case.path)]
    assert seen(problems_of_create(case.good, ALL_GATES)) == []


@pytest.mark.decision(15)
@pytest.mark.parametrize("prefix", ["generateName", "name"])
def test_the_names_of_a_generated_name_are_those_of_one_with_five_more_characters(prefix: str) -> None:
    """The longest pod is NAME-workers-1-1-xxxxx, the longest claim data-NAME."""
    longest = 63 - len("-workers-1-1-xxxxx") - (5 if prefix == "generateName" else 0)
    for edits in ({}, mounted()):
        fits, too_long = (edits | {"metadata": {prefix: "j" * n}} for n in (longest, longest + 1))
        assert problems_of_create(fits, ALL_GATES) == ()
        assert {p.path for p in problems_of_create(too_long, ALL_GATES)} == {f"{WORKERS}.name"}
