"""The CEL rules of the CRD: what it takes several fields, or the stored object, to judge.

They hold even where the webhooks are not installed: immutability, because what runs was made from these fields, and
what can be said at the exact field with a message that tells the way out. The rest is for the validating webhook.
"""

from dataclasses import dataclass

from crd.snapshot import Schema
from pyjobset.objects.jobset import (
    FailurePolicy,
    JobScheduling,
    JobSetSpec,
    ReplicatedJob,
    ReplicatedJobScheduling,
    Scheduling,
    SuccessPolicy,
)
from pyjobset.objects.scheduling import DisruptionMode, PodGroupResourceClaim, SchedulingPolicy

PERSISTENT_VOLUME_CLAIM = "io.k8s.api.core.v1.PersistentVolumeClaim"


@dataclass(frozen=True)
class Rule:
    """`path` is where the error points to, below the object that has the rule."""

    rule: str
    message: str
    path: str = ""
    reason: str = ""

    def schema(self) -> Schema:
        keywords = {"rule": self.rule, "message": self.message, "fieldPath": self.path, "reason": self.reason}
        return {name: value for name, value in keywords.items() if value}


def same(field: str, new: str = "self", old: str = "oldSelf", *, is_list: bool = False) -> str:
    """`field` is absent on both sides, or there with the same value. An empty list is as good as none: clients that
    decode to structs leave it out when they write the object back.
    """
    there, was_there = (
        f"(has({owner}.{field}) && size({owner}.{field}) > 0)" if is_list else f"has({owner}.{field})"
        for owner in (new, old)
    )
    return f"({there} ? {was_there} && {new}.{field} == {old}.{field} : !{was_there})"


def unchanged(condition: str, path: str = "") -> Rule:
    return Rule(condition, "Value is immutable", path)


def immutable(field: str, *, is_list: bool = False) -> Rule:
    """Refuses set, unset and change. It stands on the object that has the field: a rule on an optional field is not
    asked when the old or the new object lacks it.
    """
    return unchanged(same(field, is_list=is_list), f".{field}")


def one_of(first: str, second: str) -> Rule:
    return Rule(f"has(self.{first}) != has(self.{second})", f"exactly one of {first} and {second} must be set")


SEQUENCED_BY_DEPENDENCY = (
    "(has(self.replicatedJobs) && self.replicatedJobs.exists(r, has(r.dependsOn) && size(r.dependsOn) > 0))"
)
IN_ORDER = "(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder')"
NO_LEAF = "!has(self.schedulingPolicy) && !has(self.schedulingConstraints) && !has(self.disruptionMode)"

BASIC_IS_SINGLE = Rule(
    "!(has(self.schedulingPolicy) && has(self.schedulingPolicy.basic)"
    " && has(self.disruptionMode) && has(self.disruptionMode.all))",
    "disruptionMode all needs schedulingPolicy gang: pods of a basic group are preempted one by one",
    ".disruptionMode",
)


def same_failure_rules(*conditions: str) -> str:
    """`r` is a rule, `oldSelf.rules[i]` the stored one at its place."""
    conditions = ("i < size(oldSelf.rules)", *conditions)
    return f"!has(self.rules) || !has(oldSelf.rules) || self.rules.all(i, r, {' && '.join(conditions)})"


FAILURE_POLICY = [
    unchanged(
        "self.maxRestarts == oldSelf.maxRestarts && self.restartStrategy == oldSelf.restartStrategy"
        " && (has(self.rules) ? size(self.rules) : 0) == (has(oldSelf.rules) ? size(oldSelf.rules) : 0)"
    ),
    # Two expressions, because one would cost more than CEL may.
    unchanged(
        same_failure_rules(
            same("onJobFailureMessagePatterns", "r", "oldSelf.rules[i]", is_list=True),
            # The webhook names the rules without a name, once, when the JobSet is created. The same manifest still has
            # no name when it is applied again.
            "(r.name == oldSelf.rules[i].name"
            " || r.name == '' && oldSelf.rules[i].name.startsWith('failurePolicyRule'))",
        )
    ),
    unchanged(
        same_failure_rules(
            "r.action == oldSelf.rules[i].action",
            same("onJobFailureReasons", "r", "oldSelf.rules[i]", is_list=True),
            same("targetReplicatedJobs", "r", "oldSelf.rules[i]", is_list=True),
        )
    ),
]

RULES: dict[object, list[Rule]] = {
    JobSetSpec: [
        immutable("network"),
        unchanged("has(self.failurePolicy) == has(oldSelf.failurePolicy)", ".failurePolicy"),
        immutable("startupPolicy"),
        immutable("coordinator"),
        immutable("managedBy"),
        immutable("volumeClaimPolicies", is_list=True),
        immutable("scheduling"),
        Rule(
            f"!({IN_ORDER} && {SEQUENCED_BY_DEPENDENCY})",
            "startupPolicy InOrder and dependsOn are mutually exclusive; use dependsOn",
            ".startupPolicy",
        ),
        Rule(
            "!(has(self.scheduling) && has(self.scheduling.schedulingPolicy)"
            f" && has(self.scheduling.schedulingPolicy.gang) && ({IN_ORDER} || {SEQUENCED_BY_DEPENDENCY}))",
            "gang for the whole JobSet can never start when startup is sequenced (startupPolicy InOrder or dependsOn):"
            " leave schedulingPolicy out, then each ReplicatedJob is a gang, or use scheduling.replicatedJobs",
            ".scheduling.schedulingPolicy",
        ),
    ],
    SuccessPolicy: [  # always there: it has a default
        unchanged(f"self.operator == oldSelf.operator && {same('targetReplicatedJobs', is_list=True)}"),
    ],
    FailurePolicy: FAILURE_POLICY,
    ReplicatedJob: [
        immutable("dependsOn", is_list=True),
    ],
    PERSISTENT_VOLUME_CLAIM: [
        Rule(
            "!has(self.metadata) || !has(self.metadata.namespace) || self.metadata.namespace == ''",
            "must be empty: the claim is created in the JobSet's namespace",
            ".metadata.namespace",
            "FieldValueForbidden",
        ),
    ],
    Scheduling: [
        Rule(
            f"!has(self.replicatedJobs) || ({NO_LEAF})",
            "cannot set schedulingPolicy, schedulingConstraints, or disruptionMode together with replicatedJobs",
            reason="FieldValueForbidden",
        ),
        BASIC_IS_SINGLE,
    ],
    ReplicatedJobScheduling: [
        Rule(
            "!has(self.job) || size(self.targetReplicatedJobs) == 1",
            "job needs exactly one target; give each ReplicatedJob an entry of its own",
            ".targetReplicatedJobs",
        ),
        Rule(
            f"!has(self.job) || ({NO_LEAF})",
            "cannot be set together with the entry's own schedulingPolicy, schedulingConstraints or disruptionMode;"
            " move them into job",
            ".job",
            "FieldValueForbidden",
        ),
        BASIC_IS_SINGLE,
    ],
    JobScheduling: [BASIC_IS_SINGLE],
    SchedulingPolicy: [one_of("basic", "gang")],
    DisruptionMode: [one_of("single", "all")],
    PodGroupResourceClaim: [one_of("resourceClaimName", "resourceClaimTemplateName")],
}


def of(subject: object) -> list[Schema]:
    """The rules of a struct, or of a schema of Kubernetes by its name, as the CRD has them."""
    return [rule.schema() for rule in RULES.get(subject, [])]
