"""In the end there is nothing whose owner is gone, and nothing of the JobSet that its spec does not ask for."""

from pyjobset.simulation.checkers import reading
from pyjobset.simulation.users import JOBSET
from pyjobset.simulation.world import Checker

CHILDREN = ("jobs", "services", "workloads", "podgroups", "persistentvolumeclaims", "pods")


class Orphans(Checker):
    def end(self) -> None:
        jobset = self.store.get(JOBSET)
        for plural in CHILDREN:
            for obj in self.store.of(plural):
                owner = reading.owner(obj)
                if owner and self.store.with_uid(owner) is None:
                    self.report(f"{plural} {obj['metadata']['name']} has lost its owner")
        if jobset is None:
            return
        expected = {
            f"{jobset['metadata']['name']}-{replicated_job['name']}-{index}"
            for replicated_job in jobset["spec"]["replicatedJobs"]
            for index in range(replicated_job["replicas"])
        }
        for job in self.store.of("jobs"):
            if job["metadata"]["name"] not in expected:
                self.report(f"Job {job['metadata']['name']} is not in the spec")
