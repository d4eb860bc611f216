"""The feature gates, with their defaults and stages, in one table. Names are those of the original controller."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from pyjobset.errors import UsageError


@dataclass(frozen=True, slots=True)
class Gate:
    name: str
    default: bool
    stage: str
    what: str
    locked: bool = False


IN_PLACE_RESTART = "InPlaceRestart"
TLS_OPTIONS = "TLSOptions"
RESTART_JOB = "RestartJob"
ELASTIC_JOBSET = "ElasticJobSet"
EXECUTION_ATTEMPTS_TRACKING = "ExecutionAttemptsTracking"
ACTIVE_DEADLINE_SECONDS = "JobSetActiveDeadlineSeconds"
WORKLOAD_AWARE_SCHEDULING = "JobSetWorkloadAwareSchedulingAPI"
MUTABLE_POD_RESOURCES = "MutablePodResourcesForSuspendedJobSets"

GATES: Mapping[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate(IN_PLACE_RESTART, False, "alpha", "restart strategy InPlaceRestart"),
        Gate(TLS_OPTIONS, True, "GA", "TLS options in the Configuration", locked=True),
        Gate(RESTART_JOB, False, "alpha", "failure policy actions that restart one Job"),
        Gate(ELASTIC_JOBSET, False, "alpha", "parallelism and completions may change while a JobSet runs"),
        Gate(EXECUTION_ATTEMPTS_TRACKING, False, "alpha", "status.executionAttempts"),
        Gate(ACTIVE_DEADLINE_SECONDS, False, "alpha", "spec.activeDeadlineSeconds"),
        Gate(WORKLOAD_AWARE_SCHEDULING, False, "alpha", "spec.scheduling"),
        Gate(MUTABLE_POD_RESOURCES, False, "alpha", "pod resources may change while a JobSet is suspended"),
    )
}

_LIKENESS = 0.5
_NAME_LENGTH_MAX = 64

Features = frozenset[str]
"""The names of the gates that are on."""

DEFAULTS: Features = frozenset(g.name for g in GATES.values() if g.default)


def parse(text: str) -> Features:
    """`A=true,B=false` over the defaults. Raises UsageError for an unknown gate or value."""
    return resolve(chosen(text))


def chosen(text: str) -> dict[str, bool]:
    """`A=true,B=false` as a mapping. Raises UsageError for a value that is neither."""
    found: dict[str, bool] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, value = part.partition("=")
        if value.lower() not in ("true", "false"):
            raise UsageError(
                f"feature gate {part!r}: expected NAME=true or NAME=false", hint=f"for example {name}=true"
            )
        found[name] = value.lower() == "true"
    return found


def resolve(chosen: Mapping[str, bool]) -> Features:
    """The gates that are on when `chosen` overrides the defaults. Raises UsageError for unknown or locked gates."""
    enabled = set(DEFAULTS)
    for name, value in chosen.items():
        gate = GATES.get(name)
        if gate is None:
            raise UsageError(f"unknown feature gate {name!r}", hint=f"{_nearest(name)}known gates: {', '.join(GATES)}")
        if gate.locked and value != gate.default:
            raise UsageError(f"feature gate {name} is locked to {str(gate.default).lower()}")
        (enabled.add if value else enabled.discard)(name)
    return frozenset(enabled)


def _nearest(name: str) -> str:
    by_lower = {gate.lower(): gate for gate in GATES}
    near = get_close_matches(name[:_NAME_LENGTH_MAX].lower(), by_lower, n=1, cutoff=_LIKENESS)
    return f"did you mean {by_lower[near[0]]}? " if near else ""
