"""Restarts, attempts and executions never skip and never fall. Those that count stay within maxRestarts, and all count
but where a rule says that they do not."""

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
        status = change.object["status"]
        counted = _sum(status, "restartsCountTowardsMax", "jobRestartsCountTowardsMax")
        if counted > policy.get("maxRestarts", 0):
            self.report(f"{counted} restarts count, maxRestarts is {policy.get('maxRestarts', 0)}")
        restarts = _sum(status, "restarts", "jobRestarts")
        ignores = any("IgnoreMaxRestarts" in rule["action"] for rule in policy.get("rules") or ())
        if restarts != counted and not ignores:
            self.report(f"{counted} of {restarts} restarts count, and no rule says that the others do not")


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


def _sum(status: Manifest, whole: str, single: str) -> int:
    """Of the restarts of the JobSet and of its Jobs alone."""
    singles = (entry.get(single) or () for entry in status.get("replicatedJobsStatus") or ())
    return (status.get(whole) or 0) + sum(map(sum, singles))
