"""When news of children makes a JobSet run, and when its counts are stored."""

from typing import Any

import msgspec
import pytest

from pyjobset.controller.pace import (
    COUNTS_SECONDS,
    PARTIAL_COUNTS_SECONDS,
    PAUSE_SECONDS_MAX,
    PAUSE_SECONDS_MIN,
    Pace,
    changes_only_counts,
    has_partial_counts,
    is_only_counts,
)
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet, JobSetSpec, JobSetStatus
from pyjobset.objects.meta import Key
from pyjobset.objects.scheduling import PodGroup

KEY = Key("ns", "js")


@pytest.mark.parametrize(
    ("cpu_seconds", "pause"),
    [(0.0001, PAUSE_SECONDS_MIN), (0.005, 0.1), (0.02, 0.4), (5.0, PAUSE_SECONDS_MAX)],
)
def test_the_pause_grows_with_the_cost_of_a_run(cpu_seconds: float, pause: float) -> None:
    pace = Pace()
    pace.ran(KEY, now=100.0, cpu_seconds=cpu_seconds)
    assert pace.gather_seconds(KEY, 200.0) == pytest.approx(pause)
    assert pace.soon_seconds(KEY, 100.0) == pytest.approx(pause)


def test_urgent_news_runs_at_once_after_a_quiet_time_and_waits_for_the_end_of_a_pause() -> None:
    pace = Pace()
    assert pace.soon_seconds(KEY, 0.0) == 0.0
    pace.ran(KEY, now=100.0, cpu_seconds=0.01)
    assert pace.soon_seconds(KEY, 100.15) == pytest.approx(0.05)
    assert pace.soon_seconds(KEY, 100.3) == 0.0


def test_news_does_not_bring_a_failed_run_forward() -> None:
    pace = Pace()
    pace.ran(KEY, now=100.0, cpu_seconds=0.0)
    pace.hold(KEY, until=130.0)
    assert pace.soon_seconds(KEY, 110.0) == pace.gather_seconds(KEY, 110.0) == pytest.approx(20.0)
    assert pace.soon_seconds(KEY, 131.0) == 0.0
    pace.ran(KEY, now=131.0, cpu_seconds=0.0)
    assert pace.soon_seconds(KEY, 131.0) == pytest.approx(PAUSE_SECONDS_MIN)


def test_counts_wait_from_their_first_change() -> None:
    pace = Pace()
    assert pace.counts_seconds(KEY, 100.0, is_partial=True) == PARTIAL_COUNTS_SECONDS
    assert pace.counts_seconds(KEY, 101.0, is_partial=True) == PARTIAL_COUNTS_SECONDS - 1
    assert pace.counts_seconds(KEY, 101.0, is_partial=False) == 0, "complete counts do not wait for partial ones"
    pace.counts_stored(KEY)
    assert pace.counts_seconds(KEY, 101.0, is_partial=False) == COUNTS_SECONDS


def job(**changes: Any) -> Job:
    metadata = {"name": "j", "namespace": "ns", "resourceVersion": changes.pop("version", "1")}
    metadata |= {"deletionTimestamp": changes.pop("deleted")} if "deleted" in changes else {}
    return msgspec.convert({"metadata": metadata, "spec": changes.pop("spec", {}), "status": changes}, Job)


COMPLETE = [{"type": "Complete", "status": "True"}]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (job(version="2", active=1, ready=1), True),
        (job(version="2", startTime="2026-11-30T12:00:00Z"), True),
        (job(version="2", conditions=COMPLETE), False),
        (job(version="2", spec={"suspend": True}), False),
        (job(version="2", deleted="2026-11-30T12:00:00Z"), False),
    ],
)
def test_what_of_a_job_is_urgent(new: Job, expected: bool) -> None:
    assert is_only_counts(job(), new) is expected


def jobset(metadata: dict[str, Any], status: dict[str, Any]) -> JobSet:
    return msgspec.convert({"metadata": {"name": "js", "generation": 1} | metadata, "status": status}, JobSet)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"resourceVersion": "2"}, True),
        ({"resourceVersion": "2", "generation": 2}, False),
        ({"resourceVersion": "2", "labels": {"a": "b"}}, False),
        ({"resourceVersion": "2", "deletionTimestamp": "2026-11-30T12:00:00Z"}, False),
    ],
)
def test_what_of_a_jobset_is_urgent(metadata: dict[str, Any], expected: bool) -> None:
    assert is_only_counts(jobset({}, {}), jobset(metadata, {"restarts": 1})) is expected


def test_the_schedulers_word_on_a_group_is_not_urgent_and_its_deletion_is() -> None:
    def group(**metadata: str) -> PodGroup:
        return msgspec.convert({"metadata": {"name": "g"} | metadata}, PodGroup)

    assert is_only_counts(group(), group(resourceVersion="2"))
    assert not is_only_counts(group(), group(deletionTimestamp="2026-11-30T12:00:00Z"))


WAITS = {"type": "PodGroupsScheduled", "status": "False", "reason": "Incomplete", "message": "2 of 4 pods are placed"}


def status(*replicated_jobs: dict[str, Any], **more: Any) -> JobSetStatus:
    return msgspec.convert(
        {"replicatedJobsStatus": [{"name": "w"} | rj for rj in replicated_jobs]} | more, JobSetStatus
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (JobSetStatus(), status({"ready": 1}), True),
        (status({"ready": 1}), status({"ready": 2}), True),
        (status({"ready": 1}), status({"ready": 2}, restarts=1), False),
        (status({"ready": 1}), status({"ready": 2}, conditions=[{"type": "Completed", "status": "True"}]), False),
        (status(conditions=[WAITS]), status(conditions=[WAITS | {"message": "3 of 4 pods are placed"}]), True),
        (status(conditions=[WAITS]), status(conditions=[WAITS | {"reason": "Preempted"}]), False),
        (status({"jobRestarts": [0]}), status({"jobRestarts": [0], "ready": 1}), True),
        (status({"jobRestarts": [0]}), status({"jobRestarts": [1]}), False),
        (JobSetStatus(), status({"jobRestarts": [1]}), False),
    ],
)
def test_which_status_may_wait(old: JobSetStatus, new: JobSetStatus, expected: bool) -> None:
    assert changes_only_counts(old, new) is expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, True),
        ({"active": 2}, True),
        ({"ready": 1, "active": 2}, True),
        ({"ready": 2, "active": 2}, False),
        ({"ready": 1, "succeeded": 1}, False),
        ({"succeeded": 1, "failed": 1}, False),
        ({"suspended": 2}, False),
    ],
)
def test_counts_are_partial_while_a_job_has_not_started(counts: dict[str, int], expected: bool) -> None:
    spec = msgspec.convert({"replicatedJobs": [{"name": "w", "replicas": 2}]}, JobSetSpec)
    assert has_partial_counts(spec, status(counts)) is expected


def test_without_counts_all_is_partial() -> None:
    spec = msgspec.convert({"replicatedJobs": [{"name": "w", "replicas": 2}]}, JobSetSpec)
    assert has_partial_counts(spec, JobSetStatus())


def test_a_timer_that_fires_a_rounding_error_early_is_in_time() -> None:
    """Waiting for the rest of 1e-15 s is waiting for no time at all: the run would ask for itself again and again."""
    pace = Pace()
    pace.counts_seconds(KEY, 6.88477, is_partial=False)
    early = 6.88477 + COUNTS_SECONDS - 1e-12
    assert pace.counts_seconds(KEY, early, is_partial=False) == 0
