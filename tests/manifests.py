"""A small valid JobSet as plain values, changes of it by the paths of fields, and cases of admission rules."""

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pyjobset.errors import InvalidSpec, Problem
from pyjobset.objects import features as gates
from pyjobset.objects.meta import Manifest
from pyjobset.rules.validation import check

ALL_GATES = frozenset(gates.GATES)

ABSENT: Any = object()
"""As a value: the field is taken away."""

_STEP = re.compile(r"\[(\d+)\]|\[([^\]]+)\]|([^.\[\]]+)")


def job_template(pods: int) -> Manifest:
    pod = {"restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "i"}]}
    return {
        "spec": {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": {"spec": pod}},
    }


JOBSET: Manifest = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "js", "namespace": "default"},
    "spec": {
        "replicatedJobs": [
            {"name": "driver", "replicas": 1, "template": job_template(1)},
            {"name": "workers", "replicas": 2, "template": job_template(2)},
        ],
    },
}


def edited(manifest: Manifest, edits: Mapping[str, Any]) -> Any:
    """A copy with each path set to its value. What is missing on the way is made; index n of n items appends one."""
    result: Any = copy.deepcopy(manifest)
    for path, value in edits.items():
        if not path:
            result = value
            continue
        steps = [int(index) if index else key or name for index, key, name in _STEP.findall(path)]
        target = result
        for step, following in pairwise(steps):
            empty: Any = [] if isinstance(following, int) else {}
            if isinstance(target, list) and step == len(target):
                target.append(empty)
            elif isinstance(target, dict):
                target.setdefault(step, empty)
            target = target[step]
        last = steps[-1]
        if value is ABSENT:
            target.pop(last, None)
        elif isinstance(target, list) and last == len(target):
            target.append(copy.deepcopy(value))
        else:
            target[last] = copy.deepcopy(value)
    return result


Edits = Mapping[str, Any]

DRIVER, WORKERS = "spec.replicatedJobs[0]", "spec.replicatedJobs[1]"
DRIVER_POD, WORKERS_POD = f"{DRIVER}.template.spec.template.spec", f"{WORKERS}.template.spec.template.spec"
ENTRIES = "spec.scheduling.replicatedJobs"
RULE = "spec.failurePolicy.rules[0]"
CLAIM = "spec.volumeClaimPolicies[0].templates[0]"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"

GANG, BASIC = {"gang": {}}, {"basic": {}}
L63 = "a" * 63


def entry(*targets: str, **fields: Any) -> dict[str, Any]:
    return {"targetReplicatedJobs": list(targets), **fields}


def jobs(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "template": job_template(1)} for name in names]


def by_job(**fields: Any) -> Edits:
    """The workers' Jobs are groups of their own, the driver is not."""
    return {ENTRIES: [entry("driver"), entry("workers", job=fields)]}


def mounted(name: str = "data") -> Edits:
    return {
        CLAIM: {"metadata": {"name": name}},
        f"{WORKERS_POD}.containers[0].volumeMounts": [{"name": name, "mountPath": "/v"}],
    }


@dataclass(frozen=True)
class Case:
    """`bad` breaks the rule at `path` and nothing else; `good` breaks none. Both are edits of JOBSET."""

    code: str
    path: str
    bad: Edits
    good: Edits
    old: Edits = field(default_factory=dict)
    """Of rules about changes: the stored JobSet, to which bad and good are applied."""
    off: frozenset[str] = frozenset()
    """Gates that are off for bad."""

    def __str__(self) -> str:
        return f"{self.code} {self.path}"


def seen(problems: Iterable[Problem]) -> list[tuple[str, str]]:
    return [(problem.code, problem.path) for problem in problems]


def problems_of_create(edits: Edits, features: gates.Features) -> tuple[Problem, ...]:
    try:
        check(edited(JOBSET, edits), features)
    except InvalidSpec as invalid:
        return invalid.problems
    return ()
