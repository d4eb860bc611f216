"""A gang is placed as a whole: when its first pod of an attempt gets a node, minCount of them do at once."""

from collections import Counter

from pyjobset.simulation.checkers import reading
from pyjobset.simulation.store import Change, Name
from pyjobset.simulation.world import Checker


class Gangs(Checker):
    def __post_init__(self) -> None:
        self._first: dict[tuple[str, tuple[int, int]], tuple[float, int, str]] = {}
        """When the first pod of a gang's attempt was bound, under which quorum, and the name of the group."""
        self._bound: Counter[tuple[str, tuple[int, int]]] = Counter()
        self._torn: set[str] = set()
        """Jobs that a stranger removed from above their pods: those count until they are gone, and nobody waits."""

    def see(self, change: Change) -> None:
        if change.name.plural == "jobs" and change.type == "DELETED" and change.actor == "stranger":
            self._torn.add(change.object["metadata"]["uid"])
        if change.name.plural != "pods" or change.old is None or change.old["spec"].get("nodeName"):
            return
        if not change.object["spec"].get("nodeName"):
            return
        name = reading.group(change.object["spec"])
        pod_group = self.store.get(Name("podgroups", change.name.namespace, name)) if name else None
        quorum = reading.min_count(pod_group) if pod_group is not None else None
        if quorum is None or pod_group is None or any(reading.owner(p) in self._torn for p in self.store.of("pods")):
            return
        gang = (pod_group["metadata"]["uid"], (reading.attempt(change.object)[0], 0))
        since, least, _ = self._first.setdefault(gang, (change.at, quorum, name))
        if change.at == since:
            self._bound[gang] += 1
        elif self._bound[gang] < least:
            self.report(f"{self._bound[gang]} pods of {name} were bound before the rest of {least}")
            self._bound[gang] = least

    def end(self) -> None:
        for gang, (_, least, name) in self._first.items():
            if self._bound[gang] < least:
                self.report(f"only {self._bound[gang]} of {least} pods of {name} were bound together")
