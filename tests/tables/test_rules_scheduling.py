"""The rules of spec.scheduling: one manifest that each refuses, with the field, and one that it lets pass."""

import pytest

from pyjobset.objects import features as gates
from pyjobset.rules.validation import validate_create
from tests.builders import calls, jobset, replicated_job
from tests.manifests import (
    ALL_GATES,
    BASIC,
    DRIVER,
    DRIVER_POD,
    ENTRIES,
    EXCLUSIVE,
    GANG,
    NODE_SELECTOR,
    WORKERS,
    WORKERS_POD,
    Case,
    Edits,
    by_job,
    entry,
    jobs,
    problems_of_create,
    seen,
)

CASES = [
    Case(
        "scheduling-gate",
        "spec.scheduling",
        {"spec.scheduling": {}},
        {"spec.scheduling": {}},
        off=frozenset({gates.WORKLOAD_AWARE_SCHEDULING}),
    ),
    Case(
        "scheduling-two-models",
        "spec.scheduling",
        {ENTRIES: [entry("driver", "workers")], "spec.scheduling.disruptionMode.all": {}},
        {ENTRIES: [entry("driver", "workers", disruptionMode={"all": {}})]},
    ),
    # an empty list is as good as none, but not beside the other model
    Case(
        "scheduling-two-models",
        "spec.scheduling",
        {ENTRIES: [], "spec.scheduling.schedulingPolicy": GANG},
        {ENTRIES: []},
    ),
    Case(
        "union-member",
        "spec.scheduling.schedulingPolicy",
        {"spec.scheduling.schedulingPolicy": {}},
        {"spec.scheduling.schedulingPolicy": GANG},
    ),
    Case(
        "union-member",
        "spec.scheduling.schedulingPolicy",
        {"spec.scheduling.schedulingPolicy": GANG | BASIC},
        {"spec.scheduling.schedulingPolicy": BASIC},
    ),
    Case(
        "union-member",
        f"{ENTRIES}[0].disruptionMode",
        {ENTRIES: [entry("driver", "workers", disruptionMode={"all": {}, "single": {}})]},
        {ENTRIES: [entry("driver", "workers", disruptionMode={"single": {}})]},
    ),
    Case(
        "union-member",
        f"{ENTRIES}[1].job.resourceClaims[0]",
        by_job(resourceClaims=[{"name": "c"}]),
        by_job(resourceClaims=[{"name": "c", "resourceClaimName": "c"}]),
    ),
    Case(
        "union-member",
        f"{ENTRIES}[1].job.resourceClaims[0]",
        by_job(resourceClaims=[{"name": "c", "resourceClaimName": "c", "resourceClaimTemplateName": "c"}]),
        by_job(resourceClaims=[{"name": "c", "resourceClaimTemplateName": "c"}]),
    ),
    Case(
        "min-count-computed",
        "spec.scheduling.schedulingPolicy.gang.minCount",
        {"spec.scheduling.schedulingPolicy.gang.minCount": 2},
        {"spec.scheduling.schedulingPolicy.gang": {}},
    ),
    Case(
        "min-count-computed",
        f"{ENTRIES}[0].schedulingPolicy.gang.minCount",
        {ENTRIES: [entry("driver", "workers", schedulingPolicy={"gang": {"minCount": 2}})]},
        {ENTRIES: [entry("driver", "workers", schedulingPolicy=GANG)]},
    ),
    Case(
        "min-count-pods",
        f"{ENTRIES}[1].job.schedulingPolicy.gang.minCount",
        by_job(schedulingPolicy={"gang": {"minCount": 3}}),
        by_job(schedulingPolicy={"gang": {"minCount": 2}}),
    ),
    # fewer completions than parallelism: only so many pods run
    Case(
        "min-count-pods",
        f"{ENTRIES}[1].job.schedulingPolicy.gang.minCount",
        by_job(schedulingPolicy={"gang": {"minCount": 2}}) | {f"{WORKERS}.template.spec.completions": 1},
        by_job(schedulingPolicy={"gang": {"minCount": 1}}) | {f"{WORKERS}.template.spec.completions": 1},
    ),
    Case(
        "topology-key",
        "spec.scheduling.schedulingConstraints.topology[0].key",
        {"spec.scheduling.schedulingConstraints.topology": [{"key": "a b/c"}]},
        {"spec.scheduling.schedulingConstraints.topology": [{"key": "topology.kubernetes.io/rack"}]},
    ),
    Case(
        "topology-key",
        f"{ENTRIES}[1].job.schedulingConstraints.topology[0].key",
        by_job(schedulingConstraints={"topology": [{"key": ""}]}),
        by_job(schedulingConstraints={"topology": []}),
    ),
    Case(
        "resource-claim-name",
        f"{ENTRIES}[1].job.resourceClaims[0].name",
        by_job(resourceClaims=[{"name": "C_1", "resourceClaimName": "c"}]),
        by_job(resourceClaims=[{"name": "c-1", "resourceClaimName": "c.d"}]),
    ),
    Case(
        "resource-claim-name",
        f"{ENTRIES}[1].job.resourceClaims[0].resourceClaimTemplateName",
        by_job(resourceClaims=[{"name": "c", "resourceClaimTemplateName": "C"}]),
        by_job(resourceClaims=[{"name": "c", "resourceClaimTemplateName": "c"}]),
    ),
    Case(
        "target-twice",
        f"{ENTRIES}[1].targetReplicatedJobs[1]",
        {ENTRIES: [entry("driver"), entry("workers", "driver")]},
        {ENTRIES: [entry("driver"), entry("workers")]},
    ),
    Case("not-targeted", f"{WORKERS}.name", {ENTRIES: [entry("driver")]}, {ENTRIES: [entry("driver", "workers")]}),
    Case(
        "job-one-target",
        f"{ENTRIES}[0].job",
        {ENTRIES: [entry("driver", "workers", job={})]},
        {ENTRIES: [entry("driver", job={}), entry("workers", job={})]},
    ),
    Case(
        "job-with-group-fields",
        f"{ENTRIES}[1].job",
        {ENTRIES: [entry("driver"), entry("workers", job={}, schedulingPolicy=GANG)]},
        by_job(schedulingPolicy=GANG),
    ),
    Case(
        "gang-sequenced",
        "spec.scheduling.schedulingPolicy.gang",
        {"spec.scheduling.schedulingPolicy": GANG, "spec.startupPolicy.startupPolicyOrder": "InOrder"},
        {"spec.scheduling": {}, "spec.startupPolicy.startupPolicyOrder": "InOrder"},
    ),
    Case(
        "gang-sequenced",
        "spec.scheduling.schedulingPolicy.gang",
        {"spec.scheduling.schedulingPolicy": GANG, f"{WORKERS}.dependsOn": [{"name": "driver", "status": "Ready"}]},
        {"spec.scheduling.schedulingPolicy": BASIC, f"{WORKERS}.dependsOn": [{"name": "driver", "status": "Ready"}]},
    ),
    Case(
        "gang-sequenced",
        f"{ENTRIES}[0]",
        {ENTRIES: [entry("driver", "workers")], "spec.startupPolicy.startupPolicyOrder": "InOrder"},
        {ENTRIES: [entry("driver"), entry("workers")], "spec.startupPolicy.startupPolicyOrder": "InOrder"},
    ),
    Case(
        "gang-sequenced",
        f"{ENTRIES}[0]",
        {ENTRIES: [entry("driver", "workers")], f"{WORKERS}.dependsOn": [{"name": "driver", "status": "Ready"}]},
        {
            ENTRIES: [entry("driver", "workers")],
            f"{WORKERS}.dependsOn": [{"name": "driver", "status": "Ready"}],
            f"{WORKERS}.replicas": 0,
        },
    ),
    Case(
        "gang-sequenced",
        f"{ENTRIES}[0].schedulingPolicy.gang",
        {
            ENTRIES: [entry("driver", "workers", schedulingPolicy=GANG)],
            "spec.startupPolicy.startupPolicyOrder": "InOrder",
        },
        {
            ENTRIES: [entry("driver", "workers", schedulingPolicy=BASIC)],
            "spec.startupPolicy.startupPolicyOrder": "InOrder",
        },
    ),
    # a gang of a and c, where c waits for b and b for a; a ReplicatedJob without Jobs holds up nobody
    Case(
        "gang-sequenced",
        f"{ENTRIES}[0].schedulingPolicy.gang",
        {
            "spec.replicatedJobs": jobs("a", "b", "c"),
            "spec.replicatedJobs[1].dependsOn": [{"name": "a", "status": "Ready"}],
            "spec.replicatedJobs[2].dependsOn": [{"name": "b", "status": "Ready"}],
            ENTRIES: [entry("a", "c", schedulingPolicy=GANG), entry("b")],
        },
        {
            "spec.replicatedJobs": jobs("a", "b", "c"),
            "spec.replicatedJobs[1].replicas": 0,
            "spec.replicatedJobs[1].dependsOn": [{"name": "a", "status": "Ready"}],
            "spec.replicatedJobs[2].dependsOn": [{"name": "b", "status": "Ready"}],
            ENTRIES: [entry("a", "c", schedulingPolicy=GANG), entry("b")],
        },
    ),
    Case(
        "basic-disruption-all",
        "spec.scheduling.disruptionMode.all",
        {"spec.scheduling": {"schedulingPolicy": BASIC, "disruptionMode": {"all": {}}}},
        {"spec.scheduling": {"schedulingPolicy": BASIC, "disruptionMode": {"single": {}}}},
    ),
    Case(
        "basic-disruption-all",
        f"{ENTRIES}[1].job.disruptionMode.all",
        by_job(schedulingPolicy=BASIC, disruptionMode={"all": {}}),
        by_job(disruptionMode={"all": {}}),
    ),
    Case(
        "priority-class-differs",
        f"{WORKERS_POD}.priorityClassName",
        {"spec.scheduling": {}, f"{DRIVER_POD}.priorityClassName": "high"},
        {"spec.scheduling": {}, f"{DRIVER_POD}.priorityClassName": "high", f"{WORKERS_POD}.priorityClassName": "high"},
    ),
    Case(
        "priority-class-differs",
        f"{WORKERS_POD}.priorityClassName",
        {ENTRIES: [entry("driver"), entry("workers")], f"{WORKERS_POD}.priorityClassName": "high"},
        {f"{WORKERS_POD}.priorityClassName": "high"},
    ),
    Case(
        "scheduler-name-differs",
        f"{WORKERS_POD}.schedulerName",
        {"spec.scheduling": {}, f"{WORKERS_POD}.schedulerName": "mine"},
        {ENTRIES: [entry("driver"), entry("workers")], f"{WORKERS_POD}.schedulerName": "mine"},
    ),
    Case(
        "scheduler-name-differs",
        f"{WORKERS_POD}.schedulerName",
        {"spec.scheduling": {}, f"{DRIVER_POD}.schedulerName": "mine"},
        {"spec.scheduling": {}, f"{DRIVER_POD}.schedulerName": "default-scheduler"},
    ),
    Case(
        "too-many-templates",
        ENTRIES,
        {"spec.replicatedJobs": jobs(*"abcdefghi"), ENTRIES: [entry(name) for name in "abcdefghi"]},
        {"spec.replicatedJobs": jobs(*"abcdefgh"), ENTRIES: [entry(name) for name in "abcdefgh"]},
    ),
    Case(
        "too-many-templates",
        "spec.scheduling",
        {
            "spec.replicatedJobs": jobs(*"abcdefghi"),
            "spec.scheduling": {},
            "spec.startupPolicy.startupPolicyOrder": "InOrder",
        },
        {"spec.replicatedJobs": jobs(*"abcdefghi"), "spec.scheduling": {}},
    ),
    # Jobs that are groups of their own share a template before there are too many; a group without pods needs none
    Case(
        "too-many-templates",
        ENTRIES,
        {"spec.replicatedJobs": jobs(*"abcdefghi"), ENTRIES: [entry(name, job={}) for name in "abcdefghi"]},
        {
            "spec.replicatedJobs": jobs(*"abcdefghi"),
            "spec.replicatedJobs[0].replicas": 0,
            "spec.replicatedJobs[1].replicas": 100,
            ENTRIES: [entry(name, job={}) for name in "abcdefghi"],
        },
    ),
    Case(
        "template-name-taken",
        f"{ENTRIES}[1].targetReplicatedJobs",
        {"spec.replicatedJobs": jobs("a-b", "c", "a", "b-c"), ENTRIES: [entry("a-b", "c"), entry("a", "b-c")]},
        {"spec.replicatedJobs": jobs("a-b", "c", "a", "b-c"), ENTRIES: [entry("a-b", "c"), entry("b-c", "a")]},
    ),
    Case(
        "native-scheduling",
        f"{DRIVER}.template.spec.scheduling",
        {"spec.scheduling": {}, f"{DRIVER}.template.spec.scheduling": {"schedulingPolicy": GANG}},
        {f"{DRIVER}.template.spec.scheduling": {"schedulingPolicy": GANG}},
    ),
    Case(
        "native-scheduling",
        f"{DRIVER_POD}.schedulingGroup",
        {"spec.scheduling": {}, f"{DRIVER_POD}.schedulingGroup": {"podGroupName": "mine"}},
        {f"{DRIVER_POD}.schedulingGroup": {"podGroupName": "mine"}},
    ),
    Case(
        "exclusive-placement-gang",
        f"metadata.annotations[{EXCLUSIVE}]",
        {"spec.scheduling": {}, "metadata.annotations": {EXCLUSIVE: "rack"}},
        {"spec.scheduling.schedulingPolicy": BASIC, "metadata.annotations": {EXCLUSIVE: "rack"}},
    ),
    Case(
        "exclusive-placement-gang",
        f"{WORKERS}.template.metadata.annotations[{EXCLUSIVE}]",
        {"spec.scheduling": {}, f"{WORKERS}.template.metadata.annotations": {EXCLUSIVE: "rack"}},
        {
            "spec.scheduling": {},
            f"{WORKERS}.template.metadata.annotations": {EXCLUSIVE: "rack", NODE_SELECTOR: "true"},
        },
    ),
    Case(
        "exclusive-placement-gang",
        f"{WORKERS}.template.metadata.annotations[{EXCLUSIVE}]",
        {
            ENTRIES: [entry("driver", schedulingPolicy=BASIC), entry("workers")],
            f"{WORKERS}.template.metadata.annotations": {EXCLUSIVE: "rack"},
        },
        {
            ENTRIES: [entry("driver"), entry("workers", schedulingPolicy=BASIC)],
            f"{WORKERS}.template.metadata.annotations": {EXCLUSIVE: "rack"},
        },
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_create(case: Case) -> None:
    assert seen(problems_of_create(case.bad, ALL_GATES - case.off)) == [(case.code, case.path)]
    assert seen(problems_of_create(case.good, ALL_GATES)) == []


@pytest.mark.parametrize(
    ("edits", "path", "said"),
    [
        pytest.param(
            {"spec.scheduling": {}, "metadata.annotations": {EXCLUSIVE: "rack"}},
            f"metadata.annotations[{EXCLUSIVE}]",
            ["a gang waits for all", "use schedulingConstraints: {topology:"],
            id="exclusive placement",
            marks=pytest.mark.decision(23),
        ),
        pytest.param(
            {"spec.scheduling": {}, f"{WORKERS_POD}.schedulerName": "mine"},
            f"{WORKERS_POD}.schedulerName",
            ["'driver' has 'default-scheduler'", "mine", "the same schedulerName"],
            id="two schedulers",
            marks=pytest.mark.decision(24),
        ),
        pytest.param(
            {ENTRIES: [entry("driver"), entry("workers")], f"{WORKERS_POD}.priorityClassName": "high"},
            f"{WORKERS_POD}.priorityClassName",
            ["is high here and unset in 'driver'", "a Workload takes one", "the same priorityClassName"],
            id="two priorities",
            marks=pytest.mark.decision(32),
        ),
        pytest.param(
            {"spec.scheduling": {"schedulingPolicy": BASIC, "disruptionMode": {"all": {}}}},
            "spec.scheduling.disruptionMode.all",
            ["not supported with the basic policy", "use gang, or disruptionMode: {single: {}}"],
            id="basic, disrupted as one",
            marks=pytest.mark.decision(37),
        ),
    ],
)
def test_what_could_never_run_is_refused_with_the_reason_and_the_way_out(
    edits: Edits, path: str, said: list[str]
) -> None:
    (problem,) = problems_of_create(edits, ALL_GATES)
    assert problem.path == path
    assert [words for words in said if words not in str(problem)] == []


def test_many_groups_in_sequence_cost_as_much_as_each() -> None:
    """An admission of some thousand ReplicatedJobs took seconds, in which no other was answered."""

    def cost(replicated_jobs: int) -> int:
        many = (replicated_job(f"r{i}") for i in range(replicated_jobs))
        js = jobset(*many, startupPolicy={"startupPolicyOrder": "InOrder"}, scheduling={})
        return calls(lambda: validate_create(js, ALL_GATES))

    assert cost(400) < 4.5 * cost(100)
