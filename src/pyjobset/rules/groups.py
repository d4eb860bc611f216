"""The pod groups that spec.scheduling asks for: each must be able to form, and all must fit into one Workload.

Called by rules.validation, and by rules.preemption for the groups alone. It judges groups as the user wrote them; the
compiler makes the PodGroups. References to ReplicatedJobs that do not exist are left to rules.scheduling.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyjobset.errors import Problem
from pyjobset.objects import labels, names, placement
from pyjobset.objects.jobset import JobSet, ReplicatedJob, ReplicatedJobScheduling
from pyjobset.objects.scheduling import TEMPLATES_MAX, SchedulingPolicy
from pyjobset.objects.template import mapping_at, pod_spec, pods
from pyjobset.rules import registry
from pyjobset.rules.rule import child
from pyjobset.rules.startup import is_in_order, is_sequenced

WHOLE = "spec.scheduling"
DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(frozen=True, slots=True)
class Group:
    """ReplicatedJobs that one policy of the spec covers. With `is_per_job` each of its Jobs is a PodGroup."""

    path: str
    policy: SchedulingPolicy | None
    members: tuple[ReplicatedJob, ...]
    is_per_job: bool = False

    @property
    def is_gang(self) -> bool:
        return self.policy is None or self.policy.basic is None

    @property
    def has_pods(self) -> bool:
        return any(member.replicas > 0 and pods(member.template) > 0 for member in self.members)


def breaches(jobset: JobSet) -> Iterator[Problem]:
    if jobset.spec.scheduling is None:
        return
    groups = tuple(groups_of(jobset))
    positions = {replicated_job.name: i for i, replicated_job in enumerate(jobset.spec.replicated_jobs)}
    yield from _sequence_of_whole(jobset)
    for group in groups:
        yield from _quorum(group)
        yield from _sequence(jobset, group)
        yield from _scheduler_names(group, positions)
    yield from _exclusive_placement(jobset, groups)
    yield from _priority_classes(jobset)
    yield from _template_count(groups)
    yield from _template_names(jobset)


def groups_of(jobset: JobSet) -> Iterator[Group]:
    scheduling = jobset.spec.scheduling
    assert scheduling is not None
    if not scheduling.replicated_jobs:
        yield from _groups_of_whole(jobset, scheduling.scheduling_policy)
        return
    by_name = {replicated_job.name: replicated_job for replicated_job in jobset.spec.replicated_jobs}
    for i, entry in enumerate(scheduling.replicated_jobs):
        path = f"spec.scheduling.replicatedJobs[{i}]"
        members = tuple(by_name[target] for target in entry.target_replicated_jobs if target in by_name)
        if entry.job is None:
            yield Group(path, entry.scheduling_policy, members)
        else:
            yield Group(f"{path}.job", entry.job.scheduling_policy, members, is_per_job=True)


def _groups_of_whole(jobset: JobSet, policy: SchedulingPolicy | None) -> Iterator[Group]:
    """One group, or one for each ReplicatedJob when startup is sequenced."""
    members = jobset.spec.replicated_jobs
    if is_sequenced(jobset):
        yield from (Group(WHOLE, policy, (member,)) for member in members)
    else:
        yield Group(WHOLE, policy, members)


def _quorum(group: Group) -> Iterator[Problem]:
    """An explicit minCount. It may not be more than the pods that run at once (decision 19)."""
    gang = group.policy.gang if group.policy else None
    if not group.is_per_job or gang is None or not gang.min_count:
        return
    for member in group.members:
        most = pods(member.template)
        if gang.min_count > most:
            message = f"is more than the {most} pods that run at once in a Job of {member.name!r}"
            yield registry.MIN_COUNT_PODS.at(f"{group.path}.schedulingPolicy.gang.minCount", gang.min_count, message)


def _sequence(jobset: JobSet, group: Group) -> Iterator[Problem]:
    """A gang over ReplicatedJobs of which one starts only after another is up: its first pods wait for ever."""
    is_of_several = group.is_gang and not group.is_per_job and len(group.members) > 1
    waiting = _waiting(jobset, group.members) if is_of_several else None
    if waiting is not None:
        is_explicit = group.policy is not None and group.policy.gang is not None
        path = f"{group.path}.schedulingPolicy.gang" if is_explicit else group.path
        message = f"would wait for pods of {waiting!r}, which are created only after other pods of the gang run"
        yield registry.GANG_SEQUENCED.at(path, None, message)


def _sequence_of_whole(jobset: JobSet) -> Iterator[Problem]:
    """Left out, the policy is a gang for each ReplicatedJob; asked for, it would be one for all."""
    policy = jobset.spec.scheduling.scheduling_policy if jobset.spec.scheduling else None
    if policy is not None and policy.gang is not None and is_sequenced(jobset):
        yield registry.GANG_SEQUENCED.at(f"{WHOLE}.schedulingPolicy.gang")


def _waiting(jobset: JobSet, members: tuple[ReplicatedJob, ...]) -> str | None:
    """The first member that starts after another one, directly or not. A ReplicatedJob without Jobs holds up nobody."""
    own = {member.name for member in members if member.replicas > 0}
    holds: set[str] = set()
    """Who waits for one of these waits for a member."""
    for replicated_job in jobset.spec.replicated_jobs:
        name = replicated_job.name
        waits = any(dependency.name in holds for dependency in replicated_job.depends_on)
        waits = waits or (is_in_order(jobset) and bool(holds))
        if waits and name in own:
            return name
        if replicated_job.replicas > 0 and (waits or name in own):
            holds.add(name)
    return None


def _scheduler_names(group: Group, positions: Mapping[str, int]) -> Iterator[Problem]:
    """The pods of one PodGroup need one scheduler (decision 24)."""
    for member in group.members[1:]:
        name, other = _scheduler_name(member), _scheduler_name(group.members[0])
        if name != other:
            path = f"{_pod_path(positions[member.name])}.schedulerName"
            message = f"differs within one pod group: {group.members[0].name!r} has {other!r}"
            yield registry.SCHEDULER_NAME_DIFFERS.at(path, name, message)


def _scheduler_name(member: ReplicatedJob) -> str:
    return pod_spec(member.template).get("schedulerName") or DEFAULT_SCHEDULER


def _priority_classes(jobset: JobSet) -> Iterator[Problem]:
    """All templates of a Workload need one priorityClassName, and a PodGroup that of its pods (decision 32)."""
    members = jobset.spec.replicated_jobs
    for i, member in enumerate(members):
        name, other = _priority_class(member), _priority_class(members[0])
        if name != other:
            message = f"is {name or 'unset'} here and {other or 'unset'} in {members[0].name!r}; a Workload takes one"
            yield registry.PRIORITY_CLASS_DIFFERS.at(f"{_pod_path(i)}.priorityClassName", name, message)


def _priority_class(member: ReplicatedJob) -> str | None:
    return pod_spec(member.template).get("priorityClassName") or None


def _pod_path(position: int) -> str:
    return f"spec.replicatedJobs[{position}].template.spec.template.spec"


def _exclusive_placement(jobset: JobSet, groups: tuple[Group, ...]) -> Iterator[Problem]:
    """Decision 23. With the node selector of the same strategy no pod waits for a leader."""
    gang = {member.name for group in groups if group.is_gang for member in group.members}
    is_reported = False
    for i, member in enumerate(jobset.spec.replicated_jobs):
        chosen = placement.annotations_of(jobset, member)
        if member.name not in gang or not placement.has_leader(chosen):
            continue
        is_own = labels.EXCLUSIVE_TOPOLOGY in mapping_at(member.template, "metadata", "annotations")
        if is_own or not is_reported:
            where = f"spec.replicatedJobs[{i}].template.metadata" if is_own else "metadata"
            path = child(f"{where}.annotations", labels.EXCLUSIVE_TOPOLOGY)
            yield registry.EXCLUSIVE_PLACEMENT_GANG.at(path, chosen[labels.EXCLUSIVE_TOPOLOGY])
        is_reported = is_reported or not is_own


def _template_count(groups: tuple[Group, ...]) -> Iterator[Problem]:
    """One for each group with pods: Jobs with a PodGroup each share one before there are too many (decision 36)."""
    count = sum(group.has_pods for group in groups)
    if count > TEMPLATES_MAX:
        path = WHOLE if groups[0].path == WHOLE else f"{WHOLE}.replicatedJobs"
        message = f"Too many: needs {count} pod group templates; a Workload has at most {TEMPLATES_MAX}"
        yield registry.TOO_MANY_TEMPLATES.at(path, None, message)


def _template_names(jobset: JobSet) -> Iterator[Problem]:
    """Targets are joined to a name: `a-b` and `c` make the same as `a` and `b-c`."""
    entries: tuple[ReplicatedJobScheduling, ...] = ()
    if jobset.spec.scheduling is not None:
        entries = jobset.spec.scheduling.replicated_jobs or ()
    first: dict[str, int] = {}
    for i, entry in enumerate(entries):
        if entry.job is not None:
            continue
        name = names.group_template_name(jobset.metadata.namespace, jobset.metadata.name, entry.target_replicated_jobs)
        other = first.setdefault(name, i)
        if other != i:
            path = f"spec.scheduling.replicatedJobs[{i}].targetReplicatedJobs"
            message = f"makes the template name {name!r}, which spec.scheduling.replicatedJobs[{other}] has"
            yield registry.TEMPLATE_NAME_TAKEN.at(path, None, message)
