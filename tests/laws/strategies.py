"""Hypothesis strategies for JobSets that the rules accept, small but varied. Laws of every package draw from here.

`jobset_manifests` gives plain JSON values, `jobsets` the decoded struct. Names are short and long, with and without
dashes; counts include 0; templates carry fields that nobody knows.
"""

from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import strategies as st

from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.template import pods

UNKNOWN = "fieldThatNobodyKnows"
GANG: Manifest = {"gang": {}}
BASIC: Manifest = {"basic": {}}

names = st.sampled_from(
    ["a", "b", "c", "a-b", "b-c", "a-b-c", "a-0", "a-1", "w", "worker", "x" * 25 + "y", "x" * 25 + "z", "x" * 24 + "-y"]
)
"""RFC 1035 labels of which two fit into a Job's name, chosen to meet: joined, indexed, or cut they look alike."""

unknown_values = st.sampled_from([None, 0, "", [], {}, [1, {"deep": [True, None]}], {"deep": {"er": {"": "x"}}}])


_UNKNOWN_FIELD = {UNKNOWN: unknown_values}
_METADATA = st.sampled_from(
    [
        {},
        {"labels": {}},
        {"labels": {"team": "x"}, "annotations": {"note": ""}},
        {"annotations": {"note": "y", "jobset.sigs.k8s.io/jobset-name": "someone"}},
    ]
)
_CONTAINERS = st.sampled_from(
    [
        [{"name": "c", "image": "i"}],
        [{"name": "c", "image": "i", "ports": [{"containerPort": 80}], UNKNOWN: None}, {"name": "d", UNKNOWN: [1]}],
    ]
)


def job_templates(priority_class: str | None = None) -> st.SearchStrategy[Manifest]:
    """batch/v1 JobTemplateSpec. `priority_class` is the same for all of a JobSet, as a Workload takes one."""
    priority: dict[str, st.SearchStrategy[Any]] = (
        {"priorityClassName": st.just(priority_class)} if priority_class else {}
    )
    pod_spec = st.fixed_dictionaries(
        {"containers": _CONTAINERS, **priority}, optional={"restartPolicy": st.just("Never"), **_UNKNOWN_FIELD}
    )
    pod_template = st.fixed_dictionaries({"spec": pod_spec}, optional={"metadata": _METADATA, **_UNKNOWN_FIELD})
    spec = st.fixed_dictionaries(
        {"template": pod_template},
        optional={"parallelism": st.integers(0, 5), "completions": st.integers(0, 5), **_UNKNOWN_FIELD},
    ).map(lambda given: given if "completions" in given else {"completionMode": "NonIndexed", **given})
    return st.fixed_dictionaries({"spec": spec}, optional={"metadata": _METADATA})


def replicated_job_lists(max_size: int = 4) -> st.SearchStrategy[list[Manifest]]:
    def of_class(priority_class: str | None) -> st.SearchStrategy[list[Manifest]]:
        fields = {
            "name": names,
            "replicas": st.sampled_from([0, 1, 1, 2, 3, 9]),
            "template": job_templates(priority_class),
        }
        one = st.fixed_dictionaries(fields, optional={"groupName": st.sampled_from(["g", "h"])})
        return st.lists(one, max_size=max_size, unique_by=lambda job: job["name"])

    return st.one_of(of_class(None), of_class("high"))


def leaves(*policies: Manifest | None) -> st.SearchStrategy[Manifest]:
    """schedulingPolicy, schedulingConstraints and disruptionMode; basic never with disruptionMode all."""
    single: Manifest = {"disruptionMode": {"single": {}}}
    every: Manifest = {"disruptionMode": {"all": {}}}
    rack: Manifest = {"schedulingConstraints": {"topology": [{"key": "example.com/rack"}]}}
    leaf = [
        {**({} if policy is None else {"schedulingPolicy": policy}), **mode, **constraints}
        for policy in policies
        for mode in ({}, single, every)
        for constraints in ({}, rack)
        if not (policy == BASIC and mode is every)
    ]
    return st.sampled_from(leaf)


@st.composite
def _entry(draw: st.DrawFn, targets: list[Manifest], *, sequenced: bool) -> Manifest:
    """A gang never spans ReplicatedJobs that are created one after the other."""
    entry: Manifest = {"targetReplicatedJobs": [target["name"] for target in targets]}
    if len(targets) > 1 and sequenced:
        return entry | draw(leaves(BASIC))
    if len(targets) > 1 or draw(st.booleans()):
        return entry | draw(leaves(None, BASIC, GANG))
    most = pods(targets[0]["template"])
    quorums: list[Manifest] = [{"gang": {"minCount": quorum}} for quorum in range(most + 1)]
    claims = draw(st.sampled_from([{}, {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}]))
    return entry | {"job": draw(leaves(None, BASIC, GANG, *quorums)) | claims}


@st.composite
def entry_lists(draw: st.DrawFn, replicated_jobs: list[Manifest], *, sequenced: bool) -> list[Manifest]:
    """Every ReplicatedJob is the target of one entry; no two entries join their targets to the same name."""
    shuffled = draw(st.permutations(replicated_jobs))
    cuts = draw(st.sets(st.integers(1, len(shuffled))))
    groups = [shuffled[start:end] for start, end in pairwise(sorted({0, len(shuffled)} | cuts))]
    joined = {"-".join(job["name"] for job in group) for group in groups}
    return [
        draw(_entry(group, sequenced=sequenced)) for group in (groups if len(joined) == len(groups) else [shuffled])
    ]


@st.composite
def schedulings(draw: st.DrawFn, replicated_jobs: list[Manifest], *, sequenced: bool) -> Manifest:
    if replicated_jobs and draw(st.booleans()):
        return {"replicatedJobs": draw(entry_lists(replicated_jobs, sequenced=sequenced))}
    return draw(leaves(None, BASIC) if sequenced else leaves(None, BASIC, GANG))


@st.composite
def jobset_manifests(draw: st.DrawFn, *, scheduled: bool | None = None) -> Manifest:
    """A JobSet as JSON values. `scheduled` says whether it has spec.scheduling; None means sometimes."""
    replicated_jobs = draw(replicated_job_lists())
    startup = draw(st.sampled_from([None, "AnyOrder", "InOrder", "dependsOn"]))
    optional = {"suspend": st.booleans(), "network": st.sampled_from([{}, {"enableDNSHostnames": False}])}
    spec: Manifest = {"replicatedJobs": replicated_jobs, **draw(st.fixed_dictionaries({}, optional=optional))}
    if startup == "dependsOn":
        for earlier, later in pairwise(replicated_jobs):
            later["dependsOn"] = [{"name": earlier["name"], "status": "Ready"}]
    elif startup is not None:
        spec["startupPolicy"] = {"startupPolicyOrder": startup}
    if scheduled or (scheduled is None and draw(st.booleans())):
        sequenced = startup == "InOrder" or (startup == "dependsOn" and len(replicated_jobs) > 1)
        spec["scheduling"] = draw(schedulings(replicated_jobs, sequenced=sequenced))
    metadata = {"name": draw(names), "namespace": draw(st.sampled_from(["default", "team-a"])), "uid": "u-1"}
    return {"metadata": metadata, "spec": spec}


def jobsets(*, scheduled: bool | None = None) -> st.SearchStrategy[JobSet]:
    return jobset_manifests(scheduled=scheduled).map(lambda manifest: msgspec.convert(manifest, JobSet))
