"""What is always true of the rules: hostile input ends in InvalidSpec, what is admitted compiles to legal objects."""

import copy
import re
from collections.abc import Iterator
from datetime import date
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pyjobset.compiler.jobset import compile_jobset
from pyjobset.compiler.scheduling import compile_scheduling
from pyjobset.errors import InvalidSpec, Problem
from pyjobset.objects import names
from pyjobset.objects.features import GATES
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.scheduling import TEMPLATES_MAX
from pyjobset.rules.defaults import with_defaults
from pyjobset.rules.difference import differences
from pyjobset.rules.parse import parse, read
from pyjobset.rules.patterns import why_not
from pyjobset.rules.registry import RULES
from pyjobset.rules.validation import check, validate_create, validate_update, warnings
from tests.manifests import ALL_GATES, JOBSET, edited, job_template

FEATURES = st.frozensets(st.sampled_from(sorted(GATES)))

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**31, 2**63, 10**400, -1, 3.0, 1e300])
    | st.floats()
    | st.text(st.characters(codec=None), max_size=20)
    | st.sampled_from(["", "a", "driver", "workers", "Ready", "All", "(?=x)", "a\x1b[31m", "a/b/c", "A" * 70])
    | st.sampled_from([b"x", date(2026, 1, 1), {1, 2}])
)
FIELDS = st.sampled_from(
    re.findall(
        r"\w+",
        """metadata name labels spec replicatedJobs replicas template scheduling schedulingPolicy gang minCount job
        network targetReplicatedJobs containers failurePolicy rules action parallelism completions coordinator""",
    )
)
KEYS = FIELDS | st.text(max_size=5) | st.integers() | st.none()
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=2).map(tuple) | st.dictionaries(KEYS, inner),
    max_leaves=15,
)

RICH = edited(
    JOBSET,
    {
        "metadata.labels": {"a": "b"},
        "metadata.annotations": {"a": "b"},
        "spec.network.subdomain": "s",
        "spec.successPolicy": {"operator": "Any", "targetReplicatedJobs": ["workers"]},
        "spec.failurePolicy": {
            "maxRestarts": 3,
            "rules": [
                {"action": "RestartJob", "onJobFailureMessagePatterns": ["x"], "targetReplicatedJobs": ["driver"]}
            ],
        },
        "spec.coordinator": {"replicatedJob": "driver"},
        "spec.replicatedJobs[0].template.spec.template.spec.containers[0].volumeMounts": [
            {"name": "v", "mountPath": "/v"}
        ],
        "spec.replicatedJobs[1].dependsOn": [{"name": "driver", "status": "Ready"}],
        "spec.replicatedJobs[1].template.spec.template.spec.resourceClaims": [{"name": "c", "resourceClaimName": "d"}],
        "spec.volumeClaimPolicies": [{"templates": [{"metadata": {"name": "v"}}]}],
        "spec.scheduling.replicatedJobs": [
            {"targetReplicatedJobs": ["driver"], "schedulingPolicy": {"basic": {}}},
            {
                "targetReplicatedJobs": ["workers"],
                "job": {
                    "schedulingPolicy": {"gang": {"minCount": 1}},
                    "schedulingConstraints": {"topology": [{"key": "rack"}]},
                    "disruptionMode": {"all": {}},
                    "resourceClaims": [{"name": "c", "resourceClaimName": "d"}],
                },
            },
        ],
    },
)


def test_the_manifest_that_is_mutated_is_valid() -> None:
    assert check(RICH, ALL_GATES)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a value."""
    for key, item in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from places(item)


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A valid manifest with something lost, replaced, doubled or added in up to three places."""
    manifest = copy.deepcopy(RICH)
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from(list(places(manifest))))
        match draw(st.sampled_from(["lose", "replace", "double", "add"])):
            case "lose":
                del container[key]
            case "double" if isinstance(container, list):
                container.append(copy.deepcopy(container[key]))
            case "add" if isinstance(container, dict):
                container[draw(KEYS)] = draw(VALUES)
            case _:
                container[key] = draw(VALUES)
    return manifest


def assert_can_be_acted_on(problems: tuple[Problem, ...]) -> None:
    assert problems
    for problem in problems:
        assert RULES[problem.code].hint
        assert problem.path
        assert problem.message
        assert problem.hint
        assert not isinstance(problem.value, dict | list | tuple | set)
        assert problem.path.isprintable()
        assert len(str(problem)) < 1500


@given(VALUES | mutated(), FEATURES)
def test_hostile_input_ends_in_invalid_spec(manifest: Any, features: frozenset[str]) -> None:
    before = copy.deepcopy(manifest)
    for judge in (parse, lambda m: check(m, features)):
        try:
            jobset = judge(manifest)
        except InvalidSpec as invalid:
            assert_can_be_acted_on(invalid.problems)
        else:
            assert isinstance(jobset, JobSet)
    assert repr(manifest) == repr(before)


@given(mutated(), FEATURES)
def test_defaults_and_an_unchanged_update(manifest: Any, features: frozenset[str]) -> None:
    jobset, _ = read(manifest)
    if jobset is None:
        return
    complete = with_defaults(jobset)
    assert with_defaults(complete) is complete
    for old, new in ((jobset, jobset), (jobset, complete), (complete, jobset)):
        assert validate_update(old, new, features) == ()
    assert validate_create(jobset, features) == validate_create(complete, features)
    warnings(jobset, features)


@given(mutated())
def test_what_is_parsed_is_what_was_written(manifest: Any) -> None:
    """A parsed JobSet, written and parsed again, is the same one."""
    try:
        jobset = parse(manifest)
    except InvalidSpec:
        return
    written = msgspec.json.decode(msgspec.json.encode(jobset))
    assert parse({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", **written}) == jobset


JOB_NAMES = ("a", "b", "a-b", "b-a", "c", "d", "e", "f", "g", "h", "i")


@st.composite
def scheduled(draw: st.DrawFn) -> Manifest:
    """JobSets with spec.scheduling that may break a rule: too many templates, names that coincide, large quorums."""
    count = draw(st.integers(1, len(JOB_NAMES)))
    jobs: list[Manifest] = []
    for name in draw(st.permutations(JOB_NAMES))[:count]:
        template = job_template(draw(st.integers(1, 3)))
        template["spec"]["completions"] = draw(st.integers(0, 4))
        jobs.append({"name": name, "replicas": draw(st.integers(0, 4)), "template": template})
        if len(jobs) > 1 and draw(st.integers(0, 5)) == 0:
            jobs[-1]["dependsOn"] = [{"name": draw(st.sampled_from(jobs[:-1]))["name"], "status": "Ready"}]
    policy = st.sampled_from([{}, {"schedulingPolicy": {"gang": {}}}, {"schedulingPolicy": {"basic": {}}}])
    if draw(st.booleans()):
        scheduling = draw(policy)
    else:
        left = [job["name"] for job in jobs]
        entries: list[Manifest] = []
        while left:
            size = draw(st.sampled_from([1, 1, 2]))
            targets, left = left[:size], left[size:]
            if size == 1 and draw(st.booleans()):
                gang = {"gang": {"minCount": draw(st.integers(0, 3))}}
                entries.append({"targetReplicatedJobs": targets, "job": {"schedulingPolicy": gang}})
            else:
                entries.append({"targetReplicatedJobs": targets, **draw(policy)})
        scheduling = {"replicatedJobs": entries}
    return edited(JOBSET, {"spec": {"replicatedJobs": jobs, "scheduling": scheduling}})  # type: ignore[no-any-return]


@given(scheduled())
def test_what_is_admitted_compiles_to_legal_objects(manifest: Manifest) -> None:
    jobset, problems = read(manifest)
    assert jobset is not None
    assert not problems
    codes = {problem.code for problem in validate_create(jobset, ALL_GATES)}
    objects = compile_scheduling(jobset)
    templates = objects.workload.spec.pod_group_templates if objects else ()
    assert ("too-many-templates" in codes) == (len(templates) > TEMPLATES_MAX) or "template-name-taken" in codes
    if codes:
        return
    compiled = compile_jobset(jobset, ALL_GATES)
    for template in templates:
        assert names.is_dns_label(template.name)
    for group in objects.pod_groups if objects else ():
        assert names.is_dns_label(group.metadata.name)
    groups = {group.metadata.name: group for group in objects.pod_groups} if objects else {}
    assert len(groups) == len(compiled.pod_groups)
    pods = dict.fromkeys(groups, 0)
    for job in compiled.jobs:
        assert names.is_rfc1035_label(job["metadata"]["name"])
        spec = job["spec"]
        group_name = spec["template"]["spec"].get("schedulingGroup", {}).get("podGroupName")
        if group_name is not None:
            pods[group_name] += min(spec["parallelism"], spec["completions"])
    for name, group in groups.items():
        gang = group.spec.scheduling_policy.gang
        assert gang is None or 1 <= (gang.min_count or 0) <= pods[name]


@given(VALUES, VALUES)
def test_differences_go_both_ways(old: Any, new: Any) -> None:
    assert list(differences(old, old)) == [] or old != old
    there, back = list(differences(old, new)), list(differences(new, old))
    assert {d.path for d in there} == {d.path for d in back}


@given(st.text(st.sampled_from("ab([{\\?*+|)]}^$.-:,<>=!PQE019dpx"), max_size=12))
def test_a_pattern_is_judged(pattern: str) -> None:
    """Never another exception; and a pattern that is fine stays fine in a group, and as a literal anything is fine."""
    if why_not(pattern) is None and "\\Q" not in pattern:
        assert why_not(f"(?:{pattern})") is None
    assert why_not("\\Q" + pattern.replace("\\E", "")) is None
