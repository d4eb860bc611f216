"""A quorum is what its pods can reach: never above the pods of its Jobs, and the full number while none has ended."""

from pyjobset.simulation.checkers import reading
from pyjobset.simulation.jobs import ENDED
from pyjobset.simulation.users import JOBSET
from pyjobset.simulation.world import Checker


class Quorums(Checker):
    def end(self) -> None:
        """Only then everything that follows something else has followed."""
        jobset = self.store.get(JOBSET)
        if jobset is None or jobset["status"].get("terminalState"):
            return
        for pod_group in reading.owned(self.store, "podgroups"):
            quorum, name = reading.min_count(pod_group), pod_group["metadata"]["name"]
            jobs = [j for j in self.store.of("jobs") if reading.group(j["spec"]["template"]["spec"]) == name]
            pods = [p for p in self.store.of("pods") if reading.group(p["spec"]) == name]
            full = sum(job["spec"]["parallelism"] for job in jobs)
            if quorum is None or not jobs or reading.is_deleted(pod_group):
                continue  # of one that is on its way out nothing can be changed
            if any(not reading.group(job["spec"]["template"]["spec"]) for job in self.store.of("jobs")):
                continue  # made while the cluster had no groups; whether pods wait for them is told by Status
            if self._is_partial(len(jobs)):
                continue  # the rest comes when its turn to start has come
            has_ended = any(pod["status"].get("phase") in ENDED for pod in pods)
            if quorum > full or (quorum < full and not has_ended):
                self.report(f"PodGroup {name} has minCount {quorum}, its Jobs have {full} pods")

    def _is_partial(self, jobs: int) -> bool:
        """Not all Jobs of the JobSet are in this group, or not all are there yet: the startup has an order."""
        jobset = self.store.get(JOBSET)
        assert jobset is not None
        return jobs < sum(int(replicated_job["replicas"]) for replicated_job in jobset["spec"]["replicatedJobs"])
