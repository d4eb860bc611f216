"""What explain says of every state that it knows: the headline, the codes, and the advice with its command."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pyjobset.cli.explaining.explanation import explain
from pyjobset.cli.explaining.facts import Event, Facts, Pod
from pyjobset.cli.explaining.obstacles import pending
from pyjobset.cli.explaining.reasons import Finding
from pyjobset.cli.explaining.sentences import ADVICE, FINDINGS, STATES
from pyjobset.cli.explaining.text import lines
from pyjobset.objects import conditions as words
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.scheduling import PodGroup
from tests.cli import families
from tests.cli.clusters import GROUP, NOW, RACK, asking, event, facts, group, job, jobset, node, occupant, pods
from tests.cli.families import FULL, NO_VICTIMS, UNSCHEDULABLE
from tests.cli.test_explaining_domains import WAITS
from tests.cli.test_explaining_policy import POLICY

Cases = dict[str, tuple[Facts, str, list[str]]]
"""What is there, how the headline ends, and each finding's code with those of its advice."""

DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
SAID = f"{UNSCHEDULABLE}, {NO_VICTIMS}"
NOWHERE = f"no feasible placements found, {NO_VICTIMS}"
CLASS = 'podgroups.scheduling.k8s.io "x" is forbidden: no PriorityClass with name gold was found'
QUOTA = 'Error creating: pods "js-w-0-0-x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0'
RIGHT = 'jobs.batch is forbidden: User "u" cannot create resource "jobs" in API group "batch" in the namespace "ns"'
FOREIGN = "Service js exists and belongs to Deployment/web; it is not touched: delete or rename one of the two"
VOLUME = "node(s) had volume node affinity conflict"
RESTARTS = [(words.RESTARTING_JOBSET, "True", words.DEFAULT_FAILURE_POLICY, "")]
DONE = {"succeeded": 4, "conditions": [{"type": "Complete", "status": "True"}]}
LOST = {
    "failed": 1,
    "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}],
}


def told(type_: str, reason: str, message: str = "", status: str = "True") -> list[tuple[str, str, str, str]]:
    return [(type_, status, reason, message)]


def preempted(pod: str) -> Event:
    about, by = {"kind": "Pod", "name": pod}, {"kind": "PodGroup", "namespace": "other", "name": "high"}
    return msgspec.convert(
        {"involvedObject": about, "reason": "Preempted", "message": "by podgroup", "related": by}, Event
    )


def attempt(number: str) -> dict[str, str]:
    return {"jobset.sigs.k8s.io/restart-attempt": number}


def on_nodes(count: int, **more: Any) -> list[Pod]:
    return pods(count, "1m", node="n", **more)


def waiting(**more: Any) -> list[Pod]:
    return pods(4, told=FULL, **more)


def finished(count: int) -> list[Pod]:
    return [families.pod(f"done-{n}", node="n", phase="Succeeded", group=GROUP) for n in range(count)]


def failed(name: str, **status: Any) -> Pod:
    value = msgspec.to_builtins(families.pod(name, node="n", group=GROUP))
    value["status"] |= {"phase": "Failed", **status}
    return msgspec.convert(value, Pod)


def exited(code: int, reason: str = "Error", signal: int = 0) -> dict[str, Any]:
    ended = {"exitCode": code, "reason": reason, "signal": signal}
    return {"containerStatuses": [{"name": "c", "state": {"terminated": ended}}]}


def blocked(message: str) -> Facts:
    return facts(jobset(conditions=told(words.BLOCKED, words.REFUSED, message)), node())


def degraded(reason: str, message: str) -> Facts:
    conditions = told(words.SCHEDULING_DEGRADED, reason, message)
    return facts(jobset(conditions=conditions), group(reason="Scheduled"), job(), *on_nodes(4), node())


def stuck(reason: str, message: str = "", *, seconds: int = 5, last: Any = None) -> Facts:
    """A gang of one pod that has a node and whose container waits."""
    (pod,) = on_nodes(1, seconds=seconds)
    value = msgspec.to_builtins(pod)
    state = {"waiting": {"reason": reason, "message": message}}
    status = {"name": "c", "image": "i", "state": state, "lastState": last or {}}
    value["status"] = {"phase": "Pending", "containerStatuses": [status]}
    return facts(jobset(1), group(1, reason="Scheduled"), job(1), msgspec.convert(value, Pod), node())


def of_two_jobs() -> JobSet:
    template = {"spec": {"parallelism": 4, "completions": 4}}
    return jobset(replicatedJobs=[{"name": "w", "replicas": 2, "template": template}])


def in_steps(**order: Any) -> Facts:
    """A leader that is not ready, and a worker that starts after it."""
    template = {"spec": {"parallelism": 1, "completions": 1}}
    leader: dict[str, Any] = {"name": "leader", "template": template}
    worker = {"name": "worker", "template": template}
    if "dependsOn" in order:
        worker["dependsOn"] = order.pop("dependsOn")
    counts = {"name": "leader", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
    counts |= order.pop("counts", {})
    steps = jobset(replicatedJobs=[leader, worker], scheduling=None, status={"replicatedJobsStatus": [counts]}, **order)
    return facts(steps, families.job("js-leader-0", group="", active=1), node())


RACKS = (node("a", rack="r0"), node("b", rack="r0"), node("c", rack="r1"))
GONE = "2026-11-30T11:00:00Z"


def leaving(what: Any) -> Any:
    return msgspec.structs.replace(what, metadata=msgspec.structs.replace(what.metadata, deletion_timestamp=GONE))


def named_class(**more: Any) -> Facts:
    return facts(jobset(pod={"priorityClassName": "gold"}), node(), **more)


def alone(seconds: int, **status: Any) -> Job:
    """A Job without a group that started so many seconds ago."""
    started = (NOW - timedelta(seconds=seconds)).isoformat()
    return families.job("js-w-0", pods=4, group="", startTime=started, **status)


def led(said: str, key: str = "") -> Pod:
    """The leader of a Job that is placed exclusively."""
    annotations = {"alpha.jobset.sigs.k8s.io/exclusive-topology": key} if key else {}
    return asking(
        families.pod("js-w-0-0-abc", group="", told=f"0/1 nodes are available: {said}.", annotations=annotations)
    )


def follower_event() -> Event:
    message = (
        'Error creating: admission webhook "mpod.kb.io" denied the request: a pod that follows its leader (exclusive '
        f"placement by {RACK}) is not made now: its leader js-w-0-0-abc is not scheduled yet"
    )
    return event(job(), message)


def gang(*things: Any, **more: Any) -> Facts:
    """A gang of four whose Job and PodGroup exist."""
    has_group = any(isinstance(t, PodGroup) for t in things)
    return facts(*(() if has_group else (group(said=SAID),)), jobset(), job(), *things, **more)


LIFE: Cases = {
    "completed": (
        facts(jobset(status={"terminalState": "Completed"}), job(**DONE)),
        "has completed: 1 of 1 Job succeeded", [],
    ),
    "completed without Jobs": (
        facts(jobset(status={"terminalState": "Completed"}, conditions=told("Completed", "X", "no Jobs"))),
        "has completed: no Jobs", [],
    ),
    "failed because it had to make room": (
        facts(jobset(status={"terminalState": "Failed"}, conditions=[
            *told("Failed", "FailedJobs", "a Job failed"),
            *told(words.POD_GROUPS_SCHEDULED, words.POD_GROUP_PREEMPTED, f"PodGroup {GROUP}: 0 …", "False")])),
        "has failed: a Job failed", ["evicted ignore-disruption"],
    ),
    "failed": (
        facts(jobset(status={"terminalState": "Failed"}, conditions=told("Failed", "FailedJobs", "a Job failed")),
              job(**LOST), failed("js-w-0-1", **exited(3))),
        "has failed: a Job failed", ["job-failed read-log allow-restarts", "failure-policy"],
    ),
    "deleted": (facts(leaving(jobset()), job()), "is being deleted", ["deleting wait"]),
    "suspended": (
        facts(jobset(suspend=True), job(suspend=True)),
        "is suspended: nothing of it runs, and nothing is reserved for it", ["suspended resume"],
    ),
    "in a queue": (
        facts(jobset(suspend=True, labels={"kueue.x-k8s.io/queue-name": "q"})),
        "is suspended: nothing of it runs, and nothing is reserved for it", ["queued look-at-queue"],
    ),
    "being suspended": (
        facts(jobset(suspend=True), job(), *on_nodes(1)),
        "is being suspended: 1 pod of it is still there", ["suspended resume"],
    ),
    "running": (gang(group(reason="Scheduled"), *on_nodes(4), node()), "runs: 4 of 4 pods placed, 4 ready", []),
    "pods are created": (
        facts(jobset(scheduling=None), families.job("js-w-0", pods=4, group=""), node()),
        "starts: 0 of 4 pods placed", [],
    ),
    "its old pods terminate": (
        facts(jobset(), job(active=4), group(reason="Scheduled"), *map(leaving, on_nodes(4))),
        "starts: 0 of 4 pods placed", [],
    ),
    "restarting": (
        facts(jobset(conditions=RESTARTS, status={"restarts": 2}), job(labels=attempt("2")), *on_nodes(4), group()),
        "is in restart 2: its Jobs are created again", ["restarted"],
    ),
    "old Jobs stop": (
        facts(jobset(conditions=RESTARTS, status={"restarts": 1}), leaving(job()), *on_nodes(2), group()),
        "is in restart 1: old Jobs are not gone yet", ["old-jobs-terminating force-pods", "restarted"],
    ),
    "old Jobs stop without pods": (
        facts(jobset(conditions=RESTARTS, status={"restarts": 1}), leaving(job()), group()),
        "is in restart 1: old Jobs are not gone yet", ["old-jobs-terminating wait", "restarted"],
    ),
    "its group is replaced": (
        gang(leaving(group(reason="Scheduled")), *on_nodes(4)),
        "waits: a PodGroup is not gone yet", ["group-terminating wait"],
    ),
    "someone else's": (
        facts(jobset(managedBy="kueue.x-k8s.io/multikueue")),
        "waits: another controller is in charge", ["managed-elsewhere ask-controller"],
    ),
    "nobody does anything": (
        facts(jobset(), node(), pending=("create Job js-w-0", "create PodGroup g")),
        "waits: the controller does nothing", ["controller-silent look-at-controller"],
    ),
    "a worker after its leader": (
        in_steps(dependsOn=[{"name": "leader", "status": "Ready"}]),
        "waits: worker can start only after leader", ["startup-waits look-at-waited"],
    ),
    "a worker after its leader is done": (
        in_steps(dependsOn=[{"name": "leader", "status": "Complete"}]),
        "waits: worker can start only after leader", ["startup-waits look-at-waited"],
    ),
    "a worker after its leader, which runs": (
        in_steps(dependsOn=[{"name": "leader", "status": "Complete"}], counts={"ready": 1}),
        "starts: 0 of 1 pod placed", ["startup-goes-on wait"],
    ),
    "a worker after its leader, which has failed": (
        in_steps(dependsOn=[{"name": "leader", "status": "Complete"}], counts={"ready": 1, "failed": 1}),
        "waits: worker can start only after leader", ["startup-waits look-at-waited"],
    ),
    "in order": (
        in_steps(startupPolicy={"startupPolicyOrder": "InOrder"}),
        "waits: worker can start only after leader", ["startup-waits look-at-waited"],
    ),
}  # fmt: skip
REFUSALS: Cases = {
    "a class that is not there, by the controller": (
        blocked(f"PodGroup x was refused: {CLASS}"),
        "waits: the PriorityClass gold does not exist", ["priority-class-missing create-class"],
    ),
    "a class that is not there, by looking": (
        named_class(priority_classes=frozenset({"silver"})),
        "waits: the PriorityClass gold does not exist", ["priority-class-missing create-class"],
    ),
    "a class that is there": (named_class(priority_classes=frozenset({"gold"})), "starts: 0 of 0 pods placed", []),
    "classes may not be read": (
        named_class(unreadable=("priorityclasses",)), "starts: 0 of 0 pods placed", ["not-allowed"],
    ),
    "quota, of Jobs": (
        blocked(f"Job js-w-0 was refused: {QUOTA}"), "waits: the quota small is used up", ["quota-exceeded free-quota"],
    ),
    "quota, of pods": (
        gang(event(job(), QUOTA), node()), "waits: the quota small is used up",
        ["quota-exceeded free-quota", "pods-missing"],
    ),
    "pods, otherwise": (
        gang(event(job(), "pods are forbidden: violates PodSecurity"), node()),
        "waits: the pods of Job js-w-0 are refused", ["pods-refused correct", "pods-missing"],
    ),
    "followers of a leader that waits": (
        facts(jobset(scheduling=None), job(active=1), led(f"1 {VOLUME}"), follower_event(), node()),
        "waits: the scheduler finds no place", ["held-otherwise describe"],
    ),
    "followers of a leader that is gone": (
        facts(jobset(scheduling=None), job(), follower_event(), node()),
        "waits: the pods of Job js-w-0 are refused", ["pods-refused correct"],
    ),
    "pods that were evicted and are not made yet": (
        facts(jobset(scheduling=None), alone(11), node()),
        "waits: the Job controller has not made all pods", ["job-lacks-pods start-job-over back-off-per-index"],
    ),
    "pods that are not made yet, just now": (
        facts(jobset(scheduling=None), alone(10), node()), "starts: 0 of 4 pods placed", [],
    ),
    "pods of which as many are there as are left": (
        facts(jobset(scheduling=None), alone(60, succeeded=3, active=1), node()), "starts: 0 of 1 pod placed", [],
    ),
    "a claim of the group": (
        gang(event(group(), "resource claim template not found", "PodGroup"), node()),
        f"waits: the pods of PodGroup {GROUP} are refused", ["pods-refused correct", "pods-missing wait"],
    ),
    "pods long ago": (facts(jobset(), group(reason="Scheduled"), event(job(), QUOTA), job(active=4), *on_nodes(4)),
                      "runs: 4 of 4 pods placed, 4 ready", []),
    "the name is taken": (
        blocked(FOREIGN), "waits: Service js belongs to someone else", ["foreign-object rename"],
    ),
    "a claim that does not fit": (
        blocked("PersistentVolumeClaim d-js exists already and is not what the template asks for: spec.x is 1"),
        "waits: the claim d-js cannot be used", ["claim-not-usable correct"],
    ),
    "a claim that is deleted while it is used": (
        blocked("PersistentVolumeClaim d-js is being deleted; it is created anew once it is gone, and no Job is"),
        "waits: the claim d-js is not gone yet", ["claim-terminating wait"],
    ),
    "a claim of a JobSet that was deleted": (
        blocked("PersistentVolumeClaim d-js belongs to a JobSet of this name that was deleted; it is created anew"),
        "waits: the claim d-js is not gone yet", ["claim-terminating wait"],
    ),
    "a group of an earlier JobSet": (
        blocked("; ".join(f"{kind} g is of an earlier JobSet of this name and is still being removed; this one goes on"
                          " by itself" for kind in ("Workload", "PodGroup"))),
        "waits: Workload g of an earlier JobSet is not gone yet", ["earlier-terminating wait"] * 2,
    ),
    "no right": (blocked(f"Job js-w-0 was refused: {RIGHT}"), "waits: create jobs is not permitted",
                 ["not-permitted grant"]),
    "anything else": (
        blocked("Job js-w-0 was refused: no such luck"), "waits: Job js-w-0 is refused", ["refused correct"],
    ),
    "several": (
        blocked(f"{FOREIGN}; Job js-w-0 was refused: {QUOTA}; PodGroup x was refused: {CLASS}"),
        "waits: the PriorityClass gold does not exist",
        ["priority-class-missing create-class", "quota-exceeded free-quota", "foreign-object rename"],
    ),
}  # fmt: skip
GROUPS: Cases = {
    "no group": (
        facts(jobset(), job(), *pods(4), node()), "waits: a PodGroup is missing", ["group-missing look-at-controller"],
    ),
    "a quorum that cannot be": (
        gang(group(9), *pods(4), node()), "waits: a gang can never form", ["quorum-too-large lower-quorum"],
    ),
    "Jobs to come": (
        facts(of_two_jobs(), group(8), job(), *pods(4), node()), "waits: a gang lacks Jobs", ["jobs-missing wait"],
    ),
    "pods to come": (gang(group(), *pods(3), node()), "waits: a gang lacks pods", ["pods-missing wait"]),
    "pods that failed are made again later": (
        facts(jobset(), group(), job(failed=3), *pods(1), node()),
        "waits: the Job controller waits before it makes its pods again",
        ["pods-back-off start-job-over back-off-per-index"],
    ),
    "a pod that is made again": (
        gang(group(), *pods(3), failed("x", **exited(1)), node()),
        "waits: a gang lacks pods", ["pods-missing wait", "pods-failed read-log"],
    ),
    "peers have finished": (
        gang(group(), *pods(1), *finished(3), node()), "waits: a gang lacks pods", ["pods-finished start-job-over"],
    ),
    "two schedulers": (
        gang(*pods(3), asking(families.pod("x", group=GROUP), schedulerName="other"), node(cpu="9")),
        "waits: its pods have different schedulers", ["mixed-schedulers one-scheduler"],
    ),
    "two priorities": (
        gang(group(reason="SchedulerError", said="all pods should have the same priority"), *pods(4), node(cpu="9")),
        "waits: the scheduler cannot place it", ["scheduler-error one-priority"],
    ),
    "another error": (
        gang(group(reason="SchedulerError", said="it broke"), *pods(4), node(cpu="9")),
        "waits: the scheduler cannot place it", ["scheduler-error"],
    ),
    "gated": (
        gang(*pods(4, schedulingGates=[{"name": "x.io/hold"}]), node()),
        "waits: scheduling gates hold its pods", ["scheduling-gated remove-gates"],
    ),
    "room is made": (
        gang(group(said="minCount (4) …: found a placement for podgroup, preempting 3 victims"), *pods(4), node()),
        "waits: room is made for it", ["preempting wait"],
    ),
    "room was made": (
        facts(jobset(conditions=told(words.POD_GROUPS_SCHEDULED, words.POD_GROUP_PREEMPTED, "3 …", "False")),
              group(said=SAID), job(), *waiting(), node()),
        "waits: it had to make room for a higher priority",
        ["preempted raise-priority", "gang-too-large add-nodes never-fits ask-less"],
    ),
    "room was made for a gang, and its own pods are gone": (
        facts(jobset(conditions=told(words.POD_GROUPS_SCHEDULED, words.POD_GROUP_PREEMPTED, f"PodGroup {GROUP}: 0 …",
                                     "False")), group(), job(), preempted("js-w-0-1-x"), node()),
        "waits: it had to make room for PodGroup other/high",
        ["preempted raise-priority", "pods-back-off start-job-over back-off-per-index"],
    ),
}  # fmt: skip
ROOM: Cases = {
    "no nodes": (gang(*waiting()), "waits: the cluster has no nodes", ["no-nodes add-nodes"]),
    "none may be used": (
        gang(*waiting(), node(cordoned=True), node("m", taint="gpu")),
        "waits: no node may take its pods", ["no-node-usable open-nodes add-nodes"],
    ),
    "none has the label": (
        gang(group(key=RACK, said=NOWHERE), *pods(4, told=NOWHERE), node()),
        f"waits: no node has the label {RACK}", ["topology-label-missing label-nodes add-labelled-nodes"],
    ),
    "none is large enough": (
        gang(*pods(4, "2", told=FULL), node()),
        "waits: a pod is larger than any node", ["pod-too-large add-larger-nodes lower-request"],
    ),
    "no rack is large enough": (
        gang(group(key=RACK, said=SAID), *waiting(), *RACKS),
        "waits: one rack has room for 2 of the 4 pods that start together",
        ["topology-too-small add-nodes never-fits ask-less"],
    ),
    "no rack has room, the cluster has": (
        gang(group(3, key=RACK, said=SAID), *pods(3, told=FULL), *RACKS, node("d", rack="r2")),
        "waits: one rack has room for 2 of the 3 pods that start together",
        ["topology-too-small add-nodes never-fits drop-constraint ask-less"],
    ),
    "its own rack is full": (
        gang(group(key=RACK, said=SAID), *on_nodes(3), *pods(1, told=FULL), node("n", rack="r0"), node("m", rack="r1"),
             occupants=(occupant("n", "500m"),)),
        "waits: one rack has room for 3 of the 4 pods that start together",
        ["topology-too-small add-nodes wait-for-others drop-constraint ask-less"],
    ),
    "too few nodes": (
        gang(*waiting(), node("a"), node("b")),
        "waits: there is room for 2 of the 4 pods that start together",
        ["gang-too-large add-nodes never-fits ask-less"],
    ),
    "others are there": (
        gang(*waiting(), *map(node, "abcd"), occupants=(occupant("a"), occupant("b"))),
        "waits: there is room for 2 of the 4 pods that start together",
        ["gang-too-large add-nodes wait-for-others ask-less"],
    ),
    "one of the gang waits": (
        gang(*on_nodes(3), *pods(1, "1", told=FULL), node()),
        "waits: there is room for 3 of the 4 pods that start together",
        ["gang-too-large add-nodes never-fits ask-less"],
    ),
    "above the quorum": (
        gang(group(2, reason="Scheduled"), *on_nodes(2), *pods(2, "1", told=FULL), node()),
        "waits: 2 pods have no room", ["pods-too-many add-nodes never-fits ask-less"],
    ),
    "without a group": (
        facts(jobset(scheduling=None), asking(families.pod("p", group="", told=FULL), "2"),
              node(), node("m", cpu="2"), occupants=(occupant("m", jobset=""),)),
        "waits: 1 pod has no room", ["pods-too-many add-nodes wait-for-others ask-less"],
    ),
    "room that the scheduler has not seen": (
        gang(*waiting(), *map(node, "abcd")),
        "waits: there is room, the scheduler will look again", ["room-not-seen wait"],
    ),
    "no volume": (
        gang(*pods(4, told="0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"),
             *map(node, "abcd")),
        "waits: its claims have no volume", ["claims-unbound make-volume"],
    ),
    "a follower on a full rack": (
        facts(jobset(scheduling=None), job(active=1), *RACKS,
              asking(led("1 Insufficient cpu", "topology.kubernetes.io/rack"), "9", nodeSelector={RACK: "r0"})),
        "waits: a pod is larger than any node", ["pod-too-large add-larger-nodes lower-request"],
    ),
    "none has the label of exclusive placement": (
        facts(jobset(scheduling=None), job(active=1), led("8 node(s) didn't match pod affinity rules", RACK), node()),
        f"waits: no node has the label {RACK}", ["topology-label-missing label-nodes"],
    ),
    "something that is not counted": (
        gang(*pods(4, told=f"0/4 nodes are available: 4 {VOLUME}."), *map(node, "abcd")),
        "waits: the scheduler finds no place", ["held-otherwise describe"],
    ),
    "something that is not counted, by the pod": (
        gang(*waiting(affinity={"podAffinity": {}}), *map(node, "abcd")),
        "waits: the scheduler finds no place", ["held-otherwise describe"],
    ),
    "not tried": (
        gang(group(), *pods(4), *map(node, "abcd")), "waits: the scheduler has not tried yet", ["not-tried wait"],
    ),
    "silence": (
        gang(group(), *pods(4, seconds=99), *map(node, "abcd")),
        "waits: the scheduler says nothing", ["scheduler-silent look-at-scheduler"],
    ),
    "another scheduler": (
        gang(group(), *pods(4, schedulerName="mine"), *map(node, "abcd")),
        "waits: the scheduler mine says nothing", ["other-scheduler other-scheduler"],
    ),
    "nodes may not be read": (
        gang(*waiting(), nodes=None, unreadable=("nodes",)),
        "waits: the scheduler finds no place", ["unschedulable", "not-allowed"],
    ),
    "pods of others may not be read": (
        gang(*waiting(), node(), occupants=None, unreadable=("pods",)),
        "waits: the scheduler finds no place", ["unschedulable", "not-allowed"],
    ),
}  # fmt: skip
RUNNING: Cases = {
    "a field was dropped": (
        degraded(words.FIELDS_DROPPED, "the cluster dropped schedulingConstraints (feature gate TopologyAware)"),
        "runs with trouble: the cluster ignores part of spec.scheduling", ["fields-dropped turn-on"],
    ),
    "a field that was dropped can be had again": (
        degraded(words.FIELDS_DROPPED, "it keeps them now; to have it at once, suspend and resume the JobSet"),
        "runs with trouble: the cluster ignored part of spec.scheduling", ["fields-returned suspend-and-resume"],
    ),
    "no gangs": (
        degraded(words.API_NOT_SERVED, "turn on the feature gate GenericWorkload"),
        "runs with trouble: the cluster has no gangs", ["api-not-served turn-on"],
    ),
    "changed by someone": (
        degraded(words.OBJECTS_DRIFTED, "PodGroup x"),
        "runs with trouble: its scheduling objects were changed", ["drifted wait"],
    ),
    "the controller's gate is off": (
        facts(jobset(1), families.job("js-w-0", group="", active=1), families.pod(node="n", group=""), node()),
        "runs with trouble: the controller ignores spec.scheduling", ["scheduling-ignored turn-on-controller"],
    ),
    "an image": (stuck("ImagePullBackOff"), "runs with trouble: containers do not start: ImagePullBackOff",
                 ["containers-wait fix-image"]),
    "a crash": (
        stuck("CrashLoopBackOff", last={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
        "runs with trouble: containers do not start: CrashLoopBackOff", ["containers-wait read-log"],
    ),
    "a secret": (stuck("CreateContainerConfigError"),
                 "runs with trouble: containers do not start: CreateContainerConfigError",
                 ["containers-wait describe"]),
    "a container is made": (stuck("ContainerCreating"), "runs: 1 of 1 pod placed, 0 ready", []),
    "a container is made for long": (
        stuck("ContainerCreating", seconds=99), "runs with trouble: containers do not start: ContainerCreating",
        ["containers-wait describe"],
    ),
    "a node": (gang(group(reason="Scheduled"), *on_nodes(4), node("n", ready=False)),
               "runs with trouble: a node is not ready", ["node-not-ready describe"]),
    "pods failed": (
        gang(group(reason="Scheduled"), *on_nodes(4), failed("x", **exited(1)), failed("y", reason="Evicted"), node()),
        "runs with trouble: 2 pods failed", ["pods-failed read-log"],
    ),
    "a Job failed": (
        facts(jobset(conditions=RESTARTS), job(**LOST), group()),
        "is in restart 0: there is no failurePolicy, and Job js-w-0 failed", ["job-failed", "failure-policy"],
    ),
}  # fmt: skip
DOMAINS: Cases = {
    "all racks are taken": (
        WAITS["all are taken"][0], "waits: no rack is free for js-w-0", ["domains-taken free-domain"],
    ),
}  # fmt: skip
ALL = {**LIFE, **REFUSALS, **GROUPS, **ROOM, **RUNNING, **POLICY, **DOMAINS}


@pytest.mark.parametrize(("seen", "headline", "codes"), ALL.values(), ids=ALL.keys())
def test_every_state(seen: Facts, headline: str, codes: list[str]) -> None:
    found = explain(seen)
    assert found.headline == f"JobSet ns/js {headline}"
    assert [" ".join([f.code, *(a.code for a in f.advice)]) for f in found.findings] == codes
    ours = [found.headline, *(f.text for f in found.findings), *(a.text for f in found.findings for a in f.advice)]
    assert not [text for text in ours if re.search(r"[{}]|None|\b1 [a-z]+s\b|\b[02-9] (pod|node|Job) ", text)]


def test_every_code_is_reached() -> None:
    """No sentence that nothing says, and no code without a case here."""
    told_ = [explain(seen) for seen, _, _ in ALL.values()]
    assert {e.code for e in told_} == set(STATES)
    assert {f.code for e in told_ for f in e.findings} == set(FINDINGS)
    assert {a.code for e in told_ for f in e.findings for a in f.advice} == set(ADVICE)


def test_the_docs_list_the_codes() -> None:
    listed = DOCS.partition("## jobset explain")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", listed)) >= set(FINDINGS)
    assert set(re.findall(r"^\| `([a-z-]+)`", listed, re.MULTILINE)) == set(FINDINGS)


def only(seen: Facts, code: str) -> Finding:
    return next(f for f in explain(seen).findings if f.code == code)


TEXTS: dict[str, tuple[Facts, str, str]] = {
    "a gang": (
        ROOM["others are there"][0], "gang-too-large",
        "4 pods must be placed together, and 2 fit now: cpu is short, each asks for 600m (4 of 4 nodes may take them)",
    ),
    "a gang, with nodes that do not count": (
        gang(*waiting(), node("a"), node("b", cordoned=True), node("c", taint="gpu")), "gang-too-large",
        ("4 pods must be placed together, and 1 fit now: cpu is short, each asks for 600m "
        "(1 of 3 nodes may take them; 1 cordoned, 1 with the taint gpu:NoSchedule)"),
    ),
    "racks": (
        ROOM["no rack is large enough"][0], "topology-too-small",
        (f"4 pods must be placed together on nodes with the same {RACK}, and 2 fit now: "
        "cpu is short, each asks for 600m (room: r0 for 2, r1 for 1)"),
    ),
    "many racks": (
        gang(group(key=RACK, said=SAID), *waiting(), *(node(f"n{i}", rack=f"r{i}") for i in range(9))),
        "topology-too-small",
        (f"4 pods must be placed together on nodes with the same {RACK}, and 1 fit now: "
        "cpu is short, each asks for 600m (room: r0 for 1, r1 for 1, r2 for 1, r3 for 1, r4 for 1 and 4 smaller)"),
    ),
    "not all is counted": (
        gang(*waiting(affinity={"nodeAffinity": {}}), node()), "gang-too-large",
        ("4 pods must be placed together, and at most 1 fit now: cpu is short, each asks for 600m "
        "(1 of 1 node may take them)"),
    ),
    "pods": (
        ROOM["above the quorum"][0], "pods-too-many",
        "2 of 4 pods have no node, and 0 of these fit now: cpu is short, each asks for 1 (1 of 1 node may take them)",
    ),
    "the timer": (
        gang(*waiting(), *map(node, "abcd")), "room-not-seen",
        ("there is room for 4 pods now, but the scheduler has not looked again: it does so on a timer, "
        "at most 20 s after the last time (10 s x the square root of 4 pods)"),
    ),
    "startup, of which the first part runs": (
        LIFE["a worker after its leader, which runs"][0], "startup-goes-on",
        "its Jobs are created when all of leader are Complete; 0 of 1 Job is, the rest runs well",
    ),
    "startup": (
        LIFE["in order"][0], "startup-waits", "its Jobs are created when all of leader are Ready; 0 of 1 Job is",
    ),
    "what the controller owes": (
        LIFE["nobody does anything"][0], "controller-silent",
        ("the controller should create Job js-w-0 and 1 more and has not: "
        "it does not run, is behind, or is another version"),
    ),
    "peers": (
        GROUPS["peers have finished"][0], "pods-finished",
        "4 pods must be placed together, 1 exist: 3 have finished, and those do not count",
    ),
}  # fmt: skip


AGAIN: dict[str, tuple[Facts, str]] = {
    "the controller asks": (named_class(priority_classes=frozenset()), "as soon as there is one"),
    "the controller was told": (blocked(CLASS), "as soon as there is one"),
    "the Job controller asks": (
        facts(jobset(pod={"priorityClassName": "gold"}, scheduling=None), node(), priority_classes=frozenset()),
        "by the Job controller, at the latest a minute after there is one",
    ),
    "the Job controller was told, of an elastic gang": (
        facts(
            jobset(pod={"priorityClassName": "gold"}),
            group(),
            job(),
            event(job(), CLASS),
            node(),
            priority_classes=frozenset(),
        ),
        "by the Job controller, at the latest a minute after there is one",
    ),
    "the Job controller asks, of an elastic gang": (
        facts(jobset(pod={"priorityClassName": "gold"}), group(), job(), node(), priority_classes=frozenset()),
        "by the Job controller, at the latest a minute after there is one",
    ),
    "the Job controller was told": (
        facts(jobset(scheduling=None), job(), event(job(), CLASS), node()),
        "by the Job controller, at the latest a minute after there is one",
    ),
}


@pytest.mark.parametrize(("seen", "again"), AGAIN.values(), ids=AGAIN.keys())
def test_when_a_class_that_is_missing_is_asked_for_again(seen: Facts, again: str) -> None:
    (found,) = (f for f in explain(seen).findings if f.code == "priority-class-missing")
    assert found.arguments == {"name": "gold", "again": again}
    assert found.text.endswith(f"; it is tried again {again}")


@pytest.mark.parametrize(("seen", "code", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_the_sentence(seen: Facts, code: str, text: str) -> None:
    assert only(seen, code).text == text


EXITS: dict[str, tuple[list[Pod], str]] = {
    "by its code": ([failed("x", **exited(3))], "Pod x on node n: container c ended with exit code 3"),
    "by a signal": (
        [failed("x", **exited(137, "OOMKilled", 9))], "Pod x on node n: container c ended with signal 9 (OOMKilled)",
    ),
    "evicted": ([failed("x", reason="Evicted", message="disk is full")], "Pod x on node n: Evicted: disk is full"),
    "for no reason": ([failed("x")], "Pod x on node n: it failed"),
    "one of several": (
        [*on_nodes(1), failed("x", **exited(2))], "Pod x on node n: container c ended with exit code 2",
    ),
    "its pods are gone": ([], "Its pods are gone, and with them their exit codes"),
}  # fmt: skip


@pytest.mark.parametrize(("members", "said"), EXITS.values(), ids=EXITS.keys())
def test_how_a_pod_ended(members: list[Pod], said: str) -> None:
    seen = facts(jobset(status={"terminalState": "Failed"}), job(**LOST), *members)
    found = only(seen, "job-failed")
    assert found.text == f"it was the first to fail; 1 of 1 Job failed. {said}"
    assert found.evidence[0].says == "BackoffLimitExceeded: too often"


COMMANDS: dict[str, tuple[Facts, str]] = {
    "nodes": (ROOM["too few nodes"][0], "jobset nodes add --count 2 --cpu 1 --memory 16Gi"),
    "a rack": (ROOM["no rack is large enough"][0], "jobset nodes add --count 2 --cpu 1 --memory 16Gi --rack r0"),
    "a label": (
        ROOM["none has the label"][0],
        f"kubectl label node NODE {RACK}=VALUE; jobset nodes add --count 4 --cpu 1 --memory 16Gi --rack rack-0",
    ),
    "larger nodes": (ROOM["none is large enough"][0], "jobset nodes add --count 4 --cpu 2"),
    "nodes of another plane": (
        replace(ROOM["too few nodes"][0], plane="/my planes/a"),
        "jobset nodes add --count 2 --cpu 1 --memory 16Gi --dir '/my planes/a'",
    ),
    "the first nodes of a plane": (
        replace(ROOM["no nodes"][0], plane=""), "jobset nodes add --count 1 --cpu 4 --memory 16Gi",
    ),
    "no nodes that we could make": (ROOM["no nodes"][0], ""),
    "devices and labels": (
        gang(*pods(4, "1m", told=FULL, requests={"nvidia.com/gpu": "8"}, nodeSelector={"zone": "x"}),
             node(gpu="8", zone="x")),
        "jobset nodes add --count 3 --cpu 1 --memory 16Gi --resource nvidia.com/gpu=8 --label zone=x",
    ),
    "not on a cluster of real nodes": (gang(*waiting(), node(type="real")), ""),
    "a class": (REFUSALS["a class that is not there, by looking"][0], "kubectl create priorityclass gold --value=1000"),
    "a quota": (REFUSALS["quota, of pods"][0], "kubectl describe resourcequota small -n ns"),
    "a name": (REFUSALS["the name is taken"][0], "kubectl get service js -n ns -o yaml"),
    "resume": (
        LIFE["suspended"][0], """kubectl patch jobset js -n ns --type=merge -p '{"spec":{"suspend":false}}'""",
    ),
    "a gate of the cluster": (
        RUNNING["a field was dropped"][0], "jobset up --kubernetes-feature-gates TopologyAware=true",
    ),
    "a gate of the controller": (
        RUNNING["the controller's gate is off"][0], "jobset up --feature-gates JobSetWorkloadAwareSchedulingAPI=true",
    ),
    "a log": (RUNNING["a crash"][0], "kubectl logs js-w-0-0 -n ns --previous"),
    "a Job": (GROUPS["peers have finished"][0], "kubectl delete job js-w-0 -n ns"),
}  # fmt: skip


@pytest.mark.parametrize(("seen", "command"), COMMANDS.values(), ids=COMMANDS.keys())
def test_the_command(seen: Facts, command: str) -> None:
    assert "; ".join(a.command for a in explain(seen).findings[0].advice if a.command) == command


def test_who_holds_the_room() -> None:
    seen = gang(*waiting(), *map(node, "abcd"), occupants=(occupant("a"), occupant("b"), occupant("c", jobset="")))
    text = "or wait for other pods to end: JobSet ns/other, pods of namespace ns have most of it"
    assert text in [a.text for a in explain(seen).findings[0].advice]


OWED: dict[str, tuple[Facts, tuple[str, ...]]] = {
    "nothing": (facts(jobset(scheduling=None), families.job("js-w-0", pods=4, group=""), node()), ()),
    "everything": (
        facts(jobset()), (f"create Workload {GROUP}", f"create PodGroup {GROUP}", "create Job js-w-0"),
    ),
    "to suspend": (
        facts(jobset(scheduling=None, suspend=True), families.job("js-w-0", pods=4, group="")), ("change Job js-w-0",),
    ),
    "to replace": (
        facts(jobset(scheduling=None, status={"restarts": 1}), families.job("js-w-0", pods=4, group="")),
        ("delete Job js-w-0",),
    ),
    "to say that it failed": (
        facts(jobset(scheduling=None), families.job("js-w-0", pods=4, group="", **LOST)), ("write its status",),
    ),
    "it was refused": (blocked("no"), ()),
    "it is for another": (facts(jobset(managedBy="x.io/y")), ()),
}  # fmt: skip


@pytest.mark.parametrize(("seen", "owed"), OWED.values(), ids=OWED.keys())
def test_what_the_controller_owes(seen: Facts, owed: tuple[str, ...]) -> None:
    assert pending(seen) == owed


def test_the_same_of_many_groups_is_said_once() -> None:
    template = {"spec": {"parallelism": 1, "completions": 1}}
    many = jobset(replicatedJobs=[{"name": "w", "replicas": 300, "template": template}])
    groups = [families.group(1, name=f"g{n}", said=SAID) for n in range(300)]
    members = [asking(families.pod(f"p{n}", group=f"g{n}", told=FULL), "2") for n in range(300)]
    jobs = [families.job(f"js-w-{n}", group=f"g{n}") for n in range(300)]
    (found,) = explain(facts(many, *groups, *jobs, *members, *(node(f"n{n}") for n in range(50)))).findings
    assert (found.code, found.about, found.more) == ("pod-too-large", "PodGroup g0", 299)
    assert "PodGroup g0 and 299 more: " in "\n".join(lines(explain(facts(many, *groups, *jobs, *members, node()))))


def test_words_of_others_cannot_move_the_cursor() -> None:
    shown = lines(explain(blocked("Job x was refused: \x1b[2J\n" + "y" * 5000)))
    assert all(line.isprintable() for line in shown)
    assert any("\\x1b[2J\\x0a" in line for line in shown)
    assert max(map(len, shown)) < 1000


def test_the_text() -> None:
    assert lines(explain(ROOM["one of the gang waits"][0])) == [
        "JobSet ns/js waits: there is room for 3 of the 4 pods that start together",
        "",
        (
            f"PodGroup {GROUP}: 4 pods must be placed together, and 3 fit now: cpu is short, each asks for 1 "
            "(1 of 1 node may take them) [gang-too-large]"
        ),
        f"  seen   PodGroup {GROUP}, condition PodGroupInitiallyScheduled: {SAID}",
        f"         Pod js-w-0-0, condition PodScheduled: {FULL}",
        "  help   add 1 node with 1 cpu and 16Gi memory",
        "           jobset nodes add --count 1 --cpu 1 --memory 16Gi",
        "         waiting alone does not help: without all other pods, 3 fit",
        "         or ask for less: fewer pods (parallelism, replicas), or smaller requests",
    ]


@pytest.mark.decision(38)
def test_room_at_which_the_scheduler_has_not_looked_is_told_with_its_timer() -> None:
    found = explain(gang(*waiting(), *map(node, "abcd")))
    assert [f.code for f in found.findings] == ["room-not-seen"]
    assert "the scheduler has not looked again" in found.findings[0].text
    assert "at most 20 s after the last time" in found.findings[0].text
    assert [a.code for a in found.findings[0].advice] == ["wait"]
    assert "room-not-seen" not in [f.code for f in explain(gang(*waiting(), *map(node, "abc"))).findings]
