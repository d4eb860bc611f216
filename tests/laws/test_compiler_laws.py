"""What is true of every compiled JobSet."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pyjobset.compiler.jobs import child_jobs
from pyjobset.compiler.jobset import Compiled, compile_jobset
from pyjobset.compiler.scheduling import compile_scheduling
from pyjobset.objects import labels, names
from pyjobset.objects.features import DEFAULTS, WORKLOAD_AWARE_SCHEDULING
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.scheduling import TEMPLATES_MAX
from pyjobset.objects.template import INT32_MAX
from pyjobset.rules.defaults import with_defaults
from pyjobset.rules.validation import validate_create
from tests.laws.strategies import jobset_manifests, jobsets

ON = DEFAULTS | {WORKLOAD_AWARE_SCHEDULING}


def running(js: JobSet) -> JobSet:
    return replace(js, spec=replace(js.spec, suspend=False))


def placed(compiled: Compiled) -> Iterator[tuple[str | None, str | None, int]]:
    """Of every Job: the template and the PodGroup that it names, and its pods, read from the manifest alone."""
    for job in compiled.jobs:
        spec = job["spec"]
        template = job["metadata"]["annotations"].get(labels.GROUP_TEMPLATE_NAME)
        group = spec["template"]["spec"].get("schedulingGroup", {}).get("podGroupName")
        parallelism = spec.get("parallelism", 1)
        yield template, group, min(parallelism, spec.get("completions", parallelism))


@given(jobsets())
def test_what_these_laws_draw_is_what_the_rules_accept(js: JobSet) -> None:
    assert validate_create(with_defaults(js), ON) == ()


@given(jobset_manifests())
def test_the_same_jobset_gives_the_same_objects(manifest: Manifest) -> None:
    once, again = (msgspec.convert(manifest, JobSet) for _ in range(2))
    assert msgspec.json.encode(list(compile_jobset(once, ON))) == msgspec.json.encode(list(compile_jobset(again, ON)))


@given(jobsets())
def test_the_input_is_never_mutated(js: JobSet) -> None:
    before = msgspec.json.encode(js)
    compile_jobset(js, ON)
    assert msgspec.json.encode(js) == before


@given(jobsets())
def test_names_are_unique_short_and_valid(js: JobSet) -> None:
    objects = list(compile_jobset(running(js), ON))
    identities = Counter((manifest["kind"], manifest["metadata"]["name"]) for manifest in objects)
    assert set(identities.values()) <= {1}
    assert all(names.is_dns_label(name) for _, name in identities)
    for manifest in objects:
        if manifest["kind"] == "Workload":
            templates = [template["name"] for template in manifest["spec"]["podGroupTemplates"]]
            assert len(set(templates)) == len(templates)
            assert all(map(names.is_dns_label, templates))


@given(jobsets(scheduled=True))
def test_every_job_with_pods_is_in_one_existing_group_and_template(js: JobSet) -> None:
    compiled = compile_jobset(running(js), ON)
    templates = {t["name"] for t in compiled.workload["spec"]["podGroupTemplates"]} if compiled.workload else set()
    template_of = {g["metadata"]["name"]: g["spec"]["workloadRef"]["templateName"] for g in compiled.pod_groups}
    assert set(template_of.values()) == templates
    assert (compiled.workload is None) == (not compiled.pod_groups)
    for template, group, pods in placed(compiled):
        assert (template is None) == (group is None)
        assert group is not None or pods == 0
        if group is not None:
            assert template_of[group] == template
    assert {group for _, group, pods in placed(compiled) if pods} == set(template_of), "no group without pods"


@given(jobsets(scheduled=True))
def test_a_quorum_is_computed_from_the_pods_compiled(js: JobSet) -> None:
    compiled = compile_jobset(running(js), ON)
    explicit = {
        entry.target_replicated_jobs[0]: entry.job.scheduling_policy.gang.min_count
        for entry in (js.spec.scheduling and js.spec.scheduling.replicated_jobs) or ()
        if entry.job and entry.job.scheduling_policy and entry.job.scheduling_policy.gang
    }
    expected: Counter[str | None] = Counter()
    for child, (_, group, pods) in zip(child_jobs(js), placed(compiled), strict=True):
        expected[group] += explicit.get(child.replicated_job.name) or pods
    for group in compiled.pod_groups:
        policy = group["spec"]["schedulingPolicy"]
        assert len(policy) == 1
        assert "basic" in policy or policy["gang"]["minCount"] == expected[group["metadata"]["name"]] > 0


@given(jobsets(scheduled=True))
def test_a_workload_has_one_to_eight_templates(js: JobSet) -> None:
    objects = compile_scheduling(js)
    assert objects is None or 1 <= len(objects.workload.spec.pod_group_templates) <= TEMPLATES_MAX


@given(jobsets(scheduled=True), st.data())
def test_live_pods_move_quorums_and_nothing_else(js: JobSet, data: st.DataObject) -> None:
    keys = [child.key for child in child_jobs(js)]
    live = data.draw(st.dictionaries(st.sampled_from(keys), st.integers(0, INT32_MAX)) if keys else st.just({}))
    fresh, later = compile_scheduling(js), compile_scheduling(js, live=live)
    assert (fresh is None) == (later is None)
    if fresh is None or later is None:
        return
    assert later.placements == fresh.placements
    for old, new in zip(fresh.pod_groups, later.pod_groups, strict=True):
        policy = new.spec.scheduling_policy
        assert replace(new, spec=replace(new.spec, scheduling_policy=old.spec.scheduling_policy)) == old
        assert (policy.gang is None) == (old.spec.scheduling_policy.gang is None)
        if policy.gang is not None:
            assert policy.gang.min_count is not None
            assert 1 <= policy.gang.min_count <= INT32_MAX


@given(jobsets(scheduled=True))
def test_without_the_gate_scheduling_counts_as_unset(js: JobSet) -> None:
    unset = replace(js, spec=replace(js.spec, scheduling=None))
    assert list(compile_jobset(js, DEFAULTS)) == list(compile_jobset(unset, ON))
    assert "schedulingGroup" not in msgspec.json.encode(list(compile_jobset(unset, ON))).decode()


def contains(whole: Any, part: Any) -> bool:
    """Whether `whole` has everything of `part`, perhaps with more keys, and more items at the end of a list."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(whole) >= len(part) and all(contains(w, p) for w, p in zip(whole, part, strict=False))
    return bool(whole == part)


@given(jobsets())
def test_a_job_has_everything_that_its_template_has(js: JobSet) -> None:
    for child, job in zip(child_jobs(js), compile_jobset(js, ON).jobs, strict=True):
        given = msgspec.json.decode(msgspec.json.encode(child.replicated_job.template))
        for metadata in (given.get("metadata") or {}, given["spec"]["template"].get("metadata") or {}):
            for found in ("labels", "annotations"):
                metadata.get(found, {}).pop(labels.JOBSET_NAME, None)  # ours wins
        assert contains(job["spec"], given["spec"])
        assert contains(job["metadata"], given.get("metadata") or {})


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@given(jobset_manifests())
def test_the_order_of_keys_does_not_matter(manifest: Manifest) -> None:
    straight, crooked = (msgspec.convert(m, JobSet) for m in (manifest, reversed_keys(manifest)))
    assert list(compile_jobset(straight, ON)) == list(compile_jobset(crooked, ON))


@given(jobsets(scheduled=True), st.randoms(use_true_random=False))
def test_the_order_of_replicated_jobs_and_entries_only_orders_the_groups(js: JobSet, random: Any) -> None:
    scheduling = js.spec.scheduling
    assert scheduling is not None
    jobs = random.sample(js.spec.replicated_jobs, len(js.spec.replicated_jobs))
    entries = scheduling.replicated_jobs
    shuffled = replace(
        js.spec,
        replicated_jobs=tuple(jobs),
        scheduling=replace(scheduling, replicated_jobs=entries and tuple(random.sample(entries, len(entries)))),
    )
    straight, crooked = compile_scheduling(js), compile_scheduling(replace(js, spec=shuffled))
    if straight is None or crooked is None:
        assert straight is crooked
        return
    assert {g.metadata.name: g for g in straight.pod_groups} == {g.metadata.name: g for g in crooked.pod_groups}
    assert straight.placements == crooked.placements


@given(st.text(max_size=80), st.text(alphabet="0123456789abcdef", min_size=10, max_size=10))
def test_hashed_is_the_prefix_and_the_hash_and_never_longer_than_63(prefix: str, hash_: str) -> None:
    name = names.hashed(prefix, hash_)
    assert len(name) == min(63, len(prefix) + 11)
    assert name.endswith(f"-{hash_}")
    assert prefix.startswith(name.removesuffix(f"-{hash_}"))


@given(st.lists(st.tuples(*[st.from_regex(r"[a-z-]{1,60}", fullmatch=True)] * 3), min_size=2, max_size=2, unique=True))
def test_two_identities_never_share_a_name(identities: list[tuple[str, str, str]]) -> None:
    """Two JobSets of one namespace, or two ReplicatedJobs of one JobSet, also where the cut makes them look alike."""
    (n1, j1, r1), (n2, j2, r2) = identities
    assert names.replicated_job_template_name(n1, j1, r1) != names.replicated_job_template_name(n2, j2, r2)
    if (n1, j1) != (n2, j2):
        assert names.workload_name(n1, j1) != names.workload_name(n2, j2)
