"""Exclusive placement: followers whose node selector does not lead to their leader's domain are replaced. Pure.

The pod webhooks give a follower its selector and hold it back before its leader has a node. A pod that was made without
them, or before its leader moved, is repaired here: first it is marked as a disruption, so that the Job's
podFailurePolicy can spare it, and once the mark is seen it is deleted. What a pod is part of is said by its own
annotations: those of the JobSet may have changed since.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from pyjobset.objects import conditions as words
from pyjobset.objects.batch import Pod
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest, controller_of
from pyjobset.objects.placement import annotations_of, has_leader, leaders
from pyjobset.objects.resources import PODS
from pyjobset.reconciler.conditions import find, is_true, timestamp
from pyjobset.reconciler.decision import Action, Delete, Patch, Reason
from pyjobset.reconciler.outcome import ConditionChange, Outcome
from pyjobset.reconciler.view import State, View

NAMED_MAX = 3
"""Most nodes that a message names."""


def is_exclusive(jobset: JobSet) -> bool:
    """Some of its pods follow a leader."""
    return any(has_leader(annotations_of(jobset, replicated_job)) for replicated_job in jobset.spec.replicated_jobs)


def placement(view: View) -> Outcome:
    """Of a running JobSet. Nothing where its pods cannot be seen."""
    nodes = {node.metadata.name: node for node in view.observation.nodes}
    actions: list[Action] = []
    reasons: list[Reason] = []
    unlabelled: dict[str, str] = {}
    for job, pods in _pods_of_live_jobs(view):
        leader, followers = _parts(pods)
        if leader is None or not followers:
            continue
        key, node = _topology(leader), nodes.get(leader.spec.node_name)
        if node is None:
            reasons.append(Reason("leader-node-unknown", (("job", job), ("node", leader.spec.node_name))))
        elif key not in node.metadata.labels:
            unlabelled[node.metadata.name] = key
        elif wrong := [pod for pod in followers if pod.spec.node_selector.get(key) != node.metadata.labels[key]]:
            actions += (_repair(pod, key, node.metadata.labels[key], view.observation.now) for pod in wrong)
            reasons.append(Reason("followers-misplaced", (("job", job), ("pods", len(wrong)))))
    return Outcome(tuple(actions), conditions=_conditions(view, unlabelled), reasons=tuple(reasons))


def _pods_of_live_jobs(view: View) -> Iterator[tuple[str, Sequence[Pod]]]:
    by_owner: dict[str, list[Pod]] = defaultdict(list)
    for pod in view.observation.pods or ():
        owner = controller_of(pod.metadata.owner_references)
        if owner is not None and _topology(pod):
            by_owner[owner.uid].append(pod)
    if not by_owner:
        return
    for child in view.children:
        if child.state is State.LIVE and child.job is not None:
            yield child.expected.name, by_owner.get(child.job.metadata.uid, ())


def _parts(pods: Sequence[Pod]) -> tuple[Pod | None, list[Pod]]:
    """The leader, once there is exactly one and it has a node, and those that must be where it is."""
    found = leaders(pods)
    if len(found) != 1 or not found[0].spec.node_name:
        return None, []
    leader = found[0]
    return leader, [p for p in pods if p.is_live and p is not leader and _topology(p) == _topology(leader)]


def _topology(pod: Pod) -> str:
    """The node label whose value is the pod's domain; empty where it follows nobody."""
    annotations = pod.metadata.annotations
    return (annotations.exclusive_topology or "") if annotations.node_selector is None else ""


def _repair(pod: Pod, key: str, domain: str, now: datetime) -> Action:
    metadata = pod.metadata
    if is_true(pod.status.conditions, words.DISRUPTION_TARGET):
        return Delete(PODS, metadata.name, metadata.uid, "Background")
    condition: Manifest = {
        "type": words.DISRUPTION_TARGET,
        "status": "True",
        "reason": words.EXCLUSIVE_PLACEMENT_VIOLATION,
        "message": f"the leader of the pod's Job is where {key} is {domain}, and the pod's node selector says nothing "
        "of the sort",
        "lastTransitionTime": timestamp(now),
    }
    return Patch(
        PODS, metadata.name, metadata.uid, {"status": {"conditions": [condition]}}, subresource="status", is_apply=True
    )


def _conditions(view: View, unlabelled: Mapping[str, str]) -> tuple[ConditionChange, ...]:
    type_ = words.EXCLUSIVE_PLACEMENT_DEGRADED
    if unlabelled:
        parts = [f"node {node} has no label {key}" for node, key in list(unlabelled.items())[:NAMED_MAX]]
        if len(unlabelled) > NAMED_MAX:
            parts.append(f"and {len(unlabelled) - NAMED_MAX} more nodes")
        message = f"followers cannot be put beside their leader: {'; '.join(parts)}"
        return (ConditionChange(type_, "True", words.TOPOLOGY_LABEL_MISSING, message, is_warning=True),)
    if find(view.jobset.status.conditions, type_) is None:
        return ()
    return (ConditionChange(type_, "False", words.RESTORED, "the nodes of all leaders have their topology label"),)
