"""When the world is still, the status is what the world is: counts, terminal state, and Jobs that should run do."""

from pyjobset.objects import labels
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.checkers import reading
from pyjobset.simulation.users import JOBSET
from pyjobset.simulation.world import Checker


class Status(Checker):
    def end(self) -> None:
        jobset = self.store.get(JOBSET)
        if jobset is None or not reading.is_ours(jobset):
            return
        status = jobset["status"]
        terminal = status.get("terminalState") or ""
        if not terminal and jobset["spec"].get("suspend"):
            self._check_suspended()
        elif not terminal:
            self._check_running(jobset)
        else:
            self._check_finished()
        if terminal and not reading.is_true(jobset, terminal):
            self.report(f"terminalState {terminal} without its condition")
        for entry in status.get("replicatedJobsStatus") or ():
            seen = self._counts(entry["name"], status.get("restarts") or 0)
            told = {key: entry[key] for key in seen}
            if told != seen:
                self.report(f"counts of {entry['name']} are {told}, the Jobs say {seen}")

    def _counts(self, name: str, restarts: int) -> Manifest:
        jobs = [
            job
            for job in self.store.of("jobs")
            if reading.label(job, labels.REPLICATED_JOB_NAME) == name and reading.attempt(job)[0] == restarts
        ]
        return {
            "succeeded": sum(reading.is_true(job, "Complete") for job in jobs),
            "failed": sum(reading.is_true(job, "Failed") for job in jobs),
            "active": sum((job["status"].get("active") or 0) > 0 for job in jobs if not _is_over(job)),
            "suspended": sum(bool(job["spec"].get("suspend")) for job in jobs if not _is_over(job)),
        }

    def _check_suspended(self) -> None:
        for job in self.store.of("jobs"):
            if not job["spec"].get("suspend") and not reading.is_true(job, "Complete"):
                self.report(f"Job {job['metadata']['name']} runs in a suspended JobSet")
        for plural in ("workloads", "podgroups"):
            for obj in reading.owned(self.store, plural):
                self.report(f"a suspended JobSet holds {plural} {obj['metadata']['name']}")

    def _check_running(self, jobset: Manifest) -> None:
        """It hangs for good only where its pods do: some pod runs for ever. Or where somebody deleted a claim that pods
        which have ended hold: no others can be made before those are gone, and they are not ours to delete."""
        if any(reading.is_deleted(claim) for claim in self.store.of("persistentvolumeclaims")):
            return
        pods = [pod for pod in self.store.of("pods") if reading.is_live_pod(pod)]
        if not any(pod["spec"].get("nodeName") for pod in pods):
            self.report("an unfinished JobSet has no running pod")
        for pod in pods:
            if not pod["spec"].get("nodeName"):
                self.report(f"{pod['metadata']['name']} waits for ever")
        for job in () if reading.has_order(jobset["spec"]) else self.store.of("jobs"):
            if job["spec"].get("suspend") and not _is_over(job):
                self.report(f"Job {job['metadata']['name']} stays suspended in a JobSet that is not")
        if (jobset["spec"].get("scheduling") is not None) and not list(reading.owned(self.store, "podgroups")):
            self.report("a running JobSet with spec.scheduling has no PodGroup")

    def _check_finished(self) -> None:
        for pod in self.store.of("pods"):
            if reading.is_live_pod(pod):
                self.report(f"{pod['metadata']['name']} runs after the end")
        for plural in ("workloads", "podgroups"):
            for obj in reading.owned(self.store, plural):
                self.report(f"a finished JobSet holds {plural} {obj['metadata']['name']}")


def _is_over(job: Manifest) -> bool:
    return reading.is_true(job, "Complete") or reading.is_true(job, "Failed")
