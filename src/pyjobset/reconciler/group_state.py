"""What the pods of each PodGroup say of it: how many there are, are placed, finished, leave, were preempted. Pure.

Built for `gangs`, which puts it into words. A finished pod does not count for a gang on Kubernetes 1.37, a terminating
one does; what is counted here is told apart, so that either can be said.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pyjobset.compiler.scheduling import SchedulingObjects
from pyjobset.objects.batch import Pod
from pyjobset.objects.scheduling import PodGroup
from pyjobset.reconciler.conditions import find
from pyjobset.reconciler.view import View

_OF_THE_GROUP = ("pod group is unschedulable", "no feasible placements found")
"""How messages of pods begin that only repeat the group's."""


@dataclass(frozen=True, slots=True)
class GroupState:
    """Pods of one PodGroup: `existing` live, of which `bound` have a node; `done` succeeded, `leaving` terminate."""

    group: PodGroup
    quorum: int
    is_fixed: bool
    existing: int
    bound: int
    done: int
    leaving: int
    preempted: int
    pods_message: str

    @property
    def name(self) -> str:
        return self.group.metadata.name

    @property
    def is_out_of_reach(self) -> bool:
        """Pods wait for a quorum that the user fixed, and too many have finished for it (decision 20)."""
        return self.is_fixed and self.bound < self.existing < self.quorum <= self.existing + self.done

    @property
    def is_scheduled(self) -> bool:
        return self.bound + self.done >= self.quorum and not self.is_out_of_reach

    @property
    def group_message(self) -> str:
        """The scheduler's own words while it cannot place the group for the first time, empty otherwise."""
        condition = find(self.group.status.conditions, "PodGroupInitiallyScheduled")
        return condition.message if condition is not None and condition.status == "False" else ""

    @property
    def is_told_at_once(self) -> bool:
        return bool(self.preempted or self.is_out_of_reach or self.group_message)


def group_states(view: View, wanted: SchedulingObjects) -> tuple[GroupState, ...]:
    """The states of the groups that we want, in their order. Linear in groups and pods."""
    members: dict[str, list[Pod]] = {}
    for pod in view.observation.pods or ():
        group = pod.spec.scheduling_group
        if group is not None and group.pod_group_name:
            members.setdefault(group.pod_group_name, []).append(pod)
    stored = {g.metadata.name: g for g in view.observation.pod_groups}
    fixed = _fixed_groups(view, wanted)
    names = (g.metadata.name for g in wanted.pod_groups if g.metadata.name in stored)
    succeeded = _succeeded(view)
    return tuple(_state(stored[n], members.get(n, []), is_fixed=n in fixed, succeeded=succeeded[n]) for n in names)


def _succeeded(view: View) -> Counter[str]:
    """Per PodGroup, the pods that the Job controller saw succeed: someone may have removed them since."""
    counts: Counter[str] = Counter()
    for child in view.children:
        placement = view.placement(child)
        if placement is not None and child.job is not None and child.is_current:
            counts[placement.pod_group_name] += child.job.status.succeeded
    return counts


def _fixed_groups(view: View, wanted: SchedulingObjects) -> frozenset[str]:
    """PodGroups whose quorum is the user's number."""
    entries = view.jobset.spec.scheduling.replicated_jobs if view.jobset.spec.scheduling else ()
    policies = ((e.target_replicated_jobs, e.job.scheduling_policy) for e in entries or () if e.job is not None)
    targets = {t for names, policy in policies if policy and policy.gang and policy.gang.min_count for t in names}
    return frozenset(p.pod_group_name for (job, _), p in wanted.placements.items() if job in targets)


def _state(group: PodGroup, pods: list[Pod], *, is_fixed: bool, succeeded: int) -> GroupState:
    gang = group.spec.scheduling_policy.gang
    unfinished = [p for p in pods if p.status.phase in ("Pending", "Running")]
    live = [p for p in unfinished if p.metadata.deletion_timestamp is None]
    return GroupState(
        group=group,
        quorum=(gang.min_count or 1) if gang is not None else 1,
        is_fixed=is_fixed,
        existing=len(live),
        bound=sum(1 for p in live if p.spec.node_name),
        done=max(succeeded, sum(1 for p in pods if p.status.phase == "Succeeded")),
        leaving=len(unfinished) - len(live),
        preempted=sum(1 for p in pods if _is_preempted(p)),
        pods_message=_pods_message(p for p in live if not p.spec.node_name),
    )


def _is_preempted(pod: Pod) -> bool:
    condition = find(pod.status.conditions, "DisruptionTarget")
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"


def _pods_message(pods: Iterable[Pod]) -> str:
    """What most of these pods were told about nodes, such as `0/1 nodes are available: 1 Insufficient cpu.`"""
    found = (find(pod.status.conditions, "PodScheduled") for pod in pods)
    told = Counter(c.message for c in found if c and c.status == "False" and not c.message.startswith(_OF_THE_GROUP))
    return max(sorted(told), key=told.__getitem__, default="")
