"""How soon a change of a child makes its JobSet run again: soon enough for people, seldom enough for the CPU.

Children change in bursts: the four Jobs of a small JobSet start within some milliseconds of each other, the thousand
Jobs of a big one all the time. A run looks at all of them, so changes are gathered for a moment. Watches ask for each.
"""

import msgspec

from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Key, ObjectMeta, Struct
from pyjobset.objects.scheduling import PodGroup, Workload

PAUSE_SECONDS_MIN = 0.05
"""Long enough that a small JobSet's Jobs, which start together, are one status write; too short to be noticed."""
PAUSE_SECONDS_MAX = 1.0
SHARE = 20
"""The pause is this many times the last run: at most about a twentieth of the CPU goes to one JobSet's news."""


class Pace:
    def __init__(self) -> None:
        self._last: dict[Key, tuple[float, float]] = {}
        """How long a JobSet pauses, and until when it does so after its last run."""

    def ran(self, key: Key, *, now: float, cpu_seconds: float) -> None:
        pause = min(max(PAUSE_SECONDS_MIN, SHARE * cpu_seconds), PAUSE_SECONDS_MAX)
        self._last[key] = (pause, now + pause)

    def hold(self, key: Key, *, until: float) -> None:
        """The run failed and waits for another try: news of children does not bring it forward."""
        pause, until_before = self._last.get(key, (PAUSE_SECONDS_MIN, 0.0))
        self._last[key] = (pause, max(until, until_before))

    def forget(self, key: Key) -> None:
        self._last.pop(key, None)

    def gather_seconds(self, key: Key, now: float) -> float:
        """For news that only changes counts: wait for more of it."""
        pause, until = self._last.get(key, (PAUSE_SECONDS_MIN, 0.0))
        return max(pause, until - now)

    def soon_seconds(self, key: Key, now: float) -> float:
        """For news that may need an action: at once after a quiet time, else when the pause is over."""
        _, until = self._last.get(key, (0.0, 0.0))
        return max(0.0, until - now)


def is_only_counts(old: Struct, new: Struct) -> bool:
    """The change needs no action in a hurry: no deletion, spec or Job condition moved, only what a status says."""
    if isinstance(old, JobSet) and isinstance(new, JobSet):
        return _without_version(old.metadata) == _without_version(new.metadata)
    if isinstance(old, Job) and isinstance(new, Job):
        return (
            old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
            and old.status.conditions == new.status.conditions
            and old.spec == new.spec
        )
    if isinstance(old, Workload | PodGroup) and isinstance(new, Workload | PodGroup):
        return old.metadata.deletion_timestamp == new.metadata.deletion_timestamp and old.spec == new.spec
    return False


def _without_version(metadata: ObjectMeta) -> ObjectMeta:
    """The generation, which stays, says that the spec is the same."""
    return msgspec.structs.replace(metadata, resource_version="")
