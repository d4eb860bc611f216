"""The child Jobs: which to delete, create, suspend, resume and resize. Pure; one pass over the children.

Jobs of an older attempt or with a mapping that is no longer right are deleted; a name is used again once the watch
shows it free. The Jobs of one PodGroup are created together, after the last old Job of that group is gone (decision
31).
"""

from pyjobset.compiler.jobs import compile_job
from pyjobset.compiler.resume import resume_operations
from pyjobset.compiler.scheduling import Placement
from pyjobset.objects import features as gates
from pyjobset.objects import template as templates
from pyjobset.objects.batch import Job
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import JOBS
from pyjobset.reconciler.decision import Action, Create, Delete, JsonPatch, Patch, Reason
from pyjobset.reconciler.in_place import stops
from pyjobset.reconciler.outcome import Outcome
from pyjobset.reconciler.view import Child, State, View


def stop_jobs(view: View) -> Outcome:
    """Of a finished JobSet: delete what still runs, keep the finished Jobs."""
    live = (c.job for c in view.children if c.state in (State.LIVE, State.OUTDATED) and c.job is not None)
    return Outcome(actions=tuple(_delete(job) for job in live))


def replace_jobs(view: View) -> Outcome:
    """Delete Jobs of older attempts, and live Jobs that are mapped to a wrong template or PodGroup."""
    actions: list[Action] = []
    reasons: list[Reason] = []
    stuck = _stuck_groups(view)
    for child in view.children:
        if child.job is None:
            continue
        if child.state is State.OUTDATED:
            actions.append(_delete(child.job))
        elif child.state is State.LIVE and child.job.pod_group in stuck and not child.job.spec.suspend:
            actions.append(_delete(child.job, only_as_seen=True))
            reasons.append(Reason("job-frees-group", (("job", child.job.metadata.name),)))
        elif child.state is State.LIVE and (why := _why_replaced(view, child.job, view.placement(child))):
            actions.append(_delete(child.job, only_as_seen=True))
            reasons.append(Reason(why, (("job", child.job.metadata.name),)))
    return Outcome(tuple(actions), reasons=tuple(reasons))


def _stuck_groups(view: View) -> frozenset[str]:
    """PodGroups that somebody deleted before all of their Jobs ran. The pods that wait hold the group, and the group
    holds back the Jobs that they wait for. Where no pod has a node, Jobs with pods are made again under a new one."""
    going = {g.metadata.name for g in view.observation.pod_groups if g.metadata.deletion_timestamp is not None}
    if not going or view.is_suspended:
        return frozenset()
    held_back = (
        view.placement(child)
        for child in view.children
        if child.state is State.MISSING or (child.state is State.LIVE and child.job and child.job.spec.suspend)
    )
    waited_for = {placement.pod_group_name for placement in held_back if placement is not None}
    placed = {
        pod.spec.scheduling_group.pod_group_name
        for pod in view.observation.pods or ()
        if pod.spec.node_name and pod.spec.scheduling_group is not None
    }
    is_seen = view.observation.pods is not None
    return frozenset(going & waited_for - placed) if is_seen else frozenset()


def _why_replaced(view: View, job: Job, placement: Placement | None) -> str:
    """The code of the reason; empty where the Job stays."""
    if _is_mapped_wrongly(job, placement):
        return "job-mapped-wrongly"
    if _must_do_without(view, job):
        return "job-leaves-group"
    return "job-joins-group" if _can_join_now(view, job, placement) else ""


def _is_mapped_wrongly(job: Job, placement: Placement | None) -> bool:
    """A pod group that the cluster dropped is no wrong mapping: the annotation still tells where the Job belongs."""
    name = job.pod_group
    if placement is None or (name is None and job.metadata.annotations.group_template_name is None):
        return False  # made while the cluster had no pod groups: it runs on as it is
    if job.metadata.annotations.group_template_name != placement.template_name:
        return True
    return name is not None and name != placement.pod_group_name


def _must_do_without(view: View, job: Job) -> bool:
    """A Job that is about to be resumed under a group that the cluster can no longer make: its pods would wait for it
    for ever. It was made suspended, before the scheduling API went away."""
    is_resumed = bool(job.spec.suspend) and not view.is_suspended and not job.status.succeeded
    has_groups = view.jobset.spec.scheduling is None or view.observation.has_scheduling_api
    return is_resumed and not has_groups and job.pod_group is not None


def _can_join_now(view: View, job: Job, placement: Placement | None) -> bool:
    """A Job without its group that has no pod and no work to lose, and could have one: made while the cluster dropped
    the field, or while the group had no pods and so did not exist (decision 21)."""
    if placement is None or job.pod_group is not None or job.status.succeeded:
        return False
    is_empty = job.parallelism == 0 and job.status.active + job.status.terminating == 0
    was_dropped = job.metadata.annotations.group_template_name is not None
    return (bool(job.spec.suspend) or is_empty) and (not was_dropped or "schedulingGroup" in view.observation.accepts)


def create_jobs(view: View, *, allowed: frozenset[str], groups: frozenset[str] | None) -> Outcome:
    """Create the missing Jobs of the ReplicatedJobs that may start, under PodGroups that are ready (None: no groups).

    A suspended JobSet has all its Jobs, suspended too. With BlockingRecreate the last old Job must be gone first.
    """
    if _is_blocking(view) and any(c.state in (State.OUTDATED, State.TERMINATING) for c in view.children):
        return Outcome(reasons=(Reason("jobs-wait-for-old-jobs"),))
    suspend = view.is_suspended
    emptied = _groups_being_emptied(view)
    waiting: set[str] = set()
    actions: list[Action] = []
    for child in view.children:
        if child.state is not State.MISSING or not (suspend or child.replicated_job in allowed):
            continue
        placement = view.placement(child)
        if not suspend and not _may_join(placement, groups, emptied):
            waiting.add(child.replicated_job)
            continue
        body = compile_job(
            view.jobset, child.expected, placement=placement, features=view.observation.features, suspend=suspend
        )
        actions.append(Create(JOBS, child.expected.name, body))
    reasons = tuple(Reason("jobs-wait-for-group", (("replicatedJob", n),)) for n in sorted(waiting))
    return Outcome(tuple(actions), reasons=reasons)


def _is_blocking(view: View) -> bool:
    policy = view.jobset.spec.failure_policy
    return policy is not None and policy.restart_strategy == "BlockingRecreate"


def _may_join(placement: Placement | None, groups: frozenset[str] | None, emptied: frozenset[str]) -> bool:
    if placement is None:
        return True
    return placement.pod_group_name not in emptied and (groups is None or placement.pod_group_name in groups)


def _groups_being_emptied(view: View) -> frozenset[str]:
    """PodGroups that still have an old Job: its terminating pods would count for the new gang's quorum."""
    old = (c for c in view.children if c.state in (State.TERMINATING, State.OUTDATED))
    placements = (view.placement(c) for c in old)
    return frozenset(p.pod_group_name for p in placements if p is not None)


def suspend_jobs(view: View) -> Outcome:
    running = (c.job for c in view.children if c.state is State.LIVE and c.job is not None and not c.job.spec.suspend)
    return Outcome(actions=tuple(_patch_spec(job, {"suspend": True}) for job in running))


def resume_jobs(view: View, *, allowed: frozenset[str], groups: frozenset[str] | None) -> Outcome:
    """Resume suspended Jobs whose ReplicatedJob may start and whose PodGroup is there.

    What a queueing controller changed in the JobSet's templates meanwhile replaces what the Job has (decision 7). The
    API server takes that from a Job that has not started, or whose pods are gone.
    """
    if stops(view):
        return Outcome(reasons=(Reason("jobs-wait-for-old-pods"),))
    emptied = _groups_being_emptied(view)
    actions: list[Action] = []
    for child in view.children:
        job = child.job
        if child.state is not State.LIVE or job is None or not job.spec.suspend or child.replicated_job not in allowed:
            continue
        placement = view.placement(child)
        if not _may_join(placement, groups, emptied) or _why_replaced(view, job, placement):
            continue
        if job.status.start_time is not None:
            if job.condition("Suspended") is None:
                continue  # its pods are still being deleted
            started = {"status": {"startTime": None}}
            actions.append(Patch(JOBS, job.metadata.name, job.metadata.uid, started, subresource="status"))
        actions.append(_resume(view, child, job))
    return Outcome(actions=tuple(actions))


def _resume(view: View, child: Child, job: Job) -> JsonPatch:
    wanted = compile_job(
        view.jobset,
        child.expected,
        placement=view.placement(child),
        features=view.observation.features,
        suspend=False,
    )
    return JsonPatch(
        JOBS,
        job.metadata.name,
        job.metadata.uid,
        resume_operations(wanted, job.metadata.uid, view.observation.features),
    )


def resize_jobs(view: View, *, groups: frozenset[str] | None) -> Outcome:
    """Elastic: parallelism and completions of live Jobs follow the spec (gate ElasticJobSet). A Job grows once its
    PodGroup is there, also where that is on its way out."""
    if gates.ELASTIC_JOBSET not in view.observation.features:
        return Outcome()
    emptied = _groups_being_emptied(view)
    actions: list[Action] = []
    for child in view.children:
        if child.state is not State.LIVE or child.job is None:
            continue
        template = child.expected.replicated_job.template
        wanted = {"parallelism": templates.parallelism(template), "completions": templates.completions(template)}
        has = {"parallelism": child.job.spec.parallelism, "completions": child.job.spec.completions}
        changes = {k: v for k, v in wanted.items() if v is not None and v != has[k]}
        is_growth = templates.parallelism(template) > child.job.parallelism
        if is_growth and not _may_join(view.placement(child), groups, emptied):
            continue
        if _why_replaced(view, child.job, view.placement(child)):
            continue  # it is made again, with the new counts
        if changes and templates.is_indexed(template):
            actions.append(_patch_spec(child.job, changes))
    return Outcome(tuple(actions))


def _patch_spec(job: Job, spec: Manifest) -> Patch:
    return Patch(JOBS, job.metadata.name, job.metadata.uid, {"spec": spec})


def _delete(job: Job, *, only_as_seen: bool = False) -> Delete:
    version = job.metadata.resource_version if only_as_seen else None
    return Delete(JOBS, job.metadata.name, job.metadata.uid, "Foreground", version)
