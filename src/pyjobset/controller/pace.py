"""How soon a change of a child makes its JobSet run again: soon enough for people, seldom enough for the CPU.

Children change in bursts: the four Jobs of a small JobSet start within some milliseconds of each other, the thousand
Jobs of a big one all the time. A run looks at all of them, so changes are gathered for a moment. Watches ask for each.
"""

from pyjobset.objects.batch import Job
from pyjobset.objects.meta import Key, Struct
from pyjobset.objects.scheduling import PodGroup, Workload

PAUSE_SECONDS_MIN = 0.05
"""Long enough that a small JobSet's Jobs, which start together, are one status write; too short to be noticed."""
PAUSE_SECONDS_MAX = 1.0
SHARE = 20
"""The pause is this many times the last run: at most about a twentieth of the CPU goes to one JobSet's news."""


class Pace:
    def __init__(self) -> None:
        self._last: dict[Key, tuple[float, float]] = {}
        """When the last run of a JobSet ended, and the pause after it."""

    def ran(self, key: Key, *, ended: float, cpu_seconds: float) -> None:
        pause = min(max(PAUSE_SECONDS_MIN, SHARE * cpu_seconds), PAUSE_SECONDS_MAX)
        self._last[key] = (ended, pause)

    def forget(self, key: Key) -> None:
        self._last.pop(key, None)

    def gather_seconds(self, key: Key) -> float:
        """For news that only changes counts: wait for more of it."""
        last = self._last.get(key)
        return PAUSE_SECONDS_MIN if last is None else last[1]

    def soon_seconds(self, key: Key, now: float) -> float:
        """For news that may need an action: at once after a quiet time, else when the pause is over."""
        last = self._last.get(key)
        return 0.0 if last is None else max(0.0, last[0] + last[1] - now)


def is_only_counts(old: Struct, new: Struct) -> bool:
    """The change needs no action in a hurry: no condition, deletion or spec moved, only what the status counts."""
    if isinstance(old, Job) and isinstance(new, Job):
        return (
            old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
            and old.status.conditions == new.status.conditions
            and old.spec == new.spec
        )
    if isinstance(old, Workload | PodGroup) and isinstance(new, Workload | PodGroup):
        return old.metadata.deletion_timestamp == new.metadata.deletion_timestamp and old.spec == new.spec
    return False
