"""The life of a JobSet's Workload and PodGroups: created before any Job, kept in step, dropped when nothing runs. Pure.

It says which PodGroups are ready, so that `jobs` creates no Job under one that is absent, terminating or about to be
replaced. Rules: scheduling.md section 6 (life cycle); decisions 22 (dropped fields), 34 (quorum first up, last down),
35 (drift).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects.batch import Pod
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import JOBS, POD_GROUPS, WORKLOADS
from pyjobset.objects.scheduling import PodGroup, Workload
from pyjobset.reconciler.conditions import find
from pyjobset.reconciler.decision import Action, Create, Delete, JsonPatch, Patch, Reason
from pyjobset.reconciler.drift import GATE_OF_FIELD, Accepts, pod_group_drift, workload_drift
from pyjobset.reconciler.outcome import NOTHING, ConditionChange, Outcome
from pyjobset.reconciler.quorum import with_quorums
from pyjobset.reconciler.refusals import held_back
from pyjobset.reconciler.view import Child, State, View


@dataclass(frozen=True, slots=True)
class Groups:
    outcome: Outcome = NOTHING
    ready: frozenset[str] | None = frozenset()
    """Names of the PodGroups that Jobs may be created or resumed under after this decision's actions. None: no grouping
    at all."""
    growable: frozenset[str] | None = frozenset()
    """Those under which a Job may grow: also those that are on their way out. Its pods hold them, and are placed by
    them until the last has gone; those of a Job that has grown wait for those of one that has yet to."""


@dataclass(frozen=True, slots=True)
class _Step:
    """What to do about one object; `is_ready` when it will be right after the actions."""

    actions: tuple[Action, ...] = ()
    reasons: tuple[Reason, ...] = ()
    dropped: tuple[str, ...] = ()
    is_ready: bool = True
    drifted: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    """Fields that the cluster dropped and keeps now: the object waits for its pods to go."""


def drop_groups(view: View) -> Outcome:
    """Delete what scheduling objects there are: the JobSet is suspended or finished and must hold no reservation."""
    if gates.WORKLOAD_AWARE_SCHEDULING not in view.observation.features:
        return NOTHING
    return Outcome(actions=_deletes(view, keep=frozenset()))


def sync_groups(view: View) -> Groups:
    """Bring Workload and PodGroups to what the spec compiles to, with the quorums of this moment."""
    if view.jobset.spec.scheduling is not None and not view.observation.has_scheduling_api:
        return Groups(_degraded(words.API_NOT_SERVED, _NOT_SERVED), ready=None, growable=None)
    wanted = view.scheduling
    if wanted is None:
        deletes = Outcome(actions=_deletes(view, keep=frozenset())) if _gate_is_on(view) else NOTHING
        return Groups(deletes, ready=None, growable=None)
    wanted = with_quorums(view, wanted)
    busy = _groups_with_pods(view)
    accepts = view.observation.accepts
    keep = {wanted.workload.metadata.name} | {g.metadata.name for g in wanted.pod_groups}
    workloads = {w.metadata.name: w for w in view.observation.workloads}
    pod_groups = {g.metadata.name: g for g in view.observation.pod_groups}

    stored = workloads.get(wanted.workload.metadata.name)
    workload = _workload_step(stored, wanted.workload, bool(busy), accepts)
    steps = {
        group.metadata.name: _pod_group_step(
            pod_groups.get(group.metadata.name), group, group.metadata.name in busy, accepts
        )
        for group in wanted.pod_groups
    }
    emptied = _unplaced(view, [pod_groups[name] for name, step in steps.items() if step.returned])
    held = held_back(view.observation.refusals, view.observation.now)
    has_workload = workload.is_ready and (WORKLOADS.kind, wanted.workload.metadata.name) not in held
    if workload.returned and busy <= emptied:
        has_workload = False  # the moment in which no group has pods is the Workload's too
    fit = {name for name, step in steps.items() if step.is_ready and (POD_GROUPS.kind, name) not in held}
    ready = frozenset(fit - emptied if has_workload else ())
    leaving = {n for n in steps if (g := pod_groups.get(n)) is not None and g.metadata.deletion_timestamp is not None}
    growable = ready | {name for name in leaving if (POD_GROUPS.kind, name) not in held}
    all_steps = (workload, *steps.values())
    actions = _deletes(view, keep=frozenset(keep)) + tuple(a for step in all_steps for a in step.actions)
    reasons = tuple(r for step in all_steps for r in step.reasons)
    outcome = Outcome(actions=actions + _suspends(view, emptied), reasons=reasons) + _health(view, all_steps)
    return Groups(outcome, ready, growable)


def _gate_is_on(view: View) -> bool:
    return gates.WORKLOAD_AWARE_SCHEDULING in view.observation.features


def _deletes(view: View, keep: frozenset[str]) -> tuple[Action, ...]:
    """PodGroups first: a Workload is what people look at to see whether anything is reserved."""
    observation = view.observation
    return tuple(
        Delete(POD_GROUPS, group.metadata.name, group.metadata.uid, "Background")
        for group in observation.pod_groups
        if group.metadata.name not in keep and group.metadata.deletion_timestamp is None
    ) + tuple(
        Delete(WORKLOADS, workload.metadata.name, workload.metadata.uid, "Background")
        for workload in observation.workloads
        if workload.metadata.name not in keep and workload.metadata.deletion_timestamp is None
    )


def _unplaced(view: View, groups: Sequence[PodGroup]) -> frozenset[str]:
    """Those of the groups that the scheduler could not place and of which no pod has a node: nothing is lost when their
    pods are made again."""
    if not groups or view.observation.pods is None:
        return frozenset()
    placed = {_group_of(pod) for pod in view.observation.pods if pod.spec.node_name}
    told = {g.metadata.name: find(g.status.conditions, "PodGroupInitiallyScheduled") for g in groups}
    return frozenset(name for name, c in told.items() if c is not None and c.status == "False" and name not in placed)


def _suspends(view: View, emptied: frozenset[str]) -> tuple[Action, ...]:
    """Takes the pods of these groups away. The Jobs are resumed under the group's successor."""
    jobs = (child.job for child in view.children if child.state is State.LIVE and child.job is not None)
    return tuple(
        Patch(JOBS, job.metadata.name, job.metadata.uid, {"spec": {"suspend": True}})
        for job in jobs
        if job.pod_group in emptied and not job.spec.suspend
    )


def _workload_step(stored: Workload | None, wanted: Workload, is_busy: bool, accepts: Accepts) -> _Step:
    name = wanted.metadata.name
    if stored is None:
        return _Step(actions=(Create(WORKLOADS, name, wanted),))
    if stored.metadata.deletion_timestamp is not None:
        return _Step(reasons=(Reason("workload-terminating", (("workload", name),)),), is_ready=False)
    drift = workload_drift(stored, wanted, accepts)
    if drift.other or (drift.returned and not is_busy):
        return _replace(stored, is_busy and not drift.has_other_groups)
    operations: list[Manifest] = []
    for index, has, wants in drift.min_counts:
        path = f"/spec/podGroupTemplates/{index}/schedulingPolicy/gang/minCount"
        operations += [{"op": "test", "path": path, "value": has}, {"op": "replace", "path": path, "value": wants}]
    actions: tuple[Action, ...] = _relabel(stored, wanted)
    if operations:
        actions += (JsonPatch(WORKLOADS, name, stored.metadata.uid, tuple(operations)),)
    return _Step(actions=actions, dropped=drift.dropped, returned=drift.returned)


def _pod_group_step(stored: PodGroup | None, wanted: PodGroup, is_busy: bool, accepts: Accepts) -> _Step:
    name = wanted.metadata.name
    if stored is None:
        return _Step(actions=(Create(POD_GROUPS, name, wanted),))
    drift = pod_group_drift(stored, wanted, accepts)
    counts = tuple(
        Patch(POD_GROUPS, name, stored.metadata.uid, {"spec": {"schedulingPolicy": {"gang": {"minCount": wants}}}})
        for _, _, wants in drift.min_counts
    )
    if stored.metadata.deletion_timestamp is not None:
        # Its pods hold it, and are still placed by it: those that wait must not wait for too many.
        return _Step(counts, (Reason("pod-group-terminating", (("podGroup", name),)),), is_ready=False)
    if drift.other or (drift.returned and not is_busy):
        return _replace(stored, is_busy)
    return _Step(_relabel(stored, wanted) + counts, dropped=drift.dropped, returned=drift.returned)


def _replace(stored: Workload | PodGroup, is_busy: bool) -> _Step:
    """Delete a drifted object; it is created again once the watch shows it gone. Never under running pods.

    A Workload holds no Job back: nobody but people reads it.
    """
    resource = WORKLOADS if isinstance(stored, Workload) else POD_GROUPS
    reason = Reason("scheduling-object-drifted", (("kind", resource.kind), ("name", stored.metadata.name)))
    if is_busy:
        drifted = (f"{resource.kind} {stored.metadata.name}",)
        return _Step(reasons=(reason,), is_ready=resource is WORKLOADS, drifted=drifted)
    delete = Delete(resource, stored.metadata.name, stored.metadata.uid, "Background")
    return _Step(actions=(delete,), reasons=(reason,), is_ready=False)


def _relabel(stored: Workload | PodGroup, wanted: Workload | PodGroup) -> tuple[Action, ...]:
    """Put our labels back; labels that others added stay."""
    missing = {k: v for k, v in wanted.metadata.labels.items() if stored.metadata.labels.get(k) != v}
    if not missing:
        return ()
    resource = WORKLOADS if isinstance(stored, Workload) else POD_GROUPS
    return (Patch(resource, stored.metadata.name, stored.metadata.uid, {"metadata": {"labels": missing}}),)


def _groups_with_pods(view: View) -> frozenset[str]:
    """PodGroups that have pods, terminating ones included: the pods that we see, and those that the Jobs count.

    Where pods cannot be seen, every group of an unfinished Job that is not suspended may have some.
    """
    pods = view.observation.pods
    names = {_group_of(pod) for pod in pods or () if pod.status.phase in ("Pending", "Running")}
    for job in view.observation.jobs:
        is_unseen = pods is None and not (job.spec.suspend or job.is_succeeded or job.is_failed)
        if is_unseen or job.status.active + job.status.terminating > 0:
            names.add(job.pod_group)
    return frozenset(name for name in names if name)


def _group_of(pod: Pod) -> str | None:
    group = pod.spec.scheduling_group
    return group.pod_group_name if group is not None else None


def _health(view: View, steps: Sequence[_Step]) -> Outcome:
    """Condition SchedulingDegraded: the cluster dropped a field, or a drifted object waits for its pods to go."""
    ungrouped = sum(1 for c in view.children if c.state is State.LIVE and _is_ungrouped(view, c))
    if ungrouped:
        again = " them, or suspend and resume the JobSet" if "schedulingGroup" in view.observation.accepts else " them"
        return _degraded(words.FIELDS_DROPPED, f"{ungrouped} of the Jobs {_UNGROUPED}{again}")
    dropped = sorted({field for step in steps for field in step.dropped})
    if dropped:
        fields = ", ".join(f"{field} (feature gate {GATE_OF_FIELD[field]})" for field in dropped)
        message = (
            f"the cluster dropped {fields} from the Workload and PodGroups, so the JobSet is scheduled without; "
            "turn the gate on in kube-apiserver, kube-controller-manager and kube-scheduler to have it"
        )
        return _degraded(words.FIELDS_DROPPED, message)
    returned = sorted({field for step in steps for field in step.returned})
    if returned:
        message = (
            f"the cluster dropped {', '.join(returned)} from the Workload and PodGroups; it keeps them now, and the "
            f"objects are made anew once the pods are gone; {_AT_ONCE}"
        )
        return _degraded(words.FIELDS_DROPPED, message)
    drifted = [name for step in steps for name in step.drifted]
    if drifted:
        message = f"changed by someone and replaced once its pods are gone: {', '.join(drifted)}; {_AT_ONCE}"
        return _degraded(words.OBJECTS_DRIFTED, message)
    restored = "the scheduling objects are what spec.scheduling asks for"
    return Outcome(conditions=(ConditionChange(words.SCHEDULING_DEGRADED, "False", words.RESTORED, restored),))


def _is_ungrouped(view: View, child: Child) -> bool:
    """It should be in a group. Not so one without pods: where the group has none either it does not exist."""
    job = child.job
    return job is not None and not job.pod_group and job.parallelism > 0 and view.placement(child) is not None


_AT_ONCE = "to have it at once, suspend and resume the JobSet"
_UNGROUPED = (
    "were created while the cluster dropped schedulingGroup from pods (feature gate GenericWorkload), so they run "
    "outside their pod groups until they are created again; to have it at once, delete"
)
_NOT_SERVED = (
    "the cluster does not serve scheduling.k8s.io/v1beta1, so the JobSet runs without its pod groups; "
    "turn on the feature gate GenericWorkload and --runtime-config=scheduling.k8s.io/v1beta1=true"
)


def _degraded(reason: str, message: str) -> Outcome:
    return Outcome(
        conditions=(ConditionChange(words.SCHEDULING_DEGRADED, "True", reason, message, is_warning=True),),
        reasons=(Reason("scheduling-degraded", (("reason", reason),)),),
    )
