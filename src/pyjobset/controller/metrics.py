"""The metrics of the controller: one table of all that there are, and what is counted as the controller goes.

Counting is plain numbers, because it stands in the way of every request and run; metrics_page makes text of them when
somebody asks. Names and labels are those that people know from the original controller where there is such a metric;
ours begin with pyjobset_. No label grows with the number of JobSets, but for the two that the JobSet API names.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from pyjobset.objects import conditions as words
from pyjobset.objects.jobset import JobSet, JobSetStatus
from pyjobset.objects.meta import Condition, Key


@dataclass(frozen=True, slots=True)
class Family:
    """All series of one name."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()


_JOBSET = ("jobset_name", "namespace")

COMPLETED = Family("jobset_completed_total", "counter", "JobSets that completed, each counted once.", _JOBSET)
FAILED = Family("jobset_failed_total", "counter", "JobSets that failed, each counted once.", _JOBSET)
DEADLINE_EXCEEDED = Family(
    "jobset_active_deadline_exceeded_total", "counter", "JobSets that failed at their active deadline.", _JOBSET
)
ENDS = Family(
    "pyjobset_jobset_ends_total",
    "counter",
    "JobSets that ended, by result: completed or failed. It starts at 0, so that rates see the first one.",
    ("result",),
)
RECONCILES = Family(
    "controller_runtime_reconcile_total",
    "counter",
    "Runs of JobSets by result: success, requeue_after (it runs again by itself) or error.",
    ("controller", "result"),
)
RECONCILE_ERRORS = Family(
    "controller_runtime_reconcile_errors_total", "counter", "Runs of JobSets that failed.", ("controller",)
)
RECONCILE_PANICS = Family(
    "controller_runtime_reconcile_panics_total",
    "counter",
    "Runs that failed by a bug of the controller. Its log has the traceback.",
    ("controller",),
)
RECONCILE_SECONDS = Family(
    "controller_runtime_reconcile_time_seconds",
    "histogram",
    "How long a run of a JobSet takes, its requests included.",
    ("controller",),
)
QUEUE_DEPTH = Family("workqueue_depth", "gauge", "JobSets that are due and wait for a worker.", ("name",))
QUEUE_ADDS = Family("workqueue_adds_total", "counter", "How often a JobSet became due.", ("name",))
QUEUE_SECONDS = Family(
    "workqueue_queue_duration_seconds", "histogram", "How long a JobSet that is due waits for a worker.", ("name",)
)
REQUESTS = Family(
    "rest_client_requests_total",
    "counter",
    "Requests to the API server by status code; <error> is none, because no answer came.",
    ("code", "method", "host"),
)
WATCHES = Family(
    "pyjobset_watches_total",
    "counter",
    "Watches begun. The API server ends each after some minutes; many in a short time are trouble.",
    ("resource",),
)
CACHE_OBJECTS = Family("pyjobset_cache_objects", "gauge", "Objects in the watch cache.", ("resource",))
CACHE_FOLLOWING = Family(
    "pyjobset_cache_following",
    "gauge",
    "1 while the watch cache follows the API server, 0 before its first list and while it cannot.",
    ("resource",),
)
REVIEW_SECONDS = Family(
    "controller_runtime_webhook_latency_seconds", "histogram", "How long an admission review takes.", ("webhook",)
)
REVIEWS = Family(
    "pyjobset_webhook_reviews_total",
    "counter",
    "Admission reviews by verdict: allowed, denied, malformed (no review) or failed (a bug; it denies).",
    ("webhook", "verdict"),
)
LEADER = Family(
    "leader_election_master_status",
    "gauge",
    "1 while this replica leads, 0 while it follows, by the Lease. Absent without leader election.",
    ("name",),
)
BUILD = Family("pyjobset_build_info", "gauge", "1; its label is the version of the controller.", ("version",))

FAMILIES = (
    *(COMPLETED, FAILED, DEADLINE_EXCEEDED, ENDS),
    *(RECONCILES, RECONCILE_ERRORS, RECONCILE_PANICS, RECONCILE_SECONDS),
    *(QUEUE_DEPTH, QUEUE_ADDS, QUEUE_SECONDS),
    *(REQUESTS, WATCHES, CACHE_OBJECTS, CACHE_FOLLOWING),
    *(REVIEW_SECONDS, REVIEWS),
    *(LEADER, BUILD),
)
"""All but those of the process itself (process_...), which the library has."""

BOUNDS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
GONE_SECONDS = 900.0
"""How long the series of a deleted JobSet can still be read: every usual scrape interval fits in many times."""
GONE_MAX = 10_000


class Histogram:
    """`counts` are those between the bounds, the last one above them all."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.sum += seconds


@dataclass(slots=True)
class Reviews:
    """Of the admission webhooks, by path."""

    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: dict[str, Histogram] = field(default_factory=dict)

    def judged(self, webhook: str, verdict: str, seconds: float) -> None:
        self.verdicts[webhook, verdict] += 1
        self.seconds.setdefault(webhook, Histogram()).observe(seconds)


class Ends:
    """The JobSets whose end this process stored: each once, after the write, never before it.

    A write whose answer was lost is counted when the JobSet is next seen with that end. After a crash between the
    write and the count, the JobSet is not counted; it is never counted twice.
    """

    def __init__(self) -> None:
        self.results: dict[str, int] = {"completed": 0, "failed": 0}
        self.series: dict[Family, dict[Key, int]] = {COMPLETED: {}, FAILED: {}, DEADLINE_EXCEEDED: {}}
        self._unsure: dict[Key, str] = {}
        self._gone: dict[Key, float] = {}
        """Since when, the oldest first."""

    def wrote(self, jobset: JobSet, status: JobSetStatus) -> None:
        """The API server took `status` in the place of the one that `jobset` has."""
        end = _end(status)
        if end is not None and _end(jobset.status) is None:
            self._count(_key(jobset), end)

    def perhaps_wrote(self, jobset: JobSet, status: JobSetStatus) -> None:
        if _end(status) is not None and _end(jobset.status) is None:
            self._unsure[_key(jobset)] = jobset.metadata.uid

    def seen(self, jobset: JobSet) -> None:
        """Called at each run, which almost always costs a look at an empty dictionary."""
        if self._unsure and (uid := self._unsure.pop(_key(jobset), None)):
            end = _end(jobset.status)
            if end is not None and uid == jobset.metadata.uid:
                self._count(_key(jobset), end)

    def gone(self, key: Key, now: float) -> None:
        """The JobSet is deleted: its series go too, but not at once, since its end may not have been read yet."""
        self._unsure.pop(key, None)
        if any(key in series for series in self.series.values()):
            self._gone.setdefault(key, now)
        self.forget_old(now)

    def forget_old(self, now: float) -> None:
        while self._gone:
            key, since = next(iter(self._gone.items()))
            if now - since < GONE_SECONDS and len(self._gone) <= GONE_MAX:
                return
            del self._gone[key]
            for series in self.series.values():
                series.pop(key, None)

    def _count(self, key: Key, end: Condition) -> None:
        self._gone.pop(key, None)
        is_failed = end.type == words.FAILED
        self.results["failed" if is_failed else "completed"] += 1
        families = [FAILED if is_failed else COMPLETED]
        if is_failed and end.reason == words.DEADLINE_EXCEEDED:
            families.append(DEADLINE_EXCEEDED)
        for family in families:
            series = self.series[family]
            series[key] = series.get(key, 0) + 1


def _end(status: JobSetStatus) -> Condition | None:
    return next(
        (c for c in status.conditions if c.status == "True" and c.type in (words.COMPLETED, words.FAILED)), None
    )


def _key(jobset: JobSet) -> Key:
    return Key(jobset.metadata.namespace, jobset.metadata.name)
