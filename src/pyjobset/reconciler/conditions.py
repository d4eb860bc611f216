"""The rules that all conditions of a JobSet obey, and the events that their changes send. Called by decide.

A condition with status False is never added when it is absent. lastTransitionTime moves only when the status changes.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from pyjobset.objects.meta import Condition
from pyjobset.reconciler.decision import Event
from pyjobset.reconciler.outcome import ConditionChange

MESSAGE_BYTES_MAX = 32_768
"""metav1.Condition allows no longer message."""
SKEW_SECONDS_MAX = 60
"""The clocks of a cluster differ by less."""


def timestamp(now: datetime) -> str:
    """RFC 3339 in whole seconds, as Kubernetes writes metav1.Time."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_since(time: str, now: datetime) -> float | None:
    """None: it is no time that we can read. The API server takes some from whoever writes a status by hand."""
    try:
        return (now - datetime.fromisoformat(time.upper())).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None


def waited_seconds(since: str, now: datetime, enough: float) -> float:
    """For a warning after so long. A time that cannot be read, or that is far ahead because a clock has been set back
    since, is long enough: it would be waited for without a word."""
    passed = seconds_since(since, now)
    return enough if passed is None or passed < -SKEW_SECONDS_MAX else passed


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    return next((c for c in conditions if c.type == type_), None)


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    condition = find(conditions, type_)
    return condition is not None and condition.status == "True"


def changed(
    conditions: tuple[Condition, ...], changes: Iterable[ConditionChange], now: datetime
) -> tuple[tuple[Condition, ...], tuple[Event, ...]]:
    """The conditions after the changes, in their old order with new ones at the end, and the events.

    A change of the message alone sends none: the scheduler words the same trouble differently at every attempt.
    """
    result = {c.type: c for c in conditions}
    events: list[Event] = []
    for change in changes:
        old = result.get(change.type)
        if old is None and change.status == "False" and not change.is_state:
            continue
        new = Condition(
            type=change.type,
            status=change.status,
            reason=change.reason,
            message=change.message[:MESSAGE_BYTES_MAX],
            last_transition_time=timestamp(now),
        )
        if old is not None and old.status == new.status:
            new = msgspec.structs.replace(
                new,
                last_transition_time=old.last_transition_time or new.last_transition_time,
                observed_generation=old.observed_generation,
            )
        if new == old:
            continue
        result[change.type] = new
        is_news = old is None or (old.status, old.reason) != (new.status, new.reason)
        if is_news and not change.is_silent:
            kind: Literal["Normal", "Warning"] = "Warning" if change.is_warning else "Normal"
            events.append(Event(kind, change.reason, change.message))
    return tuple(result.values()), tuple(events)
