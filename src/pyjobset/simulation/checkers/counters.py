"""Restarts, attempts and executions never skip and never fall, and those that count stay within maxRestarts."""

from pyjobset.objects.meta import Manifest
from pyjobset.simulation.store import Change
from pyjobset.simulation.world import Checker

NUMBERS = ("restarts", "restartsCountTowardsMax", "executionAttempts")


class Counters(Checker):
    def see(self, change: Change) -> None:
        if change.name.plural != "jobsets" or change.type != "MODIFIED":
            return
        assert change.old is not None
        for what, was, now in _pairs(change.old["status"], change.object["status"]):
            if not was <= now <= was + 1:
                self.report(f"{what} goes from {was} to {now} by {change.actor}")
        policy = change.object["spec"].get("failurePolicy") or {}
        counted = _counted(change.object["status"])
        if counted > policy.get("maxRestarts", 0):
            self.report(f"{counted} restarts count, maxRestarts is {policy.get('maxRestarts', 0)}")


def _pairs(old: Manifest, new: Manifest) -> list[tuple[str, int, int]]:
    found = [(field, old.get(field) or 0, new.get(field) or 0) for field in NUMBERS]
    before = {entry["name"]: entry for entry in old.get("replicatedJobsStatus") or ()}
    for entry in new.get("replicatedJobsStatus") or ():
        for field in ("jobRestarts", "jobRestartsCountTowardsMax"):
            was = before.get(entry["name"], {}).get(field) or []
            now = entry.get(field) or []
            was = was + [0] * (len(now) - len(was))
            found += [(f"{field} of {entry['name']}-{i}", a, b) for i, (a, b) in enumerate(zip(was, now, strict=False))]
    return found


def _counted(status: Manifest) -> int:
    singles = (entry.get("jobRestartsCountTowardsMax") or () for entry in status.get("replicatedJobsStatus") or ())
    return (status.get("restartsCountTowardsMax") or 0) + sum(map(sum, singles))
