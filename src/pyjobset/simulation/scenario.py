"""What happens in a world: the JobSet, what its users do and when, how its pods end. Made of choices, printed as data.

Nothing here depends on faults: the same scenario can run without them, and must end the same way where its users do
nothing whose effect hangs on the moment.
"""

from dataclasses import dataclass
from typing import Any

from pyjobset.objects import labels
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.chooser import Choices
from pyjobset.simulation.jobs import INDEX
from pyjobset.simulation.kubelet import FOREVER, Fate

SCHEDULING: tuple[Manifest | None, ...] = (None, {"schedulingPolicy": {"gang": {}}}, {"perJob": True})
ACTIONS = ("suspend", "resume", "delete", "recreate", "grow", "shrink")
FATES = (
    (Fate(2.0),),
    (Fate(1.0, "Failed"), Fate(2.0)),
    (Fate(1.0, "Failed"),),
    (FOREVER,),
)
"""By attempt, the last one again and again: how pod 0 of Job 0 ends. The others succeed later, or never end with it."""
NAME = "js"
NAMESPACE = "ns"


@dataclass(frozen=True)
class Step:
    at: float
    action: str


@dataclass(frozen=True)
class Scenario:
    spec: Manifest
    steps: tuple[Step, ...]
    fates: tuple[Fate, ...]
    gates: tuple[str, ...] = ()
    """Feature gates that are on besides those of every world."""

    @property
    def jobset(self) -> Manifest:
        return {"metadata": {"name": NAME}, "spec": self.spec}

    def fate(self, pod: Manifest) -> Fate:
        pod_labels = pod["metadata"]["labels"]
        attempt = int(pod_labels[labels.RESTART_ATTEMPT]) + int(pod_labels.get(labels.JOB_RESTART_ATTEMPT) or 0)
        mine = self.fates[min(attempt, len(self.fates) - 1)]
        is_first = pod_labels[labels.JOB_GLOBAL_INDEX] == "0" and pod["metadata"]["annotations"][INDEX] == "0"
        if is_first or mine is FOREVER:
            return mine
        return Fate(3.0) if mine.phase == "Succeeded" else Fate(8.0)


def scenario(choices: Choices) -> Scenario:
    """Small on purpose: a fault that needs more than two of something is rare, and small worlds are quick."""
    return Scenario(_spec(choices), _steps(choices), choices.one_of(FATES, "how the first pod ends"))


def _spec(choices: Choices) -> Manifest:
    names = ["a", "b"][: 1 + choices.up_to(1, "ReplicatedJobs")]
    order = choices.one_of(("", "dependsOn", "InOrder"), "order of startup") if len(names) > 1 else ""
    replicated_jobs = [_replicated_job(choices, name) for name in names]
    if order == "dependsOn":
        status = choices.one_of(("Ready", "Complete"), "what is waited for")
        replicated_jobs[1]["dependsOn"] = [{"name": "a", "status": status}]
    spec: Manifest = {"replicatedJobs": replicated_jobs}
    if order == "InOrder":
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    scheduling = choices.one_of(SCHEDULING, "scheduling")
    if scheduling is not None and "perJob" in scheduling:
        entries = [{"targetReplicatedJobs": [n], "job": {"schedulingPolicy": {"gang": {}}}} for n in names]
        spec["scheduling"] = {"replicatedJobs": entries}
    elif scheduling is not None:
        spec["scheduling"] = {} if order else scheduling
    action = choices.one_of(("", "RestartJobSet", "RestartJob", "FailJobSet"), "failure policy")
    if action:
        strategy = choices.one_of(("Recreate", "BlockingRecreate"), "restart strategy")
        rules = [{"name": "rule", "action": action}]
        spec["failurePolicy"] = {"maxRestarts": 1, "restartStrategy": strategy, "rules": rules}
    if choices.happens(20, "starts suspended"):
        spec["suspend"] = True
    return spec


def _replicated_job(choices: Choices, name: str) -> dict[str, Any]:
    pods = 1 + choices.up_to(1, "pods of a Job")
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "backoffLimit": 0}
    template = {"spec": {**job, "template": {"spec": pod}}}
    return {"name": name, "replicas": 1 + choices.up_to(1, "replicas"), "template": template}


def _steps(choices: Choices) -> tuple[Step, ...]:
    """Of the user. Mostly a JobSet that is suspended is resumed in the end: a world should come to its end."""
    count = choices.up_to(3, "steps")
    steps = [Step(float(1 + choices.up_to(9, "when")), choices.one_of(ACTIONS, "action")) for _ in range(count)]
    last = "suspend" if choices.happens(10, "ends suspended") else "resume"
    return (*sorted(steps, key=lambda step: step.at), Step(20.0, last))
