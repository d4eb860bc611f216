"""A pod never names a PodGroup that was not created before it."""

from pyjobset.simulation.checkers import reading
from pyjobset.simulation.store import Change
from pyjobset.simulation.world import Checker


class Groups(Checker):
    def __post_init__(self) -> None:
        self._created: set[str] = set()
        """Also of those that a stranger has deleted since: nobody can see that in time."""

    def see(self, change: Change) -> None:
        if change.type != "ADDED":
            return
        if change.name.plural == "podgroups":
            self._created.add(change.name.name)
        elif change.name.plural == "pods":
            name = reading.group(change.object["spec"])
            if name and name not in self._created:
                self.report(f"{change.name.name} names PodGroup {name}, which was never created")
