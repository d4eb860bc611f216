"""What an agent does next, from what it saw of its JobSet (KEP-467). Pure; called by agent.agent.

A pod begins the attempt after the current one, waits at a barrier until all pods are in it (the controller then makes
it the current one), and restarts when its attempt is over. The JobSet here has only the fields that this reads: it is
decoded in every pod at every change.
"""

from enum import Enum

from pyjobset.objects.jobset import API_VERSION, KIND, FailurePolicy
from pyjobset.objects.labels import DISABLE_IN_PLACE_RESTART
from pyjobset.objects.meta import ObjectMeta, Struct
from pyjobset.objects.resources import JOBSETS, Resource


class Spec(Struct, frozen=True):
    failure_policy: FailurePolicy | None = None


class Status(Struct, frozen=True):
    previous_in_place_restart_attempt: int | None = None
    current_in_place_restart_attempt: int | None = None


class WatchedJobSet(Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec = Spec()
    status: Status = Status()


WATCHED = Resource(API_VERSION, JOBSETS.plural, KIND, WatchedJobSet)


class Move(Enum):
    JOIN = "say which attempt the pod begins"
    WAIT = "wait at the barrier"
    LIFT = "let the worker run"
    RESTART = "restart the pod in place"


def next_move(jobset: WatchedJobSet, attempt: int | None) -> Move:
    """`attempt` is the one that this pod has said, None before."""
    policy, status = jobset.spec.failure_policy, jobset.status
    if DISABLE_IN_PLACE_RESTART in jobset.metadata.annotations:
        return Move.LIFT
    if policy is None or policy.restart_strategy != "InPlaceRestart":
        return Move.LIFT
    if attempt is None:
        return Move.JOIN
    previous = status.previous_in_place_restart_attempt
    if previous is not None and attempt <= previous:
        return Move.RESTART
    return Move.LIFT if attempt == status.current_in_place_restart_attempt else Move.WAIT


def attempt_to_join(jobset: WatchedJobSet) -> int:
    current = jobset.status.current_in_place_restart_attempt
    return 0 if current is None else current + 1
