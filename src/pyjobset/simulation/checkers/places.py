"""What a queue chose is what runs: a Job that is started after an admission has the node selector of that admission.

Or one that was right a moment before: nothing ties a write of a Job to what its JobSet is when it arrives, so that one
that is on its way while the queue changes its mind is not to be stopped.
"""

from pyjobset.objects.meta import Manifest
from pyjobset.simulation.checkers import reading
from pyjobset.simulation.faults import LATE, LATE_SECONDS, SLOW_SECONDS
from pyjobset.simulation.store import Change
from pyjobset.simulation.users import JOBSET
from pyjobset.simulation.world import Checker

ON_ITS_WAY_SECONDS = LATE_SECONDS + SLOW_SECONDS + 1.0
"""News of the JobSet may be as late as that, and the write that follows as slow."""


class Places(Checker):
    def __post_init__(self) -> None:
        self._chosen: list[tuple[float, Manifest | None]] = []
        """Since when the JobSet has had which selector."""
        self._misplaced: set[str] = set()
        """The uids of Jobs that were started with another one."""

    def see(self, change: Change) -> None:
        if change.name.plural == "jobsets" and change.type != "DELETED":
            selector = _selector(change.object)
            if change.old is None or not self._chosen or self._chosen[-1][1] != selector:
                self._chosen.append((change.at, selector))
        elif change.name.plural == "jobs" and change.type != "DELETED" and _is_started(change):
            uid = change.object["metadata"]["uid"]
            self._misplaced.discard(uid)
            if not change.actor.endswith(LATE) and _place(change.object) not in self._right(change.at):
                self._misplaced.add(uid)

    def _right(self, at: float) -> list[Manifest | None]:
        """The selectors that a Job may have which is started now: what was chosen last, and what was so just before."""
        ends = [since for since, _ in self._chosen[1:]] + [at]
        return [each for (_, each), end in zip(self._chosen, ends, strict=True) if end >= at - ON_ITS_WAY_SECONDS]

    def end(self) -> None:
        jobset = self.store.get(JOBSET)
        if jobset is None:
            return
        for job in reading.owned(self.store, "jobs"):
            metadata, selector = job["metadata"], _place(job)
            is_wrong = metadata["uid"] in self._misplaced and selector != _selector(jobset)
            if is_wrong and not job["spec"].get("suspend"):
                self.report(f"Job {metadata['name']} runs with {selector}, the JobSet says {_selector(jobset)}")


def _is_started(change: Change) -> bool:
    was_suspended = change.old is None or bool(change.old["spec"].get("suspend"))
    return was_suspended and not change.object["spec"].get("suspend")


def _place(job: Manifest) -> Manifest | None:
    selector: Manifest | None = job["spec"]["template"]["spec"].get("nodeSelector")
    return selector


def _selector(jobset: Manifest) -> Manifest | None:
    template: Manifest = jobset["spec"]["replicatedJobs"][0].get("template") or {}
    selector: Manifest | None = template["spec"]["template"]["spec"].get("nodeSelector") if template else None
    return selector
