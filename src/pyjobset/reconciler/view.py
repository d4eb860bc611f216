"""The observation seen through the JobSet's own spec: each expected child Job with the state it is in. Built by decide.

Policies read a View and nothing else. Building it is linear in the number of expected and existing Jobs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import msgspec
from msgspec import UNSET

from pyjobset.compiler.jobs import ChildJob, child_jobs
from pyjobset.compiler.scheduling import Placement, SchedulingObjects, compile_scheduling
from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.template import INT32_MAX
from pyjobset.reconciler.conditions import is_true
from pyjobset.reconciler.observation import Observation
from pyjobset.rules.defaults import with_defaults


class State(Enum):
    """Where an expected child Job is in its life. A terminating Job holds its name until it is gone."""

    MISSING = "missing"
    TERMINATING = "terminating"
    OUTDATED = "outdated"
    LIVE = "live"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Child:
    """An expected child Job. `job` is the object of that name, whatever its attempt, or None."""

    expected: ChildJob
    state: State
    job: Job | None

    @property
    def replicated_job(self) -> str:
        return self.expected.replicated_job.name

    @property
    def attempt(self) -> int:
        """Of the JobSet, that the Job there is was made for."""
        return label_number(self.job.metadata.labels.restart_attempt) if self.job else 0

    @property
    def job_attempt(self) -> int:
        """Of this Job alone."""
        return label_number(self.job.metadata.labels.job_restart_attempt) if self.job else 0

    @property
    def is_current(self) -> bool:
        """The Job of this attempt exists and is not on its way out."""
        return self.state in (State.LIVE, State.SUCCEEDED, State.FAILED)

    @property
    def is_finished(self) -> bool:
        return self.state in (State.SUCCEEDED, State.FAILED)


@dataclass(frozen=True, slots=True)
class View:
    observation: Observation
    jobset: JobSet
    """With every default applied, and without spec.scheduling where its gate is off."""
    children: tuple[Child, ...]
    surplus: tuple[Job, ...]
    """Jobs of this JobSet that its spec does not expect."""
    scheduling: SchedulingObjects | None

    @property
    def is_suspended(self) -> bool:
        return bool(self.jobset.spec.suspend)

    @property
    def is_finished(self) -> bool:
        conditions = self.jobset.status.conditions
        return is_true(conditions, words.COMPLETED) or is_true(conditions, words.FAILED)

    def placement(self, child: Child) -> Placement | None:
        if self.scheduling is None:
            return None
        return self.scheduling.placement(child.replicated_job, child.expected.index)

    def of(self, replicated_job: str) -> Iterator[Child]:
        return (c for c in self.children if c.replicated_job == replicated_job)


def view_of(observation: Observation) -> View:
    jobset = with_defaults(observation.jobset)
    if gates.WORKLOAD_AWARE_SCHEDULING not in observation.features and jobset.spec.scheduling is not None:
        jobset = msgspec.structs.replace(jobset, spec=msgspec.structs.replace(jobset.spec, scheduling=None))
    by_name = {job.metadata.name: job for job in observation.jobs}
    restarts = job_restarts(jobset) if gates.RESTART_JOB in observation.features else {}
    children: list[Child] = []
    for expected in child_jobs(jobset):
        job = by_name.pop(expected.name, None)
        is_outdated = job is not None and _is_outdated(jobset, job, restarts.get(expected.key, 0))
        children.append(Child(expected, _state(job, is_outdated), job))
    scheduling = compile_scheduling(jobset) if observation.has_scheduling_api else None
    return View(observation, jobset, tuple(children), tuple(by_name.values()), scheduling)


def _state(job: Job | None, is_outdated: bool) -> State:
    """A Job of this attempt that finished counts as finished also while it is being deleted: its result is known."""
    if job is None:
        return State.MISSING
    is_terminating = job.metadata.deletion_timestamp is not None
    if is_outdated:
        return State.TERMINATING if is_terminating else State.OUTDATED
    if job.is_succeeded:
        return State.SUCCEEDED
    if job.is_failed:
        return State.FAILED
    return State.TERMINATING if is_terminating else State.LIVE


def _is_outdated(jobset: JobSet, job: Job, job_restarts: int) -> bool:
    """Of an older attempt of the JobSet, or of the Job alone."""
    labels = job.metadata.labels
    return (
        label_number(labels.restart_attempt) < jobset.status.restarts
        or label_number(labels.job_restart_attempt) < job_restarts
    )


def job_restarts(jobset: JobSet) -> dict[tuple[str, int], int]:
    """How often single Jobs were restarted, where they were."""
    return {
        (entry.name, index): restarts
        for entry in jobset.status.replicated_jobs_status
        if entry.job_restarts is not UNSET
        for index, restarts in enumerate(entry.job_restarts)
        if restarts
    }


def label_number(label: str) -> int:
    """An attempt or an index from its label. A label that is none counts as 0, the oldest."""
    number = int(label) if label.isascii() and label.isdigit() else 0
    return number if number <= INT32_MAX else 0
