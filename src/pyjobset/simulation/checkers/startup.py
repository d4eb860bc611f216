"""The order of startup holds: pods of a follower appear only after what it waits for was so, in the same attempt."""

from pyjobset.objects import labels
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.checkers import reading
from pyjobset.simulation.store import Change
from pyjobset.simulation.users import JOBSET
from pyjobset.simulation.world import Checker

Started = tuple[str, int, str]


class Startup(Checker):
    def __post_init__(self) -> None:
        self._ready: dict[Started, set[str]] = {}
        """Jobs of a ReplicatedJob that were once Ready or Complete, by JobSet uid, attempt and state."""

    def see(self, change: Change) -> None:
        if change.name.plural == "jobs" and change.type == "MODIFIED":
            self._note(change.object)
        elif change.name.plural == "pods" and change.type == "ADDED":
            self._judge(change)

    def _note(self, job: Manifest) -> None:
        key = reading.owner(job), reading.attempt(job)[0]
        status, name = job["status"], job["metadata"]["name"]
        wanted = min(job["spec"]["parallelism"], job["spec"]["completions"])
        if reading.is_true(job, "Complete"):
            self._ready.setdefault((*key, "Complete"), set()).add(name)
        is_ready = (status.get("ready") or 0) + (status.get("succeeded") or 0) >= wanted
        if is_ready or reading.is_true(job, "Complete") or reading.is_true(job, "Failed"):
            self._ready.setdefault((*key, "Ready"), set()).add(name)

    def _judge(self, change: Change) -> None:
        jobset = self.store.get(JOBSET)
        uid = reading.label(change.object, labels.JOBSET_UID)
        if jobset is None or jobset["metadata"]["uid"] != uid:
            return
        mine = reading.label(change.object, labels.REPLICATED_JOB_NAME)
        attempt = reading.attempt(change.object)[0]
        for name, state in _awaited(jobset["spec"], mine):
            replicas = next(r["replicas"] for r in jobset["spec"]["replicatedJobs"] if r["name"] == name)
            jobs = {f"{jobset['metadata']['name']}-{name}-{index}" for index in range(replicas)}
            if missing := jobs - self._ready.get((uid, attempt, state), set()):
                self.report(f"{change.name.name} starts before {min(missing)} is {state} in attempt {attempt}")


def _awaited(spec: Manifest, mine: str) -> list[tuple[str, str]]:
    names = [replicated_job["name"] for replicated_job in spec["replicatedJobs"]]
    if (spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder":
        return [(name, "Ready") for name in names[: names.index(mine)]]
    own = next(r for r in spec["replicatedJobs"] if r["name"] == mine)
    return [(dependency["name"], dependency["status"]) for dependency in own.get("dependsOn") or ()]
