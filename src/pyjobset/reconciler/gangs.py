"""Condition PodGroupsScheduled: are the gangs of a running JobSet placed, and if not, which waits and for what. Pure.

Health comes from pods, never from the PodGroup's own condition, which stays True for ever once a gang was placed
(decision 27); that condition only lends its message. A gang of which pods are missing waits without a word from the
scheduler (facts of 1.37): after a while it is told here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pyjobset.objects import conditions as words
from pyjobset.objects.batch import Pod
from pyjobset.objects.scheduling import PodGroup
from pyjobset.reconciler.conditions import find
from pyjobset.reconciler.outcome import NOTHING, ConditionChange, Outcome
from pyjobset.reconciler.view import State, View

SILENCE_SECONDS = 10
"""How long a gang may lack pods before it is told: the Job controller needs a moment to create them."""


@dataclass(frozen=True, slots=True)
class GroupState:
    """Pods of one PodGroup: `bound` have a node, `done` succeeded, `missing` are not there yet for the quorum."""

    group: PodGroup
    quorum: int
    existing: int
    bound: int
    done: int
    preempted: int

    @property
    def is_scheduled(self) -> bool:
        return self.bound + self.done >= self.quorum

    @property
    def scheduler_message(self) -> str:
        """The scheduler's own words while it cannot place the group, empty otherwise."""
        condition = find(self.group.status.conditions, "PodGroupInitiallyScheduled")
        return condition.message if condition is not None and condition.status == "False" else ""


def gangs(view: View) -> Outcome:
    """Says nothing before the first answer, so that a gang that fits at once costs no extra status write."""
    if view.scheduling is None:
        return NOTHING
    started = {
        placement.pod_group_name
        for child in view.children
        if child.state is not State.MISSING and (placement := view.placement(child)) is not None
    }
    states = _group_states(view.observation.pod_groups, view.observation.pods)
    waiting = [s for s in states if s.group.metadata.name in started and not s.is_scheduled]
    if not waiting:
        if len(states) < len(view.scheduling.pod_groups) or any(s.group.metadata.name not in started for s in states):
            return NOTHING
        return _condition("True", words.ALL_SCHEDULED, f"{len(states)} of {len(states)} pod groups are scheduled")
    told = [s for s in waiting if s.preempted or s.scheduler_message]
    if told:
        return _waits(told[0], len(waiting), len(states))
    ages = [_age_seconds(s.group, view.observation.now) for s in waiting]
    oldest = max(range(len(waiting)), key=ages.__getitem__)
    if ages[oldest] >= SILENCE_SECONDS:
        return _waits(waiting[oldest], len(waiting), len(states))
    return Outcome(wake_after_seconds=SILENCE_SECONDS - ages[oldest])


def _group_states(groups: Iterable[PodGroup], pods: Iterable[Pod]) -> tuple[GroupState, ...]:
    """The states of the groups, in their order. Linear in groups and pods."""
    members: dict[str, list[Pod]] = {}
    for pod in pods:
        group = pod.spec.scheduling_group
        if group is not None and group.pod_group_name:
            members.setdefault(group.pod_group_name, []).append(pod)
    return tuple(_state(group, members.get(group.metadata.name, [])) for group in groups)


def _state(group: PodGroup, pods: list[Pod]) -> GroupState:
    gang = group.spec.scheduling_policy.gang
    live = [p for p in pods if p.status.phase in ("Pending", "Running") and p.metadata.deletion_timestamp is None]
    return GroupState(
        group=group,
        quorum=(gang.min_count or 1) if gang is not None else 1,
        existing=len(live),
        bound=sum(1 for p in live if p.spec.node_name),
        done=sum(1 for p in pods if p.status.phase == "Succeeded"),
        preempted=sum(1 for p in pods if _is_preempted(p)),
    )


def _is_preempted(pod: Pod) -> bool:
    condition = find(pod.status.conditions, "DisruptionTarget")
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"


def _waits(state: GroupState, waiting: int, total: int) -> Outcome:
    name = state.group.metadata.name
    more = f"; {waiting} of {total} pod groups wait" if waiting > 1 else ""
    where = f"PodGroup {name}: {state.bound} of the {state.quorum} pods that must be placed together are placed"
    if state.preempted:
        message = f"{where}; {state.preempted} were preempted for a higher priority{more}"
        return _condition("False", words.POD_GROUP_PREEMPTED, message)
    if state.existing + state.done < state.quorum:
        message = f"{where}, because only {state.existing + state.done} pods exist{more}"
        return _condition("False", words.POD_GROUP_INCOMPLETE, message)
    reported = state.scheduler_message or "the scheduler has not tried it yet"
    return _condition("False", words.POD_GROUP_UNSCHEDULABLE, f"{where}: {reported}{more}")


def _condition(status: str, reason: str, message: str) -> Outcome:
    is_true = status == "True"
    change = ConditionChange(
        words.POD_GROUPS_SCHEDULED,
        "True" if is_true else "False",
        reason,
        message,
        is_warning=not is_true,
        is_state=True,
    )
    return Outcome(conditions=(change,))


def _age_seconds(group: PodGroup, now: datetime) -> float:
    created = group.metadata.creation_timestamp
    return (now - datetime.fromisoformat(created)).total_seconds() if created else 0.0
