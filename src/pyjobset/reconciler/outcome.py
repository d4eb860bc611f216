"""What one policy wants: actions, condition changes, events, reasons. decide adds the outcomes up in order.

A policy is a pure function View -> Outcome in a file of its own. Conditions are changed by `ConditionChange` only, so
that the rules of all conditions (no False without a former True, transition times) live in one place,
`conditions.py`.
"""

from dataclasses import dataclass
from typing import Literal

from pyjobset.objects import conditions as words
from pyjobset.reconciler.decision import Action, Event, Reason
from pyjobset.reconciler.observation import Refusal


@dataclass(frozen=True, slots=True)
class ConditionChange:
    """`is_silent` changes the condition without an event; `is_state` adds it also when it is False and absent."""

    type: str
    status: Literal["True", "False"]
    reason: str
    message: str
    is_warning: bool = False
    is_silent: bool = False
    is_state: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    actions: tuple[Action, ...] = ()
    conditions: tuple[ConditionChange, ...] = ()
    events: tuple[Event, ...] = ()
    reasons: tuple[Reason, ...] = ()
    wake_after_seconds: float | None = None
    refusals: tuple[Refusal, ...] = ()
    """What the policy itself cannot use, told like what the API server refuses."""

    def __add__(self, other: "Outcome") -> "Outcome":
        wakes = [w for w in (self.wake_after_seconds, other.wake_after_seconds) if w is not None]
        return Outcome(
            self.actions + other.actions,
            self.conditions + other.conditions,
            self.events + other.events,
            self.reasons + other.reasons,
            min(wakes, default=None),
            self.refusals + other.refusals,
        )


NOTHING = Outcome()


def failed(reason: str, message: str) -> Outcome:
    """The end of a JobSet: condition Failed, with a warning."""
    return Outcome(conditions=(ConditionChange(words.FAILED, "True", reason, message, is_warning=True),))
