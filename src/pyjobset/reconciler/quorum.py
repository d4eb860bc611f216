"""The quorum (gang minCount) that each PodGroup should have now, given what is stored and what runs. Pure.

Finished pods do not count for a gang on Kubernetes 1.37, so a replacement pod, or the tail of a work queue, would
wait for ever under the full quorum (decision 20). The computed quorum goes down to the pods that can still be live
when one of them waits, and is back before new Jobs are created. It goes up before Jobs grow and down after they
shrank (decision 34). An explicit quorum is the user's: the compiler gives the same number whatever lives.
"""

import msgspec

from pyjobset.compiler.scheduling import LivePods, SchedulingObjects, compile_scheduling
from pyjobset.objects import template as templates
from pyjobset.objects.batch import Job
from pyjobset.objects.scheduling import Gang, SchedulingPolicy
from pyjobset.reconciler.view import Child, State, View


def with_quorums(view: View, wanted: SchedulingObjects) -> SchedulingObjects:
    """`wanted` with the quorums of this moment. A shared template has the largest quorum of its PodGroups."""
    counts = _live_pods(view)
    live = compile_scheduling(view.jobset, live=counts) if counts else wanted
    assert live is not None
    stored = {g.metadata.name: _min_count(g.spec.scheduling_policy) for g in view.observation.pod_groups}
    waiting = _groups_with_waiting_pods(view)
    shrinking = _is_shrinking(view)
    groups = []
    of_template: dict[str, int] = {}
    for full_group, live_group in zip(wanted.pod_groups, live.pod_groups, strict=True):
        full = _min_count(full_group.spec.scheduling_policy)
        if full is None:
            groups.append(full_group)
            continue
        name = full_group.metadata.name
        quorum = _quorum(
            full=full,
            live=_min_count(live_group.spec.scheduling_policy) or full,
            stored=stored.get(name) or full,
            is_waiting=name in waiting,
            is_shrinking=shrinking,
        )
        spec = full_group.spec
        groups.append(
            full_group
            if quorum == full
            else msgspec.structs.replace(
                full_group, spec=msgspec.structs.replace(spec, scheduling_policy=_gang(quorum))
            )
        )
        assert spec.workload_ref is not None
        template = spec.workload_ref.template_name
        of_template[template] = max(quorum, of_template.get(template, 0))
    new_templates = tuple(
        msgspec.structs.replace(t, scheduling_policy=_gang(of_template[t.name])) if t.name in of_template else t
        for t in wanted.workload.spec.pod_group_templates
    )
    spec_of_workload = msgspec.structs.replace(wanted.workload.spec, pod_group_templates=new_templates)
    workload = msgspec.structs.replace(wanted.workload, spec=spec_of_workload)
    return SchedulingObjects(workload, tuple(groups), wanted.placements)


def _quorum(*, full: int, live: int, stored: int, is_waiting: bool, is_shrinking: bool) -> int:
    if stored > full:
        return stored if is_shrinking else full
    if stored < live:
        return min(live, full)
    return live if is_waiting else stored


def _is_shrinking(view: View) -> bool:
    """Some live Job still has more pods than the spec wants."""
    return any(
        c.state is State.LIVE
        and c.job is not None
        and c.job.parallelism > templates.parallelism(c.expected.replicated_job.template)
        for c in view.children
    )


def _live_pods(view: View) -> LivePods:
    """The Jobs of which pods have finished, or that are not in their group; all others count in full."""
    return {
        child.expected.key: _live_pods_of(child, child.job)
        for child in view.children
        if child.job is not None
        and child.is_current
        and (
            child.is_finished
            or child.job.status.succeeded
            or child.job.status.failed_indexes
            or _is_outside(view, child, child.job)
        )
    }


def _is_outside(view: View, child: Child, job: Job) -> bool:
    """It runs without its group: it was made while the cluster had none."""
    return child.state is State.LIVE and job.pod_group is None and view.placement(child) is not None


def _live_pods_of(child: Child, job: Job) -> int:
    if child.is_finished or job.pod_group is None:
        return 0
    template = child.expected.replicated_job.template
    completions = templates.completions(template)
    if completions is None:  # once a pod has succeeded, the Job controller makes no new ones
        return job.status.active
    over = job.status.succeeded + job.failed_index_count
    return max(0, min(templates.parallelism(template), completions - over))


def _groups_with_waiting_pods(view: View) -> frozenset[str]:
    """A pod that waits for its quorum is active and never gets ready. So is one that just starts: harmless."""
    return frozenset(
        placement.pod_group_name
        for child in view.children
        if child.state is State.LIVE and child.job is not None and child.job.status.active > child.job.status.ready
        if (placement := view.placement(child)) is not None and child.job.pod_group == placement.pod_group_name
    )


def _min_count(policy: SchedulingPolicy) -> int | None:
    return policy.gang.min_count if policy.gang is not None else None


def _gang(min_count: int) -> SchedulingPolicy:
    return SchedulingPolicy(gang=Gang(min_count=min_count))
