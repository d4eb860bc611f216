"""Exclusive placement: Jobs that wait for a free domain are told of, and followers that went wrong replaced. Pure.

The pod webhooks give a follower its selector and hold it back before its leader has a node. A pod that was made without
them, or before its leader moved, is repaired here: first it is marked as a disruption, so that the Job's
podFailurePolicy can spare it, and once the mark is seen it is deleted. What a pod is part of is said by its own
annotations: those of the JobSet may have changed since.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from pyjobset.objects import conditions as words
from pyjobset.objects import template
from pyjobset.objects.batch import Pod
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Condition, Manifest, controller_of
from pyjobset.objects.placement import annotations_of, has_leader, leaders
from pyjobset.objects.resources import PODS
from pyjobset.reconciler.conditions import find, is_true, timestamp, waited_seconds
from pyjobset.reconciler.decision import Action, Delete, Patch, Reason
from pyjobset.reconciler.outcome import NOTHING, ConditionChange, Outcome
from pyjobset.reconciler.view import Child, State, View

NAMED_MAX = 3
"""Most nodes that a message names."""
SILENCE_SECONDS = 10
"""How long a Job may wait before people are warned: after a restart the last pods of the old one are on their way out
of the domain."""


def is_exclusive(jobset: JobSet) -> bool:
    """Some of its pods follow a leader."""
    return any(has_leader(annotations_of(jobset, replicated_job)) for replicated_job in jobset.spec.replicated_jobs)


def placement(view: View, *, allowed: frozenset[str]) -> Outcome:
    """Of a running JobSet of which these ReplicatedJobs may start. Nothing where its pods cannot be seen."""
    nodes = {node.metadata.name: node for node in view.observation.nodes}
    actions: list[Action] = []
    reasons: list[Reason] = []
    unlabelled: dict[str, str] = {}
    jobs = tuple(_pods_of_live_jobs(view))
    for job, pods in jobs:
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
    outcome = Outcome(tuple(actions), conditions=_conditions(view, unlabelled), reasons=tuple(reasons))
    return outcome + _waits(view, jobs, allowed)


def suspended_placement(view: View) -> Outcome:
    """Nothing is placed: what was said of it no longer holds."""
    message = "the jobset is suspended and has no pods"
    change = ConditionChange(words.LEADERS_SCHEDULED, "False", words.JOBSET_SUSPENDED, message, is_silent=True)
    is_said = find(view.jobset.status.conditions, words.LEADERS_SCHEDULED) is not None
    return Outcome(conditions=(change,)) if is_said else NOTHING


def _waits(view: View, jobs: Sequence[tuple[str, Sequence[Pod]]], allowed: frozenset[str]) -> Outcome:
    """Condition LeadersScheduled: which Job has no domain, and why. Of a JobSet that fits at once nothing is said."""
    placed = {job for job, pods in jobs if any(pod.is_live and pod.spec.node_name for pod in pods)}
    waiting = {
        job: condition
        for job, pods in jobs
        if job not in placed and (condition := next(filter(None, map(_unschedulable, pods)), None)) is not None
    }
    stored = find(view.jobset.status.conditions, words.LEADERS_SCHEDULED)
    if not waiting:
        is_over = stored is not None and all(
            c.is_finished or c.expected.name in placed or not _has_pods(c, allowed) for c in _exclusive(view)
        )
        message = "every Job of exclusive placement that has pods has its domain"
        change = ConditionChange(words.LEADERS_SCHEDULED, "True", words.ALL_LEADERS_SCHEDULED, message)
        return Outcome(conditions=(change,)) if is_over else NOTHING
    left = SILENCE_SECONDS - max(_waited_seconds(condition, view.observation.now) for condition in waiting.values())
    if left > 0 and (stored is None or stored.reason != words.LEADER_UNSCHEDULABLE):
        return Outcome(wake_after_seconds=left)
    job, condition = next(iter(waiting.items()))
    more = f"; {len(waiting)} of {len(tuple(_exclusive(view)))} Jobs wait" if len(waiting) > 1 else ""
    message = f"Job {job} waits for a domain of its own: {condition.message}{more}"
    change = ConditionChange(
        words.LEADERS_SCHEDULED, "False", words.LEADER_UNSCHEDULABLE, message, is_warning=True, is_state=True
    )
    return Outcome(conditions=(change,))


def _unschedulable(pod: Pod) -> Condition | None:
    """What the scheduler says of a pod that it finds no node for."""
    condition = find(pod.status.conditions, "PodScheduled") if pod.is_live and not pod.spec.node_name else None
    return condition if condition is not None and condition.reason == "Unschedulable" else None


def _waited_seconds(condition: Condition, now: datetime) -> float:
    return waited_seconds(condition.last_transition_time or "", now, SILENCE_SECONDS)


def _exclusive(view: View) -> Iterator[Child]:
    """The Jobs whose pods follow a leader."""
    names = {r.name for r in view.jobset.spec.replicated_jobs if has_leader(annotations_of(view.jobset, r))}
    return (child for child in view.children if child.replicated_job in names)


def _has_pods(child: Child, allowed: frozenset[str]) -> bool:
    """It has some, or is about to. Whom the order of startup holds back may come hours later."""
    replicated_job = child.expected.replicated_job
    return replicated_job.name in allowed and template.pods(replicated_job.template) > 0


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
