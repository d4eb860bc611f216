"""Exclusive placement in the reconciler: who follows a leader, who of them is wrong, and how they are replaced."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from pyjobset.objects import labels
from pyjobset.objects.batch import Node, Pod
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import PODS
from pyjobset.reconciler.decide import decide, needs_nodes, needs_pods
from pyjobset.reconciler.decision import Decision, Delete, Patch
from pyjobset.reconciler.observation import Observation
from pyjobset.reconciler.placement import is_exclusive
from tests.builders import TinyServer, jobset, replicated_job, with_status

RACK = "topology.kubernetes.io/rack"
TOPOLOGY, STRATEGY = labels.EXCLUSIVE_TOPOLOGY, labels.NODE_SELECTOR
ASKED = {TOPOLOGY: RACK}
NODES = {"n0": {RACK: "r0"}, "n1": {RACK: "r1"}, "bare": {"other": "x"}}
MARKED = {"type": "DisruptionTarget", "status": "True", "reason": "ExclusivePlacementViolation"}


def annotated(annotations: dict[str, str], template: dict[str, str] | None = None) -> JobSet:
    job = replicated_job("w", replicas=2, pods=3)
    job["template"]["metadata"] = {"annotations": template or {}}
    made = jobset(job)
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, annotations=annotations))


@pytest.mark.parametrize(
    ("of_jobset", "of_template", "expected"),
    [
        ({}, {}, False),
        (ASKED, {}, True),
        ({}, ASKED, True),
        (ASKED | {STRATEGY: "true"}, {}, False),
        ({}, ASKED | {STRATEGY: "true"}, False),
        ({STRATEGY: "true"}, {}, False),
        ({STRATEGY: "true"}, ASKED, True),  # the strategy belongs to an annotation that is not there
        (ASKED, {STRATEGY: "true"}, False),
    ],
)
def test_who_follows_a_leader(of_jobset: dict[str, str], of_template: dict[str, str], expected: bool) -> None:
    js = annotated(of_jobset, of_template)
    assert is_exclusive(js) is expected
    assert needs_pods(js, frozenset()) is expected
    assert needs_nodes(js) is expected


@pytest.mark.parametrize("over", [{"suspend": True}, {"terminalState": "Completed"}])
def test_nothing_is_watched_for_a_jobset_that_does_not_run(over: Manifest) -> None:
    js = annotated(ASKED)
    if "suspend" in over:
        js = msgspec.structs.replace(js, spec=msgspec.structs.replace(js.spec, suspend=True))
    else:
        js = with_status(js, **over)
    assert not needs_pods(js, frozenset())
    assert not needs_nodes(js)


def running(js: JobSet | None = None) -> TinyServer:
    """Both Jobs of the JobSet are there, and run."""
    server = TinyServer(js or annotated(ASKED))
    server.settle()
    for name in server.jobs:
        server.set_status(name, active=3, ready=3)
    return server


def pod(server: TinyServer, job: str, index: int | str, node: str = "", **more: Any) -> Pod:
    """`selector`, `notes` (annotations), `conditions`, `phase`, `deleted` as named."""
    owner = {"kind": "Job", "name": job, "uid": more.pop("owner", server.jobs[job].metadata.uid), "controller": True}
    metadata = {
        "name": f"{job}-{index}",
        "namespace": "ns",
        "uid": f"uid-{job}-{index}",
        "annotations": {TOPOLOGY: RACK, labels.COMPLETION_INDEX: str(index)[:1], **more.pop("notes", {})},
        "ownerReferences": [owner],
    }
    if more.pop("deleted", False):
        metadata["deletionTimestamp"] = "2026-11-30T12:00:00Z"
    spec = {"nodeName": node, "nodeSelector": more.pop("selector", {})}
    status = {"phase": more.pop("phase", "Running"), "conditions": more.pop("conditions", [])}
    assert not more
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Pod)


def nodes(*names: str) -> tuple[Node, ...]:
    return tuple(msgspec.convert({"metadata": {"name": n, "labels": NODES[n]}}, Node) for n in names or NODES)


def observed(server: TinyServer, *pods: Pod, known: tuple[Node, ...] | None = None) -> Observation:
    return server.observe(pods=pods, nodes=nodes() if known is None else known)


def decided(server: TinyServer, *pods: Pod, known: tuple[Node, ...] | None = None) -> Decision:
    return decide(observed(server, *pods, known=known))


RIGHT = {RACK: "r0"}
A, B = "js-w-0", "js-w-1"


@pytest.mark.parametrize(
    ("leader", "follower", "is_wrong"),
    [
        ({"node": "n0"}, {}, True),
        ({"node": "n0"}, {"selector": {RACK: "r1"}}, True),
        ({"node": "n0"}, {"selector": {"another": "r0"}, "node": "n0"}, True),
        ({"node": "n0"}, {"selector": RIGHT}, False),
        ({"node": "n0"}, {"selector": RIGHT | {"disk": "ssd"}}, False),
        ({}, {}, False),  # no node yet: nobody knows where to
        ({"node": "n0", "deleted": True}, {}, False),
        ({"node": "n0", "phase": "Failed"}, {}, False),
        ({"node": "n0", "phase": "Succeeded"}, {}, False),
        ({"node": "n0"}, {"deleted": True}, False),
        ({"node": "n0"}, {"phase": "Failed"}, False),
        ({"node": "n0"}, {"phase": "Succeeded"}, False),
        ({"node": "n0"}, {"notes": {STRATEGY: "true"}}, False),
        ({"node": "n0", "notes": {STRATEGY: "true"}}, {"notes": {STRATEGY: "true"}}, False),
        ({"node": "n0"}, {"notes": {TOPOLOGY: "zone"}}, False),  # made when the JobSet asked for something else
        ({"node": "n0"}, {"owner": "somebody"}, False),
    ],
)
def test_followers(leader: Manifest, follower: Manifest, is_wrong: bool) -> None:
    server = running()
    decision = decided(server, pod(server, A, 0, **leader), pod(server, A, 1, **follower))
    assert [action.name for action in decision.actions] == ([f"{A}-1"] if is_wrong else [])
    assert [reason.code for reason in decision.reasons] == (["followers-misplaced"] if is_wrong else [])


def test_a_wrong_follower_is_marked_and_when_that_is_seen_deleted() -> None:
    server = running()
    leader, follower = pod(server, A, 0, "n1"), pod(server, A, 2, "n0", selector=RIGHT)
    (mark,) = decided(server, leader, follower).actions
    assert isinstance(mark, Patch)
    assert (mark.resource, mark.uid, mark.subresource, mark.is_apply) == (PODS, f"uid-{A}-2", "status", True)
    (condition,) = mark.patch["status"]["conditions"]
    assert condition.items() >= MARKED.items()
    assert condition["lastTransitionTime"] == "2026-11-30T12:00:00Z"
    assert "r1" in condition["message"]
    marked = pod(server, A, 2, "n0", selector=RIGHT, conditions=[condition])
    assert decided(server, leader, marked).actions == (Delete(PODS, f"{A}-2", f"uid-{A}-2", "Background"),)
    gone = pod(server, A, 2, "n0", selector=RIGHT, conditions=[condition], deleted=True)
    assert decided(server, leader, gone).actions == ()


def test_a_mark_that_was_taken_back_is_no_mark() -> None:
    server = running()
    follower = pod(server, A, 1, conditions=[MARKED | {"status": "False"}])
    (action,) = decided(server, pod(server, A, 0, "n0"), follower).actions
    assert isinstance(action, Patch)


def test_each_job_has_a_leader_of_its_own() -> None:
    server = running()
    right = {RACK: "r1"}
    leaders = (pod(server, A, 0, "n0"), pod(server, B, 0, "n1"))
    followers = [
        pod(server, A, 1, selector=RIGHT),
        pod(server, B, 1, selector=RIGHT),
        pod(server, B, 2, selector=right),
    ]
    assert [action.name for action in decided(server, *leaders, *followers).actions] == [f"{B}-1"]


def test_two_leaders_lead_nobody() -> None:
    """One that is being replaced, or made by hand: whom should they follow?"""
    server = running()
    assert decided(server, pod(server, A, 0, "n0"), pod(server, A, "0-b", "n1"), pod(server, A, 1)).actions == ()


def test_pods_of_an_older_attempt_are_left_to_their_job() -> None:
    server = running()
    pods = (pod(server, A, 0, "n0"), pod(server, A, 1))
    server.jobset = with_status(server.jobset, restarts=1)
    assert {action.resource.kind for action in decided(server, *pods).actions} == {"Job"}


def test_pods_of_a_finished_job_are_left_alone() -> None:
    server = running()
    pods = (pod(server, A, 0, "n0"), pod(server, A, 1))
    server.finish(A)
    assert decided(server, *pods).actions == ()


@pytest.mark.parametrize("pods", [(), None])
def test_pods_that_cannot_be_seen_are_not_judged(pods: tuple[Pod, ...] | None) -> None:
    server = running()
    assert decide(replace(observed(server), pods=pods)).actions == ()


def test_a_node_that_is_not_known_yet_is_waited_for() -> None:
    server = running()
    pods = (pod(server, A, 0, "n0"), pod(server, A, 1))
    decision = decided(server, *pods, known=())
    assert decision.actions == ()
    assert [(r.code, dict(r.arguments)) for r in decision.reasons] == [
        ("leader-node-unknown", {"job": A, "node": "n0"}),
    ]
    assert decided(server, *pods, known=nodes("n0")).actions


def test_a_node_without_the_label_is_told_once_and_forgotten_when_it_has_it() -> None:
    server = running()
    pods = (pod(server, A, 0, "bare"), pod(server, A, 1))
    decision = decided(server, *pods)
    assert decision.actions == ()
    (event,) = decision.events
    assert (event.type, event.reason) == ("Warning", "TopologyLabelMissing")
    assert "node bare" in event.message
    assert RACK in event.message
    server.apply(decision)
    again = decided(server, *pods)
    assert (again.events, again.status, again.actions) == ((), None, ())
    healed = msgspec.convert({"metadata": {"name": "bare", "labels": {RACK: "r0"}}}, Node)
    decision = decided(server, *pods, known=(healed,))
    assert decision.actions
    assert decision.status is not None
    (condition,) = [c for c in decision.status.conditions if c.type == "ExclusivePlacementDegraded"]
    assert (condition.status, condition.reason) == ("False", "Restored")


def test_a_leader_without_followers_needs_no_label() -> None:
    server = running()
    decision = decided(server, pod(server, A, 0, "bare"), pod(server, B, 0, "gone"))
    assert (decision.actions, decision.events, decision.reasons) == ((), (), ())


def test_the_message_names_few_of_many_nodes() -> None:
    server = TinyServer(annotated(ASKED))
    server.jobset = jobset(replicated_job("w", replicas=5, pods=2))
    server.settle()
    names = [f"bare-{i}" for i in range(5)]
    pods = [
        pod(server, f"js-w-{i}", index, node if index == 0 else "") for i, node in enumerate(names) for index in (0, 1)
    ]
    known = tuple(msgspec.convert({"metadata": {"name": name}}, Node) for name in names)
    (event,) = decided(server, *pods, known=known).events
    assert [name in event.message for name in names] == [True] * 3 + [False] * 2
    assert "and 2 more nodes" in event.message


def test_a_label_with_an_empty_value_is_a_domain() -> None:
    server = running()
    known = (msgspec.convert({"metadata": {"name": "n", "labels": {RACK: ""}}}, Node),)
    pods = (pod(server, A, 0, "n"), pod(server, A, 1), pod(server, A, 2, selector={RACK: ""}))
    assert [action.name for action in decided(server, *pods, known=known).actions] == [f"{A}-1"]
