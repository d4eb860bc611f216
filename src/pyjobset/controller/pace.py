"""How soon news of children makes their JobSet run again, and how soon its counts are stored. Asked by the others here.

Children change in bursts: the four Jobs of a small JobSet start within some milliseconds of each other, the thousand
Jobs of a big one all the time. A run looks at all of them, so news is gathered for a moment; a status write costs the
API server and all who watch, so counts wait a little longer. What leads to an action or a condition never does.
"""

import msgspec

from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet, JobSetSpec, JobSetStatus
from pyjobset.objects.meta import Condition, Key, ObjectMeta, Struct
from pyjobset.objects.scheduling import PodGroup, Workload

PAUSE_SECONDS_MIN = 0.05
"""Long enough that what happens together to a small JobSet is one run; too short to be noticed."""
PAUSE_SECONDS_MAX = 1.0
SHARE = 20
"""The pause is this many times the last run: at most about a twentieth of the CPU goes to one JobSet's news."""
COUNTS_SECONDS = 0.5
"""Counts are stored this long after they changed, together with those that changed since."""
PARTIAL_COUNTS_SECONDS = 5.0
"""While Jobs are still starting: what queueing controllers and people wait for is that all are ready, and that comes
after COUNTS_SECONDS. The Job controller takes a second or more for each look at a Job, so storing every step would be
a write a Job."""
RESOLUTION_SECONDS = 0.001
"""A timer may fire a rounding error early: to wait for the rest of it would be a loop."""


class Pace:
    def __init__(self) -> None:
        self._last: dict[Key, tuple[float, float]] = {}
        """How long a JobSet pauses, and until when it does so after its last run."""
        self._counts_since: dict[Key, float] = {}
        """Since when the counts differ from those stored."""

    def ran(self, key: Key, *, now: float, cpu_seconds: float) -> None:
        pause = min(max(PAUSE_SECONDS_MIN, SHARE * cpu_seconds), PAUSE_SECONDS_MAX)
        self._last[key] = (pause, now + pause)

    def hold(self, key: Key, *, until: float) -> None:
        """The run failed and waits for another try: news of children does not bring it forward."""
        pause, until_before = self._last.get(key, (PAUSE_SECONDS_MIN, 0.0))
        self._last[key] = (pause, max(until, until_before))

    def forget(self, key: Key) -> None:
        self._last.pop(key, None)
        self._counts_since.pop(key, None)

    def counts_seconds(self, key: Key, now: float, *, is_partial: bool) -> float:
        """Until the counts, which differ from the stored ones, should be stored. Not above 0: now."""
        since = self._counts_since.setdefault(key, now)
        left = since + (PARTIAL_COUNTS_SECONDS if is_partial else COUNTS_SECONDS) - now
        return left if left > RESOLUTION_SECONDS else 0.0

    def counts_stored(self, key: Key) -> None:
        self._counts_since.pop(key, None)

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


def changes_only_counts(old: JobSetStatus, new: JobSetStatus) -> bool:
    """The new status may wait: it differs only in counts of Jobs and in what messages say about them.

    Restarts of single Jobs are no such counts: they are stored before the Job is touched.
    """
    rest = msgspec.structs.replace(
        new, replicated_jobs_status=old.replicated_jobs_status, conditions=_without_messages(new.conditions)
    )
    same = msgspec.structs.replace(old, conditions=_without_messages(old.conditions))
    return same == rest and _job_restarts(old) == _job_restarts(new)


def has_partial_counts(spec: JobSetSpec, status: JobSetStatus) -> bool:
    """Some Job has neither started nor been suspended."""
    settled = {s.name: s.ready + s.succeeded + s.failed + s.suspended for s in status.replicated_jobs_status}
    return any(settled.get(rj.name, 0) < rj.replicas for rj in spec.replicated_jobs)


def _without_messages(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return tuple(msgspec.structs.replace(condition, message="") for condition in conditions)


def _job_restarts(status: JobSetStatus) -> list[tuple[str, object, object]]:
    entries = ((s.name, s.job_restarts, s.job_restarts_count_towards_max) for s in status.replicated_jobs_status)
    return [entry for entry in entries if entry[1:] != (msgspec.UNSET, msgspec.UNSET)]


def _without_version(metadata: ObjectMeta) -> ObjectMeta:
    """The generation, which stays, says that the spec is the same."""
    return msgspec.structs.replace(metadata, resource_version="")
