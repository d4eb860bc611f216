"""Condition PodGroupsScheduled: are the gangs of a running JobSet placed, and if not, which waits and for what. Pure.

Health comes from pods, never from the PodGroup's own condition, which stays True for ever once a gang was placed
(decision 27); while it is False it lends its message, and so do the pods. A gang of which pods are missing waits
without a word from the scheduler (facts of 1.37): after a while it is told here. That a gang was preempted is said
until it is placed again, though its pods, which tell it, are gone within seconds.
"""

from collections.abc import Mapping
from datetime import datetime

from pyjobset.objects import conditions as words
from pyjobset.objects.meta import Condition
from pyjobset.objects.scheduling import PodGroup
from pyjobset.reconciler.conditions import find, timestamp, waited_seconds
from pyjobset.reconciler.group_state import GroupState, group_states
from pyjobset.reconciler.outcome import NOTHING, ConditionChange, Outcome
from pyjobset.reconciler.view import View

SILENCE_SECONDS = 10
"""How long a gang may lack pods before people are warned: the Job controller needs a moment to create them, when its
Jobs start and when they grow."""


def gangs(view: View, *, allowed: frozenset[str]) -> Outcome:
    """Of a running JobSet of which these ReplicatedJobs may start. Says nothing before the first answer, so that a gang
    that fits at once costs no extra status write."""
    if view.scheduling is None or view.observation.pods is None:
        return NOTHING
    states = group_states(view, view.scheduling)
    starts = _starts(view)
    for state in states:
        if state.group.metadata.deletion_timestamp is not None and state.name not in starts:
            return _leaves(state)
    waiting = [s for s in states if s.name in starts and not s.is_scheduled]
    if not waiting:
        return _all_scheduled(view, {s.name for s in states if s.name in starts}, allowed)
    for state in waiting:
        if _was_preempted(view, state):
            return _waits(view, state, len(waiting), len(states))
    age_seconds = {s.name: _age_seconds(s.group, starts[s.name], view.observation.now) for s in waiting}
    old = [s for s in waiting if age_seconds[s.name] >= SILENCE_SECONDS]
    answered = [s for s in waiting if s.is_told_at_once] or [s for s in old if s.pods_message]
    if answered:
        return _waits(view, answered[0], len(waiting), len(states))
    if not old:
        return Outcome(wake_after_seconds=SILENCE_SECONDS - max(age_seconds.values()))
    return _pending(view, old[0]) or _waits(view, old[0], len(waiting), len(states))


def _all_scheduled(view: View, scheduled: set[str], allowed: frozenset[str]) -> Outcome:
    """Those that the order of startup holds back may come hours later: what was said of others ends before."""
    groups: set[str] = set()
    due: set[str] = set()
    for child in view.children:
        placement = view.placement(child)
        if placement is not None:
            groups.add(placement.pod_group_name)
            if child.replicated_job in allowed:
                due.add(placement.pod_group_name)
    are_all, stored = groups <= scheduled, _stored(view)
    if not due <= scheduled or not (are_all or (scheduled and stored is not None and stored.status == "False")):
        return NOTHING
    others = "" if are_all else "; the others have yet to start"
    message = f"{len(scheduled)} of {len(groups)} pod groups are scheduled{others}"
    return _condition("True", words.ALL_SCHEDULED, message)


def _pending(view: View, state: GroupState) -> Outcome | None:
    """A gang that was placed lacks pods: for a moment that is only noted, because it may just have grown."""
    stored = _stored(view)
    if stored is not None and stored.status == "True":
        noted = ConditionChange(
            words.POD_GROUPS_SCHEDULED, "False", words.POD_GROUP_PENDING, _placed(state), is_silent=True
        )
        return Outcome(conditions=(noted,), wake_after_seconds=SILENCE_SECONDS)
    if stored is not None and stored.reason == words.POD_GROUP_PENDING:
        noted_seconds = _waited_seconds(stored.last_transition_time or "", view.observation.now)
        if noted_seconds < SILENCE_SECONDS:
            return Outcome(wake_after_seconds=SILENCE_SECONDS - noted_seconds)
    return None


def _stored(view: View) -> Condition | None:
    return find(view.jobset.status.conditions, words.POD_GROUPS_SCHEDULED)


def suspended_gangs(view: View) -> Outcome:
    """A suspended JobSet has no groups: what was said of them no longer holds."""
    if view.scheduling is None:
        return NOTHING
    message = "the jobset is suspended and holds no pod groups"
    change = ConditionChange(words.POD_GROUPS_SCHEDULED, "False", words.JOBSET_SUSPENDED, message, is_silent=True)
    return Outcome(conditions=(change,))


def _starts(view: View) -> Mapping[str, str]:
    """Per PodGroup whose Jobs run: when the last of them was started, now where the Job controller has yet to."""
    now = timestamp(view.observation.now)
    starts: dict[str, str] = {}
    for child in view.children:
        placement = view.placement(child)
        if placement is None or child.job is None or not child.is_current or child.job.spec.suspend:
            continue
        if child.job.pod_group is None:  # its pods are outside the group
            continue
        name = placement.pod_group_name
        starts[name] = max(starts.get(name, ""), child.job.status.start_time or now)
    return starts


def _was_preempted(view: View, state: GroupState) -> bool:
    """It was told that the gang was preempted, and it has not been placed since. Its pods, which said so, are gone."""
    stored = _stored(view)
    return (
        stored is not None
        and (stored.status, stored.reason) == ("False", words.POD_GROUP_PREEMPTED)
        and stored.message.startswith(_name(state))
    )


def _waits(view: View, state: GroupState, waiting: int, total: int) -> Outcome:
    reason, message = _why(view, state)
    if reason != words.POD_GROUP_QUORUM_OUT_OF_REACH and (state.preempted or _was_preempted(view, state)):
        reason = words.POD_GROUP_PREEMPTED
        pods = f"{state.preempted} were" if state.preempted else "it was"
        message += f"; {pods} preempted for a higher priority"
    more = f"; {waiting} of {total} pod groups wait" if waiting > 1 else ""
    return _condition("False", reason, message + more)


def _why(view: View, state: GroupState) -> tuple[str, str]:
    """The reason and the message, apart from preemption."""
    where = _placed(state)
    if state.is_out_of_reach:
        message = (
            f"{where}, because {state.done} have finished and finished pods do not count; minCount {state.quorum} is "
            "fixed by spec.scheduling: to get out, recreate the JobSet without it, or with less"
        )
        return words.POD_GROUP_QUORUM_OUT_OF_REACH, message
    if state.existing + state.done < state.quorum:
        message = f"{where}, because only {state.existing + state.done} pods exist"
        return words.POD_GROUP_INCOMPLETE, message
    reported = "; ".join(filter(None, (state.group_message, state.pods_message)))
    if reported:
        return words.POD_GROUP_UNSCHEDULABLE, f"{where}: {reported}"
    stored = _stored(view)
    # Its pods were just made again: another warning is worth sending once it has an answer in it.
    is_told = stored is not None and stored.reason == words.POD_GROUP_INCOMPLETE
    reason = words.POD_GROUP_INCOMPLETE if is_told else words.POD_GROUP_UNSCHEDULABLE
    return reason, f"{where}: the scheduler has not tried it yet"


def _placed(state: GroupState) -> str:
    return f"{_name(state)} {state.bound} of the {state.quorum} pods that must be placed together are placed"


def _name(state: GroupState) -> str:
    return f"PodGroup {state.name}:"


def _leaves(state: GroupState) -> Outcome:
    """Nobody's fault: it is so after a quick resume."""
    message = (
        f"PodGroup {state.name} is being deleted and stays until its last pod is gone ({state.leaving} terminate); "
        "its Jobs start under its successor"
    )
    return _condition("False", words.POD_GROUP_TERMINATING, message, is_warning=False)


def _condition(status: str, reason: str, message: str, *, is_warning: bool = True) -> Outcome:
    is_true = status == "True"
    change = ConditionChange(
        words.POD_GROUPS_SCHEDULED,
        "True" if is_true else "False",
        reason,
        message,
        is_warning=is_warning and not is_true,
        is_state=True,
    )
    return Outcome(conditions=(change,))


def _age_seconds(group: PodGroup, start: str, now: datetime) -> float:
    """Since the pods could exist."""
    return _waited_seconds(max(group.metadata.creation_timestamp or "", start), now)


def _waited_seconds(since: str, now: datetime) -> float:
    return waited_seconds(since, now, SILENCE_SECONDS)
