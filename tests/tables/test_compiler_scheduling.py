"""compile_scheduling: which PodGroups come out of which JobSet, their names and their quorum.

The use cases are those of the public page about declarative scheduling, with the counts that it states. The hashes
were computed with sha1sum.
"""

from typing import Any

import msgspec
import pytest

from pyjobset.compiler.ownership import manifest
from pyjobset.compiler.scheduling import Placement, SchedulingObjects, compile_scheduling, sequenced
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import POD_GROUPS, WORKLOADS
from pyjobset.objects.template import INT32_MAX
from tests.builders import jobset, plain, replicated_job

GANG: Manifest = {"gang": {}}
BASIC: Manifest = {"basic": {}}
ALL: Manifest = {"all": {}}
RACK: Manifest = {"topology": [{"key": "topology.kubernetes.io/rack"}]}
SLICE: Manifest = {"topology": [{"key": "cloud.google.com/gke-tpu-slice"}]}

Group = tuple[str, str, Manifest]
"""A PodGroup's name, its template's name, and what its spec has besides the reference to the Workload."""


def in_default(js: JobSet) -> JobSet:
    return msgspec.structs.replace(js, metadata=msgspec.structs.replace(js.metadata, namespace="default"))


def compiled(js: JobSet, **more: Any) -> SchedulingObjects:
    objects = compile_scheduling(js, **more)
    assert objects is not None
    return objects


def groups(objects: SchedulingObjects) -> list[Group]:
    specs = [plain(group.spec) for group in objects.pod_groups]
    references = [spec.pop("workloadRef") for spec in specs]
    assert {reference["workloadName"] for reference in references} == {objects.workload.metadata.name}
    return [
        (group.metadata.name, reference["templateName"], spec)
        for group, reference, spec in zip(objects.pod_groups, references, specs, strict=True)
    ]


def templates(objects: SchedulingObjects) -> list[Manifest]:
    return plain(objects.workload.spec)["podGroupTemplates"]  # type: ignore[no-any-return]


def gang(quorum: int, **more: Any) -> Manifest:
    return {"schedulingPolicy": {"gang": {"minCount": quorum}}, **more}


def basic(**more: Any) -> Manifest:
    return {"schedulingPolicy": {"basic": {}}, **more}


def entry(*targets: str, **more: Any) -> Manifest:
    return {"targetReplicatedJobs": list(targets), **more}


CLAIM = {"name": "imex-channel", "resourceClaimTemplateName": "imex-channel-template"}
HIGH = replicated_job("workers", replicas=2, pods=2)
HIGH["template"]["spec"]["template"]["spec"]["priorityClassName"] = "high"
LEADER_FIRST = [{"name": "leader", "status": "Ready"}]

USE_CASES: dict[str, tuple[JobSet, list[Group]]] = {
    "whole JobSet": (
        jobset(
            replicated_job("driver"),
            replicated_job("workers", replicas=2, pods=2),
            name="gang-training",
            scheduling={"schedulingPolicy": GANG, "disruptionMode": ALL},
        ),
        [("gang-training-536cd048a7", "gang-training-536cd048a7", gang(5, disruptionMode=ALL))],
    ),
    "whole JobSet of a single ReplicatedJob": (
        jobset(
            replicated_job("workers", replicas=2, pods=4), name="single-gang", scheduling={"schedulingPolicy": GANG}
        ),
        [("single-gang-994469711d", "single-gang-994469711d", gang(8))],
    ),
    "independent PodGroups per ReplicatedJob": (
        jobset(
            replicated_job("launcher"),
            replicated_job("worker", replicas=2, pods=2),
            name="per-rj-independent",
            scheduling={
                "replicatedJobs": [
                    entry("launcher", schedulingPolicy=GANG),
                    entry("worker", schedulingPolicy=GANG),
                ]
            },
        ),
        [
            ("per-rj-independent-launcher-96579e4a53", "launcher-96579e4a53", gang(1)),
            ("per-rj-independent-worker-6cf5bd766e", "worker-6cf5bd766e", gang(4)),
        ],
    ),
    "one PodGroup across ReplicatedJobs": (
        jobset(
            replicated_job("launcher"),
            replicated_job("worker", replicas=2, pods=2),
            name="per-rj-grouped",
            scheduling={
                "replicatedJobs": [entry("launcher", "worker", schedulingPolicy=GANG, disruptionMode=ALL)],
            },
        ),
        [("per-rj-grouped-launcher-worker-6dcbea6951", "launcher-worker-6dcbea6951", gang(5, disruptionMode=ALL))],
    ),
    "gang of gangs": (
        jobset(
            replicated_job("launcher"),
            replicated_job("worker", replicas=2, pods=2),
            name="per-ij-job-independent",
            scheduling={
                "replicatedJobs": [
                    entry("launcher", schedulingPolicy=GANG),
                    entry("worker", job={"schedulingPolicy": GANG, "disruptionMode": ALL}),
                ]
            },
        ),
        [
            ("per-ij-job-independent-launcher-bef3c39297", "launcher-bef3c39297", gang(1)),
            ("per-ij-job-independent-worker-0-b0a96b1491", "worker-0-b0a96b1491", gang(2, disruptionMode=ALL)),
            ("per-ij-job-independent-worker-1-88962d4b0e", "worker-1-88962d4b0e", gang(2, disruptionMode=ALL)),
        ],
    ),
    "topology-aware workers with an independent driver": (
        jobset(
            replicated_job("driver"),
            replicated_job("workers", replicas=2, pods=2),
            name="topo-training",
            scheduling={
                "replicatedJobs": [
                    entry("driver", schedulingPolicy=BASIC),
                    entry("workers", schedulingPolicy=GANG, schedulingConstraints=RACK),
                ]
            },
        ),
        [
            ("topo-training-driver-c999f02607", "driver-c999f02607", basic()),
            ("topo-training-workers-32768fbfee", "workers-32768fbfee", gang(4, schedulingConstraints=RACK)),
        ],
    ),
    "TPU slices": (
        jobset(
            replicated_job("slice", replicas=2, pods=2),
            name="tpu-multislice",
            scheduling={"schedulingPolicy": GANG, "disruptionMode": ALL, "schedulingConstraints": SLICE},
        ),
        [
            (
                "tpu-multislice-c7e8e52e7a",
                "tpu-multislice-c7e8e52e7a",
                gang(4, disruptionMode=ALL, schedulingConstraints=SLICE),
            )
        ],
    ),
    "sequenced startup": (
        jobset(
            replicated_job("leader"),
            replicated_job("worker", pods=2, dependsOn=LEADER_FIRST),
            name="sequenced-gang",
            scheduling={},
        ),
        [
            ("sequenced-gang-leader-5e726ba929", "leader-5e726ba929", gang(1)),
            ("sequenced-gang-worker-b41461dfcc", "worker-b41461dfcc", gang(2)),
        ],
    ),
    "suspend and resume: the same when suspended": (
        jobset(
            replicated_job("workers", pods=2),
            name="gang-suspend",
            suspend=True,
            scheduling={"schedulingPolicy": GANG},
        ),
        [("gang-suspend-8fadf2e74c", "gang-suspend-8fadf2e74c", gang(2))],
    ),
    "elastic, before": (
        jobset(
            replicated_job("workers", pods=2),
            name="gang-elastic",
            scheduling={"schedulingPolicy": GANG, "disruptionMode": ALL},
        ),
        [("gang-elastic-e29d4272b0", "gang-elastic-e29d4272b0", gang(2, disruptionMode=ALL))],
    ),
    "elastic, after": (
        jobset(
            replicated_job("workers", pods=4),
            name="gang-elastic",
            scheduling={"schedulingPolicy": GANG, "disruptionMode": ALL},
        ),
        [("gang-elastic-e29d4272b0", "gang-elastic-e29d4272b0", gang(4, disruptionMode=ALL))],
    ),
    "shared claims": (
        jobset(
            replicated_job("worker", pods=2),
            name="dra-shared-claim",
            scheduling={
                "replicatedJobs": [entry("worker", job={"schedulingPolicy": GANG, "resourceClaims": [CLAIM]})],
            },
        ),
        [("dra-shared-claim-worker-0-8f42cf0e6e", "worker-0-8f42cf0e6e", gang(2, resourceClaims=[CLAIM]))],
    ),
    "preemption": (
        jobset(HIGH, name="gang-training", scheduling={"schedulingPolicy": GANG, "disruptionMode": ALL}),
        [
            (
                "gang-training-536cd048a7",
                "gang-training-536cd048a7",
                gang(4, disruptionMode=ALL, priorityClassName="high"),
            )
        ],
    ),
}


@pytest.mark.parametrize("name", USE_CASES)
def test_use_case(name: str) -> None:
    js, expected = USE_CASES[name]
    objects = compiled(in_default(js))
    assert groups(objects) == expected
    assert templates(objects) == [{"name": template, **spec} for _, template, spec in expected]


def test_use_case_no_scheduling() -> None:
    assert compile_scheduling(jobset(replicated_job("workers", replicas=2), name="no-sched-baseline")) is None


A = replicated_job("a", replicas=2, pods=3)
B = replicated_job("b", replicas=1, pods=4)
AFTER_A = [{"name": "a", "status": "Ready"}]
IN_ORDER = {"startupPolicyOrder": "InOrder"}
ANY_ORDER = {"startupPolicyOrder": "AnyOrder"}
WHOLE = "js-277bbf9c41"
"""The Workload, template and PodGroup of JobSet js in namespace ns."""


def with_spec(given: Manifest, **spec: Any) -> Manifest:
    """The ReplicatedJob with other fields in its Job's spec; None removes one."""
    changed = {key: value for key, value in {**given["template"]["spec"], **spec}.items() if value is not None}
    return {**given, "template": {**given["template"], "spec": changed}}


C_EMPTY = replicated_job("c", replicas=0)
HUGE = with_spec(replicated_job("a", replicas=INT32_MAX), parallelism=INT32_MAX, completions=None)
BIG = {**replicated_job("b", replicas=INT32_MAX), "replicas": INT32_MAX}

RULES: dict[str, tuple[list[Manifest], Manifest, list[Group]]] = {
    "an empty object is a gang over the whole JobSet": ([A, B], {"scheduling": {}}, [(WHOLE, WHOLE, gang(10))]),
    "an empty list of entries is as none": (
        [A, B],
        {"scheduling": {"replicatedJobs": []}},
        [(WHOLE, WHOLE, gang(10))],
    ),
    "a top-level minCount is not a thing: the quorum is computed": (
        [A, B],
        {"scheduling": {"schedulingPolicy": {"gang": {"minCount": 3}}}},
        [(WHOLE, WHOLE, gang(10))],
    ),
    "basic has no quorum; topology and disruptionMode are copied": (
        [A, B],
        {
            "scheduling": {
                "schedulingPolicy": BASIC,
                "schedulingConstraints": RACK,
                "disruptionMode": {"single": {}},
            }
        },
        [(WHOLE, WHOLE, basic(schedulingConstraints=RACK, disruptionMode={"single": {}}))],
    ),
    "AnyOrder is not sequenced": ([A, B], {"scheduling": {}, "startupPolicy": ANY_ORDER}, [(WHOLE, WHOLE, gang(10))]),
    "InOrder: one a ReplicatedJob, the leaf fields in every one": (
        [A, B],
        {"startupPolicy": IN_ORDER, "scheduling": {"disruptionMode": ALL, "schedulingConstraints": RACK}},
        [
            ("js-a-000cb41d36", "a-000cb41d36", gang(6, disruptionMode=ALL, schedulingConstraints=RACK)),
            ("js-b-3fd3372a68", "b-3fd3372a68", gang(4, disruptionMode=ALL, schedulingConstraints=RACK)),
        ],
    ),
    "dependsOn with basic: one a ReplicatedJob": (
        [A, {**B, "dependsOn": AFTER_A}],
        {"scheduling": {"schedulingPolicy": BASIC}},
        [("js-a-000cb41d36", "a-000cb41d36", basic()), ("js-b-3fd3372a68", "b-3fd3372a68", basic())],
    ),
    "sequenced in spec order": (
        [B, A],
        {"startupPolicy": IN_ORDER, "scheduling": {}},
        [("js-b-3fd3372a68", "b-3fd3372a68", gang(4)), ("js-a-000cb41d36", "a-000cb41d36", gang(6))],
    ),
    "entries in their own order, not that of the ReplicatedJobs": (
        [A, B],
        {"scheduling": {"replicatedJobs": [entry("b"), entry("a")]}},
        [("js-b-69b9febbc6", "b-69b9febbc6", gang(4)), ("js-a-7ba9c40928", "a-7ba9c40928", gang(6))],
    ),
    "an entry names its group after the targets as they are listed": (
        [A, B],
        {"scheduling": {"replicatedJobs": [entry("b", "a")]}},
        [("js-b-a-2551836e3d", "b-a-2551836e3d", gang(10))],
    ),
    "startup order does not matter to entries": (
        [A, {**B, "dependsOn": AFTER_A}],
        {"scheduling": {"replicatedJobs": [entry("a", "b")]}},
        [("js-a-b-692ebcbd9c", "a-b-692ebcbd9c", gang(10))],
    ),
    "job: an explicit quorum is kept": (
        [A],
        {"scheduling": {"replicatedJobs": [entry("a", job={"schedulingPolicy": {"gang": {"minCount": 2}}})]}},
        [
            ("js-a-0-f7f70f6e9e", "a-0-f7f70f6e9e", gang(2)),
            ("js-a-1-8273739067", "a-1-8273739067", gang(2)),
        ],
    ),
    "job: quorum 0 is as unset": (
        [{**A, "replicas": 1}],
        {"scheduling": {"replicatedJobs": [entry("a", job={"schedulingPolicy": {"gang": {"minCount": 0}}})]}},
        [("js-a-0-f7f70f6e9e", "a-0-f7f70f6e9e", gang(3))],
    ),
    "job: an empty object is a gang": (
        [{**A, "replicas": 1}],
        {"scheduling": {"replicatedJobs": [entry("a", job={})]}},
        [("js-a-0-f7f70f6e9e", "a-0-f7f70f6e9e", gang(3))],
    ),
    "job: basic": (
        [{**A, "replicas": 1}],
        {"scheduling": {"replicatedJobs": [entry("a", job={"schedulingPolicy": BASIC})]}},
        [("js-a-0-f7f70f6e9e", "a-0-f7f70f6e9e", basic())],
    ),
    "completions below parallelism bound the pods": (
        [with_spec(A, parallelism=4, completions=2)],
        {"scheduling": {}},
        [(WHOLE, WHOLE, gang(4))],
    ),
    "completions above parallelism do not add pods": (
        [with_spec(A, parallelism=4, completions=9)],
        {"scheduling": {}},
        [(WHOLE, WHOLE, gang(8))],
    ),
    "parallelism is 1 when unset": (
        [with_spec(A, parallelism=None, completions=None)],
        {"scheduling": {}},
        [(WHOLE, WHOLE, gang(2))],
    ),
    "sums saturate at int32": ([HUGE, B], {"scheduling": {}}, [(WHOLE, WHOLE, gang(INT32_MAX))]),
    "a sum of two int32 saturates": (
        [BIG, {**BIG, "name": "c"}],
        {"scheduling": {}},
        [(WHOLE, WHOLE, gang(INT32_MAX))],
    ),
    "no pods anywhere: nothing": ([C_EMPTY, with_spec(A, parallelism=0)], {"scheduling": {}}, []),
    "no ReplicatedJobs: nothing": ([], {"scheduling": {}}, []),
    "a sequenced ReplicatedJob without pods has no template": (
        [with_spec(A, completions=0), B, C_EMPTY],
        {"startupPolicy": IN_ORDER, "scheduling": {}},
        [("js-b-3fd3372a68", "b-3fd3372a68", gang(4))],
    ),
    "an entry without pods has no template": (
        [B, C_EMPTY],
        {"scheduling": {"replicatedJobs": [entry("c"), entry("b")]}},
        [("js-b-69b9febbc6", "b-69b9febbc6", gang(4))],
    ),
    "an entry with job and without pods has no template": (
        [with_spec(A, parallelism=0), B],
        {"scheduling": {"replicatedJobs": [entry("a", job={}), entry("b")]}},
        [("js-b-69b9febbc6", "b-69b9febbc6", gang(4))],
    ),
    "an entry with a target without pods keeps the others": (
        [B, C_EMPTY],
        {"scheduling": {"replicatedJobs": [entry("b", "c")]}},
        [("js-b-c-d06a7d906b", "b-c-d06a7d906b", gang(4))],
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rule(name: str) -> None:
    replicated_jobs, spec, expected = RULES[name]
    js = msgspec.convert(
        {"metadata": {"name": "js", "namespace": "ns"}, "spec": {"replicatedJobs": replicated_jobs, **spec}}, JobSet
    )
    objects = compile_scheduling(js)
    assert (groups(objects) if objects else []) == expected
    if objects:
        assert templates(objects) == [{"name": template, **spec} for _, template, spec in expected]


def test_the_priority_class_is_that_of_the_first_replicated_job() -> None:
    low = with_spec(A, template={"spec": {"priorityClassName": "low", "containers": []}})
    high = with_spec(B, template={"spec": {"priorityClassName": "high", "containers": []}})
    whole = compiled(jobset(low, high, scheduling={}))
    assert [template["priorityClassName"] for template in templates(whole)] == ["low"]
    entries = compiled(jobset(low, high, scheduling={"replicatedJobs": [entry("b", "a")]}))
    assert [template["priorityClassName"] for template in templates(entries)] == ["high"]


@pytest.mark.parametrize(
    ("scheduling", "a", "b"),
    [
        ({}, [(WHOLE, WHOLE)] * 2, (WHOLE, WHOLE)),
        (
            {"replicatedJobs": [entry("a"), entry("b")]},
            [("a-7ba9c40928", "js-a-7ba9c40928")] * 2,
            ("b-69b9febbc6", "js-b-69b9febbc6"),
        ),
        (
            {"replicatedJobs": [entry("a", job={}), entry("b")]},
            [("a-0-f7f70f6e9e", "js-a-0-f7f70f6e9e"), ("a-1-8273739067", "js-a-1-8273739067")],
            ("b-69b9febbc6", "js-b-69b9febbc6"),
        ),
        ({"replicatedJobs": [entry("b")]}, [None, None], ("b-69b9febbc6", "js-b-69b9febbc6")),
    ],
)
def test_placement(scheduling: Manifest, a: list[tuple[str, str] | None], b: tuple[str, str]) -> None:
    objects = compiled(jobset(A, B, scheduling=scheduling))
    assert [objects.placement("a", index) for index in (0, 1)] == [place and Placement(*place) for place in a]
    assert objects.placement("b", 0) == Placement(*b)
    assert objects.placement("unknown", 0) is None


def test_a_job_without_pods_has_no_place_of_its_own() -> None:
    objects = compiled(
        jobset(with_spec(A, parallelism=0), B, scheduling={"replicatedJobs": [entry("a", job={}), entry("b")]})
    )
    assert objects.placement("a", 0) is None


@pytest.mark.decision(36)
@pytest.mark.parametrize(
    ("replicas", "template_names"),
    [
        (7, [f"a-{index}-" for index in range(7)] + ["b-69b9febbc6"]),
        (8, ["a-000cb41d36", "b-69b9febbc6"]),
        (1000, ["a-000cb41d36", "b-69b9febbc6"]),
    ],
)
def test_more_than_eight_templates_are_shared(replicas: int, template_names: list[str]) -> None:
    js = jobset({**A, "replicas": replicas}, B, scheduling={"replicatedJobs": [entry("a", job={}), entry("b")]})
    objects = compiled(js)
    found = [template["name"] for template in templates(objects)]
    assert len(found) == len(template_names)
    assert all(name.startswith(start) for name, start in zip(found, template_names, strict=True))
    assert len(objects.pod_groups) == replicas + 1
    first, last = objects.placement("a", 0), objects.placement("a", replicas - 1)
    assert first is not None
    assert last is not None
    assert first.pod_group_name == "js-a-0-f7f70f6e9e", "a PodGroup is named after its Job, shared template or not"
    assert last != first
    assert last.template_name == found[-2]


def test_every_entry_with_job_shares_when_one_must() -> None:
    js = jobset(
        {**A, "replicas": 8},
        {**B, "replicas": 1},
        scheduling={"replicatedJobs": [entry("a", job={}), entry("b", job={"schedulingPolicy": BASIC})]},
    )
    assert templates(compiled(js)) == [{"name": "a-000cb41d36", **gang(3)}, {"name": "b-3fd3372a68", **basic()}]


def test_replicas_of_an_entry_without_job_need_one_template() -> None:
    js = jobset(A, {**B, "replicas": 1000}, scheduling={"replicatedJobs": [entry("a", job={}), entry("b")]})
    names = [template["name"] for template in templates(compiled(js))]
    assert names == ["a-0-f7f70f6e9e", "a-1-8273739067", "b-69b9febbc6"]


LIVE: dict[str, tuple[Manifest, dict[tuple[str, int], int], list[int]]] = {
    "nothing known: the spec": ({}, {}, [10]),
    "all live: the spec": ({}, {("a", 0): 3, ("a", 1): 3, ("b", 0): 4}, [10]),
    "a Job left out counts in full": ({}, {("a", 0): 1}, [8]),
    "finished Jobs count 0": ({}, {("a", 0): 0, ("a", 1): 0, ("b", 0): 1}, [1]),
    "never below 1": ({}, {("a", 0): 0, ("a", 1): 0, ("b", 0): 0}, [1]),
    "above the spec while a gang shrinks": ({}, {("b", 0): 6}, [12]),
    "each entry has its own": (
        {"replicatedJobs": [entry("a"), entry("b")]},
        {("a", 1): 0, ("b", 0): 2},
        [3, 2],
    ),
    "each Job has its own": (
        {"replicatedJobs": [entry("a", job={}), entry("b")]},
        {("a", 0): 1, ("a", 1): 0},
        [1, 1, 4],
    ),
    "an explicit quorum is never changed": (
        {"replicatedJobs": [entry("a", job={"schedulingPolicy": {"gang": {"minCount": 3}}}), entry("b")]},
        {("a", 0): 1, ("a", 1): 0},
        [3, 3, 4],
    ),
}


@pytest.mark.decision(20)
@pytest.mark.parametrize("name", LIVE)
def test_live_pods(name: str) -> None:
    scheduling, live, expected = LIVE[name]
    js = jobset(A, B, scheduling=scheduling)
    objects, fresh = compiled(js, live=live), compiled(js)
    assert [group.spec.scheduling_policy.gang.min_count for group in objects.pod_groups] == expected  # type: ignore[union-attr]
    assert [template["schedulingPolicy"]["gang"]["minCount"] for template in templates(objects)] == expected
    assert [group.metadata for group in objects.pod_groups] == [group.metadata for group in fresh.pod_groups]


def test_a_shared_template_has_the_largest_quorum_of_its_groups() -> None:
    js = jobset({**A, "replicas": 9}, scheduling={"replicatedJobs": [entry("a", job={})]})
    objects = compiled(js, live={("a", index): (index + 1) % 3 for index in range(9)})
    assert [t["schedulingPolicy"]["gang"]["minCount"] for t in templates(objects)] == [2]
    assert [g.spec.scheduling_policy.gang.min_count for g in objects.pod_groups] == [1, 2, 1] * 3  # type: ignore[union-attr]


def test_metadata_is_complete() -> None:
    objects = compiled(jobset(A, scheduling={"schedulingPolicy": GANG}))
    expected = {
        "name": WHOLE,
        "namespace": "ns",
        "labels": {"jobset.sigs.k8s.io/jobset-name": "js"},
        "ownerReferences": [
            {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "name": "js",
                "uid": "uid-js",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    policy = {"schedulingPolicy": {"gang": {"minCount": 6}}}
    assert manifest(WORKLOADS, objects.workload) == {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": expected,
        "spec": {
            "controllerRef": {"apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": "js"},
            "podGroupTemplates": [{"name": WHOLE, **policy}],
        },
    }
    (pod_group,) = objects.pod_groups
    assert manifest(POD_GROUPS, pod_group) == {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": expected,
        "spec": {"workloadRef": {"workloadName": WHOLE, "templateName": WHOLE}, **policy},
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, False),
        ({"startupPolicy": ANY_ORDER}, False),
        ({"startupPolicy": IN_ORDER}, True),
        ({"replicatedJobs": [A, {**B, "dependsOn": AFTER_A}]}, True),
        ({"replicatedJobs": [A, {**B, "dependsOn": []}]}, False),
    ],
)
def test_sequenced(spec: Manifest, expected: bool) -> None:
    assert sequenced(jobset(A, B, **spec)) is expected


def test_what_the_rules_refuse_still_compiles() -> None:
    """A stored JobSet may have missed the rules: an unknown target, and an explicit gang with sequenced startup."""
    unknown = compiled(jobset(A, scheduling={"replicatedJobs": [entry("nope"), entry("a")]}))
    assert [name for name, _, _ in groups(unknown)] == ["js-a-7ba9c40928"]
    explicit = compiled(jobset(A, B, startupPolicy=IN_ORDER, scheduling={"schedulingPolicy": GANG}))
    assert [spec for _, _, spec in groups(explicit)] == [gang(6), gang(4)], "one gang could never be complete"


@pytest.mark.decision(19)
def test_a_quorum_counts_the_pods_that_run_at_once() -> None:
    """With completions below parallelism the Job controller never makes more pods than completions."""
    entries = {"replicatedJobs": [entry("a", job={}), entry("b")]}
    few = compiled(jobset(with_spec(A, parallelism=4, completions=2), B, scheduling=entries))
    assert [spec for _, _, spec in groups(few)] == [gang(2), gang(2), gang(4)]


@pytest.mark.decision(21)
def test_what_has_no_pods_has_no_template() -> None:
    idle = with_spec(A, parallelism=0)
    entries = {"replicatedJobs": [entry("a"), entry("b")]}
    assert [template for _, template, _ in groups(compiled(jobset(idle, B, scheduling=entries)))] == ["b-69b9febbc6"]
    assert compile_scheduling(jobset(idle, scheduling={})) is None
