"""Restarts in place (KEP-467): in which attempt the pods are, and whose word the workers wait for. Pure.

The agent in each pod writes the attempt that the pod is in, and holds its worker back until all pods are in the same
one. Called by explanation; the controller's side of it is reconciler.in_place.
"""

from collections import Counter
from collections.abc import Iterator
from shlex import quote

from pyjobset.cli.explaining.commands import namespace_of
from pyjobset.cli.explaining.facts import Facts, Pod
from pyjobset.cli.explaining.reasons import Evidence, Finding, advice, finding
from pyjobset.cli.waiting import is_bound, is_finished
from pyjobset.objects import labels, template
from pyjobset.objects.meta import controller_of
from pyjobset.reconciler.in_place import attempt_number, is_in_place


def in_place(facts: Facts) -> Iterator[Finding]:
    jobset = facts.jobset
    if not is_in_place(jobset) or labels.DISABLE_IN_PLACE_RESTART in jobset.metadata.annotations:
        return
    over = {job.metadata.uid for job in facts.family.jobs if job.is_succeeded or job.is_failed}
    of_live_jobs = [pod for pod in facts.pods if _owner(pod) not in over]
    pods = [pod for pod in of_live_jobs if not is_finished(pod)]
    done = sum(pod.status.phase == "Succeeded" for pod in of_live_jobs)  # in every attempt, and waited for no more
    said = {pod.metadata.name: _attempt(pod) for pod in pods}
    attempts = Counter(attempt for attempt in said.values() if attempt is not None)
    current = jobset.status.current_in_place_restart_attempt
    is_together = len(attempts) == 1 and attempts.total() == len(pods) and current in attempts
    if is_together or not pods:
        if current:
            policy = jobset.spec.failure_policy
            most = policy.max_restarts if policy is not None else 0
            yield finding("restarted-in-place", f"JobSet {jobset.metadata.name}", attempt=current, max=most)
        return
    if all(map(is_bound, pods)) and len(pods) + done >= _expected(facts, over):
        newest = max(attempts, default=0)
        late = next((name for name, attempt in said.items() if attempt != newest), pods[0].metadata.name)
        tells = said[late]
        word = "says nothing" if tells is None else f"attempt {tells}"
        yield finding(
            "in-place-barrier",
            f"Pod {late}",
            [Evidence(f"Pod {late}", f"annotation {labels.IN_PLACE_RESTART_ATTEMPT}", word)],
            [advice("look-at-agent", f"kubectl logs {quote(late)} -n {namespace_of(facts)} --all-containers")],
            pods=len(pods), attempt=newest, there=attempts[newest], silent=sum(a is None for a in said.values()),
        )  # fmt: skip


def _owner(pod: Pod) -> str:
    owner = controller_of(pod.metadata.owner_references)
    return owner.uid if owner is not None else ""


def _attempt(pod: Pod) -> int | None:
    return attempt_number(pod.metadata.annotations.in_place_restart_attempt or "")


def _expected(facts: Facts, over: set[str]) -> int:
    """The pods of the Jobs that are not over."""
    all_of_them = sum(rj.replicas * template.pods(rj.template) for rj in facts.jobset.spec.replicated_jobs)
    finished = sum(job.parallelism for job in facts.family.jobs if job.metadata.uid in over)
    return all_of_them - finished
