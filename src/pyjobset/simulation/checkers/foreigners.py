"""What does not belong to the JobSet is never changed or deleted by the controller."""

from pyjobset.simulation.checkers import reading
from pyjobset.simulation.store import Change
from pyjobset.simulation.world import Checker

OWN = ("jobs", "services", "workloads", "podgroups", "persistentvolumeclaims")


class Foreigners(Checker):
    def see(self, change: Change) -> None:
        if not change.actor.startswith("controller") or change.name.plural not in OWN or change.old is None:
            return
        owner = reading.owner(change.old)
        name = self.store.with_uid(owner) if owner else None
        if not owner or (name is not None and name.plural != "jobsets"):
            self.report(f"{change.actor} changes {change.name.plural} {change.name.name}, which is not of a JobSet")
