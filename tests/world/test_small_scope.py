"""Every world of a small scope: a gang of two pods, and at most one fault of each kind, at every place where it can be.

What comes to rest must have ended as it does without the fault. A few kinds also come twice.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping

import pytest

from pyjobset.simulation import faults, world
from pyjobset.simulation.checkers.endings import OF_OTHERS, differences
from pyjobset.simulation.chooser import Plain, exhaustive
from pyjobset.simulation.ending import ending
from pyjobset.simulation.kubelet import Fate
from pyjobset.simulation.scenario import Scenario
from pyjobset.simulation.story import story
from tests.world.worlds import play, quiet

CONTAINER = {"name": "c", "image": "i"}
POD = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
JOB = {"parallelism": 1, "completions": 1, "completionMode": "Indexed", "backoffLimit": 0, "template": POD}
GANG = {
    "replicatedJobs": [{"name": "a", "replicas": 2, "template": {"spec": JOB}}],
    "scheduling": {"schedulingPolicy": {"gang": {}}},
    "failurePolicy": {"maxRestarts": 1},
}
RUNS = Scenario(GANG, (), (Fate(2.0),))
RESTARTS = Scenario(GANG, (), (Fate(1.0, "Failed"), Fate(2.0)))
ASIDE = frozenset(faults.ASIDES) - {faults.HANDOVER}
"""What happens once a second."""
ASIDE_SECONDS = 9.0
"""Of a storm. All is over by then; what comes later finds nothing else."""
OF_REQUESTS = (*faults.OF_REQUESTS, faults.CRASH)


def bounds(most: int) -> Mapping[str, int]:
    """Of what may happen. A long quiet time is for the other worlds."""
    return {faults.FAULT: most, "does the controller crash": most, "a long quiet time": 0, "is the end compared": 0}


@pytest.mark.parametrize(
    ("scenario", "kinds", "most"),
    [
        *(pytest.param(RUNS, [kind], 1, id=f"one {kind}") for kind in faults.KINDS),
        *(pytest.param(RESTARTS, [kind], 1, id=f"one {kind}, and a restart") for kind in OF_REQUESTS),
        *(pytest.param(RUNS, [kind], 2, id=f"two of {kind}") for kind in (faults.LOST_REPLY, faults.CONFLICT)),
        pytest.param(RUNS, [faults.LOST_REPLY, faults.CRASH], 1, id="a lost-reply and a crash"),
    ],
)
def test_every_world(
    scenario: Scenario,
    kinds: Collection[str],
    most: int,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    seen: Counter[int] = Counter()
    if ASIDE.intersection(kinds):
        monkeypatch.setattr(world, "STORM_SECONDS", ASIDE_SECONDS)
    with quiet():
        clean = ending(play(Plain(), frozenset(), given=scenario).store)
        for chooser in exhaustive(bounds(most)):
            outcome = play(chooser, frozenset(kinds), given=scenario)
            seen[outcome.storm.seen.total()] += 1
            if not OF_OTHERS.intersection(kinds):
                outcome.violations += differences(ending(outcome.store), clean)
            assert not outcome.violations, "\n".join(story(outcome))
    record_property("tried", {"worlds of a small scope": seen.total()})
    assert set(seen) == set(range(most * len(kinds) + 1))
    assert seen[1] >= 8
