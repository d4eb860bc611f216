"""Never two attempts of a Job live at a time: no pod starts while one of an older attempt of its Job still runs."""

from pyjobset.objects import labels
from pyjobset.simulation.checkers import reading
from pyjobset.simulation.store import Change
from pyjobset.simulation.world import Checker


class Attempts(Checker):
    def see(self, change: Change) -> None:
        if change.name.plural != "pods" or change.type != "ADDED":
            return
        key = reading.label(change.object, labels.JOB_KEY)
        mine, uid = reading.attempt(change.object), reading.label(change.object, labels.JOBSET_UID)
        for pod in self.store.of("pods", change.name.namespace):
            if reading.label(pod, labels.JOB_KEY) != key or not reading.is_live_pod(pod):
                continue
            if reading.label(pod, labels.JOBSET_UID) != uid:
                continue  # of a JobSet that had the name before
            if reading.attempt(pod) != mine:
                other = pod["metadata"]["name"]
                self.report(f"{change.name.name} of attempt {mine} starts while {other} of {reading.attempt(pod)} runs")
