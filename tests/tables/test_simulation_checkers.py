"""Checkers of worlds: what each of them lets pass, and the smallest thing that it tells of, by name."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pyjobset.objects import labels
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.checkers import (
    ALL,
    Attempts,
    Claims,
    Counters,
    Duplicates,
    Endings,
    Executions,
    Foreigners,
    Gangs,
    Groups,
    Limits,
    Management,
    Orphans,
    Places,
    Quiet,
    Quorums,
    Startup,
    Status,
    Terminal,
)
from pyjobset.simulation.chooser import Choices, Plain, Replayed
from pyjobset.simulation.faults import FOREIGN, Storm
from pyjobset.simulation.jobs import INDEX
from pyjobset.simulation.kubelet import FOREVER, Fate
from pyjobset.simulation.scenario import NAMESPACE, Scenario, Step
from pyjobset.simulation.store import Change, Name, Store
from pyjobset.simulation.world import Checker, play

UID = "jobset-uid"
JOBSET = "jobsets/js"
CONTROLLER = "controller-1"


class Scene:
    """A store that a checker watches, and what it said."""

    def __init__(self, make: type[Checker], scenario: Scenario | None = None, store: Store | None = None) -> None:
        self.at = 0.0
        self.store = store or Store()
        self.told: list[str] = []
        self.storm = Storm(Choices(Replayed([("is the end compared", 0, True)])), frozenset())
        self.checker = make(self.store, scenario or TIMELESS, self.storm, self.told.append)
        self.store.listen(self._see)

    def _see(self, change: Change) -> None:
        self.checker.see(replace(change, at=self.at))

    def put(self, *objects: Manifest, by: str = CONTROLLER) -> None:
        for obj in objects:
            with self.store.acting(by):
                self.store.put(Name(obj["plural"], NAMESPACE, obj["metadata"]["name"]), obj)

    def remove(self, plural: str, name: str, by: str = CONTROLLER) -> None:
        with self.store.acting(by):
            self.store.remove(Name(plural, NAMESPACE, name))


def made(plural: str, name: str, *, owner: str = UID, uid: str = "", is_deleted: bool = False, **more: Any) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": NAMESPACE, "uid": uid or f"{name}-uid", "labels": {}}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
    if is_deleted:
        metadata["deletionTimestamp"] = "2026-11-30T12:00:00Z"
    return {"plural": plural, "metadata": metadata, "spec": {}, "status": {}} | more


def conditions(*true: str) -> list[Manifest]:
    return [{"type": type_, "status": "True", "reason": type_} for type_ in true]


def jobset(
    names: str = "a", *, replicas: int = 1, uid: str = UID, status: Manifest | None = None, **spec: Any
) -> Manifest:
    replicated_jobs = [{"name": name, "replicas": replicas} for name in names]
    spec = {"replicatedJobs": replicated_jobs} | spec
    return made("jobsets", "js", owner="", uid=uid, spec=spec, status=status or {})


def job(
    name: str = "a-0",
    *true: str,
    attempt: int = 0,
    pods: int = 1,
    group: str = "",
    suspend: bool = False,
    status: Manifest | None = None,
    **more: Any,
) -> Manifest:
    template = {"spec": {"schedulingGroup": {"podGroupName": group}} if group else {}}
    spec = {"parallelism": pods, "completions": pods, "suspend": suspend, "template": template}
    found = made("jobs", f"js-{name}", spec=spec, status={"conditions": conditions(*true)} | (status or {}), **more)
    found["metadata"]["labels"] = _labels(name, attempt)
    return found


def pod(
    name: str = "a-0-0", phase: str = "Running", *, attempt: int = 0, group: str = "", node: str = "node", of: str = UID
) -> Manifest:
    job_name = name[: name.rindex("-")]
    spec: Manifest = {"nodeName": node} if node else {}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    found = made("pods", f"js-{name}-{attempt}", owner=f"js-{job_name}-uid", spec=spec, status={"phase": phase})
    found["metadata"]["labels"] = _labels(job_name, attempt, of)
    found["metadata"]["annotations"] = {INDEX: name[-1]}
    return found


def _labels(job_name: str, attempt: int, of: str = UID) -> dict[str, str]:
    return {
        labels.JOBSET_UID: of,
        labels.JOB_KEY: f"key of {job_name}",
        labels.REPLICATED_JOB_NAME: job_name[0],
        labels.RESTART_ATTEMPT: str(attempt),
    }


def group(quorum: int, name: str = "g", **more: Any) -> Manifest:
    return made("podgroups", name, spec={"schedulingPolicy": {"gang": {"minCount": quorum}}}, **more)


def counted(
    *,
    restarts: int = 0,
    single: tuple[int, ...] = (),
    towards: int = 0,
    action: str = "RestartJobSetAndIgnoreMaxRestarts",
) -> Manifest:
    entry = {"name": "a", "jobRestarts": list(single)}
    status = {"restarts": restarts, "restartsCountTowardsMax": towards, "replicatedJobsStatus": [entry]}
    return jobset(failurePolicy={"maxRestarts": 1, "rules": [{"name": "rule", "action": action}]}, status=status)


def ended(state: str, **counts: int) -> Manifest:
    entry = {"name": "a", "succeeded": 0, "failed": 0, "active": 0, "suspended": 0} | counts
    told = {"terminalState": state, "conditions": conditions(state), "replicatedJobsStatus": [entry]}
    return jobset(status=told)


def simple(*steps: Step) -> Scenario:
    container = {"name": "c", "image": "i"}
    pod_template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    template = {"spec": {"completionMode": "Indexed", "parallelism": 1, "completions": 1, "template": pod_template}}
    replicated_jobs = [{"name": "a", "replicas": 1, "template": template}]
    return Scenario({"replicatedJobs": replicated_jobs}, steps, (Fate(2.0),))


TIMELESS = simple()
CLAIMS = [
    {"templates": [{"metadata": {"name": name}}], "retentionPolicy": {"whenDeleted": when}}
    for name, when in (("goes", "Delete"), ("stays", "Retain"))
]
SPECIAL: dict[type[Checker], Scenario] = {
    Claims: replace(TIMELESS, spec={**TIMELESS.spec, "volumeClaimPolicies": CLAIMS}),
    Management: replace(TIMELESS, spec={**TIMELESS.spec, "managedBy": "example.com/other"}),
}
"""Where the checker looks at what was asked for."""

Story = Callable[[Scene], None]
CASES: list[tuple[type[Checker], str, Story, str]] = []
"""The checker, what the case shows, what happens, and what is told of it: nothing where all is well."""


def case(checker: type[Checker], shows: str, told: str = "") -> Callable[[Story], Story]:
    def keep(sequence: Story) -> Story:
        CASES.append((checker, shows, sequence, told))
        return sequence

    return keep


@case(Attempts, "the old attempt has ended")
def _(scene: Scene) -> None:
    scene.put(pod(phase="Failed"), pod("b-0-0"), pod(attempt=1))


@case(Attempts, "the old pod is of a JobSet that had the name before")
def _(scene: Scene) -> None:
    scene.put(pod(of="another-uid"), pod(attempt=1))


@case(Attempts, "a stranger removed the Job from above its pods")
def _(scene: Scene) -> None:
    scene.put(job(), pod())
    scene.remove("jobs", "js-a-0", by="stranger")
    scene.put(pod(attempt=1))


@case(Attempts, "the old attempt runs", "js-a-0-0-1 of attempt (1, 0) starts while js-a-0-0-0 of (0, 0) runs")
def _(scene: Scene) -> None:
    scene.put(pod(), pod(attempt=1))


@case(Counters, "one after the other")
def _(scene: Scene) -> None:
    scene.put(jobset(), counted(restarts=1, towards=1), counted(restarts=2, single=(1,), towards=1))


@case(Counters, "a restart is skipped", "restarts goes from 0 to 2 by controller-1")
def _(scene: Scene) -> None:
    scene.put(jobset(), counted(restarts=2))


@case(Counters, "a restart is taken back", "restarts goes from 1 to 0 by controller-1")
def _(scene: Scene) -> None:
    scene.put(counted(restarts=1), counted())


@case(Counters, "a restart of a Job alone is skipped", "jobRestarts of a-1 goes from 0 to 2 by controller-1")
def _(scene: Scene) -> None:
    scene.put(counted(single=(1,)), counted(single=(1, 2)))


@case(Counters, "more restarts than there may be", "2 restarts count, maxRestarts is 1")
def _(scene: Scene) -> None:
    scene.put(counted(towards=1), counted(towards=2))


@case(Counters, "a restart that does not count", "0 of 1 restarts count, and no rule says that the others do not")
def _(scene: Scene) -> None:
    scene.put(counted(action="RestartJobSet"), counted(restarts=1, action="RestartJobSet"))


@case(Duplicates, "another attempt")
def _(scene: Scene) -> None:
    scene.put(job())
    scene.remove("jobs", "js-a-0")
    scene.put(job(attempt=1))


@case(Duplicates, "a stranger deleted it")
def _(scene: Scene) -> None:
    scene.put(job(), job("a-0", "Complete"))
    scene.remove("jobs", "js-a-0", by="stranger")
    scene.put(job())


@case(Duplicates, "it had not finished")
def _(scene: Scene) -> None:
    scene.put(job())
    scene.remove("jobs", "js-a-0")
    scene.put(job())


@case(Duplicates, "what has run is made again", "js-a-0 attempt (0, 0) is created a second time by controller-1")
def _(scene: Scene) -> None:
    scene.put(job(), job("a-0", "Complete"))
    scene.remove("jobs", "js-a-0")
    scene.put(job())


@case(Endings, "the world of no faults")
def _(_: Scene) -> None:
    pass


@case(Endings, "a Job less", "jobs/js-a-0 ends as nothing, without faults as ([('Complete', 'True')")
def _(scene: Scene) -> None:
    scene.remove("jobs", "js-a-0")


@case(Endings, "one restart more", "jobsets/js ends as ([('Completed', 'True', 'AllJobsCompleted')], {'restarts': 1,")
def _(scene: Scene) -> None:
    name = Name("jobsets", NAMESPACE, "js")
    stored = scene.store.get(name)
    assert stored is not None
    scene.store.put(name, {**stored, "status": {**stored["status"], "restarts": 1}})


@case(Endings, "a stranger did something")
def _(scene: Scene) -> None:
    scene.remove("jobs", "js-a-0")
    scene.storm.seen[FOREIGN] += 1


@case(Foreigners, "what is the JobSet's")
def _(scene: Scene) -> None:
    scene.put(jobset(), made("services", "js"), made("services", "js", spec={"clusterIP": "None"}))
    scene.remove("services", "js")


@case(Foreigners, "others change what is theirs")
def _(scene: Scene) -> None:
    scene.put(made("services", "theirs", owner=""), made("services", "theirs", owner=""), by="bystander")


@case(Foreigners, "what is nobody's is changed", "controller-1 changes services theirs, which is not of a JobSet")
def _(scene: Scene) -> None:
    scene.put(made("services", "theirs", owner=""), by="bystander")
    scene.put(made("services", "theirs", owner="", spec={"clusterIP": "None"}))


@case(Foreigners, "what is another's is deleted", "controller-1 changes jobs theirs, which is not of a JobSet")
def _(scene: Scene) -> None:
    scene.put(made("services", "cron", owner=""), made("jobs", "theirs", owner="cron-uid"), by="bystander")
    scene.remove("jobs", "theirs")


def _wait(scene: Scene, quorum: int) -> None:
    scene.put(group(quorum))
    scene.put(pod("a-0-0", node="", group="g"), pod("a-0-1", node="", group="g"))


@case(Gangs, "all at once, and one that came later")
def _(scene: Scene) -> None:
    _wait(scene, 2)
    scene.put(pod("a-0-0", group="g"), pod("a-0-1", group="g"), pod("a-0-2", node="", group="g"))
    scene.at = 9.0
    scene.put(pod("a-0-2", group="g"))
    scene.checker.end()


@case(Gangs, "one after the other", "1 pods of g were bound before the rest of 2")
def _(scene: Scene) -> None:
    _wait(scene, 2)
    scene.put(pod("a-0-0", group="g"))
    scene.at = 9.0
    scene.put(pod("a-0-1", group="g"))


@case(Gangs, "the rest never came", "only 1 of 2 pods of g were bound together")
def _(scene: Scene) -> None:
    _wait(scene, 2)
    scene.put(pod("a-0-0", group="g"))
    scene.checker.end()


@case(Groups, "the group was there before, though a stranger deleted it")
def _(scene: Scene) -> None:
    scene.put(group(1), pod("b-0-0"))
    scene.remove("podgroups", "g", by="stranger")
    scene.put(pod(group="g"))


@case(Groups, "the group comes after the pod", "js-a-0-0-0 names PodGroup g, which was never created")
def _(scene: Scene) -> None:
    scene.put(pod(group="g"), group(1))


@case(Orphans, "all belong to the JobSet, or to nobody")
def _(scene: Scene) -> None:
    scene.put(jobset(), job(), pod(), made("services", "theirs", owner=""))
    scene.checker.end()


@case(Orphans, "the JobSet is gone", "jobs js-a-0 has lost its owner")
def _(scene: Scene) -> None:
    scene.put(jobset(), job())
    scene.remove("jobsets", "js", by="user")
    scene.checker.end()


@case(Orphans, "the spec asks for less", "Job js-a-1 is not in the spec")
def _(scene: Scene) -> None:
    scene.put(jobset(), job(), job("a-1"))
    scene.checker.end()


@case(Quiet, "a lease is renewed in a quiet world")
def _(scene: Scene) -> None:
    scene.put(job())
    scene.checker.rest()
    scene.put(made("leases", "leader", owner=""))
    scene.checker.end()


@case(Quiet, "somebody writes in a quiet world", "a quiet world is written to: ADDED jobs js-a-0 by controller-1")
def _(scene: Scene) -> None:
    scene.put(jobset())
    scene.checker.rest()
    scene.put(job())
    scene.checker.end()


@case(Quiet, "it goes on and on", "it never comes to rest; the last change: MODIFIED jobs js-a-0 by controller-1")
def _(scene: Scene) -> None:
    scene.put(job(), job())
    scene.checker.end()


@case(Quorums, "all pods of the Job")
def _(scene: Scene) -> None:
    scene.put(jobset(), group(2), job(pods=2, group="g"), pod("a-0-0", group="g"), pod("a-0-1", group="g"))
    scene.checker.end()


@case(Quorums, "one has ended: no more can be had")
def _(scene: Scene) -> None:
    ended_pod = pod("a-0-1", "Succeeded", group="g")
    scene.put(jobset(), group(1), job(pods=2, group="g"), pod("a-0-0", group="g"), ended_pod)
    scene.checker.end()


@case(Quorums, "more than there are pods", "PodGroup g has minCount 3, its Jobs have 2 pods")
def _(scene: Scene) -> None:
    scene.put(jobset(), group(3), job(pods=2, group="g"))
    scene.checker.end()


@case(Quorums, "a part would do, and none has ended", "PodGroup g has minCount 1, its Jobs have 2 pods")
def _(scene: Scene) -> None:
    scene.put(jobset(), group(1), job(pods=2, group="g"), pod("a-0-0", group="g"), pod("a-0-1", group="g"))
    scene.checker.end()


IN_ORDER = {"startupPolicyOrder": "InOrder"}
READY = {"ready": 1}


@case(Startup, "the first one was ready before")
def _(scene: Scene) -> None:
    scene.put(jobset("ab", startupPolicy=IN_ORDER), job(), pod(), job(status=READY), pod("b-0-0"))


@case(Startup, "without an order")
def _(scene: Scene) -> None:
    scene.put(jobset("ab"), pod("b-0-0"))


@case(Startup, "the second one is first", "js-b-0-0-0 starts before js-a-0 is Ready in attempt 0")
def _(scene: Scene) -> None:
    scene.put(jobset("ab", startupPolicy=IN_ORDER), job(), pod("b-0-0"))


@case(Startup, "ready was the attempt before", "js-b-0-0-1 starts before js-a-0 is Ready in attempt 1")
def _(scene: Scene) -> None:
    scene.put(jobset("ab", startupPolicy=IN_ORDER), job(), job(status=READY), pod("b-0-0", attempt=1))


@case(Startup, "ready is not complete", "js-b-0-0-0 starts before js-a-0 is Complete in attempt 0")
def _(scene: Scene) -> None:
    order = [
        {"name": "a", "replicas": 1},
        {"name": "b", "replicas": 1, "dependsOn": [{"name": "a", "status": "Complete"}]},
    ]
    scene.put(jobset(replicatedJobs=order), job(), job(status=READY), pod("b-0-0"))


@case(Status, "it has completed")
def _(scene: Scene) -> None:
    scene.put(ended("Completed", succeeded=1), job("a-0", "Complete"), pod(phase="Succeeded"))
    scene.checker.end()


@case(Status, "it runs")
def _(scene: Scene) -> None:
    scene.put(jobset(scheduling={}), group(1), job(group="g"), pod(group="g"))
    scene.checker.end()


@case(Status, "it is suspended")
def _(scene: Scene) -> None:
    scene.put(jobset(suspend=True), job(suspend=True))
    scene.checker.end()


@case(Status, "a count is wrong", "counts of a are {'succeeded': 0, 'failed': 1")
def _(scene: Scene) -> None:
    scene.put(ended("Failed", failed=1), job("a-0", "Complete"))
    scene.checker.end()


@case(Status, "the condition is missing", "terminalState Completed without its condition")
def _(scene: Scene) -> None:
    scene.put(jobset(status={"terminalState": "Completed"}))
    scene.checker.end()


@case(Status, "a pod runs after the end", "js-a-0-0-0 runs after the end")
def _(scene: Scene) -> None:
    scene.put(ended("Failed", failed=1), job("a-0", "Failed"), pod())
    scene.checker.end()


@case(Status, "a group is held after the end", "a finished JobSet holds podgroups g")
def _(scene: Scene) -> None:
    scene.put(ended("Failed", failed=1), job("a-0", "Failed"), group(1))
    scene.checker.end()


@case(Status, "a Job runs in a suspended JobSet", "Job js-a-0 runs in a suspended JobSet")
def _(scene: Scene) -> None:
    scene.put(jobset(suspend=True), job())
    scene.checker.end()


@case(Status, "a group is held by a suspended JobSet", "a suspended JobSet holds podgroups g")
def _(scene: Scene) -> None:
    scene.put(jobset(suspend=True), job(suspend=True), group(1))
    scene.checker.end()


@case(Status, "nothing runs, and it is not finished", "an unfinished JobSet has no running pod")
def _(scene: Scene) -> None:
    scene.put(jobset(), job("a-0", "Complete"), pod(phase="Succeeded"))
    scene.checker.end()


@case(Status, "a pod is never placed", "js-b-0-0-0 waits for ever")
def _(scene: Scene) -> None:
    scene.put(jobset("ab"), job(), pod(), job("b-0"), pod("b-0-0", node=""))
    scene.checker.end()


@case(Status, "a Job waits for one that runs for ever")
def _(scene: Scene) -> None:
    scene.put(jobset("ab", startupPolicy=IN_ORDER), job(), pod(), job("b-0", suspend=True))
    scene.checker.end()


@case(Status, "a Job is not resumed", "Job js-b-0 stays suspended in a JobSet that is not")
def _(scene: Scene) -> None:
    scene.put(jobset("ab"), job(), pod(), job("b-0", suspend=True))
    scene.checker.end()


@case(Status, "there is no group", "a running JobSet with spec.scheduling has no PodGroup")
def _(scene: Scene) -> None:
    scene.put(jobset(scheduling={}), job(), pod())
    scene.checker.end()


@case(Terminal, "it stays so")
def _(scene: Scene) -> None:
    scene.put(jobset(), job(), ended("Completed"), ended("Completed", succeeded=1))


@case(Terminal, "another JobSet of the name")
def _(scene: Scene) -> None:
    scene.put(jobset(), ended("Failed"))
    scene.remove("jobsets", "js", by="user")
    scene.put(jobset(uid="another-uid"), jobset(uid="another-uid", status={"restarts": 1}))


@case(Terminal, "it changes its mind", "terminalState goes from Completed to Failed")
def _(scene: Scene) -> None:
    scene.put(jobset(), ended("Completed"), ended("Failed"))


@case(Terminal, "it is taken back", "terminalState goes from Failed to nothing")
def _(scene: Scene) -> None:
    scene.put(jobset(), ended("Failed"), jobset())


@case(Terminal, "it starts a Job", "Job js-a-1 is created after the JobSet Completed")
def _(scene: Scene) -> None:
    scene.put(jobset(), job(), ended("Completed"), job("a-1"))


def claim(name: str, *, owner: str = "", **more: Any) -> Manifest:
    return made("persistentvolumeclaims", f"{name}-js", owner=owner, **more)


def _with_claims(scene: Scene) -> None:
    scene.put(jobset(), claim("goes", owner=UID), claim("stays"))


@case(Claims, "one goes with the JobSet, one stays")
def _(scene: Scene) -> None:
    _with_claims(scene)
    scene.put(job())
    scene.checker.end()
    scene.remove("jobsets", "js", by="user")
    scene.remove("persistentvolumeclaims", "goes-js", by="Collector")


@case(Claims, "a stranger deletes one")
def _(scene: Scene) -> None:
    _with_claims(scene)
    scene.remove("persistentvolumeclaims", "stays-js", by="stranger")


@case(Claims, "a kept one has an owner", "claim stays-js is created with the wrong owner for its retention")
def _(scene: Scene) -> None:
    scene.put(jobset(), claim("stays", owner=UID))


@case(Claims, "a kept one goes", "claim stays-js is deleted by Collector while it should stay")
def _(scene: Scene) -> None:
    _with_claims(scene)
    scene.remove("jobsets", "js", by="user")
    scene.remove("persistentvolumeclaims", "stays-js", by="Collector")


@case(Claims, "one goes before its JobSet", "claim goes-js is deleted by controller-1 while it should stay")
def _(scene: Scene) -> None:
    _with_claims(scene)
    scene.remove("persistentvolumeclaims", "goes-js")


@case(Claims, "a Job is too early", "Job js-a-0 is created before claim stays-js")
def _(scene: Scene) -> None:
    scene.put(jobset(), claim("goes", owner=UID), job())


@case(Claims, "one is not made", "an unfinished JobSet has no claim stays-js")
def _(scene: Scene) -> None:
    scene.put(jobset(), claim("goes", owner=UID))
    scene.checker.end()


def _carrying(execution: int) -> Manifest:
    found = job()
    found["metadata"]["annotations"] = {labels.EXECUTION_ATTEMPT: str(execution)}
    return found


@case(Executions, "the one that is counted, and one before")
def _(scene: Scene) -> None:
    scene.put(jobset(status={"executionAttempts": 1}), _carrying(1), _carrying(0))


@case(Executions, "one that is not counted", "Job js-a-0 carries execution 2, counted are 1")
def _(scene: Scene) -> None:
    scene.put(jobset(status={"executionAttempts": 1}), _carrying(2))


def _timed(ended_as: str = "", seconds: int = 0, reason: str = "", *, is_deleted: bool = False) -> Manifest:
    """Started at 12:00:00, with a deadline of 20 s and a TTL of 10 s."""
    status: Manifest = {"startTime": "2026-11-30T12:00:00Z"}
    if ended_as:
        at = f"2026-11-30T12:00:{seconds:02}Z"
        condition = {"type": ended_as, "status": "True", "reason": reason or ended_as, "lastTransitionTime": at}
        status["conditions"] = [condition]
    return jobset(status=status, activeDeadlineSeconds=20, ttlSecondsAfterFinished=10) | (
        {"metadata": made("jobsets", "js", owner="", uid=UID, is_deleted=True)["metadata"]} if is_deleted else {}
    )


@case(Limits, "it fails at its deadline, and goes after its TTL")
def _(scene: Scene) -> None:
    failed = _timed("Failed", 20, "DeadlineExceeded")
    scene.put(_timed(), failed, _timed("Failed", 20, "DeadlineExceeded", is_deleted=True))
    scene.remove("jobsets", "js")
    scene.checker.rest()


@case(Limits, "its end was written by a clock that is ahead")
def _(scene: Scene) -> None:
    scene.put(jobset(), _timed("Completed", 5) | {"spec": {"ttlSecondsAfterFinished": 400, "replicatedJobs": []}})
    scene.checker.rest()


@case(Limits, "it fails too early", "a JobSet fails at its deadline of 20 s after 19 s")
def _(scene: Scene) -> None:
    scene.put(_timed(), _timed("Failed", 19, "DeadlineExceeded"))


@case(Limits, "it runs on", "a JobSet runs on after its deadline")
def _(scene: Scene) -> None:
    scene.put(_timed())
    scene.checker.rest()


@case(Limits, "it stays", "a finished JobSet outlives its TTL")
def _(scene: Scene) -> None:
    scene.put(_timed(), _timed("Completed", 5))
    scene.checker.rest()


@case(Limits, "it is deleted while it runs", "that has not finished, or has no TTL, is deleted by the controller")
def _(scene: Scene) -> None:
    scene.put(_timed(), _timed(is_deleted=True))


@case(Management, "somebody else works on it")
def _(scene: Scene) -> None:
    scene.put(jobset(), job(), ended("Completed"), by="other")


@case(Management, "its TTL is ours")
def _(scene: Scene) -> None:
    scene.put(ended("Completed"), by="other")
    scene.remove("jobsets", "js")


@case(Management, "its status is written", "controller-1 writes to a JobSet of another controller")
def _(scene: Scene) -> None:
    scene.put(jobset(), by="user")
    scene.put(ended("Completed"))


@case(Management, "a Job is made for it", "controller-1 writes jobs js-a-0 for another's JobSet")
def _(scene: Scene) -> None:
    scene.put(jobset(), by="user")
    scene.put(job())


def _placed(where: str) -> Manifest:
    template = {"spec": {"template": {"spec": {"nodeSelector": {"place": where}}}}}
    return jobset(replicatedJobs=[{"name": "a", "replicas": 1, "template": template}])


def _at(where: str, *, suspend: bool = False) -> Manifest:
    found = job(suspend=suspend)
    found["spec"]["template"] = {"spec": {"nodeSelector": {"place": where}}}
    return found


@case(Places, "it runs where it was admitted, and ran before it was sent elsewhere")
def _(scene: Scene) -> None:
    scene.put(_placed("here"), _at("here"), _placed("there"))
    scene.checker.end()


@case(Places, "its write was on its way")
def _(scene: Scene) -> None:
    scene.put(_placed("here"), _at("here", suspend=True), _placed("there"))
    scene.at = 20.0
    scene.put(_at("here"), by="controller-1 late")
    scene.checker.end()


@case(
    Places, "it is resumed where it was", "Job js-a-0 runs with {'place': 'here'}, the JobSet says {'place': 'there'}"
)
def _(scene: Scene) -> None:
    scene.put(_placed("here"), _at("here", suspend=True), _placed("there"))
    scene.at = 20.0
    scene.put(_at("here"))
    scene.checker.end()


@case(Places, "a moment before it was right there")
def _(scene: Scene) -> None:
    scene.put(_placed("here"), _at("here", suspend=True), _placed("there"))
    scene.at = 3.0
    scene.put(_at("here"))
    scene.checker.end()


def _scene(make: type[Checker]) -> Scene:
    """Endings begins where a world ended."""
    store = play(Plain(), frozenset(), checkers=(), given=TIMELESS).store if make is Endings else None
    return Scene(make, SPECIAL.get(make), store=store)


@pytest.mark.parametrize(
    ("checker", "sequence", "told"), [pytest.param(c, s, t, id=f"{c.__name__}: {shows}") for c, shows, s, t in CASES]
)
def test_what_a_checker_tells_of(checker: type[Checker], sequence: Story, told: str) -> None:
    scene = _scene(checker)
    sequence(scene)
    if checker is Endings:
        scene.checker.end()
    if told:
        assert any(told in text for text in scene.told), scene.told
    else:
        assert scene.told == []


@pytest.mark.parametrize("checker", ALL, ids=lambda checker: checker.__name__)
def test_every_checker_has_a_case_that_is_fine_and_one_that_is_not(checker: type[Checker]) -> None:
    assert {bool(told) for tried, _, _, told in CASES if tried is checker} == {False, True}


SUSPENDED = simple(Step(2.0, "suspend"), Step(20.0, "resume"))
FOR_EVER = replace(SUSPENDED, fates=(FOREVER,))


@pytest.mark.parametrize(
    ("scenario", "is_compared"),
    [
        (simple(Step(20.0, "resume")), True),
        (SUSPENDED, False),
        (FOR_EVER, True),
        (replace(FOR_EVER, gates=("ExecutionAttemptsTracking",)), False),
        (replace(FOR_EVER, spec=FOR_EVER.spec | {"startupPolicy": IN_ORDER}), False),
        (replace(TIMELESS, spec=TIMELESS.spec | {"startupPolicy": IN_ORDER}), True),
        (replace(TIMELESS, spec=TIMELESS.spec | {"startupPolicy": IN_ORDER, "suspend": True}), False),
        (replace(FOR_EVER, steps=(Step(2.0, "admit"),)), False),
        (replace(TIMELESS, spec=TIMELESS.spec | {"activeDeadlineSeconds": 9}), False),
    ],
)
def test_an_end_that_hangs_on_the_moment_is_not_compared(scenario: Scenario, *, is_compared: bool) -> None:
    """The store is empty, which is not how any of them ends."""
    scene = Scene(Endings, scenario)
    scene.checker.end()
    assert bool(scene.told) is is_compared
