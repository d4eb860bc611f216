"""What failed of a JobSet, or has a node and does not run: Jobs, pods, containers and their nodes. Pure.

Of many failures one is told in full: the first Job that failed is the cause, and the last pod that failed is the news.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from shlex import quote

from pyjobset.cli.explaining.facts import ContainerStatus, Facts, Pod, Terminated, Waiting
from pyjobset.cli.explaining.reasons import Advice, Evidence, Finding, advice, finding
from pyjobset.cli.waiting import is_bound
from pyjobset.objects import conditions
from pyjobset.objects.batch import Job
from pyjobset.objects.meta import controller_of
from pyjobset.reconciler.conditions import find

SLOW_SECONDS = 60.0
"""So long a container may be created before it is news."""
NODES_NAMED_MAX = 5
_USUAL = ("ContainerCreating", "PodInitializing", "")
_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")


def failed_jobs(facts: Facts) -> Iterator[Finding]:
    failed = [j for j in facts.family.jobs if j.is_failed]
    if not failed:
        return
    first = min(failed, key=_failed_at)
    condition = first.condition("Failed")
    assert condition is not None
    pods = [p for p in facts.pods if _owner(p) == first.metadata.uid]
    name = first.metadata.name
    evidence = [Evidence(f"Job {name}", "condition Failed", f"{condition.reason}: {condition.message}")]
    pod, exit_ = _exit(pods)
    help_ = [_log(facts, pod)] if pod is not None else []
    if _would_restarts_help(facts):
        help_.append(advice("allow-restarts", restarts=_restarts_max(facts)))
    counts = {"failed": len(failed), "jobs": len(facts.family.jobs)}
    yield finding("job-failed", f"Job {name}", evidence, help_, job=name, exit=exit_, **counts)


def failed_pods(facts: Facts) -> Iterator[Finding]:
    """Of Jobs that go on."""
    live = {j.metadata.uid for j in facts.family.jobs if not j.is_failed}
    failed = [p for p in facts.pods if p.status.phase == "Failed" and _owner(p) in live]
    if failed:
        last = max(failed, key=lambda p: p.metadata.creation_timestamp or "")
        _, exit_ = _exit([last])
        about = f"Pod {last.metadata.name}"
        yield finding("pods-failed", about, (), [_log(facts, last)], pods=len(failed), exit=exit_)


def stuck_containers(facts: Facts) -> Iterator[Finding]:
    """Pods with a node whose containers wait, by reason."""
    waiting: dict[str, list[tuple[Pod, ContainerStatus, Waiting]]] = {}
    for pod in facts.pods:
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses) if is_bound(pod) else ():
            why = status.state.waiting
            if why is not None and not (why.reason in _USUAL and _age_seconds(pod, facts) < SLOW_SECONDS):
                waiting.setdefault(why.reason, []).append((pod, status, why))
    for reason, found in waiting.items():
        pod, status, why = found[0]
        evidence = [Evidence(f"Pod {pod.metadata.name}", f"container {status.name}", why.message)]
        ended = status.last_state.terminated
        if ended is not None:
            evidence.append(Evidence(f"Pod {pod.metadata.name}", f"container {status.name}", _ending(ended)))
        count = len({p.metadata.name for p, _, _ in found})
        about = f"Pod {pod.metadata.name}"
        yield finding(
            "containers-wait", about, evidence, [_help(facts, pod, status, reason)], pods=count, reason=reason
        )


def nodes_not_ready(facts: Facts) -> Iterator[Finding]:
    ready = {
        n.metadata.name: any(c.type == "Ready" and c.status == "True" for c in n.status.conditions)
        for n in facts.nodes or ()
    }
    on = Counter(p.spec.node_name for p in facts.pods if is_bound(p) and ready.get(p.spec.node_name) is False)
    if on:
        first = next(iter(on))
        names = ", ".join(sorted(on)[:NODES_NAMED_MAX])
        help_ = [advice("describe", f"kubectl describe node {quote(first)}")]
        yield finding("node-not-ready", f"Node {first}", (), help_, pods=on.total(), nodes=len(on), names=names)


def _owner(pod: Pod) -> str:
    owner = controller_of(pod.metadata.owner_references)
    return owner.uid if owner is not None else ""


def _failed_at(job: Job) -> tuple[str, str]:
    condition = job.condition("Failed")
    return (condition.last_transition_time or "") if condition else "", job.metadata.name


def _would_restarts_help(facts: Facts) -> bool:
    """It failed because it may not restart, or not once more."""
    ended = find(facts.jobset.status.conditions, conditions.FAILED) if facts.jobset.status.terminal_state else None
    return ended is not None and ended.reason in (conditions.FAILED_JOBS, conditions.REACHED_MAX_RESTARTS)


def _restarts_max(facts: Facts) -> int:
    policy = facts.jobset.spec.failure_policy
    return policy.max_restarts if policy is not None else 0


def _exit(pods: Sequence[Pod]) -> tuple[Pod | None, str]:
    """The pod that says most about its end, and that in words."""
    for pod in sorted(pods, key=lambda p: p.status.phase != "Failed"):
        where = f"Pod {pod.metadata.name}" + (f" on node {pod.spec.node_name}" if pod.spec.node_name else "")
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            ended = status.state.terminated or status.last_state.terminated
            if ended is not None and (ended.exit_code or ended.signal):
                return pod, f"{where}: container {status.name} {_ending(ended)}"
        if pod.status.phase == "Failed":
            reason = ": ".join(filter(None, (pod.status.reason, pod.status.message))) or "it failed"
            return pod, f"{where}: {reason}"
    return None, "Its pods are gone, and with them their exit codes"


def _ending(ended: Terminated) -> str:
    code = f"exit code {ended.exit_code}" if not ended.signal else f"signal {ended.signal}"
    reason = f" ({ended.reason})" if ended.reason not in ("", "Error") else ""
    return f"ended with {code}{reason}" + (f": {ended.message.strip()}" if ended.message.strip() else "")


def _log(facts: Facts, pod: Pod, *, previous: bool = False) -> Advice:
    command = f"kubectl logs {quote(pod.metadata.name)} -n {quote(facts.jobset.metadata.namespace)}"
    return advice("read-log", command + " --previous" * previous)


def _help(facts: Facts, pod: Pod, status: ContainerStatus, reason: str) -> Advice:
    if reason in _IMAGE:
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        image = next((c.image for c in containers if c.name == status.name), status.image)
        return advice("fix-image", image=image)
    if reason == "CrashLoopBackOff":
        return _log(facts, pod, previous=True)
    name, namespace = quote(pod.metadata.name), quote(facts.jobset.metadata.namespace)
    return advice("describe", f"kubectl describe pod {name} -n {namespace}")


def _age_seconds(pod: Pod, facts: Facts) -> float:
    created = pod.metadata.creation_timestamp
    return (facts.now - datetime.fromisoformat(created)).total_seconds() if created else 0.0
