"""What a scenario may have beyond the small one: time limits, claims, other policies, a queue, another controller.

Asked for after everything else of a scenario, so that one without extras is what it would be without this module. An
extra changes the spec, adds steps of users, or turns a gate on. Several of them meet in one JobSet: that is the point.
"""

from collections.abc import Callable
from dataclasses import replace

from pyjobset.objects import features as gates
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.chooser import Choices
from pyjobset.simulation.kubelet import Fate
from pyjobset.simulation.scenario import Scenario, Step

Extra = Callable[[Choices, Scenario], Scenario]

EXTRAS_MAX = 3
OTHER_CONTROLLER = "example.com/other"
DEADLINES, TTLS = (4, 12, 60), (0, 5)
RECOVERS: tuple[Fate, ...] = (Fate(1.0, "Failed"), Fate(1.0, "Failed"), Fate(2.0))
"""Restarts that do not count go on until it works."""
REASONS = {"onJobFailureReasons": ["BackoffLimitExceeded"]}
OTHER_REASONS = {"onJobFailureReasons": ["DeadlineExceeded", "PodFailurePolicy"]}
RULES: tuple[tuple[Manifest, ...], ...] = (
    ({"action": "RestartJobSetAndIgnoreMaxRestarts"},),
    ({"action": "RestartJobAndIgnoreMaxRestarts"},),
    ({"action": "FailJobSet", **OTHER_REASONS}, {"action": "RestartJob", **REASONS}),
    ({"action": "RestartJob", "targetReplicatedJobs": ["a"]}, {"action": "RestartJobSet"}),
    ({"action": "RestartJobAndIgnoreMaxRestarts", **OTHER_REASONS},),
    ({"action": "FailJobSet", "onJobFailureMessagePatterns": ["no such words"]}, {"action": "RestartJob"}),
)


def with_extras(choices: Choices, scenario: Scenario) -> Scenario:
    for _ in range(choices.up_to(EXTRAS_MAX, "extras")):
        scenario = choices.one_of(EXTRAS, "which extra")(choices, scenario)
    return scenario


def _deadline(choices: Choices, scenario: Scenario) -> Scenario:
    seconds = choices.one_of(DEADLINES, "deadline")
    return _on(_spec(scenario, activeDeadlineSeconds=seconds), gates.ACTIVE_DEADLINE_SECONDS)


def _ttl(choices: Choices, scenario: Scenario) -> Scenario:
    return _spec(scenario, ttlSecondsAfterFinished=choices.one_of(TTLS, "TTL"))


def _attempts(_: Choices, scenario: Scenario) -> Scenario:
    return _on(scenario, gates.EXECUTION_ATTEMPTS_TRACKING)


def _claims(choices: Choices, scenario: Scenario) -> Scenario:
    """One that goes with the JobSet, one that stays, or both."""
    kept = choices.one_of((("Delete",), ("Retain",), ("Delete", "Retain")), "retention")
    policies = [{"templates": [_claim(when)], "retentionPolicy": {"whenDeleted": when}} for when in kept]
    mounts = [{"name": when.lower(), "mountPath": f"/{when}"} for when in kept]
    pod = {"containers": [{"name": "c", "image": "i", "volumeMounts": mounts}]}
    return _spec(scenario, volumeClaimPolicies=policies, replicatedJobs=_with_pods(scenario.spec, pod))


def _claim(name: str) -> Manifest:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name.lower()}, "spec": spec}


def _success(choices: Choices, scenario: Scenario) -> Scenario:
    operator = choices.one_of(("Any", "All"), "operator of success")
    targets = choices.one_of(([], ["a"], ["b"]), "targets of success")
    names = {replicated_job["name"] for replicated_job in scenario.spec["replicatedJobs"]}
    policy: Manifest = {"operator": operator}
    if targets and set(targets) <= names:
        policy["targetReplicatedJobs"] = targets
    return _spec(scenario, successPolicy=policy)


def _rules(choices: Choices, scenario: Scenario) -> Scenario:
    rules = choices.one_of(RULES, "rules")
    strategy = choices.one_of(("Recreate", "BlockingRecreate"), "restart strategy")
    policy = {
        "maxRestarts": choices.one_of((1, 2, 0), "maxRestarts"),
        "restartStrategy": strategy,
        "rules": [{"name": f"rule-{index}", **rule} for index, rule in enumerate(rules)],
    }
    changed = _spec(scenario, failurePolicy=policy)
    return replace(changed, fates=RECOVERS) if scenario.fates[-1].phase == "Failed" else changed


def _coordinator(_: Choices, scenario: Scenario) -> Scenario:
    return _spec(scenario, coordinator={"replicatedJob": "a"})


def _queue(choices: Choices, scenario: Scenario) -> Scenario:
    """Somebody admits it, evicts it and admits it somewhere else, as a queueing controller does: on top of the rest."""
    first = float(1 + choices.up_to(5, "admitted first"))
    pauses = [float(1 + choices.up_to(4, what)) for what in ("then evicted", "then admitted")]
    times = first, first + pauses[0], first + pauses[0] + pauses[1]
    steps = [Step(at, action) for at, action in zip(times, ("admit", "evict", "admit elsewhere"), strict=True)]
    steps = sorted((*scenario.steps[:-1], *steps), key=lambda step: step.at)
    return replace(_spec(scenario, suspend=True), steps=(*steps, scenario.steps[-1]))


def _elsewhere(choices: Choices, scenario: Scenario) -> Scenario:
    """Another controller is in charge. It may say that the JobSet has completed, and does nothing else."""
    managed = _spec(scenario, managedBy=OTHER_CONTROLLER)
    if choices.up_to(1, "the other one completes it"):
        return managed
    return replace(managed, steps=(*scenario.steps, Step(21.0, "complete")))


EXTRAS: tuple[Extra, ...] = (
    _claims,
    _rules,
    _queue,
    _deadline,
    _ttl,
    _success,
    _attempts,
    _coordinator,
    _elsewhere,
)


def _spec(scenario: Scenario, **more: object) -> Scenario:
    return replace(scenario, spec={**scenario.spec, **more})


def _on(scenario: Scenario, gate: str) -> Scenario:
    return replace(scenario, gates=(*scenario.gates, gate))


def _with_pods(spec: Manifest, pod: Manifest) -> list[Manifest]:
    return [with_pod(replicated_job, pod) for replicated_job in spec["replicatedJobs"]]


def with_pod(replicated_job: Manifest, pod: Manifest) -> Manifest:
    """The ReplicatedJob with these fields in the spec of its pods."""
    template = replicated_job["template"]
    job = template["spec"]
    pod_template = {**job["template"], "spec": {**job["template"]["spec"], **pod}}
    return {**replicated_job, "template": {**template, "spec": {**job, "template": pod_template}}}
