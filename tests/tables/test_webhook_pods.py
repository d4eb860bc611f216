"""What the webhooks make of a pod: leaders, followers, pods that are none of their business, and hostile reviews."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from pyjobset.controller.webhook import pods
from pyjobset.controller.webhook.pods import Lookup, NotYet, Placed, chosen
from pyjobset.controller.webhook.review import MalformedReview, Response, decode
from pyjobset.objects import labels
from pyjobset.objects.batch import Node, Pod
from pyjobset.objects.meta import Manifest
from tests.reviews import body, on_the_wire, patched

RACK = "topology.kubernetes.io/rack"
TOPOLOGY, STRATEGY, INDEX = labels.EXCLUSIVE_TOPOLOGY, labels.NODE_SELECTOR, labels.COMPLETION_INDEX
KEY = "0123456789abcdef0123456789abcdef01234567"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
POD_KIND = {"group": "", "version": "v1", "kind": "Pod"}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "js-w-0", "uid": "job", "controller": True}

OWN = {
    "labelSelector": {"matchExpressions": [{"key": labels.JOB_KEY, "operator": "In", "values": [KEY]}]},
    "topologyKey": RACK,
    "namespaceSelector": {},
}


def others(priority: str) -> Manifest:
    expressions = [
        {"key": labels.JOB_KEY, "operator": "Exists"},
        {"key": labels.JOB_KEY, "operator": "NotIn", "values": [KEY]},
        {"key": "jobset.sigs.k8s.io/priority", "operator": "In", "values": [priority]},
    ]
    return {"labelSelector": {"matchExpressions": expressions}, "topologyKey": RACK, "namespaceSelector": {}}


def pod(
    index: int | None = 0, *, notes: Manifest | None = None, marks: Manifest | None = None, **spec: Any
) -> Manifest:
    """As the Job controller sends it. `notes` are annotations, `marks` are labels; None takes one away."""
    annotations = {TOPOLOGY: RACK, INDEX: None if index is None else str(index), **(notes or {})}
    found = {labels.JOBSET_NAME: "js", labels.JOB_KEY: KEY, labels.RESTART_ATTEMPT: "0", **(marks or {})}
    metadata = {
        "generateName": f"js-w-0-{index}-",
        "annotations": {k: v for k, v in annotations.items() if v is not None},
        "labels": {k: v for k, v in found.items() if v is not None},
        "ownerReferences": [OWNER],
    }
    containers = [{"name": "c", "image": "i"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


@dataclass
class Found:
    """A lookup that finds these pods and this node, or says why not."""

    pods: Sequence[Pod] = ()
    labels: Manifest = field(default_factory=lambda: {RACK: "r7"})
    why: str = ""
    asked: list[str] = field(default_factory=list)
    is_over: bool = False
    """No leader will come: the first of `pods` that has a node is followed."""

    async def leader(self, follower: Placed) -> Pod | None:
        self.asked.append("leader")
        if self.why:
            raise NotYet(self.why)
        if self.is_over:
            return next((pod for pod in self.pods if pod.spec.node_name), None)
        return chosen(follower, self.pods)

    async def node(self, leader: Pod, topology: str) -> Node:
        self.asked.append(f"{topology} of {leader.spec.node_name}")
        if topology not in self.labels:
            raise NotYet("no label")
        return msgspec.convert({"metadata": {"name": leader.spec.node_name, "labels": self.labels}}, Node)


def stored(index: int = 0, node: str = "n1", **more: Any) -> Pod:
    metadata = {
        "name": more.pop("name", f"js-w-0-{index}-abcde"),
        "annotations": {INDEX: str(index)},
        "ownerReferences": [{**OWNER, "uid": more.pop("owner", "job")}],
        **({"deletionTimestamp": "2026-11-30T12:00:00Z"} if more.pop("deleted", False) else {}),
    }
    status = {"phase": more.pop("phase", "Running")}
    assert not more
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": node}, "status": status}, Pod)


LEADER = stored()


def asked(judge: Any, manifest: Manifest, lookup: Lookup | None = None, **request: Any) -> Manifest:
    """The response of a review of the creation of that pod, as the API server reads it."""
    said = judge(decode(body(manifest, **{"kind": POD_KIND, **request})), lookup or Found())
    if isinstance(said, Response):
        return on_the_wire(said)

    async def awaited() -> Response:
        response: Response = await said
        return response

    return on_the_wire(asyncio.run(awaited()))


def mutated(manifest: Manifest, lookup: Lookup | None = None) -> Manifest:
    response = asked(pods.mutate, manifest, lookup)
    assert response["allowed"], response
    return patched(manifest, response)


# Leaders


def test_a_leader_gets_a_domain_of_its_own_without_a_question() -> None:
    lookup = Found()
    made = mutated(pod(priority=0), lookup)
    assert made["spec"]["affinity"] == {"podAffinity": {REQUIRED: [OWN]}, "podAntiAffinity": {REQUIRED: [others("0")]}}
    assert made["metadata"]["labels"] == pod()["metadata"]["labels"] | {"jobset.sigs.k8s.io/priority": "0"}
    assert "nodeSelector" not in made["spec"]
    assert asked(pods.validate, made, lookup)["allowed"]
    assert lookup.asked == []


TERM = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}
NODES = {
    "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"podAffinity": {REQUIRED: [OWN]}, "podAntiAffinity": {REQUIRED: [others("0")]}}),
        (NODES, {**NODES, "podAffinity": {REQUIRED: [OWN]}, "podAntiAffinity": {REQUIRED: [others("0")]}}),
        (
            {"podAffinity": {REQUIRED: [TERM]}, "podAntiAffinity": {**PREFERRED, "new": 1}},
            {
                "podAffinity": {REQUIRED: [TERM, OWN]},
                "podAntiAffinity": {**PREFERRED, "new": 1, REQUIRED: [others("0")]},
            },
        ),
        (
            {"podAffinity": {REQUIRED: None}, "podAntiAffinity": {REQUIRED: []}},
            {"podAffinity": {REQUIRED: [OWN]}, "podAntiAffinity": {REQUIRED: [others("0")]}},
        ),
        (
            {"podAffinity": None, "podAntiAffinity": {REQUIRED: [TERM]}},
            {"podAffinity": {REQUIRED: [OWN]}, "podAntiAffinity": {REQUIRED: [TERM, others("0")]}},
        ),
    ],
    ids=["empty", "of nodes", "of pods", "null and empty", "null"],
)
def test_the_affinity_that_a_leader_has_is_kept(given: Manifest, expected: Manifest) -> None:
    assert mutated(pod(affinity=given))["spec"]["affinity"] == expected


def test_a_leader_that_was_placed_before_stays_as_it_is() -> None:
    made = mutated(pod(priority=7))
    assert mutated(made) == made


@pytest.mark.parametrize(
    ("priority", "label"), [(None, "0"), (0, "0"), (1_000_000, "1000000"), (-10, "minus-10")], ids=str
)
def test_pods_of_one_priority_exclude_each_other(priority: int | None, label: str) -> None:
    spec = {} if priority is None else {"priority": priority}
    made = mutated(pod(**spec))
    assert made["metadata"]["labels"]["jobset.sigs.k8s.io/priority"] == label
    assert made["spec"]["affinity"]["podAntiAffinity"] == {REQUIRED: [others(label)]}
    follower = mutated(pod(1, **spec), Found([LEADER]))
    assert follower["metadata"]["labels"]["jobset.sigs.k8s.io/priority"] == label


def test_a_leader_without_the_key_of_its_job_is_refused() -> None:
    response = asked(pods.mutate, pod(marks={labels.JOB_KEY: None}))
    assert not response["allowed"]
    assert labels.JOB_KEY in response["status"]["message"]


# Followers


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {RACK: "r7"}),
        ({"nodeSelector": None}, {RACK: "r7"}),
        ({"nodeSelector": {}}, {RACK: "r7"}),
        ({"nodeSelector": {"disk": "ssd"}}, {"disk": "ssd", RACK: "r7"}),
        ({"nodeSelector": {RACK: "r1"}}, {RACK: "r7"}),
    ],
    ids=["none", "null", "empty", "another", "wrong"],
)
def test_a_follower_goes_where_its_leader_is(given: Manifest, expected: Manifest) -> None:
    lookup = Found([LEADER])
    made = mutated(pod(1, **given), lookup)
    assert made["spec"]["nodeSelector"] == expected
    assert "affinity" not in made["spec"]
    assert lookup.asked == ["leader", f"{RACK} of n1"]
    assert asked(pods.validate, made, lookup)["allowed"]


def test_keys_are_escaped_as_json_pointers_are() -> None:
    key = "a~b/c"
    made = pod(1, notes={TOPOLOGY: key}, nodeSelector={"disk": "ssd"})
    operations = json.loads(pods_patch(made, Found([LEADER], {key: "r7"})))
    assert operations[-1] == {"op": "add", "path": "/spec/nodeSelector/a~0b~1c", "value": "r7"}


def pods_patch(manifest: Manifest, lookup: Lookup) -> bytes:
    async def awaited() -> bytes:
        said: Any = pods.mutate(decode(body(manifest, kind=POD_KIND)), lookup)
        response: Response = await said
        assert response.patch is not None
        return response.patch

    return asyncio.run(awaited())


def test_a_node_without_the_label_has_no_followers() -> None:
    response = asked(pods.mutate, pod(1), Found([LEADER], labels={}))
    assert not response["allowed"]
    assert "no label" in response["status"]["message"]


@pytest.mark.parametrize("judge", [pods.mutate, pods.validate], ids=["mutate", "validate"])
@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "does not exist yet"),
        ([stored(node="")], "is not scheduled yet"),
        ([stored(deleted=True)], "does not exist yet"),
        ([stored(phase="Failed")], "does not exist yet"),
        ([stored(phase="Succeeded")], "does not exist yet"),  # it is asked whether there will be another
        ([stored(phase="Succeeded", node="n0", name="b"), LEADER], ""),
        ([stored(1, phase="Succeeded")], "does not exist yet"),
        ([stored(1)], "does not exist yet"),
        ([stored(name="a"), stored(name="b")], "2 pods that lead (a, b)"),
        ([stored(owner="old")], "belongs to another Job of the same name"),
        ([stored(phase="Failed"), stored(name="b", deleted=True), LEADER], ""),
    ],
    ids=[
        "none",
        "unscheduled",
        "terminating",
        "failed",
        "succeeded",
        "succeeded and running",
        "a follower that succeeded",
        "follower",
        "two",
        "another Job",
        "one of three",
    ],
)
def test_who_leads(judge: Any, found: list[Pod], why: str) -> None:
    response = asked(judge, pod(1, nodeSelector={RACK: "r7"}), Found(found))
    assert response["allowed"] is (not why)
    if why:
        assert why in response["status"]["message"]


@pytest.mark.parametrize("judge", [pods.mutate, pods.validate], ids=["mutate", "validate"])
def test_a_lookup_that_fails_refuses_in_words(judge: Any) -> None:
    response = asked(judge, pod(1, nodeSelector={RACK: "r7"}), Found(why="the API server is on fire"))
    assert response["allowed"] is False
    status = response["status"]
    assert (status["code"], status["reason"], status["status"]) == (422, "Invalid", "Failure")
    assert status["message"].endswith("the API server is on fire")
    assert RACK in status["message"]
    assert (status["details"]["kind"], status["details"]["name"]) == ("Pod", "js-w-0-1-")
    assert [cause["field"] for cause in status["details"]["causes"]] == ["spec.nodeSelector"]


@pytest.mark.parametrize("selector", [{}, {"nodeSelector": {}}, {"nodeSelector": {"disk": "ssd"}}])
def test_a_follower_without_a_selector_is_refused_without_a_question(selector: Manifest) -> None:
    lookup = Found([LEADER])
    response = asked(pods.validate, pod(1, **selector), lookup)
    assert response["allowed"] is False
    assert f"no node selector {RACK}" in response["status"]["message"]
    assert lookup.asked == []


def test_where_index_0_is_over_a_pod_goes_beside_another_of_its_job() -> None:
    lookup = Found([stored(2, node=""), stored(3, node="n3")], is_over=True)
    made = mutated(pod(7), lookup)
    assert made["spec"]["nodeSelector"] == {RACK: "r7"}
    assert "affinity" not in made["spec"]
    assert lookup.asked == ["leader", f"{RACK} of n3"]
    assert asked(pods.validate, made, lookup)["allowed"]


def test_where_no_other_is_placed_it_leads() -> None:
    """The scheduler puts those that lead together into one domain, and that is their own."""
    lookup = Found([stored(2, node="")], is_over=True)
    made, leader = mutated(pod(7), lookup), mutated(pod())
    assert made["spec"]["affinity"] == leader["spec"]["affinity"]
    assert "nodeSelector" not in made["spec"]
    assert made["metadata"]["labels"][labels.PRIORITY] == "0"
    assert asked(pods.validate, made, lookup)["allowed"]
    placed = Found([stored(2)], is_over=True)
    refusal = asked(pods.validate, made, placed)
    assert f"no node selector {RACK}" in refusal["status"]["message"], "another one was placed meanwhile"
    assert asked(pods.validate, pod(7, nodeSelector={RACK: "r7"}), lookup)["allowed"], "and was gone meanwhile"


@pytest.mark.parametrize("judge", [pods.mutate, pods.validate], ids=["mutate", "validate"])
@pytest.mark.parametrize(
    ("made", "why"),
    [
        (pod(None), "completionMode Indexed"),
        (pod(1, marks={labels.JOB_KEY: None}), f"no label {labels.JOB_KEY}"),
        (pod(1, marks={labels.JOB_KEY: ""}), f"no label {labels.JOB_KEY}"),
    ],
)
def test_pods_that_no_leader_can_be_found_for(judge: Any, made: Manifest, why: str) -> None:
    lookup = Found(is_over=True)
    response = asked(judge, made, lookup)
    assert response["allowed"] is False
    assert why in response["status"]["message"]
    assert lookup.asked == []


# None of our business


@pytest.mark.parametrize("judge", [pods.mutate, pods.validate], ids=["mutate", "validate"])
@pytest.mark.parametrize(
    "manifest",
    [
        pod(1, notes={TOPOLOGY: None}),
        pod(1, notes={STRATEGY: "true"}),
        pod(notes={STRATEGY: ""}),
        {"metadata": {"labels": None, "annotations": None}, "spec": {"containers": []}},
        {},
    ],
    ids=["not exclusive", "by node selector", "by empty node selector", "null", "empty"],
)
def test_other_pods_pass_at_once(judge: Any, manifest: Manifest) -> None:
    lookup = Found(why="must not be asked")
    assert asked(judge, manifest, lookup) == {"uid": asked(judge, manifest)["uid"], "allowed": True}
    assert lookup.asked == []


@pytest.mark.parametrize("judge", [pods.mutate, pods.validate], ids=["mutate", "validate"])
def test_only_creations_are_judged(judge: Any) -> None:
    assert asked(judge, pod(1), operation="UPDATE", oldObject=pod(1))["allowed"]
    assert asked(judge, pod(1), operation="DELETE", object=None)["allowed"]


@pytest.mark.parametrize("judge", [pods.mutate, pods.validate], ids=["mutate", "validate"])
@pytest.mark.parametrize(
    ("manifest", "request_"),
    [
        ([], {}),
        ("pod", {}),
        (None, {}),
        ({"metadata": []}, {}),
        ({"metadata": {"annotations": {"a": 1}}}, {}),
        (pod(nodeSelector=["a"]), {}),
        (pod(affinity=[]), {}),
        (pod(affinity={"podAffinity": {REQUIRED: {}}}), {}),
        (pod(priority="high"), {}),
        (pod(), {"kind": {"group": "", "version": "v1", "kind": "Node"}}),
        (pod(), {"kind": {"group": "jobset.x-k8s.io", "version": "v1", "kind": "Pod"}}),
    ],
)
def test_what_is_no_review_of_a_pod(judge: Any, manifest: Any, request_: Manifest) -> None:
    with pytest.raises(MalformedReview):
        judge(decode(body(manifest, **{"kind": POD_KIND, **request_})), Found())


def test_a_pod_that_has_a_leader_and_no_spec_is_malformed() -> None:
    bare = {"metadata": pod(1)["metadata"]}
    for manifest in (bare, {**bare, "spec": None}):
        with pytest.raises(MalformedReview, match="no spec"):
            pods.mutate(decode(body(manifest, kind=POD_KIND)), Found())


def test_the_terms_of_a_user_are_not_sent_back() -> None:
    """Some would not come back as they were, and 3 MB of them make no patch of 3 MB."""
    sent = pod(affinity={"podAffinity": {REQUIRED: [{"n": 10**30}, {"a": "x" * 10_000}]}})
    assert len(asked(pods.mutate, sent)["patch"]) < 2000


def test_a_refusal_is_short_whatever_the_annotation_is() -> None:
    refused = asked(pods.mutate, pod(1, notes={TOPOLOGY: "t" * 100_000}), Found(why="no"))
    assert len(json.dumps(refused)) < 3000


def test_deep_nesting_is_no_bug() -> None:
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    manifest = pod(affinity={"podAffinity": {REQUIRED: [deep]}})
    raw = (
        body(manifest, kind=POD_KIND)
        .replace(b"[[[[", b"[" * 50_000 + b"[[[[")
        .replace(b"]]]]", b"]]]]" + b"]" * 50_000)
    )
    with pytest.raises(MalformedReview):
        pods.mutate(decode(raw), Found())
