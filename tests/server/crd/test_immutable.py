"""What cannot be changed: set, unset and change are refused, whatever the webhooks do; the same again is accepted."""

import json
from typing import Any

import pytest

from tests.server.crd.conftest import GROUP, RESOURCE, JobSets, manifest, problems
from tests.server.crd.words import Spec, claim, depends, rj

IMMUTABLE: dict[str, tuple[Any, Any]] = {
    "network": ({"subdomain": "a"}, {"subdomain": "b"}),
    "successPolicy": ({"operator": "Any"}, {"operator": "Any", "targetReplicatedJobs": ["w"]}),
    "failurePolicy": ({"maxRestarts": 1}, {"maxRestarts": 2}),
    "startupPolicy": ({"startupPolicyOrder": "InOrder"}, {"startupPolicyOrder": "AnyOrder"}),
    "coordinator": ({"replicatedJob": "w"}, {"replicatedJob": "w", "podIndex": 1}),
    "managedBy": ("example.com/a", "example.com/b"),
    "volumeClaimPolicies": ([{"templates": [claim(0)]}], [{"templates": [claim(1)]}]),
    "scheduling": ({}, {"schedulingPolicy": {"basic": {}}}),
}
EACH = pytest.mark.parametrize("field", IMMUTABLE)


def refused(field: str) -> list[str]:
    """The words of the public page."""
    return [f"spec.{field}: Invalid value: Value is immutable"]


@pytest.mark.decision(1)
@EACH
def test_a_field_that_is_there_can_neither_be_changed_nor_removed(field: str, jobsets: JobSets) -> None:
    value, other = IMMUTABLE[field]
    jobsets.create({field: value})
    assert jobsets.replace(field, other) == refused(field)
    assert jobsets.replace(field, None) == refused(field)
    assert jobsets.replace(field, value) == []
    assert jobsets.replace("suspend", True) == []


@pytest.mark.decision(1)
@EACH
def test_a_field_that_is_not_there_cannot_be_set(field: str, jobsets: JobSets) -> None:
    jobsets.create({})
    assert jobsets.replace(field, IMMUTABLE[field][0]) == refused(field)
    assert jobsets.replace("suspend", True) == []


def test_a_jobset_without_spec_cannot_get_one_with_these_fields(jobsets: JobSets) -> None:
    bare = json.dumps({"apiVersion": f"{GROUP}/v1alpha2", "kind": "JobSet", "metadata": {"name": "js"}})
    assert problems(jobsets.run("create", "-f", "-", stdin=bare)) == []
    assert jobsets.replace("scheduling", {}) == refused("scheduling")


RULE: Spec = {"name": "r", "action": "FailJobSet", "onJobFailureMessagePatterns": ["a"], "targetReplicatedJobs": ["w"]}


@pytest.mark.parametrize(
    "policy",
    [
        {"rules": [RULE], "restartStrategy": "BlockingRecreate"},
        {"rules": []},
        {"rules": [RULE, {**RULE, "name": "s"}]},
        {"rules": [{**RULE, "name": "s"}]},
        {"rules": [{**RULE, "name": ""}]},
        {"rules": [{**RULE, "action": "RestartJobSet"}]},
        {"rules": [{**RULE, "onJobFailureReasons": ["FailedIndexes"]}]},
        {"rules": [{**RULE, "onJobFailureMessagePatterns": ["b"]}]},
        {"rules": [{**RULE, "targetReplicatedJobs": ["x"]}]},
        {"rules": [{name: value for name, value in RULE.items() if name != "targetReplicatedJobs"}]},
    ],
    ids=str,
)
def test_each_part_of_the_failure_policy_is_immutable(policy: Spec, jobsets: JobSets) -> None:
    jobsets.create({"failurePolicy": {"rules": [RULE]}})
    assert jobsets.replace("failurePolicy", policy) == refused("failurePolicy")
    assert jobsets.replace("failurePolicy", {"rules": [{**RULE, "onJobFailureReasons": []}]}) == []


def test_rules_that_the_webhook_named_may_come_again_without_their_names(jobsets: JobSets) -> None:
    nameless = {"rules": [{"action": "FailJobSet"}, {"action": "RestartJobSet"}]}
    named = {"rules": [{**rule, "name": f"failurePolicyRule{i}"} for i, rule in enumerate(nameless["rules"])]}
    jobsets.create({"failurePolicy": named})
    assert jobsets.replace("failurePolicy", nameless) == []
    assert jobsets.replace("failurePolicy", {"rules": nameless["rules"][::-1]}) == refused("failurePolicy")


def test_depends_on_is_immutable_in_each_replicated_job(jobsets: JobSets) -> None:
    first, last = depends("a")["replicatedJobs"]
    independent = {name: value for name, value in last.items() if name != "dependsOn"}
    changed = {**last, "dependsOn": [{"name": "a", "status": "Complete"}]}
    jobsets.create({"replicatedJobs": [first, last]})
    for other in (independent, {**last, "dependsOn": []}, changed):
        assert jobsets.replace("replicatedJobs", [first, other]) == refused("replicatedJobs[1].dependsOn")
    added = {**first, "dependsOn": [{"name": "w", "status": "Ready"}]}
    assert jobsets.replace("replicatedJobs", [added, last]) == refused("replicatedJobs[0].dependsOn")
    assert jobsets.replace("replicatedJobs", [{**first, "dependsOn": []}, last]) == []


def test_what_has_a_default_may_be_left_out_when_it_is_the_default(jobsets: JobSets) -> None:
    """`kubectl replace` and typed clients send what the manifest has, not what the API server added."""
    jobsets.create({"failurePolicy": {"maxRestarts": 0}, "coordinator": {"replicatedJob": "w"}})
    for field in ("network", "successPolicy", "startupPolicy"):
        assert jobsets.replace(field, None) == []
    assert jobsets.replace("network", {"enableDNSHostnames": True}) == []
    assert jobsets.replace("failurePolicy", {}) == []
    assert jobsets.replace("coordinator", {"replicatedJob": "w", "jobIndex": 0}) == []


@pytest.mark.parametrize("how", [("apply",), ("apply", "--server-side"), ("replace",)], ids=" ".join)
def test_the_same_manifest_may_come_again(how: tuple[str, ...], jobsets: JobSets) -> None:
    text = manifest(
        {
            "replicatedJobs": [rj(dependsOn=[])],
            "network": {"enableDNSHostnames": True},
            "failurePolicy": {"rules": [{"action": "FailJobSet"}]},
            "volumeClaimPolicies": [{"templates": [claim()]}],
            "scheduling": {"schedulingPolicy": {"gang": {}}},
        }
    )
    assert problems(jobsets.run("apply", *how[1:], "-f", "-", stdin=text)) == []
    stored = jobsets.run("get", RESOURCE, "js", "-o", "json").stdout
    assert problems(jobsets.run(*how, "-f", "-", stdin=text)) == []
    assert jobsets.run("get", RESOURCE, "js", "-o", "jsonpath={.metadata.generation}").stdout == "1"
    assert json.loads(stored)["spec"] == json.loads(jobsets.run("get", RESOURCE, "js", "-o", "json").stdout)["spec"]
