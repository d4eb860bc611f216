"""spec.scheduling -> one Workload and its PodGroups, and the place of every child Job among them.

Called by the reconciler at every turn and by `jobset plan`. It decides which groups there are, their names and their
quorum. It does not look at feature gates, suspension or what exists in the cluster: the caller does.
Mirrors the declarative integration of KEP-969 on scheduling.k8s.io/v1beta1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyjobset.compiler.ownership import owned_metadata
from pyjobset.objects import names
from pyjobset.objects.jobset import (
    GROUP,
    KIND,
    JobScheduling,
    JobSet,
    ReplicatedJob,
    ReplicatedJobScheduling,
    Scheduling,
)
from pyjobset.objects.scheduling import (
    TEMPLATES_MAX,
    ControllerRef,
    Empty,
    Gang,
    PodGroup,
    PodGroupSpec,
    PodGroupTemplate,
    SchedulingPolicy,
    Workload,
    WorkloadReference,
    WorkloadSpec,
)
from pyjobset.objects.template import pod_spec, pods, saturated
from pyjobset.rules.startup import is_sequenced

sequenced = is_sequenced
"""Where it is true, a gang over all Jobs could never be complete."""

LivePods = Mapping[tuple[str, int], int]
"""Per child Job, (ReplicatedJob's name, index): the pods that can still be live. A Job left out counts in full."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a child Job belongs: the template that its annotation names and the PodGroup that its pods join."""

    template_name: str
    pod_group_name: str


@dataclass(frozen=True, slots=True)
class SchedulingObjects:
    workload: Workload
    pod_groups: tuple[PodGroup, ...]
    placements: Mapping[tuple[str, int | None], Placement]
    """By ReplicatedJob and index; the index is None where all its Jobs share one PodGroup."""

    def placement(self, replicated_job: str, job_index: int) -> Placement | None:
        """None where the group has no pods (decision 21), so that there is no PodGroup to join."""
        shared = self.placements.get((replicated_job, None))
        return shared if shared is not None else self.placements.get((replicated_job, job_index))


@dataclass(frozen=True, slots=True)
class _Group:
    """One PodGroup to be: of some whole ReplicatedJobs, or of the Job with `index` of a single one."""

    place: Placement
    leaf: JobScheduling
    members: tuple[ReplicatedJob, ...]
    index: int | None = None


def compile_scheduling(jobset: JobSet, *, live: LivePods | None = None) -> SchedulingObjects | None:
    """The scheduling objects of a JobSet, or None where spec.scheduling is unset or no group has pods.

    Which groups there are, and their names, follow from the spec alone. `live` only moves computed quorums
    (decision 20): it may be below the spec's count, where pods have finished, or above it, while a gang shrinks.
    """
    if jobset.spec.scheduling is None:
        return None
    groups = tuple(_groups(jobset, jobset.spec.scheduling))
    if not groups:
        return None
    quorums = _quorums(groups, live or {})
    name = names.workload_name(jobset.metadata.namespace, jobset.metadata.name)
    workload = Workload(
        metadata=owned_metadata(jobset, name),
        spec=WorkloadSpec(
            controller_ref=ControllerRef(api_group=GROUP, kind=KIND, name=jobset.metadata.name),
            pod_group_templates=_templates(groups, quorums),
        ),
    )
    return SchedulingObjects(
        workload,
        tuple(_pod_group(jobset, group, quorum, name) for group, quorum in zip(groups, quorums, strict=True)),
        {(member.name, group.index): group.place for group in groups for member in group.members},
    )


def _groups(jobset: JobSet, scheduling: Scheduling) -> Iterator[_Group]:
    """The PodGroups in order. A group without pods is left out: the API refuses a quorum of 0 (decision 21)."""
    namespace, name = jobset.metadata.namespace, jobset.metadata.name
    replicated_jobs = jobset.spec.replicated_jobs
    if scheduling.replicated_jobs:
        yield from _groups_of_entries(jobset, scheduling.replicated_jobs)
        return
    leaf = _leaf(scheduling)
    if is_sequenced(jobset):
        for member in filter(_pods_of_all, replicated_jobs):
            template = names.replicated_job_template_name(namespace, name, member.name)
            yield _Group(Placement(template, names.pod_group_name(name, template)), leaf, (member,))
    elif any(map(_pods_of_all, replicated_jobs)):
        whole = names.workload_name(namespace, name)
        yield _Group(Placement(whole, whole), leaf, replicated_jobs)


def _leaf(given: Scheduling | ReplicatedJobScheduling) -> JobScheduling:
    return JobScheduling(
        scheduling_policy=given.scheduling_policy,
        scheduling_constraints=given.scheduling_constraints,
        disruption_mode=given.disruption_mode,
    )


def _groups_of_entries(jobset: JobSet, entries: tuple[ReplicatedJobScheduling, ...]) -> Iterator[_Group]:
    by_name = {member.name: member for member in jobset.spec.replicated_jobs}
    with_members = [
        (entry, tuple(by_name[t] for t in entry.target_replicated_jobs if t in by_name)) for entry in entries
    ]
    with_pods = [(entry, members) for entry, members in with_members if any(map(_pods_of_all, members))]
    templates = sum(1 if entry.job is None else members[0].replicas for entry, members in with_pods)
    for entry, members in with_pods:
        if entry.job is None:
            yield _group_of_entry(jobset, entry, members)
        else:
            yield from _groups_of_jobs(jobset, entry.job, members[0], share_template=templates > TEMPLATES_MAX)


def _group_of_entry(jobset: JobSet, entry: ReplicatedJobScheduling, members: tuple[ReplicatedJob, ...]) -> _Group:
    name = jobset.metadata.name
    template = names.group_template_name(jobset.metadata.namespace, name, entry.target_replicated_jobs)
    return _Group(Placement(template, names.pod_group_name(name, template)), _leaf(entry), members)


def _groups_of_jobs(
    jobset: JobSet, leaf: JobScheduling, member: ReplicatedJob, *, share_template: bool
) -> Iterator[_Group]:
    """One PodGroup a Job, named after the Job's own template also where a template is shared (decision 36)."""
    namespace, name = jobset.metadata.namespace, jobset.metadata.name
    shared = names.replicated_job_template_name(namespace, name, member.name)
    for index in range(member.replicas):
        own = names.job_template_name(namespace, name, member.name, index)
        place = Placement(shared if share_template else own, names.pod_group_name(name, own))
        yield _Group(place, leaf, (member,), index)


def _pods_of_job(member: ReplicatedJob) -> int:
    return max(0, pods(member.template))


def _pods_of_all(member: ReplicatedJob) -> int:
    return _pods_of_job(member) * max(0, member.replicas)


def _quorums(groups: tuple[_Group, ...], live: LivePods) -> list[int]:
    """The gang's minCount of each group. Linear in the groups and in `live`, whatever the replicas."""
    totals: dict[str, int] = {}
    each: dict[str, int] = {}
    for group in groups:
        for member in group.members:
            if member.name not in each:
                each[member.name], totals[member.name] = _pods_of_job(member), _pods_of_all(member)
    for (replicated_job, _), pods_live in live.items():
        if replicated_job in totals:
            totals[replicated_job] += pods_live - each[replicated_job]
    return [_quorum(group, each, totals, live) for group in groups]


def _quorum(group: _Group, each: Mapping[str, int], totals: Mapping[str, int], live: LivePods) -> int:
    if group.index is None:
        return saturated(max(1, sum(totals[member.name] for member in group.members)))
    gang = group.leaf.scheduling_policy.gang if group.leaf.scheduling_policy else None
    if gang is not None and gang.min_count:
        return saturated(gang.min_count)
    job = group.members[0].name
    return saturated(max(1, live.get((job, group.index), each[job])))


def _policy(group: _Group, quorum: int) -> SchedulingPolicy:
    """Gang where the user said nothing."""
    given = group.leaf.scheduling_policy
    if given is not None and given.basic is not None:
        return SchedulingPolicy(basic=Empty())
    return SchedulingPolicy(gang=Gang(min_count=quorum))


def _priority_class(group: _Group) -> str | None:
    """That of the pods: a PodGroup of another priority than its pods is never scheduled (1.37)."""
    return pod_spec(group.members[0].template).get("priorityClassName") or None


def _templates(groups: tuple[_Group, ...], quorums: list[int]) -> tuple[PodGroupTemplate, ...]:
    """In order. A shared template has the largest quorum of its PodGroups; admission looks at PodGroups only."""
    first: dict[str, _Group] = {}
    most: dict[str, int] = {}
    for group, quorum in zip(groups, quorums, strict=True):
        first.setdefault(group.place.template_name, group)
        most[group.place.template_name] = max(quorum, most.get(group.place.template_name, 0))
    return tuple(
        PodGroupTemplate(
            name=name,
            scheduling_policy=_policy(group, most[name]),
            scheduling_constraints=group.leaf.scheduling_constraints,
            disruption_mode=group.leaf.disruption_mode,
            resource_claims=group.leaf.resource_claims,
            priority_class_name=_priority_class(group),
        )
        for name, group in first.items()
    )


def _pod_group(jobset: JobSet, group: _Group, quorum: int, workload: str) -> PodGroup:
    return PodGroup(
        metadata=owned_metadata(jobset, group.place.pod_group_name),
        spec=PodGroupSpec(
            scheduling_policy=_policy(group, quorum),
            workload_ref=WorkloadReference(workload_name=workload, template_name=group.place.template_name),
            scheduling_constraints=group.leaf.scheduling_constraints,
            disruption_mode=group.leaf.disruption_mode,
            resource_claims=group.leaf.resource_claims,
            priority_class_name=_priority_class(group),
        ),
    )
