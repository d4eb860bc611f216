"""What the webhooks answer: defaults as a patch, verdicts, the words and causes of a refusal, malformed reviews."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from pyjobset.controller.webhook import admission
from pyjobset.controller.webhook.denial import failed
from pyjobset.controller.webhook.review import MalformedReview, decode
from pyjobset.objects.meta import Manifest
from tests.manifests import ABSENT, ALL_GATES, DRIVER, JOBSET, RULE, WORKERS, Case, edited, mounted
from tests.reviews import UID, body, on_the_wire, patched, review
from tests.tables.test_rules_create import CASES as CREATIONS
from tests.tables.test_rules_scheduling import CASES as SCHEDULINGS
from tests.tables.test_rules_update import CHANGES


def validated(new: Any, old: Any = None, features: frozenset[str] = ALL_GATES, **request: Any) -> Manifest:
    return on_the_wire(admission.validate(decode(body(new, old, **request)), features))


def mutated(new: Any, **request: Any) -> Manifest:
    return on_the_wire(admission.mutate(decode(body(new, **request))))


ALLOWED = {"uid": UID, "allowed": True}
BAD = edited(JOBSET, {f"{DRIVER}.groupName": "G"})


# Defaults


def test_what_is_missing_is_added() -> None:
    sent = edited(
        JOBSET,
        {
            f"{DRIVER}.template.spec.completionMode": ABSENT,
            f"{WORKERS}.template.spec.template.spec.restartPolicy": ABSENT,
            "spec.network": {"subdomain": "s"},
            "spec.failurePolicy.rules": [{"action": "FailJobSet", "name": ""}, {"action": "FailJobSet", "name": "n"}],
            "spec.volumeClaimPolicies": [{"templates": []}],
            "spec.unknown": {"kept": True},
        },
    )
    assert patched(sent, mutated(sent)) == edited(
        sent,
        {
            f"{DRIVER}.template.spec.completionMode": "Indexed",
            f"{WORKERS}.template.spec.template.spec.restartPolicy": "OnFailure",
            "spec.network": {"subdomain": "s", "enableDNSHostnames": True, "publishNotReadyAddresses": True},
            f"{RULE}.name": "failurePolicyRule0",
            "spec.volumeClaimPolicies[0].retentionPolicy": {"whenDeleted": "Delete"},
            "spec.successPolicy": {"operator": "All"},
            "spec.startupPolicy": {"startupPolicyOrder": "AnyOrder"},
        },
    )


@pytest.mark.parametrize(
    "nothing", [{"spec": ABSENT}, {"spec": {}}, {"spec": None}, {"spec.network": None}, {f"{DRIVER}.template": {}}]
)
def test_nothing_written_is_as_good_as_nothing_sent(nothing: Manifest) -> None:
    sent = edited(JOBSET, nothing)
    result = patched(sent, mutated(sent))
    assert result["spec"]["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert mutated(result) == ALLOWED


def test_an_empty_item_of_a_list_is_filled_in_and_not_doubled() -> None:
    sent = edited(JOBSET, {"spec.volumeClaimPolicies": [{}, {}], "spec.failurePolicy.rules": [{}]})
    spec = patched(sent, mutated(sent))["spec"]
    assert spec["volumeClaimPolicies"] == [{"retentionPolicy": {"whenDeleted": "Delete"}}] * 2
    assert spec["failurePolicy"]["rules"] == [{"name": "failurePolicyRule0"}]


@pytest.mark.parametrize(
    "edits",
    [
        {f"{DRIVER}.template": ABSENT},
        {f"{DRIVER}.template": {}},
        {f"{DRIVER}.template.spec": ABSENT},
        {f"{DRIVER}.template.spec.template": ABSENT},
        {f"{DRIVER}.template.spec.template.spec": ABSENT},
        {f"{DRIVER}.template.spec.completionMode": ""},
        {f"{DRIVER}.template.spec.template.spec.restartPolicy": ""},
    ],
    ids=["no template", "an empty one", "no Job", "no pod", "no pod spec", "empty mode", "empty restartPolicy"],
)
def test_defaults_change_no_verdict(edits: Manifest) -> None:
    """`jobset lint` judges without them."""
    sent = edited(JOBSET, edits)
    assert not validated(sent)["allowed"]
    assert validated(patched(sent, mutated(sent))) == validated(sent)


def test_a_jobset_with_all_defaults_gets_no_patch() -> None:
    complete = patched(JOBSET, mutated(JOBSET))
    assert complete != JOBSET
    assert mutated(complete) == ALLOWED


def test_only_a_creation_is_defaulted() -> None:
    assert mutated(JOBSET, operation="UPDATE", oldObject=JOBSET) == ALLOWED


def test_defaulting_refuses_nothing() -> None:
    assert mutated(edited(JOBSET, {f"{DRIVER}.replicas": "two"})) == ALLOWED
    assert mutated(BAD)["allowed"]


# Verdicts


@pytest.mark.parametrize("case", [*CREATIONS, *SCHEDULINGS], ids=str)
def test_a_creation_is_judged_by_the_rules(case: Case) -> None:
    refused = validated(edited(JOBSET, case.bad), features=ALL_GATES - case.off)
    assert not refused["allowed"]
    assert (refused["status"]["code"], refused["status"]["reason"]) == (422, "Invalid")
    (cause,) = refused["status"]["details"]["causes"]
    assert cause["field"] == case.path
    assert cause["message"].endswith(f"[{case.code}]")
    assert validated(edited(JOBSET, case.good))["allowed"]


@pytest.mark.parametrize("case", CHANGES, ids=str)
def test_an_update_is_judged_by_the_rules(case: Case) -> None:
    old = edited(JOBSET, case.old)
    refused = validated(edited(old, case.bad), old, ALL_GATES - case.off)
    assert [cause["field"] for cause in refused["status"]["details"]["causes"]] == [case.path]
    assert validated(edited(old, case.good), old)["allowed"]


def test_a_deletion_in_progress_is_not_held_up() -> None:
    going = edited(BAD, {"metadata.deletionTimestamp": "2026-11-30T12:00:00Z", "metadata.finalizers": ["a/b"]})
    assert validated(edited(going, {"metadata.finalizers": []}), edited(going, {f"{DRIVER}.replicas": 2})) == ALLOWED


def test_a_creation_cannot_pretend_to_be_a_deletion() -> None:
    assert not validated(edited(BAD, {"metadata.deletionTimestamp": "2026-11-30T12:00:00Z"}))["allowed"]


def test_a_stored_breach_does_not_stand_in_the_way() -> None:
    """Of the schema (an unknown field) and of the rules (a group name)."""
    stored = edited(BAD, {"spec.future": 1})
    assert validated(edited(stored, {"spec.suspend": True}), stored)["allowed"]
    refused = validated(edited(stored, {"spec.suspend": True, f"{WORKERS}.replicas": 3}), stored)
    assert [cause["field"] for cause in refused["status"]["details"]["causes"]] == [f"{WORKERS}.replicas"]


def test_a_stored_object_without_a_type_can_be_mended_and_be_left_alone() -> None:
    stored = edited(JOBSET, {f"{DRIVER}.replicas": "two"})
    assert validated(JOBSET, stored)["allowed"]
    assert validated(edited(stored, {"metadata.labels": {"a": "b"}}), stored) == ALLOWED
    assert not validated(BAD, stored)["allowed"]
    assert not validated(stored, JOBSET)["allowed"]


@pytest.mark.parametrize("template", [{"spec": "text"}, {"spec": {"template": {"spec": ["x"]}}}], ids=str)
def test_a_stored_template_of_another_shape_can_be_mended(template: Manifest) -> None:
    stored = edited(JOBSET, {f"{DRIVER}.template": template})
    assert validated(JOBSET, stored)["allowed"]
    assert validated(stored, stored) == ALLOWED


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_what_it_is_not_asked_about_passes(operation: str) -> None:
    assert validated(None, operation=operation) == ALLOWED


def test_what_the_server_adds_is_not_looked_at() -> None:
    deep: Manifest = {}
    for _ in range(150):
        deep = {"f:a": deep}
    fields = [{"manager": "kubectl", "fieldsV1": deep}]
    assert validated(edited(JOBSET, {"metadata.managedFields": fields, "metadata.selfLink": "x"}))["allowed"]


# Words


def test_a_refusal_reads_as_those_of_kubernetes() -> None:
    refused = validated(BAD)["status"]
    sentence = (
        "Invalid value: \"G\": must be an RFC 1035 label; hint: lower-case letters, digits and '-', "
        "starting with a letter; leave it out for `default` [group-name]"
    )
    assert refused == {
        "status": "Failure",
        "message": f'JobSet.jobset.x-k8s.io "js" is invalid: {DRIVER}.groupName: {sentence}',
        "reason": "Invalid",
        "code": 422,
        "details": {
            "name": "js",
            "group": "jobset.x-k8s.io",
            "kind": "JobSet",
            "causes": [{"reason": "FieldValueInvalid", "message": sentence, "field": f"{DRIVER}.groupName"}],
        },
    }


def test_all_problems_are_in_one_refusal() -> None:
    refused = validated(edited(BAD, {"spec.suspended": True, f"{WORKERS}.replicas": -1}))["status"]
    fields = {cause["field"]: cause["reason"] for cause in refused["details"]["causes"]}
    assert fields == {
        f"{DRIVER}.groupName": "FieldValueInvalid",
        f"{WORKERS}.replicas": "FieldValueInvalid",
        "spec.suspended": "FieldValueForbidden",
    }
    assert refused["message"].startswith('JobSet.jobset.x-k8s.io "js" is invalid: [')
    assert refused["message"].endswith("]")


@pytest.mark.parametrize(
    ("edits", "reason", "message"),
    [
        ({f"{DRIVER}.template": ABSENT}, "Required", "Required value: must be set;"),
        ({"spec.successPolicy.operator": "Most"}, "NotSupported", 'Unsupported value: "Most": must be All or Any;'),
        ({f"{WORKERS}.name": "driver"}, "Duplicate", 'Duplicate value: "driver": is in'),
        ({"spec.coordinator.replicatedJob": "x"}, "NotFound", 'Not found: "x": names no'),
        ({"spec.network.subdomain": "s" * 64}, "TooLong", f'Too long: "{"s" * 64}": has 64'),
        ({"spec.volumeClaimPolicies": [{}] * 51}, "TooMany", "Too many: has 51 items"),
        ({"spec.suspend": "yes"}, "TypeInvalid", 'Invalid value: "yes": must be a boolean'),
        (
            {"spec.scheduling": {"disruptionMode": {"single": {}}, "replicatedJobs": []}},
            "Forbidden",
            "Forbidden: cannot set schedulingPolicy, schedulingConstraints, or disruptionMode together with",
        ),
        ({"spec.managedBy": "é\x1b[31m"}, "Invalid", 'Invalid value: "\\u00e9\\u001b[31m": must be'),
        ({"spec.managedBy": "é"}, "Invalid", 'Invalid value: "é": must be'),
    ],
)
def test_each_kind_of_breach_has_its_words(edits: Manifest, reason: str, message: str) -> None:
    refused = validated(edited(JOBSET, edits))["status"]
    causes = [cause for cause in refused["details"]["causes"] if cause["reason"] == f"FieldValue{reason}"]
    assert causes[0]["message"].startswith(message)


def test_a_generated_name_is_named() -> None:
    refused = validated(edited(BAD, {"metadata": {"generateName": "js-"}}))["status"]
    assert refused["message"].startswith('JobSet.jobset.x-k8s.io "js-" is invalid: ')


def test_a_name_that_no_object_has_is_cut() -> None:
    refused = validated(edited(BAD, {"metadata.name": "n" * 100_000}))["status"]
    assert len(refused["message"]) < 5000
    assert len(refused["details"]["name"]) < 300


def test_warnings_are_whole_sentences() -> None:
    answer = validated(edited(JOBSET, {"spec.startupPolicy.startupPolicyOrder": "InOrder"}))
    assert answer == ALLOWED | {
        "warnings": ["spec.startupPolicy is deprecated; hint: use dependsOn [startup-policy-deprecated]"]
    }


def test_a_refusal_has_no_warnings() -> None:
    assert "warnings" not in validated(edited(BAD, {"spec.startupPolicy.startupPolicyOrder": "InOrder"}))


def test_a_bug_refuses() -> None:
    answer = on_the_wire(failed(UID))
    assert (answer["uid"], answer["allowed"]) == (UID, False)
    assert (answer["status"]["code"], answer["status"]["reason"]) == (500, "InternalError")


# Malformed reviews

Change = Callable[[Manifest], Any]


def without(*way: str) -> Change:
    def change(asked: Manifest) -> Any:
        target = asked
        for step in way[:-1]:
            target = target[step]
        del target[way[-1]]
        return asked

    return change


def replaced(field: str, value: Any) -> Change:
    return lambda asked: asked | {"request": asked["request"] | {field: value}}


DEEP = b'{"a":' * 50_000 + b"1" + b"}" * 50_000

MALFORMED: dict[str, Change | bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "no Unicode": b'{"kind": "\xff"}',
    "deep": b"[" * 100_000,
    "deep object": body(JOBSET).replace(b'"object": {', b'"object": {"a": ' + DEEP + b", "),
    "a list": lambda asked: [asked],
    "text": lambda asked: str(asked),
    "another kind": lambda asked: asked | {"kind": "TokenReview"},
    "an older version": lambda asked: asked | {"apiVersion": "admission.k8s.io/v1beta1"},
    "no kind": without("kind"),
    "no request": without("request"),
    "null request": lambda asked: asked | {"request": None},
    "no uid": without("request", "uid"),
    "empty uid": replaced("uid", ""),
    "uid of another type": replaced("uid", 7),
    "no operation": without("request", "operation"),
    "no object": without("request", "object"),
    "null object": replaced("object", None),
    "object is a list": replaced("object", [JOBSET]),
    "no oldObject": replaced("operation", "UPDATE"),
    "oldObject is text": lambda asked: replaced("oldObject", "x")(replaced("operation", "UPDATE")(asked)),
    "a Pod": replaced("kind", {"group": "", "version": "v1", "kind": "Pod"}),
    "no kind of the object": without("request", "kind"),
}


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_review_is_never_answered_with_a_verdict(change: Change | bytes) -> None:
    sent = change if isinstance(change, bytes) else json.dumps(change(review(JOBSET))).encode()
    with pytest.raises(MalformedReview) as caught:
        admission.validate(decode(sent), ALL_GATES)
    assert 0 < len(str(caught.value)) < 400


def test_claims_are_in_the_patch_too() -> None:
    sent = edited(JOBSET, mounted())
    assert patched(sent, mutated(sent))["spec"]["volumeClaimPolicies"] == [
        {"templates": [{"metadata": {"name": "data"}}], "retentionPolicy": {"whenDeleted": "Delete"}}
    ]


@pytest.mark.decision(2)
@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("spec.failurePolicy.maxRestarts", -1, "Invalid value: -1: "),
        (f"{WORKERS}.dependsOn", [{"name": "workers", "status": "Ready"}], '"workers": must name an earlier'),
        (RULE, {"action": "FailJobSet", "onJobFailureMessagePatterns": ["("]}, '"(": must be an RE2 regular'),
        (RULE, {"action": "FailJobSet", "onJobFailureReasons": ["FailedIndexes"] * 2}, '"FailedIndexes"'),
    ],
    ids=["maxRestarts", "dependsOn", "pattern", "reasons"],
)
def test_what_could_never_be_meant_is_refused_with_path_value_and_hint(path: str, value: Any, said: str) -> None:
    refused = validated(edited(JOBSET, {path: value}))["status"]
    assert refused["code"] == 422
    (cause,) = refused["details"]["causes"]
    assert cause["field"].startswith(path)
    assert said in cause["message"]
    assert "; hint: " in cause["message"]
