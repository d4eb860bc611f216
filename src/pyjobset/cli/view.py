"""A JobSet with its Workload, groups, Jobs and pods, as one tree of plain values with states in words. Pure.

`tree` fetches the objects and calls `view`; its JSON and YAML are these structs, `treetext` makes the lines. States
come from what pods and Jobs do, never from spec.suspend or PodGroupInitiallyScheduled alone (decisions 27 and 30).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyjobset.cli.restarts import Restarts, restarts
from pyjobset.cli.waiting import is_bound, is_placed, is_waiting, quorum, scheduler_message, why_waiting
from pyjobset.objects import conditions
from pyjobset.objects.batch import Job, Pod
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Condition, Struct, controller_of
from pyjobset.objects.scheduling import PodGroup, Workload
from pyjobset.reconciler.conditions import find
from pyjobset.reconciler.in_place import attempt_number
from pyjobset.reconciler.view import label_number

UNTOUCHED_SECONDS = 5.0
"""A controller that runs has done something to a new JobSet after this time."""


@dataclass(frozen=True, slots=True)
class Family:
    """What the cluster has of one JobSet."""

    jobset: JobSet
    workloads: tuple[Workload, ...] = ()
    pod_groups: tuple[PodGroup, ...] = ()
    jobs: tuple[Job, ...] = ()
    pods: tuple[Pod, ...] = ()
    age_seconds: float = 0.0
    """Since the JobSet was created, by the clock of this machine."""


class PodView(Struct, frozen=True):
    name: str
    state: str
    node: str = ""
    why: str = ""
    in_place_attempt: int | None = None
    """What its agent says (restart strategy InPlaceRestart)."""


class JobView(Struct, frozen=True):
    name: str
    state: str
    expected_pods: int
    ready: int = 0
    succeeded: int = 0
    attempt: int = 0
    """Of the JobSet, that it was made for."""
    restarts: int = 0
    """Of this Job alone, by a failure policy rule."""
    pods: tuple[PodView, ...] = ()


class GroupView(Struct, frozen=True):
    name: str
    policy: str
    state: str
    min_count: int | None = None
    topology: str = ""
    bound: int = 0
    """Without those that terminate."""
    terminating: int = 0
    why: str = ""
    jobs: tuple[JobView, ...] = ()


class JobSetView(Struct, frozen=True):
    """`jobs` are those without a PodGroup. `notes` are for a person: what stands in the way, what is degraded."""

    namespace: str
    name: str
    state: str
    restarts: int = 0
    """Of all its Jobs together."""
    job_restarts: int = 0
    """Of single Jobs, added up."""
    restarts_count_towards_max: int = 0
    """Of both kinds."""
    max_restarts: int | None = None
    """None: it has no failure policy."""
    in_place_attempt: int | None = None
    """In which all its pods are (restart strategy InPlaceRestart)."""
    workload: str = ""
    notes: tuple[str, ...] = ()
    groups: tuple[GroupView, ...] = ()
    jobs: tuple[JobView, ...] = ()

    @property
    def is_finished(self) -> bool:
        return self.state in (conditions.TERMINAL_COMPLETED, conditions.TERMINAL_FAILED)


def view(family: Family) -> JobSetView:
    pods_of: Mapping[str, list[Pod]] = defaultdict(list)
    members: Mapping[str | None, list[Pod]] = defaultdict(list)
    for pod in sorted(family.pods, key=lambda p: p.metadata.name):
        owner = controller_of(pod.metadata.owner_references)
        pods_of[owner.uid if owner else ""].append(pod)
        members[pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group else None].append(pod)
    jobs_of: dict[str, list[Job]] = {}
    for job in sorted(family.jobs, key=_order):
        jobs_of.setdefault(_group_name(job), []).append(job)
    made = restarts(family.jobset)

    def views(jobs: Iterable[Job]) -> tuple[JobView, ...]:
        return tuple(_job(job, pods_of.get(job.metadata.uid, ()), made) for job in jobs)

    groups = []
    for group in family.pod_groups:
        jobs = jobs_of.pop(group.metadata.name, [])
        groups.append(_group(group, members[group.metadata.name], jobs, views(jobs)))
    loose = jobs_of.pop("", [])
    for name, jobs in jobs_of.items():
        if any(job.spec.suspend or job.is_succeeded or job.is_failed for job in jobs):
            loose += jobs  # a suspended or finished JobSet has no groups
        else:
            why = "it does not exist, and pods without a node stay Pending until it does"
            groups.append(GroupView(name, policy="", state="Missing", why=why, jobs=views(jobs)))
    jobset = family.jobset
    return JobSetView(
        namespace=jobset.metadata.namespace,
        name=jobset.metadata.name,
        state=_jobset_state(jobset, groups, family.pods),
        restarts=made.of_jobset,
        job_restarts=made.of_jobs,
        restarts_count_towards_max=made.counted,
        max_restarts=made.most,
        in_place_attempt=jobset.status.current_in_place_restart_attempt,
        workload=", ".join(w.metadata.name for w in family.workloads),
        notes=tuple(_notes(family)),
        groups=tuple(groups),
        jobs=views(loose),
    )


def _group_name(job: Job) -> str:
    group = job.spec.template.spec.scheduling_group
    return (group.pod_group_name if group else None) or ""


def _order(job: Job) -> tuple[str, int, str]:
    index = job.metadata.labels.job_index
    return job.metadata.labels.replicated_job_name, label_number(index), job.metadata.name


def _group(group: PodGroup, pods: Sequence[Pod], jobs: Sequence[Job], shown: tuple[JobView, ...]) -> GroupView:
    why = why_waiting(group, pods)
    bound, placed = sum(map(is_bound, pods)), sum(map(is_placed, pods))
    least = quorum(group)
    constraints = group.spec.scheduling_constraints
    if group.metadata.deletion_timestamp is not None:
        state, why = "Terminating", f"{bound} of its pods still run" if bound else ""
    elif why:
        state = "Waiting"
    elif bound:
        state = "Running" if placed else "Terminating"
    elif jobs and all(job.is_succeeded or job.is_failed for job in jobs):
        state = "Finished"
    elif any(not (job.is_succeeded or job.is_failed or job.spec.suspend) for job in jobs):
        state = "Starting"
    else:
        state, why = "Empty", "its Jobs have not started" if jobs else "its Jobs do not exist yet"
    return GroupView(
        name=group.metadata.name,
        policy="basic" if least is None else "gang",
        state=state,
        min_count=least,
        topology=", ".join(t.key for t in constraints.topology) if constraints else "",
        bound=placed,
        terminating=bound - placed,
        why=why,
        jobs=shown,
    )


def _job(job: Job, pods: Iterable[Pod], made: Restarts) -> JobView:
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    most = job.spec.completions
    attempt = job.metadata.labels.restart_attempt
    return JobView(
        name=job.metadata.name,
        state=_job_state(job, made),
        expected_pods=parallelism if most is None else min(parallelism, most),
        ready=job.status.ready,
        succeeded=job.status.succeeded,
        attempt=label_number(attempt),
        restarts=made.of(job),
        pods=tuple(map(_pod, pods)),
    )


def _job_state(job: Job, made: Restarts) -> str:
    if job.metadata.deletion_timestamp is not None:
        return "Terminating"
    if made.is_due(job):
        return "Restarting"
    if job.is_succeeded:
        return "Complete"
    if job.is_failed:
        return "Failed"
    if job.spec.suspend:
        return "Suspended"
    return "Running" if job.status.ready or job.status.succeeded else "Pending"


def _pod(pod: Pod) -> PodView:
    why = scheduler_message([pod]) if is_waiting(pod) else _disruption(pod)
    attempt = attempt_number(pod.metadata.annotations.in_place_restart_attempt or "")
    return PodView(pod.metadata.name, _pod_state(pod), pod.spec.node_name, why, attempt)


def _pod_state(pod: Pod) -> str:
    if pod.metadata.deletion_timestamp is not None:
        return "Terminating"
    if pod.status.phase == "Pending" and pod.spec.node_name:
        return "Starting"
    if pod.status.phase == "Running" and _true(pod.status.conditions, "Ready") is None:
        return "NotReady"
    return pod.status.phase


def _disruption(pod: Pod) -> str:
    condition = _true(pod.status.conditions, "DisruptionTarget")
    return condition.message if condition else ""


def _true(of: Iterable[Condition], type_: str) -> Condition | None:
    return next((c for c in of if c.type == type_ and c.status == "True"), None)


def own_state(jobset: JobSet) -> str:
    """What the JobSet itself says. Empty: it is active, and its pods say more."""
    if jobset.metadata.deletion_timestamp is not None:
        return "Terminating"
    if jobset.status.terminal_state:
        return jobset.status.terminal_state
    is_suspended = _true(jobset.status.conditions, conditions.SUSPENDED) is not None
    if jobset.spec.suspend:
        return "Suspended" if is_suspended else "Suspending"
    return "Resuming" if is_suspended else ""


def _jobset_state(jobset: JobSet, groups: Sequence[GroupView], pods: Sequence[Pod]) -> str:
    if own := own_state(jobset):
        return own
    if any(group.state in ("Waiting", "Missing") for group in groups) or waiting_condition(jobset) is not None:
        return "Waiting"
    return "Running" if any(pod.status.phase in ("Running", "Succeeded") for pod in pods) else "Starting"


def waiting_condition(jobset: JobSet) -> Condition | None:
    """What the controller wrote of Jobs that wait for a topology domain of their own."""
    found = find(jobset.status.conditions, conditions.LEADERS_SCHEDULED)
    is_so = found is not None and (found.status, found.reason) == ("False", conditions.LEADER_UNSCHEDULABLE)
    return found if is_so else None


def _notes(family: Family) -> Iterable[str]:
    status = family.jobset.status
    for type_ in (conditions.FAILED, conditions.BLOCKED, conditions.SCHEDULING_DEGRADED, conditions.RESTARTING_JOBSET):
        condition = _true(status.conditions, type_)
        if condition is not None:
            yield f"{type_}: {condition.message or condition.reason}"
    waits = waiting_condition(family.jobset)
    if waits is not None and not own_state(family.jobset):
        yield waits.message
    is_untouched = not status.conditions and not family.jobs and not status.terminal_state
    if is_untouched and family.age_seconds > UNTOUCHED_SECONDS:
        yield "no Jobs and no status yet: is the controller running?"
