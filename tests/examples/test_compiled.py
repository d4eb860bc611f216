"""Every example passes the rules and compiles to what the documentation of declarative scheduling says of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyjobset.cli.files import read
from pyjobset.compiler.jobset import Compiled, compile_jobset
from pyjobset.objects import features as gates
from pyjobset.objects import labels
from pyjobset.objects.jobset import JobSet
from pyjobset.rules.validation import check, validate_update, warnings

EXAMPLES = Path(__file__).parents[2] / "examples" / "scheduling"
FEATURES = gates.resolve({gates.WORKLOAD_AWARE_SCHEDULING: True, gates.ELASTIC_JOBSET: True})
RACK = "topology.kubernetes.io/rack"
SLICE = "cloud.google.com/gke-tpu-slice"


@dataclass(frozen=True)
class Group:
    """A PodGroup. `jobs` are the child Jobs that join it, without the JobSet's name."""

    min_count: int | None
    jobs: tuple[str, ...]
    topology: str | None = None
    disruption: str | None = None
    claim: str | None = None
    priority: str | None = None


ALL = "all"
WORKERS = ("worker-0", "worker-1")
EXPECTED: dict[str, dict[str, list[Group]]] = {
    "gang-scheduling": {"gang-training": [Group(5, ("driver-0", "workers-0", "workers-1"), disruption=ALL)]},
    "single-gang": {"single-gang": [Group(8, ("workers-0", "workers-1"))]},
    "no-scheduling-baseline": {"no-sched-baseline": []},
    "per-rj-independent": {"per-rj-independent": [Group(1, ("launcher-0",)), Group(4, WORKERS)]},
    "per-rj-grouped": {"per-rj-grouped": [Group(5, ("launcher-0", *WORKERS), disruption=ALL)]},
    "per-ij-job-independent": {
        "per-ij-job-independent": [
            Group(1, ("launcher-0",)),
            Group(2, ("worker-0",), disruption=ALL),
            Group(2, ("worker-1",), disruption=ALL),
        ]
    },
    "topology-constrained": {
        "topo-training": [Group(None, ("driver-0",)), Group(4, ("workers-0", "workers-1"), topology=RACK)]
    },
    "tpu-topology-gang": {"tpu-multislice": [Group(4, ("slice-0", "slice-1"), topology=SLICE, disruption=ALL)]},
    "sequenced-startup-gang": {"sequenced-gang": [Group(1, ("leader-0",)), Group(2, ("worker-0",))]},
    "suspend-resume": {"gang-suspend": [Group(2, ("workers-0",))]},
    "elastic-gang": {"gang-elastic": [Group(2, ("workers-0",), disruption=ALL)]},
    "elastic-gang-scale-patch": {"gang-elastic": [Group(4, ("workers-0",), disruption=ALL)]},
    "dra-resource-claims": {"dra-shared-claim": [Group(2, ("worker-0",), claim="imex-channel")]},
    "preemption": {
        "preempt-low": [Group(8, ("workers-0",), disruption=ALL, priority="batch-low")],
        "preempt-high": [Group(4, ("workers-0",), disruption=ALL, priority="batch-high")],
    },
}


def jobsets(name: str) -> list[JobSet]:
    found, problems = read([str(EXAMPLES / f"{name}.yaml")])
    assert not problems
    return [check(one.manifest, FEATURES) for one in found if one.is_jobset]


def groups(compiled: Compiled, prefix: str) -> list[Group]:
    return [_group(group, compiled, prefix) for group in compiled.pod_groups]


def _group(group: dict[str, Any], compiled: Compiled, prefix: str) -> Group:
    spec, name = group["spec"], group["metadata"]["name"]
    policy = spec["schedulingPolicy"]
    members = [job["metadata"]["name"] for job in compiled.jobs if pod_group_of(job) == name]
    return Group(
        min_count=policy["gang"]["minCount"] if "gang" in policy else None,
        jobs=tuple(member.removeprefix(f"{prefix}-") for member in members),
        topology=next((t["key"] for t in spec.get("schedulingConstraints", {}).get("topology", [])), None),
        disruption=next(iter(spec.get("disruptionMode", {})), None),
        claim=next((claim["name"] for claim in spec.get("resourceClaims", [])), None),
        priority=spec.get("priorityClassName"),
    )


def pod_group_of(job: dict[str, Any]) -> str | None:
    group: dict[str, str] = job["spec"]["template"]["spec"].get("schedulingGroup", {})
    return group.get("podGroupName")


def test_every_example_has_an_expectation() -> None:
    assert sorted(EXPECTED) == sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


def test_the_readme_names_every_example() -> None:
    readme = (EXAMPLES / "README.md").read_text()
    assert [name for name in EXPECTED if f"`{name}.yaml`" not in readme] == []


@pytest.mark.parametrize("name", EXPECTED)
def test_it_compiles_to_what_is_said_of_it(name: str) -> None:
    compiled = {j.metadata.name: compile_jobset(j, FEATURES) for j in jobsets(name)}
    assert {prefix: groups(c, prefix) for prefix, c in compiled.items()} == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_jobs_name_their_template(name: str) -> None:
    """One template a PodGroup, in one Workload; every Job carries the annotation, or none does."""
    for jobset in jobsets(name):
        compiled = compile_jobset(jobset, FEATURES)
        templates = [t["name"] for t in compiled.workload["spec"]["podGroupTemplates"]] if compiled.workload else []
        by_group = {g["metadata"]["name"]: g["spec"]["workloadRef"]["templateName"] for g in compiled.pod_groups}
        assert list(by_group.values()) == templates
        for job in compiled.jobs:
            annotation = job["metadata"]["annotations"].get(labels.GROUP_TEMPLATE_NAME)
            assert annotation == by_group.get(pod_group_of(job) or "")


@pytest.mark.parametrize("name", EXPECTED)
def test_nothing_to_warn_of(name: str) -> None:
    assert [warnings(jobset, FEATURES) for jobset in jobsets(name)] == [()] * len(EXPECTED[name])


def test_the_scale_patch_is_an_update_that_is_allowed() -> None:
    (old,), (new,) = jobsets("elastic-gang"), jobsets("elastic-gang-scale-patch")
    assert validate_update(old, new, FEATURES) == ()
    assert old.spec.scheduling == new.spec.scheduling


@pytest.mark.parametrize("name", EXPECTED)
def test_the_first_lines_say_what_to_expect_and_where_to_look(name: str) -> None:
    comment = [line for line in (EXAMPLES / f"{name}.yaml").read_text().splitlines() if line.startswith("#")]
    assert any("Expect:" in line for line in comment) or name.endswith("-patch")
    assert any(line.startswith("#   kubectl ") for line in comment)
