"""Claims: one that goes with its JobSet has it as its owner, a kept one has none and stays; Jobs come after them."""

from pyjobset.simulation.checkers import reading
from pyjobset.simulation.store import Change
from pyjobset.simulation.users import JOBSET
from pyjobset.simulation.world import Checker

OTHERS = ("stranger", "squatter")


class Claims(Checker):
    def __post_init__(self) -> None:
        self._seen: set[str] = set()
        """Names that a claim once had: nobody can see in time that it is gone."""
        policies = self.scenario.spec.get("volumeClaimPolicies") or ()
        self._kept = {
            f"{template['metadata']['name']}-{JOBSET.name}": policy["retentionPolicy"]["whenDeleted"] == "Retain"
            for policy in policies
            for template in policy["templates"]
        }

    def see(self, change: Change) -> None:
        if not self._kept:
            return
        if change.name.plural == "persistentvolumeclaims":
            self._judge(change)
        elif change.name.plural == "jobs" and change.type == "ADDED" and change.actor.startswith("controller"):
            for name in sorted(self._kept.keys() - self._seen):
                self.report(f"Job {change.name.name} is created before claim {name}")

    def _judge(self, change: Change) -> None:
        name = change.name.name
        if change.type == "ADDED":
            self._seen.add(name)
            if change.actor.startswith("controller") and self._kept[name] == bool(reading.owner(change.object)):
                self.report(f"claim {name} is created with the wrong owner for its retention")
        elif _is_asked_to_go(change) and change.actor not in OTHERS:
            owner = self.store.with_uid(reading.owner(change.object))
            jobset = self.store.get(owner) if owner is not None else None
            if self._kept.get(name) or (jobset is not None and not reading.is_deleted(jobset)):
                self.report(f"claim {name} is deleted by {change.actor} while it should stay")

    def end(self) -> None:
        jobset = self.store.get(JOBSET)
        if jobset is None or jobset["status"].get("terminalState") or not reading.is_ours(jobset):
            return
        stored = {claim["metadata"]["name"] for claim in self.store.of("persistentvolumeclaims")}
        if missing := self._kept.keys() - stored:
            self.report(f"an unfinished JobSet has no claim {min(missing)}")


def _is_asked_to_go(change: Change) -> bool:
    is_new = change.old is None or not reading.is_deleted(change.old)
    return is_new and (change.type == "DELETED" or reading.is_deleted(change.object))
