"""The model Job controller: pods of Indexed Jobs, their counts, success, failure with back-off limit, suspension.

Mirrors batch/v1 as far as a JobSet sees it: FailureTarget or SuccessCriteriaMet come first, Failed or Complete after
the last pod has ended; a suspended Job has no pods and no start time; a pod that failed, or that somebody deleted,
counts and is replaced after the back-off. It refuses loudly the policies of a Job that it does not have.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyjobset.objects.meta import Manifest
from pyjobset.simulation import clock
from pyjobset.simulation.job_rules import suspended
from pyjobset.simulation.server import Refusal, Server
from pyjobset.simulation.store import Change, Name
from pyjobset.simulation.worker import Worker

INDEX = "batch.kubernetes.io/job-completion-index"
ENDED = ("Succeeded", "Failed")
BACKOFF_SECONDS, BACKOFF_SECONDS_MAX = 10.0, 600.0
UNMODELLED = ("activeDeadlineSeconds", "backoffLimitPerIndex", "successPolicy")
FAILED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
COMPLETE = ("CompletionsReached", "Reached expected number of succeeded pods")


@dataclass(slots=True)
class _Memory:
    """Of one Job. The real controller keeps it in finalizers of pods and in the Job's status."""

    failed: set[str] = field(default_factory=set)
    done: set[int] = field(default_factory=set)
    released: set[str] = field(default_factory=set)
    """Pods that the controller deleted itself: they are no failures."""
    failures: int = 0
    """Since the last success."""
    failed_at: float = 0.0


class JobController(Worker):
    def __init__(self, server: Server, *, delay_seconds: float = 0.05) -> None:
        super().__init__(server, delay_seconds=delay_seconds)
        self._memories: dict[str, _Memory] = {}

    def wakes(self, change: Change) -> tuple[Name, ...]:
        if change.name.plural == "jobs":
            if change.type == "DELETED":
                self._memories.pop(change.object["metadata"]["uid"], None)
                return ()
            return (change.name,)
        if change.name.plural != "pods":
            return ()
        owners = change.object["metadata"].get("ownerReferences") or ()
        found = [self.server.store.with_uid(owner["uid"]) for owner in owners]
        names = tuple(name for name in found if name is not None and name.plural == "jobs")
        for name in names:
            job = self.server.store.get(name)
            assert job is not None
            self._count(job, change.object, is_gone=change.type == "DELETED")
        return names

    def _count(self, job: Manifest, pod: Manifest, *, is_gone: bool) -> None:
        """Each pod once, at once: it may be gone before the Job is looked at."""
        memory = self._memories.setdefault(job["metadata"]["uid"], _Memory())
        uid, phase = pod["metadata"]["uid"], pod["status"].get("phase")
        is_deleted = "deletionTimestamp" in pod["metadata"] and "deletionTimestamp" not in job["metadata"]
        if _replaces_failed_only(job):
            is_deleted = is_deleted and is_gone
        if phase == "Succeeded":
            if _index(pod) not in memory.done:
                memory.done.add(_index(pod))
                memory.failures = 0
        elif (phase == "Failed" or is_deleted) and uid not in memory.failed and uid not in memory.released:
            # one that was deleted before it ended counts too: it may never say how it ended
            if _is_ignored(job, pod):
                memory.released.add(uid)
                return
            memory.failed.add(uid)
            memory.failures += 1
            memory.failed_at = asyncio.get_running_loop().time()

    def look(self, key: Name) -> None:
        job = self.server.store.get(key)
        if job is None or _has(job, "Failed") or _has(job, "Complete"):
            return
        for field_ in UNMODELLED:
            if field_ in job["spec"]:
                raise NotImplementedError(f"the model Job controller does not know spec.{field_}")
        memory = self._memories.setdefault(job["metadata"]["uid"], _Memory())
        over = self._over(job, memory)
        if over:
            for pod in _active(self._pods(job)):
                memory.failed.add(pod["metadata"]["uid"])  # whatever still runs counts as failed
                self._delete(pod)
        elif "deletionTimestamp" not in job["metadata"]:
            self._manage(key, job, memory)
            pods = self._pods(job)
            if len(memory.done) >= job["spec"]["completions"] and not _active(pods):
                over = "SuccessCriteriaMet"
        self._tell(key, memory, over)

    def _over(self, job: Manifest, memory: _Memory) -> str:
        for type_ in ("SuccessCriteriaMet", "FailureTarget"):
            if _has(job, type_):
                return type_
        return "FailureTarget" if len(memory.failed) > job["spec"]["backoffLimit"] else ""

    def _pods(self, job: Manifest) -> list[Manifest]:
        found = (self.server.store.get(name) for name in self.server.store.owned_by(job["metadata"]["uid"]))
        return [pod for pod in found if pod is not None and pod["kind"] == "Pod"]

    def _manage(self, key: Name, job: Manifest, memory: _Memory) -> None:
        """Removes what is too much, from the highest index, or else makes what is lacking, from the lowest."""
        spec, active = job["spec"], _active(self._pods(job))
        if spec["completionMode"] != "Indexed":
            raise NotImplementedError("the model Job controller knows Indexed Jobs only")
        most = 0 if spec["suspend"] else min(spec["parallelism"], spec["completions"] - len(memory.done))
        excess = _excess(active, most, spec["completions"])
        for pod in excess:
            memory.released.add(pod["metadata"]["uid"])
            self._delete(pod)
        lacking = most - len(active)
        if _replaces_failed_only(job):
            lacking -= _terminating(self._pods(job))
        if excess or lacking <= 0:
            return
        wait = self._backoff(memory)
        if wait > 0:
            self.wake(key, after_seconds=wait)
            return
        taken = memory.done | {_index(pod) for pod in active}
        for index in [i for i in range(spec["completions"]) if i not in taken][:lacking]:
            self._create(key, job, index)

    def _backoff(self, memory: _Memory) -> float:
        if not memory.failures:
            return 0.0
        pause: float = min(BACKOFF_SECONDS * 2 ** min(memory.failures - 1, 9), BACKOFF_SECONDS_MAX)
        return memory.failed_at + pause - asyncio.get_running_loop().time()

    def _create(self, key: Name, job: Manifest, index: int) -> None:
        template = job["spec"]["template"]
        given = template.get("metadata") or {}
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": key.name,
            "uid": job["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        pod = {
            "metadata": {
                "generateName": f"{key.name}-{index}-",
                "labels": {**(given.get("labels") or {}), INDEX: str(index)},
                "annotations": {**(given.get("annotations") or {}), INDEX: str(index)},
                "ownerReferences": [owner],
            },
            "spec": template.get("spec") or {},
        }
        try:
            self.server.create("pods", key.namespace, pod)
        except Refusal:
            self.wake(key, after_seconds=1.0)

    def _delete(self, pod: Manifest) -> None:
        metadata = pod["metadata"]
        name = Name("pods", metadata["namespace"], metadata["name"])
        self.server.delete(name, {"propagationPolicy": "Background"})

    def _tell(self, key: Name, memory: _Memory, over: str) -> None:
        """Counts and conditions. What a Job comes to is said twice: that it is so, and later that no pod is left."""
        job = self.server.store.get(key)
        if job is None:
            return
        pods, status = self._pods(job), job["status"]
        active = _active(pods)
        ending = _terminating(pods)
        conditions, started = list(status.get("conditions") or ()), status.get("startTime")
        is_suspended = job["spec"]["suspend"]
        if started is None and not is_suspended:
            started = clock.timestamp()
        if over:
            conditions = _set(conditions, over, "True", *(FAILED if over == "FailureTarget" else COMPLETE))
        elif "deletionTimestamp" not in job["metadata"] and suspended(job) != str(bool(is_suspended)):
            if is_suspended:
                conditions, started = _set(conditions, "Suspended", "True", "JobSuspended", "Job suspended"), None
            elif suspended(job):
                conditions = _set(conditions, "Suspended", "False", "JobResumed", "Job resumed")
                started = clock.timestamp()
        self.server.set_status(
            key,
            active=len(active) or None,
            ready=sum(_is_ready(pod) for pod in active),
            succeeded=len(memory.done) or None,
            failed=len(memory.failed) or None,
            terminating=ending,
            completedIndexes=_ranges(sorted(memory.done)) or None,
            startTime=started,
            conditions=conditions or None,
        )
        if over and not ending:
            final, words = ("Failed", FAILED) if over == "FailureTarget" else ("Complete", COMPLETE)
            ended = {"completionTime": clock.timestamp()} if final == "Complete" else {}
            self.server.set_status(key, conditions=_set(conditions, final, "True", *words), **ended)


def _has(job: Manifest, type_: str) -> bool:
    return any(c["type"] == type_ and c["status"] == "True" for c in job["status"].get("conditions") or ())


def _active(pods: Iterable[Manifest]) -> list[Manifest]:
    return [p for p in pods if p["status"].get("phase") not in ENDED and "deletionTimestamp" not in p["metadata"]]


def _terminating(pods: Iterable[Manifest]) -> int:
    return sum("deletionTimestamp" in p["metadata"] for p in pods if p["status"].get("phase") not in ENDED)


def _replaces_failed_only(job: Manifest) -> bool:
    """A pod that terminates is waited for, and counts when it is gone."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def _is_ignored(job: Manifest, pod: Manifest) -> bool:
    """By the pod failure policy: the first rule whose condition the pod has. Pods here have no exit codes."""
    conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions") or ()}
    for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules") or ():
        patterns = rule.get("onPodConditions") or ()
        if any(conditions.get(pattern["type"]) == pattern.get("status", "True") for pattern in patterns):
            if rule["action"] == "FailJob":
                raise NotImplementedError("the model Job controller does not fail Jobs for conditions of pods")
            return bool(rule["action"] == "Ignore")
    return False


def _excess(active: Sequence[Manifest], most: int, completions: int) -> list[Manifest]:
    ranked = sorted(active, key=_index)
    beyond = [pod for pod in ranked if _index(pod) >= completions]
    number = max(len(active) - most, len(beyond))
    return ranked[len(ranked) - number :]


def _is_ready(pod: Manifest) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _index(pod: Manifest) -> int:
    return int(pod["metadata"]["annotations"][INDEX])


def _ranges(indexes: Sequence[int]) -> str:
    """`0,2-4`; two neighbours are two."""
    found: list[list[int]] = []
    for index in indexes:
        if found and found[-1][-1] == index - 1:
            found[-1].append(index)
        else:
            found.append([index])
    texts = (",".join(map(str, run)) if len(run) < 3 else f"{run[0]}-{run[-1]}" for run in found)
    return ",".join(texts)


def _set(conditions: Sequence[Any], type_: str, status: str, reason: str, message: str) -> list[Any]:
    old = next((c for c in conditions if c["type"] == type_), None)
    if old is not None and old["status"] == status:
        return list(conditions)
    condition = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": clock.timestamp(),
    }
    return [condition if c is old else c for c in conditions] + ([] if old else [condition])
