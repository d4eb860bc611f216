"""The rules of changes and the warnings: one change that each refuses, with the field, and one that it lets pass."""

import pytest

from pyjobset.objects import features as gates
from pyjobset.rules.parse import parse
from pyjobset.rules.validation import check, validate_update, warnings
from tests.manifests import (
    ABSENT,
    ALL_GATES,
    BASIC,
    CLAIM,
    DRIVER,
    ENTRIES,
    GANG,
    JOBSET,
    WORKERS,
    WORKERS_POD,
    Case,
    by_job,
    edited,
    jobs,
    mounted,
    seen,
)
from tests.tables.test_rules_create import IN_PLACE

GROWN = {f"{WORKERS}.template.spec.parallelism": 4, f"{WORKERS}.template.spec.completions": 4}
WORKERS_META = f"{WORKERS}.template.spec.template.metadata"
SUSPENDED = {"spec.suspend": True}
RETRY = {"spec.failurePolicy.maxRestarts": 3}
CPU = f"{WORKERS_POD}.containers[0].resources.requests.cpu"
COORDINATED = {"spec.coordinator": {"replicatedJob": "workers", "podIndex": 1}}

CHANGES = [
    # set, unset and changed, whatever the field; a default that is written out, or left out again, is no change
    Case("immutable", "spec.network", {"spec.network.subdomain": "s"}, {"spec.network.enableDNSHostnames": True}),
    Case("immutable", "spec.network", {"spec.network": ABSENT}, {}, old={"spec.network.subdomain": "s"}),
    Case(
        "immutable",
        "spec.network",
        {"spec.network.subdomain": "t"},
        {"spec.network.publishNotReadyAddresses": True},
        old={"spec.network.subdomain": "s"},
    ),
    Case(
        "immutable",
        "spec.successPolicy",
        {"spec.successPolicy.operator": "Any"},
        {"spec.successPolicy.operator": "All"},
    ),
    Case("immutable", "spec.failurePolicy", RETRY, {}),
    Case("immutable", "spec.failurePolicy", {"spec.failurePolicy": ABSENT}, {}, old=RETRY),
    Case("immutable", "spec.failurePolicy", {"spec.failurePolicy.maxRestarts": 4}, {}, old=RETRY),
    Case(
        "immutable",
        "spec.startupPolicy",
        {"spec.startupPolicy.startupPolicyOrder": "InOrder"},
        {"spec.startupPolicy.startupPolicyOrder": "AnyOrder"},
    ),
    Case("immutable", "spec.coordinator", COORDINATED, {}),
    Case("immutable", "spec.coordinator", {"spec.coordinator": ABSENT}, {}, old=COORDINATED),
    Case("immutable", "spec.coordinator", {"spec.coordinator.podIndex": 0}, {}, old=COORDINATED),
    Case("immutable", "spec.managedBy", {"spec.managedBy": "a.b/c"}, {}),
    Case("immutable", "spec.managedBy", {"spec.managedBy": ABSENT}, {}, old={"spec.managedBy": "a.b/c"}),
    Case("immutable", "spec.volumeClaimPolicies", {"spec.volumeClaimPolicies": ABSENT}, {}, old=mounted()),
    Case(
        "immutable",
        "spec.volumeClaimPolicies",
        {f"{CLAIM}.spec.resources.requests.storage": "2Gi"},
        {f"{CLAIM}.spec.resources.requests.storage": "1024Mi", f"{CLAIM}.status": {}},
        old=mounted() | {f"{CLAIM}.spec.resources.requests.storage": "1Gi"},
    ),
    Case("immutable", "spec.scheduling", {"spec.scheduling": {}}, {}),
    Case("immutable", "spec.scheduling", {"spec.scheduling": ABSENT}, {}, old={"spec.scheduling": {}}),
    Case(
        "immutable",
        "spec.scheduling",
        {"spec.scheduling.schedulingPolicy": BASIC},
        {},
        old={"spec.scheduling.schedulingPolicy": GANG},
    ),
    Case(
        "immutable-replicated-job",
        "spec.replicatedJobs",
        {"spec.replicatedJobs[2]": jobs("late")[0]},
        {"spec.ttlSecondsAfterFinished": 60, "metadata.labels": {"a": "b"}},
    ),
    Case(
        "immutable-replicated-job",
        "spec.replicatedJobs",
        {DRIVER: JOBSET["spec"]["replicatedJobs"][1], WORKERS: JOBSET["spec"]["replicatedJobs"][0]},
        {"spec.suspend": True},
    ),
    Case("immutable-replicated-job", f"{WORKERS}.replicas", {f"{WORKERS}.replicas": 3}, {f"{WORKERS}.replicas": 2}),
    Case(
        "immutable-replicated-job",
        f"{WORKERS}.template.spec.backoffLimit",
        {f"{WORKERS}.template.spec.backoffLimit": 3},
        {},
        old=SUSPENDED,
    ),
    Case(
        "immutable-replicated-job",
        f"{WORKERS_POD}.containers[0].image",
        {f"{WORKERS_POD}.containers[0].image": "other"},
        {f"{WORKERS_POD}.containers[0].resources": {}, f"{WORKERS}.template.metadata": {"creationTimestamp": None}},
    ),
    # what Kueue sets: only while suspended, before the change or after it
    *(
        Case("immutable-replicated-job", path, {field: value}, {field: value, "spec.suspend": True})
        for field, path, value in (
            (f"{WORKERS_POD}.nodeSelector", f"{WORKERS_POD}.nodeSelector.zone", {"zone": "a"}),
            (f"{WORKERS_POD}.tolerations", f"{WORKERS_POD}.tolerations", [{"operator": "Exists"}]),
            (f"{WORKERS_POD}.schedulingGates", f"{WORKERS_POD}.schedulingGates", [{"name": "g"}]),
            (f"{WORKERS_META}.labels", f"{WORKERS_META}.labels.a", {"a": "b"}),
            (f"{WORKERS_META}.annotations", f"{WORKERS_META}.annotations.a", {"a": "b"}),
        )
    ),
    Case(
        "immutable-replicated-job",
        f"{WORKERS}.template.metadata.labels.a",
        {f"{WORKERS}.template.metadata.labels": {"a": "b"}},
        {f"{WORKERS_POD}.nodeSelector": {"zone": "a"}, "spec.suspend": False},
        old=SUSPENDED,
    ),
    Case(
        "immutable-replicated-job",
        CPU,
        {CPU: "2"},
        {CPU: "2"},
        old={CPU: "1", **SUSPENDED},
        off=frozenset({gates.MUTABLE_POD_RESOURCES}),
    ),
    Case("immutable-replicated-job", CPU, {CPU: "2"}, {CPU: "1000m"}, old={CPU: "1"}),
    Case(
        "immutable-replicated-job",
        f"{WORKERS_POD}.initContainers[0].image",
        {f"{WORKERS_POD}.initContainers[0].image": "j"},
        {f"{WORKERS_POD}.initContainers[0].resources.limits": {"memory": "1Gi"}},
        old={f"{WORKERS_POD}.initContainers": [{"name": "i"}], **SUSPENDED},
    ),
    Case(
        "immutable-replicated-job",
        f"{WORKERS}.template.spec.completions",
        {f"{WORKERS}.template.spec.completions": 4},
        GROWN,
        off=frozenset({gates.ELASTIC_JOBSET}),
    ),
    Case(
        "immutable-replicated-job",
        f"{WORKERS}.template.spec.completions",
        {f"{WORKERS}.template.spec.completions": 4},
        {},
        old={f"{WORKERS}.template.spec.completionMode": "NonIndexed"},
    ),
    Case(
        "elastic-counts",
        f"{WORKERS}.template.spec.parallelism",
        {f"{WORKERS}.template.spec.completions": 4},
        GROWN,
    ),
    Case(
        "elastic-counts",
        f"{WORKERS}.template.spec.parallelism",
        {f"{WORKERS}.template.spec.parallelism": 0, f"{WORKERS}.template.spec.completions": 0},
        {f"{WORKERS}.template.spec.parallelism": 1, f"{WORKERS}.template.spec.completions": 1},
    ),
    Case(
        "elastic-counts",
        f"{WORKERS}.template.spec.parallelism",
        {f"{WORKERS}.template.spec.parallelism": 4},
        GROWN,
        old={"status.conditions": [{"type": "Suspended", "status": "True"}, {"type": "Failed", "status": "False"}]},
    ),
    Case(
        "elastic-finished",
        f"{WORKERS}.template.spec.parallelism",
        GROWN,
        {"spec.ttlSecondsAfterFinished": 1},
        old={"status.conditions": [{"type": "Completed", "status": "True"}]},
    ),
    Case(
        "elastic-finished",
        f"{WORKERS}.template.spec.parallelism",
        GROWN,
        {"spec.ttlSecondsAfterFinished": 1},
        old={"status.conditions": [{"type": "Failed", "status": "True"}]},
    ),
    # rules between fields are asked again after a change
    Case(
        "min-count-pods",
        f"{ENTRIES}[1].job.schedulingPolicy.gang.minCount",
        {f"{WORKERS}.template.spec.parallelism": 1, f"{WORKERS}.template.spec.completions": 1},
        GROWN,
        old=by_job(schedulingPolicy={"gang": {"minCount": 2}}),
    ),
    Case(
        "coordinator-pod-index",
        "spec.coordinator.podIndex",
        {f"{WORKERS}.template.spec.parallelism": 1, f"{WORKERS}.template.spec.completions": 1},
        GROWN,
        old=COORDINATED,
    ),
    Case(
        "active-deadline-gate",
        "spec.activeDeadlineSeconds",
        {"spec.activeDeadlineSeconds": 2},
        {"spec.activeDeadlineSeconds": ABSENT},
        old={"spec.activeDeadlineSeconds": 1},
        off=frozenset({gates.ACTIVE_DEADLINE_SECONDS}),
    ),
]

POD_CLAIM = f"{WORKERS_POD}.resourceClaims"
SHARED = by_job(resourceClaims=[{"name": "c", "resourceClaimTemplateName": "t"}])

WARNINGS = [
    Case(
        "claim-differs",
        f"{POD_CLAIM}[0]",
        SHARED | {POD_CLAIM: [{"name": "c", "resourceClaimTemplateName": "other"}]},
        SHARED | {POD_CLAIM: [{"name": "c", "resourceClaimTemplateName": "t"}]},
    ),
    Case(
        "claim-differs",
        f"{POD_CLAIM}[1]",
        SHARED | {POD_CLAIM: [{"name": "b", "resourceClaimName": "b"}, {"name": "c", "resourceClaimName": "t"}]},
        SHARED | {POD_CLAIM: [{"name": "c", "resourceClaimTemplateName": "t"}]},
    ),
    Case(
        "claim-unused",
        f"{ENTRIES}[1].job.resourceClaims[0]",
        SHARED,
        SHARED | {POD_CLAIM: [{"name": "c", "resourceClaimTemplateName": "t"}]},
    ),
    Case(
        "annotation-ignored",
        "metadata.annotations[alpha.jobset.sigs.k8s.io/exclusive-topolgy]",
        {"metadata.annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topolgy": "rack"}},
        {"metadata.annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack", "jobset.example.com/x": "y"}},
    ),
    Case(
        "annotation-ignored",
        f"{WORKERS}.template.metadata.labels[alpha.jobset.sigs.k8s.io/exclusive-topology]",
        {f"{WORKERS}.template.metadata": {"labels": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}}},
        {f"{WORKERS}.template.metadata": {"annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}}},
    ),
    Case(
        "job-ttl-ignored",
        f"{WORKERS}.template.spec.ttlSecondsAfterFinished",
        {f"{WORKERS}.template.spec.ttlSecondsAfterFinished": 0},
        {"spec.ttlSecondsAfterFinished": 0},
    ),
    Case(
        "in-place-restart-waits",
        f"{WORKERS}.dependsOn[0].status",
        IN_PLACE | {f"{WORKERS}.dependsOn": [{"name": "driver", "status": "Complete"}]},
        IN_PLACE | {f"{WORKERS}.dependsOn": [{"name": "driver", "status": "Ready"}]},
    ),
    Case(
        "gang-backoff-limit",
        f"{WORKERS}.template.spec.backoffLimit",
        {"spec.scheduling": {}, f"{WORKERS}.template.spec.backoffLimit": 1},
        {"spec.scheduling": {}, f"{WORKERS}.template.spec.backoffLimit": 2},
    ),
    Case("no-jobs", "spec.replicatedJobs", {"spec.replicatedJobs": []}, {"spec.replicatedJobs": jobs("a")}),
    Case("no-jobs", "spec.replicatedJobs", {f"{DRIVER}.replicas": 0, f"{WORKERS}.replicas": 0}, {}),
    Case(
        "startup-policy-deprecated",
        "spec.startupPolicy",
        {"spec.startupPolicy.startupPolicyOrder": "InOrder"},
        {"spec.startupPolicy.startupPolicyOrder": "AnyOrder"},
    ),
    Case(
        "scheduling-ignored",
        "spec.scheduling",
        {"spec.scheduling": {}},
        {"spec.scheduling": {}},
        off=frozenset({gates.WORKLOAD_AWARE_SCHEDULING}),
    ),
]


@pytest.mark.parametrize("case", CHANGES, ids=str)
def test_update(case: Case) -> None:
    stored = edited(JOBSET, case.old)
    old, bad, good = parse(stored), parse(edited(stored, case.bad)), parse(edited(stored, case.good))
    assert seen(validate_update(old, bad, ALL_GATES - case.off)) == [(case.code, case.path)]
    assert seen(validate_update(old, good, ALL_GATES)) == []


@pytest.mark.parametrize("case", WARNINGS, ids=str)
def test_warning(case: Case) -> None:
    bad, good = (check(edited(JOBSET, edits), ALL_GATES) for edits in (case.bad, case.good))
    assert seen(warnings(bad, ALL_GATES - case.off)) == [(case.code, case.path)]
    assert seen(warnings(good, ALL_GATES)) == []


@pytest.mark.parametrize(
    ("path", "value", "off", "hint"),
    [
        (f"{WORKERS_POD}.nodeSelector", {"a": "b"}, (), "it may change while the JobSet is suspended"),
        (CPU, "2", (), "it may change while the JobSet is suspended"),
        (
            CPU,
            "2",
            (gates.MUTABLE_POD_RESOURCES,),
            f"it may change while the JobSet is suspended, with the feature gate {gates.MUTABLE_POD_RESOURCES}",
        ),
        (
            f"{WORKERS}.template.spec.parallelism",
            3,
            (gates.ELASTIC_JOBSET,),
            "it may change with the feature gate ElasticJobSet, for Indexed Jobs",
        ),
        (f"{DRIVER}.template.spec.parallelism", 3, (), "it may change for Indexed Jobs only"),
        (f"{WORKERS}.replicas", 3, (), "delete the JobSet and create it anew"),
    ],
)
def test_the_way_out_of_a_refused_change(path: str, value: object, off: tuple[str, ...], hint: str) -> None:
    stored = edited(JOBSET, {f"{DRIVER}.template.spec.completionMode": "NonIndexed"})
    (problem,) = validate_update(parse(stored), parse(edited(stored, {path: value})), ALL_GATES - set(off))
    assert problem.hint == hint


@pytest.mark.decision(25)
def test_a_claim_that_is_not_shared_is_named_on_both_sides() -> None:
    manifest = edited(JOBSET, SHARED | {POD_CLAIM: [{"name": "c", "resourceClaimName": "mine"}]})
    (warning,) = warnings(check(manifest, ALL_GATES), ALL_GATES)
    assert warning.message == "is claim 'mine', and template 't' in spec.scheduling, so it is not shared"


FIXED: dict[str, tuple[object, object]] = {
    "network": ({"subdomain": "a"}, {"subdomain": "b"}),
    "successPolicy": ({"operator": "Any"}, {"operator": "Any", "targetReplicatedJobs": ["workers"]}),
    "failurePolicy": ({"maxRestarts": 1}, {"maxRestarts": 2}),
    "startupPolicy": ({"startupPolicyOrder": "InOrder"}, {"startupPolicyOrder": "AnyOrder"}),
    "coordinator": ({"replicatedJob": "workers"}, {"replicatedJob": "workers", "podIndex": 1}),
    "volumeClaimPolicies": tuple([{"templates": [{"metadata": {"name": n}}]}] for n in "ab"),
    "scheduling": ({"schedulingPolicy": GANG}, {"schedulingPolicy": BASIC}),
}


@pytest.mark.decision(1)
@pytest.mark.parametrize("field", FIXED)
def test_a_fixed_field_can_be_neither_set_nor_removed_nor_changed(field: str) -> None:
    path, (one, other) = f"spec.{field}", FIXED[field]
    for before, after in ((ABSENT, one), (one, ABSENT), (one, other)):
        old, new = (parse(edited(JOBSET, {path: value})) for value in (before, after))
        assert seen(p for p in validate_update(old, new, ALL_GATES) if p.code == "immutable") == [("immutable", path)]
        assert seen(p for p in validate_update(new, new, ALL_GATES) if p.code == "immutable") == []


@pytest.mark.decision(39)
def test_a_job_that_would_delete_itself_is_warned_of() -> None:
    seconds = f"{WORKERS}.template.spec.ttlSecondsAfterFinished"
    (warning,) = warnings(check(edited(JOBSET, {seconds: 60}), ALL_GATES), ALL_GATES)
    assert (warning.path, warning.value) == (seconds, 60)
    assert "is ignored" in warning.message
    assert "of the JobSet" in warning.hint
