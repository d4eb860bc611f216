"""Time limits: a JobSet fails at its deadline and not before, and after its TTL it is gone. A running one has none."""

from datetime import datetime, timedelta
from math import inf

from pyjobset.objects import conditions as words
from pyjobset.objects.meta import Manifest
from pyjobset.simulation import clock
from pyjobset.simulation.checkers import reading
from pyjobset.simulation.store import Change
from pyjobset.simulation.users import JOBSET
from pyjobset.simulation.world import STILL_SECONDS, Checker


class Limits(Checker):
    def __post_init__(self) -> None:
        self._at = 0.0
        """When something changed last."""

    def see(self, change: Change) -> None:
        self._at = change.at
        if change.name.plural != "jobsets" or change.old is None:
            return
        is_asked_to_go = reading.is_deleted(change.object) and not reading.is_deleted(change.old)
        if is_asked_to_go and change.actor.startswith("controller"):
            self._judge_end(change.old)
        elif _reason(change.object) == words.DEADLINE_EXCEEDED != _reason(change.old):
            self._judge_failure(change.old, change.object)

    def _judge_end(self, jobset: Manifest) -> None:
        if "ttlSecondsAfterFinished" not in jobset["spec"] or not _finished_at(jobset):
            self.report("a JobSet that has not finished, or has no TTL, is deleted by the controller")

    def _judge_failure(self, old: Manifest, new: Manifest) -> None:
        """By what the controller itself wrote: its clock may be wrong."""
        started, seconds = old["status"].get("startTime"), new["spec"].get("activeDeadlineSeconds")
        if started is None or seconds is None:
            self.report("a JobSet without a deadline, or that had not started, fails at its deadline")
            return
        ran = _passed(started, datetime.fromisoformat(_finished_at(new)))
        if ran < seconds:
            self.report(f"a JobSet fails at its deadline of {seconds} s after {ran:g} s")

    def rest(self) -> None:
        """Times may be in the future: they were written when the controller's clock was wrong."""
        jobset = self.store.get(JOBSET)
        if jobset is None:
            return
        spec, finished_at = jobset["spec"], _finished_at(jobset)
        now = clock.EPOCH + timedelta(seconds=self._at + STILL_SECONDS)
        if finished_at:
            if _passed(finished_at, now) > spec.get("ttlSecondsAfterFinished", inf):
                self.report("a finished JobSet outlives its TTL")
        elif reading.is_ours(jobset) and not spec.get("suspend"):
            started = jobset["status"].get("startTime") or now.isoformat()
            if _passed(started, now) > spec.get("activeDeadlineSeconds", inf):
                self.report("a JobSet runs on after its deadline")


def _passed(since: str, until: datetime) -> float:
    return (until - datetime.fromisoformat(since)).total_seconds()


def _finished_at(jobset: Manifest) -> str:
    """Empty where it has not."""
    conditions = jobset["status"].get("conditions") or ()
    ends = (c for c in conditions if c["type"] in (words.COMPLETED, words.FAILED) and c["status"] == "True")
    return next((str(c["lastTransitionTime"]) for c in ends), "")


def _reason(jobset: Manifest) -> str:
    conditions = jobset["status"].get("conditions") or ()
    return next((str(c["reason"]) for c in conditions if c["type"] == words.FAILED and c["status"] == "True"), "")
