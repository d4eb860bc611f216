"""What the CRD refuses, each at its field, and the neighbour that it accepts: so a limit is known to be where it is."""

from dataclasses import dataclass

import pytest

from tests.server.crd.conftest import JobSets
from tests.server.crd.words import (
    TEMPLATE,
    Spec,
    claim,
    claims,
    container,
    depends,
    entry,
    job,
    names,
    resource_claims,
    rj,
    rule,
    scheduling,
)


@dataclass(frozen=True)
class Case:
    path: str
    """Below spec, without it."""
    message: str
    bad: Spec
    good: Spec


GANG, BASIC = {"gang": {}}, {"basic": {}}
SINGLE, ALL = {"single": {}}, {"all": {}}
RACK, SLICE = {"key": "topology.kubernetes.io/rack"}, {"key": "slice"}
ONE_OF_POLICY = "exactly one of basic and gang must be set"
ONE_OF_MODE = "exactly one of single and all must be set"
ONE_OF_CLAIM = "exactly one of resourceClaimName and resourceClaimTemplateName must be set"
TWO_MODELS = (
    "Forbidden: cannot set schedulingPolicy, schedulingConstraints, or disruptionMode together with replicatedJobs"
)
BASIC_IS_SINGLE = "disruptionMode all needs schedulingPolicy gang"
JOB_ONLY = "Forbidden: cannot be set together with the entry's own"
WITHOUT_NAME = {"template": TEMPLATE}
IN_ORDER = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
ANY_ORDER = {"startupPolicy": {"startupPolicyOrder": "AnyOrder"}}
TARGETS = [{"targetReplicatedJobs": [f"n{i}"]} for i in range(51)]

CASES = {
    # replicatedJobs
    "name is required": Case(".replicatedJobs[0].name", "Required value", {"replicatedJobs": [WITHOUT_NAME]}, {}),
    "name length": Case(
        ".replicatedJobs[0].name", "Too long", {"replicatedJobs": [rj("n" * 64)]}, {"replicatedJobs": [rj("n" * 63)]}
    ),
    "names are unique": Case(
        ".replicatedJobs[1]", "Duplicate value", {"replicatedJobs": [rj(), rj()]}, {"replicatedJobs": [rj(), rj("x")]}
    ),
    "template is required": Case(
        ".replicatedJobs[0].template", "Required value", {"replicatedJobs": [{"name": "w"}]}, {"replicatedJobs": [rj()]}
    ),
    "replicas": Case(
        ".replicatedJobs[0].replicas",
        "greater than or equal to 0",
        {"replicatedJobs": [rj(replicas=-1)]},
        {"replicatedJobs": [rj(replicas=0)]},
    ),
    "groupName length": Case(
        ".replicatedJobs[0].groupName",
        "Too long",
        {"replicatedJobs": [rj(groupName="g" * 64)]},
        {"replicatedJobs": [rj(groupName="g" * 63)]},
    ),
    "dependsOn count": Case(
        ".replicatedJobs[6].dependsOn", "must have at most 5 items", depends(*names(6)), depends(*names(5))
    ),
    "dependsOn is unique": Case(
        ".replicatedJobs[1].dependsOn[1]",
        "Duplicate value",
        {"replicatedJobs": [rj("a"), rj(dependsOn=[{"name": "a", "status": s} for s in ("Ready", "Complete")])]},
        {"replicatedJobs": [rj("a"), rj(dependsOn=[{"name": "a", "status": "Ready"}])]},
    ),
    "dependsOn status": Case(
        ".replicatedJobs[1].dependsOn[0].status",
        'supported values: "Ready", "Complete"',
        depends("a", status="Failed"),
        depends("a", status="Complete"),
    ),
    "dependsOn status is required": Case(
        ".replicatedJobs[1].dependsOn[0].status",
        "Required value",
        {"replicatedJobs": [rj("a"), rj(dependsOn=[{"name": "a"}])]},
        depends("a"),
    ),
    "InOrder and dependsOn": Case(
        ".startupPolicy", "mutually exclusive", {**IN_ORDER, **depends("a")}, {**ANY_ORDER, **depends("a")}
    ),
    "InOrder and an empty dependsOn": Case(
        ".startupPolicy",
        "mutually exclusive",
        {**IN_ORDER, "replicatedJobs": [rj("a", dependsOn=[]), *depends("b")["replicatedJobs"]]},
        {**IN_ORDER, "replicatedJobs": [rj("a", dependsOn=[])]},
    ),
    "quantity in a template": Case(
        ".replicatedJobs[0].template.spec.template.spec.containers[0].resources.limits.memory",
        "should match",
        container(resources={"limits": {"memory": "5 Gi"}}),
        container(resources={"limits": {"memory": "5Gi", "cpu": 1}}),
    ),
    # network, success, failure, startup, coordinator
    "subdomain length": Case(
        ".network.subdomain", "Too long", {"network": {"subdomain": "s" * 64}}, {"network": {"subdomain": "s" * 63}}
    ),
    "operator": Case(
        ".successPolicy.operator",
        'supported values: "All", "Any"',
        {"successPolicy": {"operator": "Most"}},
        {"successPolicy": {"operator": "Any"}},
    ),
    "operator is required": Case(
        ".successPolicy.operator",
        "Required value",
        {"successPolicy": {"targetReplicatedJobs": ["w"]}},
        {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["w"]}},
    ),
    "maxRestarts": Case(
        ".failurePolicy.maxRestarts",
        "greater than or equal to 0",
        {"failurePolicy": {"maxRestarts": -1}},
        {"failurePolicy": {"maxRestarts": 0}},
    ),
    "restartStrategy": Case(
        ".failurePolicy.restartStrategy",
        'supported values: "Recreate", "BlockingRecreate", "InPlaceRestart"',
        {"failurePolicy": {"restartStrategy": "Restart"}},
        {"failurePolicy": {"restartStrategy": "InPlaceRestart"}},
    ),
    "rules count": Case(
        ".failurePolicy.rules",
        "must have at most 64 items",
        {"failurePolicy": {"rules": [{"action": "FailJobSet"}] * 65}},
        {"failurePolicy": {"rules": [{"action": "FailJobSet"}] * 64}},
    ),
    "rule name length": Case(".failurePolicy.rules[0].name", "Too long", rule(name="n" * 129), rule(name="n" * 128)),
    "rule action": Case(
        ".failurePolicy.rules[0].action",
        '"RestartJobAndIgnoreMaxRestarts"',
        rule(action="Restart"),
        rule(action="RestartJobAndIgnoreMaxRestarts"),
    ),
    "rule action is required": Case(
        ".failurePolicy.rules[0].action", "Required value", {"failurePolicy": {"rules": [{"name": "r"}]}}, rule()
    ),
    "rule reasons": Case(
        ".failurePolicy.rules[0].onJobFailureReasons[0]",
        '"PodFailurePolicy"',
        rule(onJobFailureReasons=["Other"]),
        rule(
            onJobFailureReasons=[
                "BackoffLimitExceeded",
                "DeadlineExceeded",
                "FailedIndexes",
                "MaxFailedIndexesExceeded",
                "PodFailurePolicy",
            ]
        ),
    ),
    "rule reasons are unique": Case(
        ".failurePolicy.rules[0].onJobFailureReasons[1]",
        "Duplicate value",
        rule(onJobFailureReasons=["FailedIndexes", "FailedIndexes"]),
        rule(onJobFailureReasons=["FailedIndexes"]),
    ),
    "startupPolicyOrder": Case(
        ".startupPolicy.startupPolicyOrder",
        'supported values: "AnyOrder", "InOrder"',
        {"startupPolicy": {"startupPolicyOrder": "NoOrder"}},
        IN_ORDER,
    ),
    "startupPolicyOrder is required": Case(
        ".startupPolicy.startupPolicyOrder", "Required value", {"startupPolicy": {}}, ANY_ORDER
    ),
    "coordinator replicatedJob is required": Case(
        ".coordinator.replicatedJob", "Required value", {"coordinator": {}}, {"coordinator": {"replicatedJob": "w"}}
    ),
    "coordinator jobIndex": Case(
        ".coordinator.jobIndex",
        "greater than or equal to 0",
        {"coordinator": {"replicatedJob": "w", "jobIndex": -1}},
        {"coordinator": {"replicatedJob": "w", "jobIndex": 0}},
    ),
    "coordinator podIndex": Case(
        ".coordinator.podIndex",
        "greater than or equal to 0",
        {"coordinator": {"replicatedJob": "w", "podIndex": -1}},
        {"coordinator": {"replicatedJob": "w", "podIndex": 0}},
    ),
    "managedBy length": Case(".managedBy", "Too long", {"managedBy": "d/" + "n" * 62}, {"managedBy": "d/" + "n" * 61}),
    "ttlSecondsAfterFinished": Case(
        ".ttlSecondsAfterFinished",
        "greater than or equal to 0",
        {"ttlSecondsAfterFinished": -1},
        {"ttlSecondsAfterFinished": 0},
    ),
    "activeDeadlineSeconds": Case(
        ".activeDeadlineSeconds",
        "greater than or equal to 1",
        {"activeDeadlineSeconds": 0},
        {"activeDeadlineSeconds": 2**40},
    ),
    # volumeClaimPolicies
    "policies count": Case(
        ".volumeClaimPolicies",
        "must have at most 50 items",
        {"volumeClaimPolicies": [{}] * 51},
        {"volumeClaimPolicies": [{}] * 50},
    ),
    "templates count": Case(
        ".volumeClaimPolicies[0].templates",
        "must have at most 50 items",
        claims(*map(claim, range(51))),
        claims(*map(claim, range(50))),
    ),
    "whenDeleted": Case(
        ".volumeClaimPolicies[0].retentionPolicy.whenDeleted",
        'supported values: "Delete", "Retain"',
        claims(claim(), retentionPolicy={"whenDeleted": "Keep"}),
        claims(claim(), retentionPolicy={"whenDeleted": "Retain"}),
    ),
    "claim namespace": Case(
        ".volumeClaimPolicies[0].templates[1].metadata.namespace",
        "Forbidden: must be empty",
        claims(claim(0), claim(1, namespace="other")),
        claims(claim(0), claim(1, namespace="")),
    ),
    # scheduling: unions
    "policy without member": Case(
        ".scheduling.schedulingPolicy",
        ONE_OF_POLICY,
        scheduling(schedulingPolicy={}),
        scheduling(schedulingPolicy=GANG),
    ),
    "policy with both members": Case(
        ".scheduling.schedulingPolicy",
        ONE_OF_POLICY,
        scheduling(schedulingPolicy={**BASIC, **GANG}),
        scheduling(schedulingPolicy=BASIC),
    ),
    "policy of an entry": Case(
        ".scheduling.replicatedJobs[0].schedulingPolicy",
        ONE_OF_POLICY,
        entry(schedulingPolicy={}),
        entry(schedulingPolicy=BASIC),
    ),
    "policy of a job": Case(
        ".scheduling.replicatedJobs[0].job.schedulingPolicy",
        ONE_OF_POLICY,
        job(schedulingPolicy={}),
        job(schedulingPolicy=BASIC),
    ),
    "mode without member": Case(
        ".scheduling.disruptionMode", ONE_OF_MODE, scheduling(disruptionMode={}), scheduling(disruptionMode=ALL)
    ),
    "mode with both members": Case(
        ".scheduling.disruptionMode",
        ONE_OF_MODE,
        scheduling(disruptionMode={**SINGLE, **ALL}),
        scheduling(disruptionMode=SINGLE),
    ),
    "claim without reference": Case(
        ".scheduling.replicatedJobs[0].job.resourceClaims[0]",
        ONE_OF_CLAIM,
        job(resourceClaims=[{"name": "n"}]),
        job(resourceClaims=[{"name": "n", "resourceClaimName": "c"}]),
    ),
    "claim with both references": Case(
        ".scheduling.replicatedJobs[0].job.resourceClaims[0]",
        ONE_OF_CLAIM,
        job(resourceClaims=[{"name": "n", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}]),
        job(resourceClaims=[{"name": "n", "resourceClaimTemplateName": "t"}]),
    ),
    # scheduling: limits
    "topology count": Case(
        ".scheduling.schedulingConstraints.topology",
        "must have at most 1 item",
        scheduling(schedulingConstraints={"topology": [RACK, SLICE]}),
        scheduling(schedulingConstraints={"topology": [RACK]}),
    ),
    "topology key is required": Case(
        ".scheduling.schedulingConstraints.topology[0].key",
        "Required value",
        scheduling(schedulingConstraints={"topology": [{}]}),
        scheduling(schedulingConstraints={"topology": [SLICE]}),
    ),
    "topology key length": Case(
        ".scheduling.schedulingConstraints.topology[0].key",
        "Too long",
        scheduling(schedulingConstraints={"topology": [{"key": "k" * 318}]}),
        scheduling(schedulingConstraints={"topology": [{"key": "k" * 317}]}),
    ),
    "entries count": Case(
        ".scheduling.replicatedJobs",
        "must have at most 50 items",
        scheduling(replicatedJobs=TARGETS),
        scheduling(replicatedJobs=TARGETS[:50]),
    ),
    "targets are required": Case(
        ".scheduling.replicatedJobs[0].targetReplicatedJobs",
        "Required value",
        scheduling(replicatedJobs=[{}]),
        entry(),
    ),
    "no target": Case(
        ".scheduling.replicatedJobs[0].targetReplicatedJobs",
        "should have at least 1 items",
        entry(targetReplicatedJobs=[]),
        entry(targetReplicatedJobs=names(1)),
    ),
    "targets count": Case(
        ".scheduling.replicatedJobs[0].targetReplicatedJobs",
        "must have at most 50 items",
        entry(targetReplicatedJobs=names(51)),
        entry(targetReplicatedJobs=names(50)),
    ),
    "targets are unique": Case(
        ".scheduling.replicatedJobs[0].targetReplicatedJobs[1]",
        "Duplicate value",
        entry(targetReplicatedJobs=["w", "w"]),
        entry(targetReplicatedJobs=["w", "x"]),
    ),
    "target length": Case(
        ".scheduling.replicatedJobs[0].targetReplicatedJobs[0]",
        "Too long",
        entry(targetReplicatedJobs=["n" * 257]),
        entry(targetReplicatedJobs=["n" * 256]),
    ),
    "claims count": Case(
        ".scheduling.replicatedJobs[0].job.resourceClaims",
        "must have at most 4 items",
        job(resourceClaims=resource_claims(5)),
        job(resourceClaims=resource_claims(4)),
    ),
    "claims are unique": Case(
        ".scheduling.replicatedJobs[0].job.resourceClaims[1]",
        "Duplicate value",
        job(resourceClaims=resource_claims(1) * 2),
        job(resourceClaims=resource_claims(2)),
    ),
    "minCount": Case(
        ".scheduling.replicatedJobs[0].job.schedulingPolicy.gang.minCount",
        "greater than or equal to 0",
        job(schedulingPolicy={"gang": {"minCount": -1}}),
        job(schedulingPolicy={"gang": {"minCount": 0}}),
    ),
    # scheduling: what excludes what
    "two models: policy": Case(
        ".scheduling",
        TWO_MODELS,
        scheduling(schedulingPolicy=GANG, replicatedJobs=TARGETS[:1]),
        scheduling(replicatedJobs=TARGETS[:1]),
    ),
    "two models: constraints": Case(
        ".scheduling",
        TWO_MODELS,
        scheduling(schedulingConstraints={"topology": [RACK]}, replicatedJobs=TARGETS[:1]),
        entry(schedulingConstraints={"topology": [RACK]}),
    ),
    "two models: mode": Case(
        ".scheduling",
        TWO_MODELS,
        scheduling(disruptionMode=ALL, replicatedJobs=TARGETS[:1]),
        entry(disruptionMode=ALL),
    ),
    "job with two targets": Case(
        ".scheduling.replicatedJobs[0].targetReplicatedJobs",
        "job needs exactly one target",
        entry(targetReplicatedJobs=["w", "x"], job={}),
        entry(targetReplicatedJobs=["w"], job={}),
    ),
    "job and a policy of its entry": Case(
        ".scheduling.replicatedJobs[0].job", JOB_ONLY, entry(job={}, schedulingPolicy=GANG), job(schedulingPolicy=GANG)
    ),
    "job and a constraint of its entry": Case(
        ".scheduling.replicatedJobs[0].job",
        JOB_ONLY,
        entry(job={}, schedulingConstraints={"topology": [RACK]}),
        job(schedulingConstraints={"topology": [RACK]}),
    ),
    "job and a mode of its entry": Case(
        ".scheduling.replicatedJobs[0].job", JOB_ONLY, entry(job={}, disruptionMode=ALL), job(disruptionMode=ALL)
    ),
    "basic with mode all": Case(
        ".scheduling.disruptionMode",
        BASIC_IS_SINGLE,
        scheduling(schedulingPolicy=BASIC, disruptionMode=ALL),
        scheduling(schedulingPolicy=GANG, disruptionMode=ALL),
    ),
    "basic with mode all of an entry": Case(
        ".scheduling.replicatedJobs[0].disruptionMode",
        BASIC_IS_SINGLE,
        entry(schedulingPolicy=BASIC, disruptionMode=ALL),
        entry(schedulingPolicy=BASIC, disruptionMode=SINGLE),
    ),
    "basic with mode all of a job": Case(
        ".scheduling.replicatedJobs[0].job.disruptionMode",
        BASIC_IS_SINGLE,
        job(schedulingPolicy=BASIC, disruptionMode=ALL),
        job(disruptionMode=ALL),
    ),
    "gang with dependsOn": Case(
        ".scheduling.schedulingPolicy",
        "startup is sequenced",
        {**scheduling(schedulingPolicy=GANG), **depends("a")},
        {**scheduling(schedulingPolicy=BASIC), **depends("a")},
    ),
    "gang with InOrder": Case(
        ".scheduling.schedulingPolicy",
        "startup is sequenced",
        {**scheduling(schedulingPolicy=GANG), **IN_ORDER},
        {**scheduling(), **IN_ORDER},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_wrong_is_refused_at_its_field_and_its_neighbour_is_not(case: Case, checked: JobSets) -> None:
    (problem,) = checked.check(case.bad)
    path, _, message = problem.partition(": ")
    assert path == f"spec{case.path}"
    assert case.message in message
    assert checked.check(case.good) == []


UNKNOWN = {
    "spec.paralelism": {"paralelism": 1},
    "spec.scheduling.gang": scheduling(gang={}),
    "spec.scheduling.schedulingPolicy.gang.minCount": scheduling(schedulingPolicy={"gang": {"minCount": 1}}),
    "spec.scheduling.replicatedJobs[0].schedulingPolicy.gang.minCount": entry(
        schedulingPolicy={"gang": {"minCount": 1}}
    ),
    "spec.replicatedJobs[0].template.metadata.uid": {"replicatedJobs": [rj(template={"metadata": {"uid": "u"}})]},
    "spec.replicatedJobs[0].template.spec.template.spec.containers[0].imagee": container(imagee="i"),
}


@pytest.mark.parametrize(("path", "spec"), UNKNOWN.items(), ids=UNKNOWN)
def test_an_unknown_field_is_refused(path: str, spec: Spec, checked: JobSets) -> None:
    (problem,) = checked.check(spec)
    assert problem.endswith(f'strict decoding error: unknown field "{path}"')
