"""The codes of `explain` and the sentence of each. Tables only: `reasons` renders them, docs/cli.md lists the codes.

`{n:pod}` becomes 1 pod or 2 pods, `{n:pod waits|pods wait}` either of the two.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Words(NamedTuple):
    """A few words for the headline, and the sentence."""

    headline: str
    text: str


STATES: Mapping[str, str] = {
    "completed": "has completed: {succeeded} of {jobs:Job} succeeded",
    "completed-empty": "has completed: {message}",
    "failed": "has failed: {message}",
    "terminating": "is being deleted",
    "suspended": "is suspended: nothing of it runs, and nothing is reserved for it",
    "suspending": "is being suspended: {live:pod of it is|pods of it are} still there",
    "restarting": "is in restart {restart}: {because}",
    "waits": "waits: {because}",
    "troubled": "runs with trouble: {because}",
    "starting": "starts: {placed} of {pods:pod} placed",
    "running": "runs: {placed} of {pods:pod} placed, {ready} ready",
}
"""How the headline ends that begins with the JobSet's name."""

_LIFE = {
    "deleting": Words(
        "its deletion waits", "its deletion waits for its finalizers and for {children:object} that it owns"
    ),
    "suspended": Words("it is suspended", "spec.suspend is true"),
    "queued": Words("a queue holds it", "it is in the queue {queue}, which admits it by resuming it"),
    "managed-elsewhere": Words(
        "another controller is in charge", "spec.managedBy gives it to {controller}, not to this controller"
    ),
    "controller-silent": Words(
        "the controller does nothing",
        "the controller should {what} and has not: it does not run, is behind, or is another version",
    ),
    "old-jobs-terminating": Words(
        "old Jobs are not gone yet",
        "{jobs:old Job is|old Jobs are} not gone yet, {pods:pod of them stops|pods of them stop}; "
        "new ones are created after that",
    ),
    "group-terminating": Words(
        "a PodGroup is not gone yet",
        "it is being deleted and waits until its {pods:pod is|pods are} gone; no new Job is created under it",
    ),
    "startup-waits": Words(
        "{replicated_job} can start only after {on}",
        "its Jobs are created when all of {on} are {status}; {count} of {replicas:Job is|Jobs are}",
    ),
    "startup-goes-on": Words(
        "{replicated_job} can start only after {on}",
        "its Jobs are created when all of {on} are {status}; {count} of {replicas:Job is|Jobs are}, the rest runs well",
    ),
}
_REFUSALS = {
    "priority-class-missing": Words(
        "the PriorityClass {name} does not exist",
        "pods have priorityClassName {name}, and there is no such PriorityClass; it is tried again {again}",
    ),
    "quota-exceeded": Words("the quota {name} is used up", "the ResourceQuota {name} leaves no room for its objects"),
    "foreign-object": Words(
        "{object} belongs to someone else",
        "it needs the name of {object}, which belongs to {owner}; that object is not touched",
    ),
    "earlier-terminating": Words(
        "{object} of an earlier JobSet is not gone yet",
        "it needs the name of {object}, which an earlier JobSet of this name left and which is still being removed",
    ),
    "claim-terminating": Words(
        "the claim {name} is not gone yet",
        "its Jobs wait until PersistentVolumeClaim {name} is gone and created anew: it is on its way out",
    ),
    "claim-not-usable": Words(
        "the claim {name} cannot be used",
        "its Jobs wait for PersistentVolumeClaim {name}: there is one, and it is not what it needs",
    ),
    "not-permitted": Words(
        "{verb} {resource} is not permitted", "whoever creates them has no right to {verb} {resource}"
    ),
    "refused": Words("{object} is refused", "the API server refuses {object}"),
    "pods-refused": Words("the pods of {object} are refused", "its pods are refused or cannot be prepared"),
}
_CLUSTER = {
    "fields-dropped": Words(
        "the cluster ignores part of spec.scheduling",
        "it is scheduled without a part of spec.scheduling that this cluster does not know",
    ),
    "fields-returned": Words(
        "the cluster ignored part of spec.scheduling",
        "it was made while the cluster dropped a part of spec.scheduling, and has it back once its pods are gone",
    ),
    "api-not-served": Words(
        "the cluster has no gangs",
        "it is scheduled without gangs: the cluster does not serve scheduling.k8s.io/v1beta1",
    ),
    "scheduling-ignored": Words(
        "the controller ignores spec.scheduling", "it is scheduled without gangs: the controller's gate {gate} is off"
    ),
    "drifted": Words(
        "its scheduling objects were changed",
        "somebody changed its scheduling objects; they are replaced once their pods are gone; no new Job until then",
    ),
}
_GROUPS = {
    "group-missing": Words(
        "a PodGroup is missing",
        "it does not exist, and {pods:pod of it is|pods of it are} Pending until it does, without any word",
    ),
    "quorum-too-large": Words(
        "a gang can never form",
        "{quorum:pod} must be placed together, and the Jobs of the group have no more than {most} at once",
    ),
    "jobs-missing": Words(
        "a gang lacks Jobs",
        "{quorum:pod} must be placed together, {existing} exist: "
        "{jobs:Job of the group is|Jobs of the group are} not created yet",
    ),
    "pods-finished": Words(
        "a gang lacks pods",
        "{quorum:pod} must be placed together, {existing} exist: {finished} have finished, and those do not count",
    ),
    "pods-missing": Words(
        "a gang lacks pods",
        "{quorum:pod} must be placed together, {existing} exist: the Job controller has not created the others",
    ),
    "pods-back-off": Words(
        "the Job controller waits before it makes its pods again",
        "{quorum:pod} must be placed together, {existing} exist: after failed or evicted pods of a Job, the Job "
        "controller waits before it makes new ones: 10 s after the first, twice as long after each more, up to 10 min",
    ),
    "job-lacks-pods": Words(
        "the Job controller has not made all pods",
        "{active} of {wanted:pod} exist. After pods that failed or were evicted the Job controller waits before it "
        "makes new ones: 10 s after the first, twice as long after each more, up to 10 min",
    ),
    "mixed-schedulers": Words(
        "its pods have different schedulers",
        "its pods ask for the schedulers {schedulers}; the pods of one PodGroup need one, else none is placed",
    ),
    "scheduler-error": Words(
        "the scheduler cannot place it", "the scheduler cannot place it, however much room there is"
    ),
    "scheduling-gated": Words(
        "scheduling gates hold its pods",
        "{pods:pod is|pods are} held by the scheduling gates {gates} until whoever set them removes them",
    ),
    "preempting": Words("room is made for it", "pods of a lower priority are removed to make room for it"),
    "evicted": Words(
        "it had to make room",
        "its pods had to make room for a higher priority, and a Job counts evicted pods as failed",
    ),
    "preempted": Words(
        "it had to make room for {by}", "pods of it had to make room for {by}, and it waits like a new one"
    ),
}
_ROOM = {
    "no-nodes": Words("the cluster has no nodes", "the cluster has no nodes"),
    "no-node-usable": Words("no node may take its pods", "none of {nodes:node} may take its pods: {barred}"),
    "topology-label-missing": Words(
        "no node has the label {key}",
        "its {quorum:pod} must be on nodes with the same {key}, and none of {nodes:node} has that label",
    ),
    "domains-taken": Words(
        "no {label} is free for {job}",
        "{jobs:Job waits|Jobs wait} for a {label} without other such Jobs: of {domains:domain} of {key}, {taken} are "
        "taken ({holders}){rest}",
    ),
    "pod-too-large": Words(
        "a pod is larger than any node",
        "a pod asks for {asks} {scarce}, and no node that may take it has more than {largest}",
    ),
    "topology-too-small": Words(
        "one {label} has room for {exactness}{fit} of the {quorum:pod} that start together",
        "{quorum:pod} must be placed together on nodes with the same {key}, and {exactness}{fit} fit now: "
        "{scarce} is short, each asks for {asks} (room: {domains})",
    ),
    "gang-too-large": Words(
        "there is room for {exactness}{fit} of the {quorum:pod} that start together",
        "{quorum:pod} must be placed together, and {exactness}{fit} fit now: {scarce} is short, each asks for {asks} "
        "({usable} of {nodes:node} may take them{barred})",
    ),
    "pods-too-many": Words(
        "{waiting:pod has|pods have} no room",
        "{waiting} of {pods:pod} have no node, and {exactness}{fit} of these fit now: {scarce} is short, "
        "each asks for {asks} ({usable} of {nodes:node} may take them{barred})",
    ),
    "room-not-seen": Words(
        "there is room, the scheduler will look again",
        "there is room for {needed:pod} now, but the scheduler has not looked again: it does so on a timer, "
        "at most {seconds} s after the last time (10 s x the square root of {pods:pod})",
    ),
    "not-tried": Words(
        "the scheduler has not tried yet",
        "all that it needs exists, the youngest pod for {seconds} s, and the scheduler has not tried yet",
    ),
    "scheduler-silent": Words(
        "the scheduler says nothing",
        "all that it needs exists, the youngest pod for {seconds} s, and {scheduler} has not said a word: does it run?",
    ),
    "other-scheduler": Words(
        "the scheduler {scheduler} says nothing",
        "its pods ask for the scheduler {scheduler}, which has not said a word about them: is there one?",
    ),
    "claims-unbound": Words(
        "its claims have no volume",
        "its PersistentVolumeClaims have no volume: none that exists fits, and no StorageClass has made one",
    ),
    "held-otherwise": Words(
        "the scheduler finds no place",
        "cpu, memory and what else is counted here would do for {needed:pod}; something else stands in the way",
    ),
    "unschedulable": Words(
        "the scheduler finds no place",
        "{needed:pod waits|pods wait} for a place; free room is not counted, because nodes or pods may not be read",
    ),
}
_RUNNING = {
    "job-failed": Words("Job {job} failed", "it was the first to fail; {failed} of {jobs:Job} failed. {exit}"),
    "pods-failed": Words(
        "{pods:pod} failed", "{pods:pod} failed, and the Jobs replace them while they may. The last: {exit}"
    ),
    "containers-wait": Words(
        "containers do not start: {reason}", "{pods:pod has a node and does|pods have a node and do} not run: {reason}"
    ),
    "node-not-ready": Words(
        "a node is not ready", "{pods:pod is|pods are} on {nodes:node that is|nodes that are} not ready: {names}"
    ),
    "not-allowed": Words("something may not be read", "you may not read {kinds}: nothing is said about them"),
}
_POLICY = {
    "failure-policy": Words("{decided}", "{decided}: {then}"),
    "restarts-used-up": Words("its restarts are used up", "{used_up}"),
    "deadline-exceeded": Words(
        "its deadline has passed", "activeDeadlineSeconds ({seconds}) has passed; the failure policy is not asked then"
    ),
    "restarted-in-place": Words(
        "it restarted in place", "its pods are in attempt {attempt} of their restarts in place; maxRestarts is {max}"
    ),
    "in-place-barrier": Words(
        "its workers start when all pods are in one attempt",
        "workers start when all {pods} are in the same attempt: {there} of {pods:pod} are in attempt {attempt}, "
        "{silent} said nothing yet",
    ),
    "restarted": Words("it restarted", "so far {said}"),
}
FINDINGS: Mapping[str, Words] = {**_POLICY, **_LIFE, **_REFUSALS, **_CLUSTER, **_GROUPS, **_ROOM, **_RUNNING}

_NEXT = "for the next JobSet (failurePolicy cannot be changed): "

ADVICE: Mapping[str, str] = {
    "resume": "resume it",
    "look-at-queue": "see what the queue says",
    "ask-controller": "ask whoever runs {controller}",
    "look-at-controller": "start the controller, or read its log",
    "wait": "nothing to do: it goes on by itself",
    "force-pods": "nothing to do, unless their node is gone: then delete the pods by force",
    "create-class": "create the class, or use one that exists ({known})",
    "free-quota": "raise the quota, or delete what uses it up",
    "rename": "delete or rename one of the two",
    "grant": "give its ServiceAccount that right",
    "correct": "correct what the message says",
    "turn-on": "turn on {gate} in kube-apiserver, kube-controller-manager and kube-scheduler",
    "turn-on-controller": "turn on the controller's gate {gate}{where}",
    "look-at-waited": "see what {on} waits for",
    "lower-quorum": "recreate the JobSet with a minCount of at most {most}",
    "start-job-over": "delete the Job: it is created again and starts over",
    "back-off-per-index": "for the next time: with backoffLimitPerIndex (Indexed Jobs) each index waits by itself",
    "suspend-and-resume": "to have it at once, suspend it and, when its pods are gone, resume it",
    "ignore-disruption": "a podFailurePolicy that ignores DisruptionTarget keeps them out of the backoffLimit",
    "raise-priority": "wait until there is room again, or give it a higher priority",
    "one-scheduler": "give all its pods the same schedulerName",
    "one-priority": "give all its pods the priorityClassName of the PodGroup",
    "remove-gates": "find out who sets {gates}",
    "add-nodes": "add {count:node} with {size}",
    "add-larger-nodes": "add {count:larger node} with {size}",
    "lower-request": "or ask for at most {largest} {scarce} in a pod",
    "label-nodes": "label the nodes: those that are close to each other get the same value",
    "add-labelled-nodes": "or add nodes that have the label",
    "free-domain": "wait until a Job that has one ends, or add nodes with another value of {key}",
    "open-nodes": "remove the cordon or taint, set the label, or add a toleration to the pods",
    "wait-for-others": "or wait for other pods to end: {holders} have most of it",
    "never-fits": "waiting alone does not help: without all other pods, {exactness}{fit_empty} fit",
    "ask-less": "or ask for less: fewer pods (parallelism, replicas), or smaller requests",
    "drop-constraint": "or recreate it without the topology constraint: the cluster as a whole has room",
    "other-scheduler": "run it, or leave schedulerName out",
    "look-at-scheduler": "see whether the scheduler runs, and its log",
    "fix-image": "check the image {image} and the pull secrets",
    "read-log": "read what it wrote before it ended",
    "make-volume": "make a PersistentVolume that fits, or name a StorageClass that the cluster has in the template",
    "describe": "look at its conditions and events",
    "look-at-agent": "nothing to do while its containers start; else read the log of its agent",
    "change-rule": _NEXT + "narrow that rule, or put a rule that restarts before it",
    "more-restarts": _NEXT + "raise maxRestarts, or let a rule restart without counting",
    "longer-deadline": "for the next time: raise activeDeadlineSeconds",
    "allow-restarts": _NEXT + "set maxRestarts (it is {restarts})",
}
