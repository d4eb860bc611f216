"""What a queue chose is what runs: a Job that is started after an admission has the node selector of that admission.

Not where the write was on its way while the queue changed its mind: nothing ties a write of a Job to what its JobSet is
when it arrives.
"""

from pyjobset.objects.meta import Manifest
from pyjobset.simulation.checkers import reading
from pyjobset.simulation.faults import LATE
from pyjobset.simulation.store import Change
from pyjobset.simulation.users import JOBSET
from pyjobset.simulation.world import Checker


class Places(Checker):
    def __post_init__(self) -> None:
        self._edited = 0
        """The version in which the selector was changed last."""
        self._started: dict[str, int] = {}
        """By uid of a Job: the version in which it was created running, or resumed."""

    def see(self, change: Change) -> None:
        if change.name.plural == "jobsets" and change.type != "DELETED":
            if change.old is None or _selector(change.old) != _selector(change.object):
                self._edited = change.version
        elif change.name.plural == "jobs" and change.type != "DELETED" and _is_started(change):
            self._started[change.object["metadata"]["uid"]] = change.version

    def end(self) -> None:
        jobset = self.store.get(JOBSET)
        if jobset is None:
            return
        for job in reading.owned(self.store, "jobs"):
            metadata = job["metadata"]
            is_later = self._started.get(metadata["uid"], 0) > self._edited
            selector = job["spec"]["template"]["spec"].get("nodeSelector")
            if is_later and not job["spec"].get("suspend") and selector != _selector(jobset):
                self.report(f"Job {metadata['name']} runs with {selector}, the JobSet says {_selector(jobset)}")


def _is_started(change: Change) -> bool:
    was_suspended = change.old is None or bool(change.old["spec"].get("suspend"))
    return was_suspended and not change.actor.endswith(LATE) and not change.object["spec"].get("suspend")


def _selector(jobset: Manifest) -> Manifest | None:
    spec = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    selector: Manifest | None = spec.get("nodeSelector")
    return selector
