"""Pods that wait for a node: per PodGroup, what the scheduler wrote, what free room says, and what would help. Pure.

It asks in the order in which things decide: is the group there, are its pods there, may they be scheduled at all, is
there room, has the scheduler looked. Pods without a PodGroup are judged one by one, as with policy basic.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import ceil, sqrt
from shlex import quote

from pyjobset.cli.explaining.commands import controller_log, namespace_of, nodes_command
from pyjobset.cli.explaining.domains import domains_wait
from pyjobset.cli.explaining.facts import Facts, Pod
from pyjobset.cli.explaining.reasons import Advice, Evidence, Finding, advice, finding
from pyjobset.cli.explaining.room import MoreNodes, Need, Place, Room, places, requests, room, shape
from pyjobset.cli.waiting import is_bound, is_waiting, quorum, scheduler_message, topology, unscheduled
from pyjobset.objects import conditions
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Condition
from pyjobset.objects.scheduling import PodGroup
from pyjobset.reconciler.conditions import find
from pyjobset.rules.groups import DEFAULT_SCHEDULER

RETRY_SECONDS_MAX = 10.0
"""The scheduler's podMaxBackoffSeconds: a group is retried at the latest after this times the root of its pods."""
NAMED_MAX = 5
SLOW_SECONDS = 10
"""Within this time after its start a Job has its pods, unless something is in the way."""
_COUNTED = ("Insufficient ", "Too many pods", "node(s) had untolerated taint", "node(s) were unschedulable")
_PREEMPTING = "preempting "
_UNBOUND = "unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True, slots=True)
class Expected:
    """What the JobSet's spec wants of one PodGroup: pods at once, and the Jobs that do not exist."""

    pods: int = 0
    missing_jobs: int = 0


@dataclass(frozen=True, slots=True)
class _Members:
    """One PodGroup with its Jobs and pods. `group` is None where it does not exist, and `name` empty where none is."""

    name: str
    group: PodGroup | None
    jobs: Sequence[Job]
    pods: Sequence[Pod]
    expected: Expected
    quorum: int
    """0: each pod by itself."""
    waiting: Sequence[Pod]
    bound: int

    @property
    def about(self) -> str:
        return f"PodGroup {self.name}" if self.name else f"Pod {self.waiting[0].metadata.name}"

    @property
    def needed(self) -> int:
        """Pods that must be placed now."""
        return min(self.quorum - self.bound, len(self.waiting)) if self.is_gang else len(self.waiting)

    @property
    def is_gang(self) -> bool:
        """The quorum is not placed yet; above it pods come one by one."""
        return self.bound < self.quorum

    @property
    def key(self) -> str:
        keys = topology(self.group) if self.group is not None else ()
        return keys[0].key if keys else ""


class Cluster:
    """The nodes with what is free, counted once; the room for groups that ask the same is the same."""

    def __init__(self, facts: Facts) -> None:
        self.is_known = facts.nodes is not None and facts.occupants is not None
        self.places: Sequence[Place] = places(
            facts.nodes or (), facts.occupants or (), frozenset(p.metadata.uid for p in facts.pods)
        )
        self.domain_of: Mapping[str, Mapping[str, str]] = {
            p.node.metadata.name: p.node.metadata.labels for p in self.places
        }
        self._rooms: dict[Need, Room] = {}

    def room(self, need: Need) -> Room:
        if need not in self._rooms:
            self._rooms[need] = room(need, self.places)
        return self._rooms[need]


def waits(facts: Facts, expected: Mapping[str, Expected]) -> Iterator[Finding]:
    cluster = Cluster(facts)
    for members in _groups(facts, expected):
        found = _incomplete(facts, members) or (_unplaced(facts, members, cluster) if members.waiting else None)
        if found is not None:
            yield found
    yield from _slow_jobs(facts)


def _slow_jobs(facts: Facts) -> Iterator[Finding]:
    """Jobs without a group lack pods, and no event says that these were refused."""
    refused = {event.involved_object.uid for event in facts.events}
    for job in filter(_is_live, facts.family.jobs):
        started = job.status.start_time
        if job.pod_group or job.metadata.uid in refused or started is None:
            continue
        left = job.spec.completions
        most = left if left is None else left - job.status.succeeded - job.failed_index_count
        wanted = job.parallelism if most is None else min(job.parallelism, most)
        seconds = int((facts.now - datetime.fromisoformat(started)).total_seconds())
        if job.status.active < wanted and seconds > SLOW_SECONDS:
            name = job.metadata.name
            over = advice("start-job-over", f"kubectl delete job {quote(name)} -n {namespace_of(facts)}")
            counts = {"wanted": wanted, "active": job.status.active}
            yield finding("job-lacks-pods", f"Job {name}", (), [over, advice("back-off-per-index")], **counts)


def _groups(facts: Facts, expected: Mapping[str, Expected]) -> Iterator[_Members]:
    pods: Mapping[str, list[Pod]] = defaultdict(list)
    jobs: Mapping[str, list[Job]] = defaultdict(list)
    for pod in facts.pods:
        pods[(pod.spec.scheduling_group and pod.spec.scheduling_group.pod_group_name) or ""].append(pod)
    for job in facts.family.jobs:
        group = job.spec.template.spec.scheduling_group
        jobs[(group and group.pod_group_name) or ""].append(job)
    groups = {group.metadata.name: group for group in facts.family.pod_groups}
    for name in dict.fromkeys([*groups, *pods]):
        known = groups.get(name)
        yield _Members(
            name,
            known,
            [j for j in jobs.get(name, ()) if _is_live(j)],
            pods.get(name, ()),
            expected.get(name, Expected()),
            (quorum(known) or 0) if known is not None else 0,
            [p for p in pods.get(name, ()) if is_waiting(p)],
            sum(map(is_bound, pods.get(name, ()))),
        )


def _is_live(job: Job) -> bool:
    return not (job.is_succeeded or job.is_failed or job.spec.suspend or job.metadata.deletion_timestamp)


def _incomplete(facts: Facts, members: _Members) -> Finding | None:
    """The group, or pods that its quorum needs, are not there: the scheduler waits without a word."""
    if members.name and members.group is None:
        if not members.waiting:
            return None
        return finding("group-missing", members.about, (), [controller_log(facts)], pods=len(members.waiting))
    existing = members.bound + len(members.waiting)
    if existing >= members.quorum or not members.jobs or (members.bound and not members.waiting):
        return None
    if 0 < members.expected.pods < members.quorum:
        most = members.expected.pods
        return finding(
            "quorum-too-large", members.about, advice=[advice("lower-quorum", most=most)],
            quorum=members.quorum, most=most,
        )  # fmt: skip
    if members.expected.missing_jobs:
        counts = {"quorum": members.quorum, "existing": existing, "jobs": members.expected.missing_jobs}
        return finding("jobs-missing", members.about, (), [advice("wait")], **counts)
    finished = sum(p.status.phase == "Succeeded" for p in members.pods)
    if finished and members.expected.pods - finished < members.quorum:
        owner = next((j.metadata.name for j in members.jobs if j.status.succeeded), members.jobs[0].metadata.name)
        over = advice("start-job-over", f"kubectl delete job {quote(owner)} -n {namespace_of(facts)}")
        counts = {"quorum": members.quorum, "existing": existing, "finished": finished}
        return finding("pods-finished", members.about, (), [over], **counts)
    slow = [
        j
        for j in members.jobs
        if j.status.active < j.parallelism and (j.status.failed or _was_preempted(facts, members))
    ]
    if slow:
        over = advice("start-job-over", f"kubectl delete job {quote(slow[0].metadata.name)} -n {namespace_of(facts)}")
        counts = {"quorum": members.quorum, "existing": existing}
        return finding("pods-back-off", members.about, (), [over, advice("back-off-per-index")], **counts)
    refused = {event.involved_object.uid for event in facts.events}
    help_ = [] if any(j.metadata.uid in refused for j in members.jobs) else [advice("wait")]
    return finding("pods-missing", members.about, (), help_, quorum=members.quorum, existing=existing)


def preempted_condition(jobset: JobSet) -> Condition | None:
    """It says that a gang was preempted and has not been placed since."""
    found = find(jobset.status.conditions, conditions.POD_GROUPS_SCHEDULED)
    is_so = found is not None and (found.status, found.reason) == ("False", conditions.POD_GROUP_PREEMPTED)
    return found if is_so else None


def _was_preempted(facts: Facts, members: _Members) -> bool:
    found = preempted_condition(facts.jobset)
    return found is not None and found.message.startswith(f"PodGroup {members.name}:")


def _unplaced(facts: Facts, members: _Members, cluster: Cluster) -> Finding:
    """All pods that must be placed together are there."""
    return (
        _not_allowed_to_start(members) or _no_room(facts, members, cluster) or _not_looked_at(facts, members, cluster)
    )


def _not_allowed_to_start(members: _Members) -> Finding | None:
    evidence = _evidence(members)
    gated = [p for p in members.waiting if p.spec.scheduling_gates]
    if gated:
        names = ", ".join(sorted({g.name for p in gated for g in p.spec.scheduling_gates}))
        help_ = [advice("remove-gates", gates=names)]
        return finding("scheduling-gated", members.about, evidence, help_, pods=len(gated), gates=names)
    schedulers = sorted({p.spec.scheduler_name for p in members.pods})
    if members.name and len(schedulers) > 1:
        help_ = [advice("one-scheduler")]
        return finding("mixed-schedulers", members.about, evidence, help_, schedulers=" and ".join(schedulers))
    condition = unscheduled(members.group) if members.group is not None else None
    if condition is not None and condition.reason == "SchedulerError":
        help_ = [advice("one-priority")] if "priority" in condition.message else []
        return finding("scheduler-error", members.about, evidence, help_)
    if any(_PREEMPTING in e.says for e in evidence):
        return finding("preempting", members.about, evidence, [advice("wait")])
    return None


def _no_room(facts: Facts, members: _Members, cluster: Cluster) -> Finding | None:
    if not cluster.is_known:
        return None
    if not cluster.places:
        more = MoreNodes(1, {"cpu": "4", "memory": "16Gi"}, {})
        help_ = [advice("add-nodes", nodes_command(facts, more), count=1, size="room for a pod")]
        return finding("no-nodes", members.about, _evidence(members), help_)
    found = cluster.room(_need(members, cluster))
    evidence = _evidence(members)
    exclusive = _exclusive(members)
    if exclusive and not any(exclusive in place.node.metadata.labels for place in cluster.places):
        help_ = [advice("label-nodes", f"kubectl label node NODE {quote(exclusive)}=VALUE")]
        counts = {"quorum": len(members.waiting), "nodes": len(cluster.places)}
        return finding("topology-label-missing", members.about, evidence, help_, key=exclusive, **counts)
    if taken := domains_wait(facts, members.waiting, cluster.places):
        return taken
    if found.fit >= members.needed:
        return None
    if members.key and not found.labelled:
        help_ = [advice("label-nodes", f"kubectl label node NODE {quote(members.key)}=VALUE")]
        if facts.is_simulated and found.more is not None:
            value = f"{members.key.rpartition('/')[2]}-0"
            command = nodes_command(facts, replace(found.more, labels={**found.more.labels, members.key: value}))
            help_.append(advice("add-labelled-nodes", command))
        return finding(
            "topology-label-missing", members.about, evidence, help_,
            key=members.key, quorum=members.quorum or len(members.waiting), nodes=found.nodes,
        )  # fmt: skip
    if not found.usable:
        help_ = [advice("open-nodes"), *_add(facts, found, "add-nodes")]
        return finding("no-node-usable", members.about, evidence, help_, nodes=found.labelled, barred=_barred(found))
    if found.largest:
        help_ = [*_add(facts, found, "add-larger-nodes"),
                 advice("lower-request", largest=found.largest, scarce=found.scarce)]  # fmt: skip
        return finding(
            "pod-too-large", members.about, evidence, help_,
            asks=found.asks, scarce=found.scarce, largest=found.largest,
        )  # fmt: skip
    return _too_small(facts, members, found, evidence)


def _exclusive(members: _Members) -> str:
    """The node label by which the first waiting pod is placed exclusively, as the leader of its Job or after it."""
    annotations = members.waiting[0].metadata.annotations
    return annotations.exclusive_topology or "" if annotations.node_selector is None else ""


def _too_small(facts: Facts, members: _Members, found: Room, evidence: Sequence[Evidence]) -> Finding:
    counts = {
        "exactness": found.exactness,
        "scarce": found.scarce,
        "asks": found.asks,
        "usable": found.usable,
        "nodes": found.nodes,
        "barred": f"; {_barred(found)}" if found.barred else "",
    }
    help_ = [*_add(facts, found, "add-nodes")]
    if found.fit_empty < members.needed:
        fit_empty = found.fit_empty + members.bound if members.is_gang else found.fit_empty
        help_.append(advice("never-fits", exactness=found.exactness, fit_empty=fit_empty))
    elif holders := _holders(facts, found.scarce):
        help_.append(advice("wait-for-others", holders=holders))
    if not members.is_gang:
        waiting, live = len(members.waiting), len(members.waiting) + members.bound
        return finding("pods-too-many", members.about, evidence, [*help_, advice("ask-less")],
                       waiting=waiting, pods=live, fit=found.fit, **counts)  # fmt: skip
    counts |= {"fit": members.bound + found.fit, "quorum": members.quorum}
    if not members.key:
        return finding("gang-too-large", members.about, evidence, [*help_, advice("ask-less")], **counts)
    if found.fit_anywhere >= members.needed:
        help_.append(advice("drop-constraint"))
    shown = ", ".join(f"{d.name} for {d.fit}" for d in found.domains[:NAMED_MAX])
    rest = len(found.domains) - NAMED_MAX
    return finding(
        "topology-too-small", members.about, evidence, [*help_, advice("ask-less")],
        key=members.key, label=members.key.rpartition("/")[2],
        domains=shown + (f" and {rest} smaller" if rest > 0 else ""), **counts,
    )  # fmt: skip


def _not_looked_at(facts: Facts, members: _Members, cluster: Cluster) -> Finding:
    """There is room as far as it is counted, or nobody may count."""
    evidence = _evidence(members)
    live = members.bound + len(members.waiting)
    seconds_max = ceil(RETRY_SECONDS_MAX * sqrt(live if members.name else 1))
    if not evidence:
        return _silence(facts, members, seconds_max)
    if not cluster.is_known:
        return finding("unschedulable", members.about, evidence, needed=members.needed)
    if any(_UNBOUND in e.says for e in evidence):
        help_ = [advice("make-volume", f"kubectl describe pvc -n {namespace_of(facts)}")]
        return finding("claims-unbound", members.about, evidence, help_)
    is_counted = all(each.is_counted for each, _ in _need(members, cluster).shapes)
    if is_counted and _is_counted(scheduler_message(members.waiting)):
        help_ = [advice("wait")]
        return finding(
            "room-not-seen", members.about, evidence, help_, needed=members.needed, pods=live, seconds=seconds_max
        )
    return finding("held-otherwise", members.about, evidence, [_describe(facts, members)], needed=members.needed)


def _silence(facts: Facts, members: _Members, seconds_max: int) -> Finding:
    scheduler = members.waiting[0].spec.scheduler_name
    if scheduler != DEFAULT_SCHEDULER:
        return finding("other-scheduler", members.about, (), [advice("other-scheduler")], scheduler=scheduler)
    seconds = ceil(_age_seconds(members.waiting, facts.now))
    if seconds <= seconds_max:
        return finding("not-tried", members.about, (), [advice("wait")], seconds=seconds)
    command = facts.of_plane("jobset", "logs", "scheduler")
    help_ = [advice("look-at-scheduler", command)]
    return finding("scheduler-silent", members.about, (), help_, scheduler=scheduler, seconds=seconds)


def _need(members: _Members, cluster: Cluster) -> Need:
    shapes = Counter(map(shape, members.waiting))
    domain = ""
    if members.key:
        nodes = (p.spec.node_name for p in members.pods if is_bound(p))
        domain = next((cluster.domain_of.get(n, {}).get(members.key, "") for n in nodes), "")
    return Need(tuple(shapes.items()), members.needed, members.key, domain)


def _is_counted(message: str) -> bool:
    """The scheduler complains only of what `room` counts, so that its complaint is out of date."""
    _, _, parts = message.partition("nodes are available: ")
    reasons = (part.lstrip("0123456789 ") for part in parts.split(", ")) if parts else ()
    return all(reason.startswith(_COUNTED) for reason in reasons)


def _evidence(members: _Members) -> tuple[Evidence, ...]:
    found = []
    condition = unscheduled(members.group) if members.group is not None else None
    if condition is not None and condition.message:
        found.append(Evidence(members.about, f"condition {condition.type}", condition.message))
    told = [(p, c.message) for p in members.waiting for c in p.status.conditions
            if c.type == "PodScheduled" and c.status == "False" and c.message]  # fmt: skip
    if told:
        about_nodes = scheduler_message(members.waiting)
        pod, message = next((t for t in told if about_nodes and t[1].startswith(about_nodes[:40])), told[0])
        if not any(message in e.says for e in found):
            found.append(Evidence(f"Pod {pod.metadata.name}", "condition PodScheduled", message))
    return tuple(found)


def _add(facts: Facts, found: Room, code: str) -> Iterator[Advice]:
    if found.more is None:
        return
    size = " and ".join(
        [*(f"{value} {name}" for name, value in found.more.resources.items() if name != "pods"),
         *(f"the label {k}={v}" for k, v in found.more.labels.items())]
    )  # fmt: skip
    command = nodes_command(facts, found.more)
    yield advice(code, command, count=found.more.count, size=size)


def _barred(found: Room) -> str:
    return ", ".join(f"{count} {why}" for why, count in found.barred[:NAMED_MAX])


def _holders(facts: Facts, resource: str) -> str:
    """Who has most of it, largest first."""
    held = Counter[str]()
    own = {p.metadata.uid for p in facts.pods}
    for pod in (p for p in facts.occupants or () if p.metadata.uid not in own):
        jobset = pod.metadata.labels.jobset_name
        namespace = pod.metadata.namespace
        held[f"JobSet {namespace}/{jobset}" if jobset else f"pods of namespace {namespace}"] += requests(pod).get(
            resource, 0
        )
    return ", ".join(name for name, value in held.most_common(3) if value)


def _describe(facts: Facts, members: _Members) -> Advice:
    pod = members.waiting[0].metadata.name
    return advice("describe", f"kubectl describe pod {quote(pod)} -n {namespace_of(facts)}")


def _age_seconds(pods: Sequence[Pod], now: datetime) -> float:
    created = [p.metadata.creation_timestamp for p in pods if p.metadata.creation_timestamp]
    return max(0.0, (now - datetime.fromisoformat(max(created))).total_seconds()) if created else 0.0
