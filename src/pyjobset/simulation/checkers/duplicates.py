"""No attempt of a Job is created twice, unless somebody else removed it: a Job that ran must not run again."""

from pyjobset.objects.meta import Manifest
from pyjobset.simulation.checkers import reading
from pyjobset.simulation.store import Change
from pyjobset.simulation.world import Checker

Run = tuple[str, str, tuple[int, int]]


class Duplicates(Checker):
    def __post_init__(self) -> None:
        self._created: set[Run] = set()
        self._excused: set[Run] = set()

    def see(self, change: Change) -> None:
        if change.name.plural != "jobs":
            return
        run = _run(change.object)
        if change.type == "ADDED":
            if run in self._created and run not in self._excused:
                self.report(f"{change.name.name} attempt {run[2]} is created a second time by {change.actor}")
            self._created.add(run)
            self._excused.discard(run)
        elif self._is_excuse(change):
            self._excused.add(run)

    def _is_excuse(self, change: Change) -> bool:
        """It was a stranger's deletion, or the Job had not finished and had to go: it was mapped to a group that is
        no longer the right one."""
        if change.old is None or not (change.type == "DELETED" or reading.is_deleted(change.object)):
            return False
        return change.actor == "stranger" or not _is_finished(change.object)


def _run(job: Manifest) -> Run:
    return reading.owner(job), job["metadata"]["name"], reading.attempt(job)


def _is_finished(job: Manifest) -> bool:
    return reading.is_true(job, "Complete") or reading.is_true(job, "Failed")
