"""Why a PodGroup waits, in plain words, from what the scheduler wrote on the group and on its pods. Pure.

The facts of Kubernetes 1.37 that it knows: pods of a gang below its quorum stay Pending without a word; finished pods
do not count for the quorum; the condition PodGroupInitiallyScheduled never goes back to False, so that its True says
nothing about now. `tree` calls it. It reads conditions and never guesses at capacity.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pyjobset.objects.batch import Pod
from pyjobset.objects.meta import Condition
from pyjobset.objects.scheduling import PodGroup, TopologyConstraint

FINISHED = ("Succeeded", "Failed")
_QUORUM = re.compile(r"minCount \(\d+\) cannot be satisfied: (\d+) scheduled")
_PLACEMENTS = re.compile(r"0/(\d+) placements are available")
_OF_GROUP = ("pod group is unschedulable", "no feasible placements found")
_NO_PLACEMENT = "no feasible placements found"
_LENGTH_MAX = 200


def is_finished(pod: Pod) -> bool:
    return pod.status.phase in FINISHED


def is_bound(pod: Pod) -> bool:
    """It has a node and still counts there; a terminating pod does."""
    return bool(pod.spec.node_name) and not is_finished(pod)


def is_placed(pod: Pod) -> bool:
    """It has a node, and is there to stay."""
    return is_bound(pod) and pod.metadata.deletion_timestamp is None


def is_waiting(pod: Pod) -> bool:
    return not pod.spec.node_name and not is_finished(pod) and pod.metadata.deletion_timestamp is None


def quorum(group: PodGroup) -> int | None:
    """The gang's minCount, None for policy basic."""
    gang = group.spec.scheduling_policy.gang
    return gang.min_count or 0 if gang is not None else None


def why_waiting(group: PodGroup, pods: Sequence[Pod]) -> str:
    """A sentence without an end, or an empty text when no pod of the group waits."""
    waiting = [pod for pod in pods if is_waiting(pod)]
    if not waiting:
        return ""
    least = quorum(group)
    bound = sum(map(is_bound, pods))
    if least is None:
        return f"{_of(len(waiting), len(waiting) + bound)} wait" + _scheduler_says(group, waiting)
    if bound + len(waiting) < least:
        finished = sum(map(is_finished, pods))
        tail = f"; {finished} finished, and finished pods do not count" if finished else ""
        return f"needs {_pods(least)} at once, {_only(bound + len(waiting))}{tail}"
    return _why_unplaced(group, waiting, least, bound)


def _why_unplaced(group: PodGroup, waiting: Sequence[Pod], least: int, bound: int) -> str:
    """All pods that the gang needs exist: what the scheduler said when it tried to place them."""
    condition = unscheduled(group)
    texts = [condition.message] if condition else []
    texts += [message for pod in waiting if (message := _message(pod))]
    together = "".join(f" with the same {t.key}" for t in topology(group))
    if not texts:
        return f"needs {_pods(least)} at once{together}, the scheduler has not tried yet"
    if condition and condition.reason == "SchedulerError":
        return f"the scheduler cannot place it: {_short(condition.message)}"
    if any(_NO_PLACEMENT in text for text in texts) and together:
        return f"needs {_pods(least)} at once{together}, but no node has that label"
    fit = next((match[1] for text in texts if (match := _QUORUM.search(text))), None)
    if fit is None:
        start = f"{_of(len(waiting), len(waiting) + bound)} wait" if bound else f"needs {_pods(least)} at once"
        return f"{start}{_scheduler_says(group, waiting)}"
    where = next((match[1] for text in texts if (match := _PLACEMENTS.search(text))), "")
    place = f" in the first of {where} places" if together and where else ""
    return f"needs {_pods(least)} at once{together}, {fit} fit{place}{_scheduler_says(group, waiting)}"


def scheduler_message(pods: Iterable[Pod]) -> str:
    """What most of these pods were told about nodes, such as `0/1 nodes are available: 1 Insufficient cpu.`"""
    told = Counter(message for pod in pods if (message := _message(pod)) and not message.startswith(_OF_GROUP))
    return _short(told.most_common(1)[0][0]) if told else ""


def _scheduler_says(group: PodGroup, waiting: Sequence[Pod]) -> str:
    condition = unscheduled(group)
    message = scheduler_message(waiting) or (_short(condition.message) if condition else "")
    return f" (scheduler: {message})" if message else ""


def unscheduled(group: PodGroup) -> Condition | None:
    conditions = group.status.conditions
    return next((c for c in conditions if c.type == "PodGroupInitiallyScheduled" and c.status == "False"), None)


def _message(pod: Pod) -> str:
    return next((c.message for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "False"), "")


def topology(group: PodGroup) -> Sequence[TopologyConstraint]:
    constraints = group.spec.scheduling_constraints
    return constraints.topology if constraints else ()


def _short(message: str) -> str:
    """Without the part on preemption, which follows every message of the scheduler."""
    text = re.split(r",? (?:pod group preemption|preemption):", message)[0].strip()
    return text.removesuffix(".") if len(text) <= _LENGTH_MAX else f"{text[:_LENGTH_MAX]}..."


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"


def _only(count: int) -> str:
    return f"only {count} exists" if count == 1 else f"only {count} exist"


def _of(count: int, total: int) -> str:
    return f"{count} of {total} pods"
