"""Feature gates: what a text or a mapping switches on, and what is refused."""

import pytest

from pyjobset.errors import UsageError
from pyjobset.objects import features


@pytest.mark.parametrize(
    ("text", "switched"),
    [
        ("", set()),
        (" , ", set()),
        ("RestartJob=true", {"RestartJob"}),
        (" RestartJob=TRUE , ElasticJobSet=True", {"RestartJob", "ElasticJobSet"}),
        ("RestartJob=true,RestartJob=false", set()),
        ("RestartJob=false,RestartJob=true", {"RestartJob"}),
        ("TLSOptions=true", set()),
        ("JobSetWorkloadAwareSchedulingAPI=true", {"JobSetWorkloadAwareSchedulingAPI"}),
    ],
)
def test_a_text_switches_gates_on_over_the_defaults(text: str, switched: set[str]) -> None:
    assert features.parse(text) == {"TLSOptions"} | switched


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("RestartJob", "'RestartJob'", "RestartJob=true"),
        ("RestartJob=1", "'RestartJob=1'", "RestartJob=true"),
        ("RestartJob=", "'RestartJob='", "RestartJob=true"),
        ("=true", "''", "known gates"),
        ("RestartJobs=true", "'RestartJobs'", "did you mean RestartJob?"),
        ("restartjob=true", "'restartjob'", "did you mean RestartJob?"),
        ("inplace=true", "'inplace'", "did you mean InPlaceRestart? known gates: InPlaceRestart, TLSOptions, "),
        ("WorkloadAwareScheduling=true", "'Work", "did you mean JobSetWorkloadAwareSchedulingAPI?"),
        ("Nonsense=true", "'Nonsense'", "known gates: InPlaceRestart"),
        ("TLSOptions=false", "TLSOptions is locked to true", ""),
    ],
)
def test_a_text_that_cannot_be_meant_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        features.parse(text)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_mapping_can_switch_a_default_off(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = features.Gate("ByDefault", True, "beta", "a gate that is on")
    monkeypatch.setattr(features, "GATES", {gate.name: gate})
    monkeypatch.setattr(features, "DEFAULTS", frozenset({gate.name}))
    assert features.resolve({}) == {"ByDefault"}
    assert features.resolve({"ByDefault": False}) == frozenset()


def test_the_gates_of_the_original_controller_are_known() -> None:
    assert {name: gate.default for name, gate in features.GATES.items()} == {
        "InPlaceRestart": False,
        "TLSOptions": True,
        "RestartJob": False,
        "ElasticJobSet": False,
        "ExecutionAttemptsTracking": False,
        "JobSetActiveDeadlineSeconds": False,
        "JobSetWorkloadAwareSchedulingAPI": False,
        "MutablePodResourcesForSuspendedJobSets": False,
    }
