"""What stands in the way of a JobSet apart from room: a refusal, the order of startup, its controller. Pure.

Most of it the controller has said in conditions, and the API server in events; here it is taken apart. What the
controller should do next is asked of its own `decide`: what it would do and does not, it cannot.
"""

import re
from collections.abc import Iterable, Iterator
from shlex import quote

from msgspec import UNSET

from pyjobset.cli.explaining.commands import controller_log, namespace_of, turn_on_controller
from pyjobset.cli.explaining.facts import Event, Facts
from pyjobset.cli.explaining.reasons import Advice, Evidence, Finding, advice, finding
from pyjobset.cli.explaining.waits import Expected, preempted_condition
from pyjobset.cli.waiting import is_finished, is_waiting
from pyjobset.objects import conditions, features, template
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet, JobSetStatus
from pyjobset.objects.meta import Condition
from pyjobset.objects.resources import CLAIMS, SERVICES
from pyjobset.reconciler.decide import decide, is_managed
from pyjobset.reconciler.decision import Action, Create, Decision, Delete
from pyjobset.reconciler.observation import Observation
from pyjobset.reconciler.view import State, view_of
from pyjobset.rules.failure_rules import RESTART_ONE, RESTART_ONE_FREELY

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
CLASSES_NAMED_MAX = 5
PREEMPTORS_READ_MAX = 100
_CLASS = re.compile(r"no PriorityClass with name (\S+) was found")
_QUOTA = re.compile(r"exceeded quota: ([^,\s]+)")
_FOREIGN = re.compile(r"(\w+ \S+) exists and belongs to (.+?); it is not touched")
_EARLIER = re.compile(r"(\w+ \S+) is of an earlier JobSet of this name and is still being removed")
_CLAIM = re.compile(rf"{CLAIMS.kind} (\S+) exists already")
_OLD_CLAIM = re.compile(rf"{CLAIMS.kind} (\S+) (?:is being deleted|belongs to a JobSet)")
_RIGHT = re.compile(r'cannot (\w+) resource "([^"]+)"')
_REFUSED = re.compile(r"(\w+ \S+) was refused: ")
_FOLLOWS = re.compile(r"is not made now: its leader (\S+) is not scheduled yet")
"""Exclusive placement: what its leader waits for is told of the leader."""
_RENEWABLE = "suspend and resume"
"""The controller says so where the cluster keeps again what it dropped."""
_BY_CONTROLLER = "as soon as there is one"
_BY_JOB_CONTROLLER = "by the Job controller, at the latest a minute after there is one"
"""Kubernetes' Job controller asks again after 1, 2, 4, up to 60 s."""
_GATE = re.compile(r"feature gate (\w+)")
_UNSEEN = (CLAIMS, SERVICES)
"""What the facts do not hold: a decision would make them anew."""


def condition(jobset: JobSet, type_: str) -> Condition | None:
    """The JobSet's condition of that type, if it is True."""
    return next((c for c in jobset.status.conditions if c.type == type_ and c.status == "True"), None)


def pending(facts: Facts) -> tuple[str, ...]:
    """What a controller would do now. Ours may be about to: only what is still there after a while means something."""
    if facts.jobset.status.terminal_state or condition(facts.jobset, conditions.BLOCKED) is not None:
        return ()
    decision = _decision(facts)
    waiting = [_words(action) for action in decision.actions if action.resource not in _UNSEEN]
    now, then = facts.jobset.status, decision.status
    if then is not None and _verdict(then) != _verdict(now):
        waiting.append("write its status")
    return tuple(waiting)


def _verdict(status: JobSetStatus) -> tuple[object, ...]:
    """What of a status the controller decides; the rest it counts."""
    of_jobs = tuple(entry.job_restarts for entry in status.replicated_jobs_status if entry.job_restarts is not UNSET)
    return status.restarts, status.terminal_state, of_jobs


def expected(facts: Facts) -> dict[str, Expected]:
    """By PodGroup, what the JobSet's spec wants. The name is empty for pods without one."""
    view = view_of(_observation(facts))
    pods: dict[str, int] = {}
    missing: dict[str, int] = {}
    for child in view.children:
        placement = view.placement(child)
        name = placement.pod_group_name if placement is not None else ""
        pods[name] = pods.get(name, 0) + template.pods(child.expected.replicated_job.template)
        missing[name] = missing.get(name, 0) + (child.state is State.MISSING)
    return {name: Expected(count, missing[name]) for name, count in pods.items()}


def obstacles(facts: Facts) -> Iterator[Finding]:
    """Of a JobSet that should run: the gravest first."""
    jobset = facts.jobset
    if not is_managed(jobset.spec.managed_by):
        by = jobset.spec.managed_by
        yield finding("managed-elsewhere", _name(facts), (), [advice("ask-controller", controller=by)], controller=by)
        return
    refused, refused_pods = list(_blocked(facts)), list(_refused_pods(facts))
    yield from refused
    yield from _classes_not_there(facts, [*refused, *refused_pods])
    if facts.pending:
        what = facts.pending[0] + (f" and {len(facts.pending) - 1} more" if len(facts.pending) > 1 else "")
        yield finding("controller-silent", _name(facts), (), [controller_log(facts)], what=what)
    yield from refused_pods
    yield from _terminating(facts)


def startup(facts: Facts) -> Iterator[Finding]:
    """ReplicatedJobs that wait for their turn."""
    spec = facts.jobset.spec
    names = [rj.name for rj in spec.replicated_jobs]
    for reason in _decision(facts).reasons:
        found = dict(reason.arguments)
        if reason.code == "startup-depends-on":
            waiting, on, wanted = str(found["replicatedJob"]), str(found["on"]), str(found["status"])
        elif reason.code == "startup-in-order-waits":
            on, wanted = str(found["replicatedJob"]), "Ready"
            waiting = ", ".join(names[names.index(on) + 1 :])
        else:
            continue
        counts = next((c for c in facts.jobset.status.replicated_jobs_status if c.name == on), None)
        done = 0 if counts is None else counts.succeeded if wanted == "Complete" else counts.ready + counts.succeeded
        replicas = next((rj.replicas for rj in spec.replicated_jobs if rj.name == on), 0)
        is_well = counts is not None and not counts.failed and counts.ready + counts.succeeded >= replicas > done
        code, help_ = (
            ("startup-goes-on", advice("wait")) if is_well else ("startup-waits", advice("look-at-waited", on=on))
        )
        if waiting:
            yield finding(
                code, f"ReplicatedJob {waiting}", (), [help_],
                replicated_job=waiting, on=on, status=wanted, count=done, replicas=replicas,
            )  # fmt: skip


def degraded(facts: Facts) -> Iterator[Finding]:
    """It runs, but not as it was asked for."""
    found = condition(facts.jobset, conditions.SCHEDULING_DEGRADED)
    if found is None:
        if facts.jobset.spec.scheduling is not None and not _has_groups(facts):
            gate = features.WORKLOAD_AWARE_SCHEDULING
            yield finding("scheduling-ignored", _name(facts), (), [turn_on_controller(facts, gate)], gate=gate)
        return
    evidence = [Evidence(_name(facts), f"condition {found.type}", found.message)]
    if found.reason == conditions.OBJECTS_DRIFTED:
        yield finding("drifted", _name(facts), evidence, [advice("wait")])
        return
    if _RENEWABLE in found.message:
        help_ = [advice("suspend-and-resume", _patch(facts, '{"spec":{"suspend":true}}'))]
        yield finding("fields-returned", _name(facts), evidence, help_)
        return
    gates = sorted(set(_GATE.findall(found.message)))
    asked = ",".join(f"{gate}=true" for gate in gates)
    command = facts.of_plane("jobset", "up", "--kubernetes-feature-gates", asked) if gates else ""
    help_ = [advice("turn-on", command, gate=" and ".join(gates))] if gates else []
    code = "api-not-served" if found.reason == conditions.API_NOT_SERVED else "fields-dropped"
    yield finding(code, _name(facts), evidence, help_)


def suspension(facts: Facts) -> Finding:
    """Who holds a suspended JobSet: a queue, or whoever set spec.suspend."""
    queue = facts.jobset.metadata.labels.get(QUEUE_LABEL)
    if queue:
        command = f"kubectl get workloads.kueue.x-k8s.io -n {namespace_of(facts)}"
        return finding("queued", _name(facts), (), [advice("look-at-queue", command)], queue=queue)
    return finding("suspended", _name(facts), (), [advice("resume", _patch(facts, '{"spec":{"suspend":false}}'))])


def _patch(facts: Facts, patch: str) -> str:
    name = quote(facts.jobset.metadata.name)
    return f"kubectl patch jobset {name} -n {namespace_of(facts)} --type=merge -p {quote(patch)}"


def preemption(facts: Facts) -> Iterator[Finding]:
    """It ran, and had to make room."""
    found = preempted_condition(facts.jobset)
    if found is None:
        return
    evidence = [Evidence(_name(facts), f"condition {found.type}", found.message)]
    told = sorted((e for e in facts.events if e.reason == "Preempted"), key=lambda e: e.at, reverse=True)
    by = dict.fromkeys(_related(facts, event) for event in told[:PREEMPTORS_READ_MAX] if event.related is not None)
    evidence += [Evidence(f"Pod {e.involved_object.name}", f"event {e.reason}", e.message) for e in told[:1]]
    whom = ", ".join(list(by)[:CLASSES_NAMED_MAX]) or "a higher priority"
    yield finding("preempted", _name(facts), evidence, [advice("raise-priority")], by=whom)


def evicted(facts: Facts) -> Iterator[Finding]:
    """Of a JobSet that has failed: perhaps because it had to make room."""
    found = preempted_condition(facts.jobset)
    if found is not None:
        evidence = [Evidence(_name(facts), f"condition {found.type}", found.message)]
        yield finding("evicted", _name(facts), evidence, [advice("ignore-disruption")])


def _related(facts: Facts, event: Event) -> str:
    other = event.related
    assert other is not None
    place = f"{other.namespace}/" if other.namespace not in ("", facts.jobset.metadata.namespace) else ""
    return f"{other.kind} {place}{other.name}"


def _blocked(facts: Facts) -> Iterator[Finding]:
    found = condition(facts.jobset, conditions.BLOCKED)
    if found is not None:
        yield from _refusals(facts, "", Evidence(_name(facts), f"condition {found.type}", found.message))


def _classes_not_there(facts: Facts, told: Iterable[Finding]) -> Iterator[Finding]:
    """Those of which nobody has said a word yet: who was refused knows better who tries again."""
    if facts.priority_classes is None:
        return
    names = {name for rj in facts.jobset.spec.replicated_jobs if (name := _class_name(rj.template))}
    names -= {f.arguments["name"] for f in told if f.code == "priority-class-missing"}
    is_ours = facts.jobset.spec.scheduling is not None and not facts.family.jobs
    again = _BY_CONTROLLER if is_ours else _BY_JOB_CONTROLLER
    yield from (_class_missing(facts, name, (), again) for name in sorted(names - facts.priority_classes))


def _refused_pods(facts: Facts) -> Iterator[Finding]:
    """The Job controller tells in events that the API server refuses pods, and people seldom look there."""
    lacking = {j.metadata.uid: j for j in facts.family.jobs if _lacks_pods(j)}
    waiting = {p.metadata.name for p in facts.pods if is_waiting(p)}
    seen: set[str] = set()
    for event in sorted(facts.events, key=lambda e: e.at, reverse=True):
        about = event.involved_object
        is_of_group = about.kind == "PodGroup"
        if (about.uid in lacking or is_of_group) and about.uid not in seen:
            seen.add(about.uid)
            leader = _FOLLOWS.search(event.message)
            if leader is not None and leader[1] in waiting:
                continue
            name = f"{about.kind} {about.name}"
            yield from _refusals(facts, name, Evidence(name, f"event {event.reason}", event.message))


def _lacks_pods(job: Job) -> bool:
    if job.is_succeeded or job.is_failed or job.spec.suspend or job.metadata.deletion_timestamp:
        return False
    most = job.spec.completions
    wanted = job.parallelism if most is None else min(job.parallelism, most - job.status.succeeded)
    return job.status.active < wanted


def _refusals(facts: Facts, pods_of: str, evidence: Evidence) -> Iterator[Finding]:
    """What the API server refused, by its words. `pods_of` is the owner of the refused pods, or empty."""
    text, namespace = evidence.says, namespace_of(facts)
    about = pods_of or _name(facts)
    known = False
    for name in dict.fromkeys(_CLASS.findall(text)):
        known = True
        yield _class_missing(facts, name, [evidence], _BY_JOB_CONTROLLER if pods_of else _BY_CONTROLLER)
    for name in dict.fromkeys(_QUOTA.findall(text)):
        known = True
        help_ = [advice("free-quota", f"kubectl describe resourcequota {quote(name)} -n {namespace}")]
        yield finding("quota-exceeded", about, [evidence], help_, name=name)
    for target, owner in dict.fromkeys(_FOREIGN.findall(text)):
        known = True
        kind, name = target.split(" ", 1)
        help_ = [advice("rename", f"kubectl get {kind.lower()} {quote(name)} -n {namespace} -o yaml")]
        yield finding("foreign-object", about, [evidence], help_, object=target, owner=owner)
    for target in dict.fromkeys(_EARLIER.findall(text)):
        known = True
        yield finding("earlier-terminating", about, [evidence], [advice("wait")], object=target)
    for name in dict.fromkeys(_OLD_CLAIM.findall(text)):
        known = True
        yield finding("claim-terminating", about, [evidence], [advice("wait")], name=name)
    for name in dict.fromkeys(_CLAIM.findall(text)):
        known = True
        help_ = [advice("correct", f"kubectl describe pvc {quote(name)} -n {namespace}")]
        yield finding("claim-not-usable", about, [evidence], help_, name=name)
    for verb, resource in dict.fromkeys(_RIGHT.findall(text)):
        known = True
        yield finding("not-permitted", about, [evidence], [advice("grant")], verb=verb, resource=resource)
    if not known:
        target = next(iter(_REFUSED.findall(text)), "an object that it needs")
        code, named = ("pods-refused", pods_of) if pods_of else ("refused", target)
        yield finding(code, about, [evidence], [advice("correct")], object=named)


def _class_missing(facts: Facts, name: str, evidence: Iterable[Evidence], again: str) -> Finding:
    known = sorted(c for c in facts.priority_classes or () if not c.startswith("system-"))
    listed = ", ".join(known[:CLASSES_NAMED_MAX]) or "there is none yet"
    command = f"kubectl create priorityclass {quote(name)} --value=1000"
    help_ = [advice("create-class", command, known=listed)]
    return finding("priority-class-missing", _name(facts), evidence, help_, name=name, again=again)


def _class_name(job_template: dict[str, object]) -> str:
    return str(template.pod_spec(job_template).get("priorityClassName") or "")


def _terminating(facts: Facts) -> Iterator[Finding]:
    """What must be gone before new Jobs are created."""
    old = {j.metadata.uid for j in facts.family.jobs if j.metadata.deletion_timestamp is not None}
    stopping = [p for p in facts.pods if not is_finished(p) and any(o.uid in old for o in p.metadata.owner_references)]
    if old:
        counts = {"jobs": len(old), "pods": len(stopping)}
        yield finding(
            "old-jobs-terminating",
            _name(facts),
            (),
            _force(facts, stopping[0].metadata.name if stopping else ""),
            **counts,
        )
    for group in facts.family.pod_groups:
        name = group.metadata.name
        if group.metadata.deletion_timestamp is not None:
            held = [p for p in facts.pods if p.spec.scheduling_group and p.spec.scheduling_group.pod_group_name == name]
            live = [p for p in held if not is_finished(p)]
            yield finding("group-terminating", f"PodGroup {name}", (), [advice("wait")], pods=len(live))


def _force(facts: Facts, pod: str) -> list[Advice]:
    if not pod:
        return [advice("wait")]
    command = f"kubectl delete pod {quote(pod)} -n {namespace_of(facts)} --force --grace-period=0"
    return [advice("force-pods", command)]


def _observation(facts: Facts) -> Observation:
    """The controller's own view of it."""
    found = condition(facts.jobset, conditions.SCHEDULING_DEGRADED)
    return Observation(
        facts.jobset,
        facts.now,
        jobs=facts.family.jobs,
        workloads=facts.family.workloads,
        pod_groups=facts.family.pod_groups,
        pods=facts.pods,
        features=features.DEFAULTS | frozenset(_gates(facts)),
        has_scheduling_api=found is None or found.reason != conditions.API_NOT_SERVED,
    )


def _gates(facts: Facts) -> Iterator[str]:
    """Those of the controller that are on, as far as it shows: it admits no JobSet that asks for one that is off."""
    spec, status = facts.jobset.spec, facts.jobset.status
    policy = spec.failure_policy
    if _has_groups(facts):
        yield features.WORKLOAD_AWARE_SCHEDULING
    if policy is not None and any(rule.action in (RESTART_ONE, RESTART_ONE_FREELY) for rule in policy.rules):
        yield features.RESTART_JOB
    if policy is not None and policy.restart_strategy == "InPlaceRestart":
        yield features.IN_PLACE_RESTART
    if spec.active_deadline_seconds is not None:
        yield features.ACTIVE_DEADLINE_SECONDS
    if status.execution_attempts is not None:
        yield features.EXECUTION_ATTEMPTS_TRACKING


def _decision(facts: Facts) -> Decision:
    return decide(_observation(facts))


def _has_groups(facts: Facts) -> bool:
    """The controller does something about spec.scheduling: there are objects, or a Job says that there should be."""
    family = facts.family
    named = (j.metadata.annotations.group_template_name or j.spec.template.spec.scheduling_group for j in family.jobs)
    return bool(family.workloads or family.pod_groups) or any(named) or not family.jobs


def _words(action: Action) -> str:
    verb = "create" if isinstance(action, Create) else "delete" if isinstance(action, Delete) else "change"
    return f"{verb} {action.resource.kind} {action.name}"


def _name(facts: Facts) -> str:
    return f"JobSet {facts.jobset.metadata.name}"
