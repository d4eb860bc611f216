"""Never two attempts of a Job live at a time: no pod starts while one of an older attempt of its Job still runs."""

from pyjobset.objects import labels
from pyjobset.simulation.checkers import reading
from pyjobset.simulation.store import Change
from pyjobset.simulation.world import Checker


class Attempts(Checker):
    def __post_init__(self) -> None:
        self._torn: set[str] = set()
        """Jobs that a stranger removed from above their pods: nobody waits for those any more."""

    def see(self, change: Change) -> None:
        if change.name.plural == "jobs" and change.type == "DELETED" and change.actor == "stranger":
            self._torn.add(change.object["metadata"]["uid"])
        elif change.name.plural == "pods" and change.type == "ADDED":
            self._judge(change)

    def _judge(self, change: Change) -> None:
        key, uid = (reading.label(change.object, label) for label in (labels.JOB_KEY, labels.JOBSET_UID))
        mine = reading.attempt(change.object)
        for pod in self.store.of("pods", change.name.namespace):
            if reading.label(pod, labels.JOB_KEY) != key or not reading.is_live_pod(pod):
                continue
            if reading.label(pod, labels.JOBSET_UID) != uid or reading.owner(pod) in self._torn:
                continue  # of a JobSet that had the name before, or out of everybody's hands
            if reading.attempt(pod) != mine:
                other = pod["metadata"]["name"]
                self.report(f"{change.name.name} of attempt {mine} starts while {other} of {reading.attempt(pod)} runs")
