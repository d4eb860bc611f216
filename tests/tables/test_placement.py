"""Exclusive placement in the reconciler: who follows a leader, who of them is wrong, and how they are replaced."""

from dataclasses import replace
from datetime import timedelta
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
from tests.builders import TinyServer, calls, jobset, replicated_job, with_status

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


# A Job that waits for a domain


WORDS = "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."


def waiting(
    server: TinyServer, job: str, index: int = 0, *, seconds: int = 60, message: str = WORDS, **more: Any
) -> Pod:
    """Its pod, of which the scheduler has been saying so for as long."""
    since = (server.now - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    more = {"phase": "Pending", "conditions": [{**told, "lastTransitionTime": since}], **more}
    return pod(server, job, index, **more)


def leaders_scheduled(decision: Decision) -> tuple[str, str, str]:
    assert decision.status is not None
    (found,) = [c for c in decision.status.conditions if c.type == "LeadersScheduled"]
    return found.status, found.reason, found.message


@pytest.mark.decision(43)
def test_a_job_that_waits_for_a_domain_is_told() -> None:
    server = running()
    pods = (pod(server, A, 0, "n0"), waiting(server, B))
    decision = decided(server, *pods)
    message = f"Job {B} waits for a domain of its own: {WORDS}"
    assert leaders_scheduled(decision) == ("False", "LeaderUnschedulable", message)
    assert [(e.type, e.reason, e.message) for e in decision.events] == [("Warning", "LeaderUnschedulable", message)]
    server.apply(decision)
    again = decided(server, *pods)
    assert (again.status, again.events, again.actions, again.wake_after_seconds) == (None, (), (), None)
    reworded = decided(server, pods[0], waiting(server, B, message="another"))
    assert (leaders_scheduled(reworded)[2][-7:], reworded.events) == ("another", ()), "the words alone are no event"
    placed = decided(server, pods[0], pod(server, B, 0, "n1"))
    assert leaders_scheduled(placed)[:2] == ("True", "AllLeadersScheduled")
    assert [(e.type, e.reason) for e in placed.events] == [("Normal", "AllLeadersScheduled")]
    server.apply(placed)
    assert decided(server, pods[0], pod(server, B, 0, "n1")).status is None


def test_several_that_wait_are_a_number() -> None:
    server = running()
    decision = decided(server, waiting(server, A), waiting(server, B, message="another"))
    assert leaders_scheduled(decision)[2] == f"Job {A} waits for a domain of its own: {WORDS}; 2 of 2 Jobs wait"


@pytest.mark.parametrize(
    "pods_of_b",
    [
        pytest.param(lambda s: [pod(s, B, 0, "n1")], id="placed"),
        pytest.param(lambda s: [pod(s, B, 0, phase="Pending")], id="the scheduler has not spoken"),
        pytest.param(lambda _: [], id="no pod"),
        pytest.param(lambda s: [waiting(s, B, deleted=True)], id="on its way out"),
        pytest.param(lambda s: [pod(s, B, 0, "n1"), waiting(s, B, 1)], id="a follower that does not fit"),
        pytest.param(lambda s: [waiting(s, B, notes={STRATEGY: "true"})], id="by node selector"),
        pytest.param(lambda s: [waiting(s, B, owner="somebody")], id="of somebody else"),
        pytest.param(
            lambda s: [
                pod(s, B, 0, phase="Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "X"}])
            ],
            id="gated",
        ),
    ],
)
def test_of_others_nothing_is_said(pods_of_b: Any) -> None:
    server = running()
    decision = decided(server, pod(server, A, 0, "n0"), *pods_of_b(server))
    assert (decision.events, decision.wake_after_seconds) == ((), None)
    stored = decision.status.conditions if decision.status is not None else ()
    assert "LeadersScheduled" not in [c.type for c in stored]


def test_a_pod_that_leads_late_waits_as_well() -> None:
    server = running()
    done = pod(server, B, 0, "n1", phase="Succeeded")
    decision = decided(server, pod(server, A, 0, "n0"), done, waiting(server, B, 7))
    assert leaders_scheduled(decision)[1] == "LeaderUnschedulable"


def test_it_is_told_after_a_moment() -> None:
    """After a restart the last pods of the old Job are on their way out of the domain."""
    server = running()
    early = decided(server, pod(server, A, 0, "n0"), waiting(server, B, seconds=4))
    assert (early.events, early.wake_after_seconds) == ((), 6)
    at_last = decided(server, pod(server, A, 0, "n0"), waiting(server, B, seconds=10))
    assert leaders_scheduled(at_last)[0] == "False"


@pytest.mark.parametrize(("seconds", "expected"), [(-5, 15), (-60, 70), (-61, None), (-86400 * 365, None)], ids=str)
def test_a_clock_that_was_set_back_does_not_keep_it_for_ever(seconds: int, expected: float | None) -> None:
    """The clocks of the scheduler and of the controller may differ a little."""
    server = running()
    decision = decided(server, pod(server, A, 0, "n0"), waiting(server, B, seconds=seconds))
    assert decision.wake_after_seconds == expected
    assert ("LeaderUnschedulable" in [e.reason for e in decision.events]) is (expected is None)


def test_what_was_said_lasts_until_each_job_is_placed_again() -> None:
    server = running()
    server.apply(decided(server, pod(server, A, 0, "n0"), waiting(server, B)))
    between = decided(server, pod(server, A, 0, "n0"))
    assert between.status is None, "its pod is being made again"
    server.finish(B)
    assert leaders_scheduled(decided(server, pod(server, A, 0, "n0")))[0] == "True"


@pytest.mark.parametrize(
    ("spec", "second", "is_over"),
    [
        pytest.param({"startupPolicy": {"startupPolicyOrder": "InOrder"}}, {}, True, id="in order"),
        pytest.param({}, {"dependsOn": [{"name": "a", "status": "Complete"}]}, True, id="it depends on the first"),
        pytest.param({}, {"pods": 0}, True, id="it has no pods"),
        pytest.param({}, {}, False, id="its pods are about to come"),
    ],
)
def test_a_job_that_has_yet_to_start_keeps_no_word_of_another(spec: Manifest, second: Manifest, is_over: bool) -> None:
    js = jobset(replicated_job("a", pods=3), replicated_job("b", **second), **spec)
    server = TinyServer(msgspec.structs.replace(js, metadata=msgspec.structs.replace(js.metadata, annotations=ASKED)))
    server.settle()
    server.set_status("js-a-0", active=3)
    server.apply(decided(server, waiting(server, "js-a-0")))
    decision = decided(server, pod(server, "js-a-0", 0, "n0"))
    server.apply(decision)
    (found,) = [c for c in server.jobset.status.conditions if c.type == "LeadersScheduled"]
    assert (found.status == "True") is is_over
    assert decided(server, pod(server, "js-a-0", 0, "n0")).status is None


def test_a_suspended_jobset_waits_for_no_domain() -> None:
    server = running()
    server.apply(decided(server, pod(server, A, 0, "n0"), waiting(server, B)))
    server.jobset = msgspec.structs.replace(
        server.jobset, spec=msgspec.structs.replace(server.jobset.spec, suspend=True)
    )
    decision = server.step()
    assert leaders_scheduled(decision)[:2] == ("False", "JobSetSuspended")
    assert "JobSetSuspended" not in [e.reason for e in decision.events]
    server.jobset = msgspec.structs.replace(
        server.jobset, spec=msgspec.structs.replace(server.jobset.spec, suspend=False)
    )
    while server.step().actions:
        pass
    early = decided(server, pod(server, A, 0, "n0"), waiting(server, B, seconds=4))
    assert "LeaderUnschedulable" not in [e.reason for e in early.events]
    assert early.wake_after_seconds == 6
    late = decided(server, pod(server, A, 0, "n0"), waiting(server, B, seconds=10))
    assert "LeaderUnschedulable" in [e.reason for e in late.events]


def test_a_jobset_that_ceases_to_be_exclusive_waits_for_nothing() -> None:
    server = running()
    server.apply(decided(server, pod(server, A, 0, "n0"), waiting(server, B)))
    server.jobset = msgspec.structs.replace(
        server.jobset, metadata=msgspec.structs.replace(server.jobset.metadata, annotations={})
    )
    assert leaders_scheduled(decide(server.observe(pods=())))[0] == "True"


def test_looking_for_who_waits_costs_each_pod_the_same() -> None:
    def cost(jobs: int) -> int:
        job = replicated_job("w", replicas=jobs, pods=2)
        made = jobset(job)
        made = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, annotations=ASKED))
        server = TinyServer(made)
        server.settle()
        pods = [waiting(server, f"js-w-{i}") for i in range(jobs)]
        observation = observed(server, *pods)
        return calls(lambda: decide(observation))

    assert cost(200) < 11 * cost(20)
