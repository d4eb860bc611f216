"""Terminal stays terminal: a JobSet that completed or failed never changes its mind, and starts no Job."""

from pyjobset.objects import labels
from pyjobset.simulation.checkers import reading
from pyjobset.simulation.store import Change
from pyjobset.simulation.users import JOBSET
from pyjobset.simulation.world import Checker


class Terminal(Checker):
    def __post_init__(self) -> None:
        self._ended: dict[str, str] = {}

    def see(self, change: Change) -> None:
        if change.name.plural == "jobsets" and change.type == "MODIFIED":
            uid, state = change.object["metadata"]["uid"], change.object["status"].get("terminalState") or ""
            before = self._ended.get(uid, "")
            if before and state != before:
                self.report(f"terminalState goes from {before} to {state or 'nothing'}")
            if state:
                self._ended[uid] = state
        elif change.name.plural == "jobs" and change.type == "ADDED":
            uid = reading.label(change.object, labels.JOBSET_UID)
            if self._ended.get(uid) and self.store.get(JOBSET) is not None:
                self.report(f"Job {change.name.name} is created after the JobSet {self._ended[uid]}")
