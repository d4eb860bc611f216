"""The controller dies after each of its effective writes: once, then twice. The end is that of the run without.

The points come from a clean run of each scenario, those of the examples among them. At every point another process
takes over that knows nothing.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from pyjobset.objects import features as gates
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.chooser import Plain
from pyjobset.simulation.ending import ending
from pyjobset.simulation.kubelet import FOREVER, Fate
from pyjobset.simulation.scenario import Scenario, Step
from pyjobset.simulation.story import story
from pyjobset.simulation.world import Outcome
from tests.world.worlds import play, quiet

Record = Callable[[str, object], None]
EXAMPLES = Path(__file__).parents[2] / "examples"
PODS_MAX = 40
"""Larger examples only repeat themselves."""
FAILS_ONCE = (Fate(1.0, "Failed"), Fate(2.0))


def example_scenarios() -> Iterator[pytest.ParameterSet]:
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document and document.get("kind") == "JobSet" and _is_modelled(document["spec"]):
                name = f"{path.parent.name}/{path.stem}"
                yield pytest.param(Scenario(document["spec"], (Step(20.0, "resume"),), (Fate(2.0),)), id=name)


def _is_modelled(spec: Manifest) -> bool:
    """In-place restarts need an agent, devices a driver, exclusive placement webhooks: the model has none of them."""
    text = str(spec)
    jobs = [(rj.get("replicas", 1), rj["template"]["spec"]) for rj in spec["replicatedJobs"]]
    pods = sum(replicas * (job.get("parallelism") or 1) for replicas, job in jobs)
    unmodelled = ("InPlaceRestart", "resourceClaims", "topology", "activeDeadlineSeconds")
    return pods <= PODS_MAX and not any(word in text for word in unmodelled)


def _jobs(names: str = "a", **more: object) -> list[Manifest]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = {
        "parallelism": 2,
        "completions": 2,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": {"spec": pod},
    }
    return [{"name": name, "replicas": 1, "template": {"spec": job}, **more} for name in names]


CLAIM_SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CLAIMS: list[Manifest] = [
    {
        "templates": [{"metadata": {"name": when.lower()}, "spec": CLAIM_SPEC}],
        "retentionPolicy": {"whenDeleted": when},
    }
    for when in ("Delete", "Retain")
]
GANG: Manifest = {"schedulingPolicy": {"gang": {}}}
HAND_MADE = {
    "restart of a gang": Scenario(
        {"replicatedJobs": _jobs("ab"), "scheduling": GANG, "failurePolicy": {"maxRestarts": 2}},
        (Step(20.0, "resume"),),
        FAILS_ONCE,
    ),
    "blocking restart": Scenario(
        {
            "replicatedJobs": _jobs("ab"),
            "failurePolicy": {"maxRestarts": 2, "restartStrategy": "BlockingRecreate"},
        },
        (Step(20.0, "resume"),),
        FAILS_ONCE,
    ),
    "restart of one Job": Scenario(
        {
            "replicatedJobs": _jobs("ab"),
            "scheduling": GANG,
            "failurePolicy": {"maxRestarts": 2, "rules": [{"name": "r", "action": "RestartJob"}]},
        },
        (Step(20.0, "resume"),),
        FAILS_ONCE,
    ),
    "suspended and resumed": Scenario(
        {"replicatedJobs": _jobs("ab"), "scheduling": GANG},
        (Step(4.0, "suspend"), Step(20.0, "resume")),
        (FOREVER,),
    ),
    "deleted and created again": Scenario(
        {"replicatedJobs": _jobs("a"), "scheduling": GANG},
        (Step(4.0, "delete"), Step(8.0, "recreate"), Step(20.0, "resume")),
        (FOREVER,),
    ),
    "with claims, deleted after its end": Scenario(
        {"replicatedJobs": _jobs("ab"), "volumeClaimPolicies": CLAIMS, "ttlSecondsAfterFinished": 3},
        (Step(20.0, "resume"),),
        (Fate(2.0),),
    ),
    "failed at its deadline": Scenario(
        {"replicatedJobs": _jobs("ab"), "scheduling": GANG, "activeDeadlineSeconds": 5},
        (Step(20.0, "resume"),),
        (FOREVER,),
        (gates.ACTIVE_DEADLINE_SECONDS,),
    ),
    "admitted, evicted and admitted elsewhere": Scenario(
        {"replicatedJobs": _jobs("a"), "suspend": True},
        (Step(2.0, "admit"), Step(6.0, "evict"), Step(10.0, "admit elsewhere")),
        (FOREVER,),
        (gates.EXECUTION_ATTEMPTS_TRACKING,),
    ),
    "grown and shrunk": Scenario(
        {"replicatedJobs": _jobs("a"), "scheduling": GANG},
        (Step(4.0, "shrink"), Step(9.0, "grow"), Step(20.0, "resume")),
        (FOREVER,),
    ),
}
SCENARIOS = [*(pytest.param(scenario, id=name) for name, scenario in HAND_MADE.items()), *example_scenarios()]


def run(scenario: Scenario, *crash_at: int) -> Outcome:
    return play(Plain(), frozenset(), given=scenario, crash_at=crash_at)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_crash_after_each_write(scenario: Scenario, record_property: Record) -> None:
    with quiet():
        clean = run(scenario)
        assert not clean.violations, "\n".join(story(clean))
        points = clean.writes[0]
        assert points > 3
        for point in range(1, points + 1):
            _judge(run(scenario, point), clean, (point,))
    record_property("tried", {"crash points": points})


@pytest.mark.parametrize("scenario", [pytest.param(s, id=name) for name, s in HAND_MADE.items()])
def test_a_crash_after_each_write_of_the_successor_too(scenario: Scenario, record_property: Record) -> None:
    """Pairs: all of them where there are few, else each point with every third of its successor's."""
    pairs = 0
    with quiet():
        clean = run(scenario)
        for first in range(1, clean.writes[0] + 1):
            writes = run(scenario, first).writes
            for second in range(1, writes[1] + 1, 3 if writes[1] > 8 else 1):
                pairs += 1
                _judge(run(scenario, first, second), clean, (first, second))
    record_property("tried", {"pairs of crash points": pairs})


def _judge(outcome: Outcome, clean: Outcome, points: tuple[int, ...]) -> None:
    told = "\n".join([f"crash after writes {points}", *story(outcome)])
    assert not outcome.violations, told
    assert outcome.storm.seen["crash"] == len(points), told
    assert ending(outcome.store) == ending(clean.store), told


def test_the_examples_are_among_the_scenarios() -> None:
    assert len(list(example_scenarios())) >= 8
