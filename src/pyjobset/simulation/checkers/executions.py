"""An execution is counted before any Job carries its number."""

from pyjobset.objects import labels
from pyjobset.simulation.checkers import reading
from pyjobset.simulation.store import Change
from pyjobset.simulation.world import Checker


class Executions(Checker):
    def see(self, change: Change) -> None:
        if change.name.plural != "jobs" or change.type == "DELETED":
            return
        told = (change.object["metadata"].get("annotations") or {}).get(labels.EXECUTION_ATTEMPT)
        if told is None:
            return
        name = self.store.with_uid(reading.owner(change.object))
        jobset = self.store.get(name) if name is not None else None
        if jobset is None:
            return  # it is gone, and its Jobs go
        counted = jobset["status"].get("executionAttempts")
        if counted is None or int(told) > counted:
            self.report(f"Job {change.name.name} carries execution {told}, counted are {counted}")
