"""What a JobSet compiles to, as rows for people: groups first, then the Service, claims and Jobs. Pure.

`plan -o table` prints them. Values are spelled as in the API, so that they can be searched for. The Jobs of a large
ReplicatedJob share one row.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from pyjobset.compiler.jobset import Compiled
from pyjobset.compiler.scheduling import sequenced
from pyjobset.objects import labels
from pyjobset.objects.jobset import JobSet, ReplicatedJob
from pyjobset.objects.meta import Manifest
from pyjobset.objects.template import mapping_at, pod_spec, pods, saturated

HEADERS = ("KIND", "NAME", "DETAILS", "PODS")
JOBS_SHOWN_MAX = 20
"""Of one ReplicatedJob. More are one row, `NAME-0 to NAME-99`."""

Row = tuple[str, str, str, str]


def rows(jobset: JobSet, compiled: Compiled) -> Iterator[Row]:
    members = Counter[str]()
    for job in compiled.jobs:
        members[_group(job)] += pods(job)
    total = saturated(sum(members.values()))
    yield "JobSet", f"{jobset.metadata.namespace}/{jobset.metadata.name}", _jobset(jobset), str(total)
    if compiled.workload is not None:
        templates = compiled.workload["spec"]["podGroupTemplates"]
        yield _row(compiled.workload, f"{len(templates)} template{'s' * (len(templates) > 1)}", total)
    for group in compiled.pod_groups:
        yield _row(group, _pod_group(group["spec"]), members[group["metadata"]["name"]])
    if compiled.service is not None:
        yield _row(compiled.service, "headless")
    for claim in compiled.claims:
        yield _row(claim, _claim(claim))
    after = {job.name: _after(jobset, job) for job in jobset.spec.replicated_jobs}
    for name, jobs in groupby(compiled.jobs, key=_replicated_job):
        yield from _jobs(list(jobs), after[name])


def _row(manifest: Manifest, details: str, pod_count: int | None = None) -> Row:
    return manifest["kind"], manifest["metadata"]["name"], details, "" if pod_count is None else str(pod_count)


def _jobset(jobset: JobSet) -> str:
    notes = []
    if jobset.spec.suspend:
        notes.append("suspended: no Workload and no PodGroups before it is resumed")
    if jobset.spec.scheduling is not None and sequenced(jobset):
        notes.append("sequenced startup")
    return "; ".join(notes)


def _pod_group(spec: Mapping[str, Any]) -> str:
    gang = mapping_at(spec, "schedulingPolicy").get("gang")
    parts = [f"gang minCount={gang['minCount']}" if gang is not None else "basic"]
    parts += [f"topology={t['key']}" for t in mapping_at(spec, "schedulingConstraints").get("topology") or ()]
    parts += [f"disruptionMode={mode}" for mode in mapping_at(spec, "disruptionMode")]
    parts += [f"claim={claim['name']}" for claim in spec.get("resourceClaims") or ()]
    parts += [f"priorityClassName={name}" for name in [spec.get("priorityClassName")] if name]
    return " ".join(parts)


def _claim(claim: Manifest) -> str:
    storage = mapping_at(claim, "spec", "resources", "requests").get("storage")
    kept = "deleted with the JobSet" if claim["metadata"].get("ownerReferences") else "kept"
    return " ".join([f"storage={storage}", kept] if storage is not None else [kept])


def _after(jobset: JobSet, job: ReplicatedJob) -> str:
    """When its Jobs are created, where that is not at once."""
    if job.depends_on:
        return "when " + " and ".join(f"{d.name} is {d.status or 'Ready'}" for d in job.depends_on)
    startup = jobset.spec.startup_policy
    first = jobset.spec.replicated_jobs[0].name
    if startup is None or startup.startup_policy_order != "InOrder" or job.name == first:
        return ""
    before = [j.name for j in jobset.spec.replicated_jobs]
    return f"when {before[before.index(job.name) - 1]} is Ready"


def _jobs(jobs: Sequence[Manifest], after: str) -> Iterator[Row]:
    if len(jobs) <= JOBS_SHOWN_MAX:
        for job in jobs:
            yield _row(job, " ".join(filter(None, (_place(job), after))), pods(job))
        return
    names = [job["metadata"]["name"] for job in (jobs[0], jobs[-1])]
    places = {_place(job) for job in jobs}
    place = places.pop() if len(places) == 1 else f"{len(places)} PodGroups"
    details = " ".join(filter(None, (f"{len(jobs)} Jobs", place, after)))
    yield "Job", " to ".join(names), details, str(saturated(sum(map(pods, jobs))))


def _place(job: Manifest) -> str:
    return f"podGroupName={name}" if (name := _group(job)) else ""


def _group(job: Manifest) -> str:
    return str(mapping_at(pod_spec(job), "schedulingGroup").get("podGroupName") or "")


def _replicated_job(job: Manifest) -> str:
    return str(job["metadata"]["labels"][labels.REPLICATED_JOB_NAME])
