"""What the controller is given to do: named sets of JobSets, and which objects must come of them.

Built by `run.py` from sizes, used by `trial.py`. The bodies for the bare loop are those that the controller writes:
both come out of `pyjobset.compiler`. Nothing here talks to a server.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import convert

from pyjobset.compiler.jobset import compile_jobset
from pyjobset.objects.features import WORKLOAD_AWARE_SCHEDULING
from pyjobset.objects.jobset import API_VERSION, KIND, JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import JOBS, POD_GROUPS, SERVICES, WORKLOADS, Resource

FEATURES = frozenset({WORKLOAD_AWARE_SCHEDULING})
CHILDREN: Mapping[str, Resource[Any]] = {r.kind: r for r in (WORKLOADS, POD_GROUPS, SERVICES, JOBS)}


@dataclass(frozen=True, slots=True)
class Workload:
    """`jobsets` equal JobSets. The targets are the most that we want to need; None: not defined for this work."""

    name: str
    what: str
    jobsets: int
    replicated_jobs: int
    replicas: int
    gang: bool = False
    restart_strategy: str = ""
    """Not empty: what is measured is a restart of the JobSets, after their first Jobs are there."""
    cpu_ratio_target: float | None = None
    cpu_ratio_target_full: float | None = None
    loop_ratio_target: float | None = None

    @property
    def jobs(self) -> int:
        return self.jobsets * self.replicated_jobs * self.replicas

    def manifests(self, namespace: str) -> list[Manifest]:
        """The JobSets to create."""
        return [self._manifest(namespace, f"{self.name}-{i}") for i in range(self.jobsets)]

    def children(self, namespace: str) -> list[Manifest]:
        """Every object that the controller creates for `manifests`, in its order JobSet by JobSet."""
        return [child for jobset in self.manifests(namespace) for child in _compiled(jobset)]

    def expected(self) -> Counter[str]:
        """How many objects of which kind there are in the end."""
        one = Counter(str(child["kind"]) for child in _compiled(self._manifest("any", "any")))
        return Counter({kind: count * self.jobsets for kind, count in one.items()})

    def _manifest(self, namespace: str, name: str) -> Manifest:
        groups = [
            {"name": f"group-{i}", "replicas": self.replicas, "template": _job_template()}
            for i in range(self.replicated_jobs)
        ]
        scheduling: Manifest = {"scheduling": {"schedulingPolicy": {"gang": {}}}} if self.gang else {}
        strategy = self.restart_strategy
        policy: Manifest = {"failurePolicy": {"maxRestarts": 9, "restartStrategy": strategy}} if strategy else {}
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"replicatedJobs": groups, **scheduling, **policy},
        }


def standard(scale: float = 1.0) -> Sequence[Workload]:
    """The works that we keep figures of. A smaller scale is for a quick look: its ratios say less."""
    sets, jobs = max(1, round(200 * scale)), max(1, round(1000 * scale))
    many = [
        Workload("a", f"{sets} JobSets of 2 x 2 Jobs", sets, 2, 2, cpu_ratio_target=0.22),
        many_jobs("b", jobs),
    ]
    restarts = [
        Workload(
            name, f"{strategy} of {jobs // 2:,} Jobs", 1, 1, jobs // 2, restart_strategy=strategy, cpu_ratio_target=0.20
        )
        for name, strategy in (("c", "Recreate"), ("c2", "BlockingRecreate"))
    ]
    gangs = Workload("d", f"{sets} gang JobSets of 2 x 2 Jobs", sets, 2, 2, gang=True, cpu_ratio_target=0.22)
    return (*many, *restarts, gangs)


def many_jobs(name: str, jobs: int) -> Workload:
    return Workload(
        name,
        f"one JobSet of {jobs:,} Jobs",
        jobsets=1,
        replicated_jobs=1,
        replicas=jobs,
        cpu_ratio_target=0.18,
        cpu_ratio_target_full=0.10,
        loop_ratio_target=1.15,
    )


def _compiled(manifest: Manifest) -> list[Manifest]:
    uid = "00000000-0000-4000-8000-000000000000"
    jobset = convert({**manifest, "metadata": {**manifest["metadata"], "uid": uid}}, JobSet)
    return list(compile_jobset(jobset, FEATURES))


def _job_template() -> Manifest:
    """One small pod that never ends."""
    container = {
        "name": "worker",
        "image": "busybox:1.37",
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    return {"spec": {"parallelism": 1, "completions": 1, "template": {"spec": {"containers": [container]}}}}
