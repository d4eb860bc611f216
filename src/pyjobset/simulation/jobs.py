"""The model Job controller: pods of Indexed Jobs, their counts, success, failure with back-off limit, suspension.

Mirrors batch/v1 as far as JobSet sees it: a Job is Failed or Complete only after its last pod has ended; a suspended
Job has no pods and no startTime; a failed pod is replaced at once (there is no back-off pause here). Pods carry the
labels and annotations of the template and their completion index.
"""

from collections.abc import Iterable
from typing import Any

from pyjobset.objects.meta import Manifest
from pyjobset.simulation import clock
from pyjobset.simulation.server import Refusal, Server
from pyjobset.simulation.store import Change, Name
from pyjobset.simulation.worker import Worker

INDEX = "batch.kubernetes.io/job-completion-index"
ENDED = ("Succeeded", "Failed")


class JobController(Worker):
    def __init__(self, server: Server, *, delay_seconds: float = 0.05) -> None:
        super().__init__(server, delay_seconds=delay_seconds)

    def wakes(self, change: Change) -> tuple[Name, ...]:
        if change.name.plural == "jobs":
            return (change.name,) if change.type != "DELETED" else ()
        if change.name.plural != "pods":
            return ()
        owners = change.object["metadata"].get("ownerReferences") or ()
        found = (self.server.store.with_uid(owner["uid"]) for owner in owners)
        return tuple(name for name in found if name is not None)

    def look(self, key: Name) -> None:
        job = self.server.store.get(key)
        if job is None or "deletionTimestamp" in job["metadata"] or _finished(job):
            return
        pods = list(self._pods(job))
        active = [pod for pod in pods if _phase(pod) not in ENDED and "deletionTimestamp" not in pod["metadata"]]
        ending = [pod for pod in pods if _phase(pod) not in ENDED and "deletionTimestamp" in pod["metadata"]]
        done = {_index(pod) for pod in pods if _phase(pod) == "Succeeded"} | _indexes(job)
        failed = max(sum(_phase(pod) == "Failed" for pod in pods), job["status"].get("failed") or 0)
        spec = job["spec"]
        completions = spec.get("completions")
        over = ""
        if failed > spec["backoffLimit"]:
            over = "Failed"
        elif completions is not None and len(done) >= completions:
            over = "Complete"
        if over or spec.get("suspend"):
            for pod in active:
                self._delete(pod)
        elif completions is not None:
            self._fill(key, job, active, ending, done)
        self._tell(key, over)

    def _pods(self, job: Manifest) -> Iterable[Manifest]:
        for name in self.server.store.owned_by(job["metadata"]["uid"]):
            pod = self.server.store.get(name)
            if pod is not None and name.plural == "pods":
                yield pod

    def _fill(self, key: Name, job: Manifest, active: list[Manifest], ending: list[Manifest], done: set[int]) -> None:
        """Pods for the lowest indexes that have none; too many go from the highest."""
        spec = job["spec"]
        wanted = [index for index in range(spec["completions"]) if index not in done][: spec["parallelism"]]
        taken = {_index(pod) for pod in (*active, *ending)}
        for pod in active:
            if _index(pod) not in wanted:
                self._delete(pod)
        for index in wanted:
            if index not in taken:
                self._create(key, job, index)

    def _create(self, key: Name, job: Manifest, index: int) -> None:
        template = job["spec"]["template"]
        given = template.get("metadata") or {}
        metadata = job["metadata"]
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": key.name,
            "uid": metadata["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        pod = {
            "metadata": {
                "generateName": f"{key.name}-{index}-",
                "labels": given.get("labels") or {},
                "annotations": {**(given.get("annotations") or {}), INDEX: str(index)},
                "ownerReferences": [owner],
            },
            "spec": template.get("spec") or {},
        }
        try:
            made = self.server.create("pods", key.namespace, pod)
        except Refusal:
            self.wake(key, after_seconds=1.0)
        else:
            self.server.set_status(Name("pods", key.namespace, made["metadata"]["name"]), phase="Pending")

    def _delete(self, pod: Manifest) -> None:
        metadata = pod["metadata"]
        self.server.delete(Name("pods", metadata["namespace"], metadata["name"]))

    def _tell(self, key: Name, over: str) -> None:
        """Counts and conditions, once a change."""
        job = self.server.store.get(key)
        if job is None:
            return
        pods = list(self._pods(job))
        live = [pod for pod in pods if _phase(pod) not in ENDED]
        ending = sum("deletionTimestamp" in pod["metadata"] for pod in live)
        done = {_index(pod) for pod in pods if _phase(pod) == "Succeeded"} | _indexes(job)
        failed = max(sum(_phase(pod) == "Failed" for pod in pods), job["status"].get("failed") or 0)
        is_suspended = bool(job["spec"].get("suspend"))
        conditions = list(job["status"].get("conditions") or ())
        if over and not live:
            reason = "BackoffLimitExceeded" if over == "Failed" else "CompletionsReached"
            message = (
                "Job has reached the specified backoff limit"
                if over == "Failed"
                else "Reached expected number of succeeded pods"
            )
            conditions = _set(conditions, over, "True", reason, message)
        elif is_suspended or any(c["type"] == "Suspended" for c in conditions):
            status = "True" if is_suspended else "False"
            conditions = _set(conditions, "Suspended", status, "JobSuspended" if is_suspended else "JobResumed", "")
        started = job["status"].get("startTime") or clock.timestamp()
        self.server.set_status(
            key,
            active=len(live) - ending or None,
            ready=sum(_is_ready(pod) for pod in live if "deletionTimestamp" not in pod["metadata"]),
            succeeded=len(done) or None,
            failed=failed or None,
            terminating=ending,
            completedIndexes=",".join(map(str, sorted(done))) or None,
            startTime=None if is_suspended and not over else started,
            conditions=conditions or None,
        )


def _finished(job: Manifest) -> bool:
    conditions = job["status"].get("conditions") or ()
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in conditions)


def _phase(pod: Manifest) -> str:
    return str(pod["status"].get("phase") or "Pending")


def _is_ready(pod: Manifest) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _index(pod: Manifest) -> int:
    return int(pod["metadata"]["annotations"][INDEX])


def _indexes(job: Manifest) -> set[int]:
    """Those that are known to be done, also when their pods are gone."""
    return {int(part) for part in (job["status"].get("completedIndexes") or "").split(",") if part}


def _set(conditions: list[Any], type_: str, status: str, reason: str, message: str) -> list[Any]:
    old = next((c for c in conditions if c["type"] == type_), None)
    if old is not None and old["status"] == status:
        return conditions
    condition = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": clock.timestamp(),
    }
    return [c for c in conditions if c["type"] != type_] + [condition]
