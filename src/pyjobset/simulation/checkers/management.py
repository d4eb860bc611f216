"""A JobSet of another controller: ours writes nothing of it or for it. Only when it has finished its TTL is ours."""

from pyjobset.simulation.checkers import reading
from pyjobset.simulation.checkers.foreigners import OWN
from pyjobset.simulation.store import Change
from pyjobset.simulation.world import Checker


class Management(Checker):
    def see(self, change: Change) -> None:
        if reading.is_ours(self.scenario.jobset) or not change.actor.startswith("controller"):
            return
        is_end = change.type == "DELETED" or reading.is_deleted(change.object)
        if change.name.plural == "jobsets" and not is_end:
            self.report(f"{change.actor} writes to a JobSet of another controller")
        elif change.name.plural in OWN:
            self.report(f"{change.actor} writes {change.name.plural} {change.name.name} for another's JobSet")
