"""Each default of a JobSet, where a field is unset and where it is set."""

import copy
from typing import Any

import msgspec
import pytest

from pyjobset.rules.defaults import with_defaults
from pyjobset.rules.parse import parse
from tests.manifests import ABSENT, CLAIM, DRIVER, DRIVER_POD, JOBSET, RULE, edited, mounted


def at(value: Any, path: str) -> Any:
    for step in path.replace("[", ".").replace("]", "").split("."):
        value = value[int(step)] if step.isdigit() else getattr(value, step) if hasattr(value, step) else value[step]
    return value


@pytest.mark.parametrize(
    ("edits", "path", "expected"),
    [
        ({}, "spec.network.enable_dns_hostnames", True),
        ({}, "spec.network.publish_not_ready_addresses", True),
        ({"spec.network.subdomain": "s"}, "spec.network.enable_dns_hostnames", True),
        ({"spec.network.subdomain": "s"}, "spec.network.subdomain", "s"),
        ({"spec.network.enableDNSHostnames": False}, "spec.network.enable_dns_hostnames", False),
        ({"spec.network.enableDNSHostnames": False}, "spec.network.publish_not_ready_addresses", True),
        ({"spec.network.publishNotReadyAddresses": False}, "spec.network.publish_not_ready_addresses", False),
        ({}, "spec.network.subdomain", None),
        ({}, "spec.success_policy.operator", "All"),
        ({"spec.successPolicy.operator": "Any"}, "spec.success_policy.operator", "Any"),
        ({}, "spec.startup_policy.startup_policy_order", "AnyOrder"),
        ({"spec.startupPolicy.startupPolicyOrder": "InOrder"}, "spec.startup_policy.startup_policy_order", "InOrder"),
        ({}, "spec.failure_policy", None),
        ({"spec.failurePolicy": {}}, "spec.failure_policy.max_restarts", 0),
        ({"spec.failurePolicy": {}}, "spec.failure_policy.restart_strategy", "Recreate"),
        ({RULE: {"action": "FailJobSet"}}, "spec.failure_policy.rules[0].name", "failurePolicyRule0"),
        ({RULE: {"action": "FailJobSet", "name": "mine"}}, "spec.failure_policy.rules[0].name", "mine"),
        (
            {"spec.failurePolicy.rules": [{"action": "FailJobSet", "name": "mine"}, {"action": "RestartJobSet"}]},
            "spec.failure_policy.rules[1].name",
            "failurePolicyRule1",
        ),
        (mounted(), "spec.volume_claim_policies[0].retention_policy.when_deleted", "Delete"),
        (
            mounted() | {"spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted": "Retain"},
            "spec.volume_claim_policies[0].retention_policy.when_deleted",
            "Retain",
        ),
        ({f"{DRIVER}.replicas": ABSENT}, "spec.replicated_jobs[0].replicas", 1),
        ({f"{DRIVER}.replicas": 0}, "spec.replicated_jobs[0].replicas", 0),
        ({}, "spec.replicated_jobs[0].group_name", "default"),
        ({f"{DRIVER}.groupName": "g"}, "spec.replicated_jobs[0].group_name", "g"),
        (
            {f"{DRIVER}.template.spec.completionMode": ABSENT},
            "spec.replicated_jobs[0].template.spec.completionMode",
            "Indexed",
        ),
        (
            {f"{DRIVER}.template.spec.completionMode": "NonIndexed"},
            "spec.replicated_jobs[0].template.spec.completionMode",
            "NonIndexed",
        ),
        (
            {f"{DRIVER_POD}.restartPolicy": ABSENT},
            "spec.replicated_jobs[0].template.spec.template.spec.restartPolicy",
            "OnFailure",
        ),
        (
            {f"{DRIVER_POD}.restartPolicy": "Never"},
            "spec.replicated_jobs[0].template.spec.template.spec.restartPolicy",
            "Never",
        ),
        ({}, "spec.suspend", None),
        ({}, "spec.scheduling", None),
    ],
)
def test_default(edits: dict[str, Any], path: str, expected: object) -> None:
    assert at(with_defaults(parse(edited(JOBSET, edits))), path) == expected


def test_what_has_all_defaults_is_handed_back() -> None:
    """It is called at every turn of the controller: a JobSet that went through the webhook is not copied."""
    complete = with_defaults(parse(JOBSET))
    assert with_defaults(complete) is complete


def test_nothing_is_mutated() -> None:
    jobset = parse(edited(JOBSET, {**mounted(), RULE: {"action": "FailJobSet"}, f"{DRIVER_POD}.restartPolicy": ABSENT}))
    before = copy.deepcopy(jobset)
    assert with_defaults(jobset) != jobset
    assert jobset == before


def test_unknown_fields_of_templates_survive() -> None:
    edits = {f"{DRIVER}.template.spec.fieldOfTheFuture": {"a": [1]}, f"{DRIVER}.template.spec.completionMode": ABSENT}
    edits |= mounted() | {f"{CLAIM}.spec.fieldOfTheFuture": 1}
    jobset = with_defaults(parse(edited(JOBSET, edits)))
    assert jobset.spec.replicated_jobs[0].template["spec"]["fieldOfTheFuture"] == {"a": [1]}
    assert jobset.spec.volume_claim_policies[0].templates[0]["spec"]["fieldOfTheFuture"] == 1


@pytest.mark.decision(10)
def test_a_template_that_says_nothing_gets_its_defaults() -> None:
    """Such a one is refused at admission; a stored one is still read (decision 10)."""
    bare = msgspec.structs.replace(parse(JOBSET).spec.replicated_jobs[0], template={"spec": None})
    spec = msgspec.structs.replace(parse(JOBSET).spec, replicated_jobs=(bare,))
    (job,) = with_defaults(msgspec.structs.replace(parse(JOBSET), spec=spec)).spec.replicated_jobs
    assert job.template == {
        "spec": {"completionMode": "Indexed", "template": {"spec": {"restartPolicy": "OnFailure"}}},
    }
