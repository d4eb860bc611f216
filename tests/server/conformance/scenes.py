"""The scenes: what users and controllers do to Jobs, pods, gangs and owners, by what they show."""

from collections.abc import Mapping
from typing import Any

from pyjobset.objects.meta import Manifest
from tests.server.conformance.bodies import claim, job, pod_group, workload
from tests.server.conformance.controllers import Move, Scene, scene
from tests.server.conformance.player import Step, create, delete, patch
from tests.server.conformance.scripts.words import HOLD

SLOT = "conformance.example.com/slot"
"""Nodes with one slot each have this label, with the namespace as its value, and a taint of that name."""
FAILS, ENDS, RUNS = ["sh", "-c", "sleep 1; exit 3"], ["sleep", "1"], ["sleep", "infinity"]


def pods(command: list[str], **notes: str) -> Manifest:
    """A template. `notes` tell the simulated pods of the plane how to go on."""
    annotations = {f"plane.pyjobset/{key.replace('_', '-')}": value for key, value in notes.items()}
    container = {"name": "c", "image": "simulated", "command": command}
    return {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]}}


def jobs(*given: Manifest) -> list[Step]:
    """Jobs of a controller, as those of a JobSet are: the Job controller makes no PodGroups for them."""
    top = owned("Workload", "top", blocks=False) | {"controller": True}
    owners = {"ownerReferences": [top]}
    made = [create("jobs", each | {"metadata": {**each["metadata"], **owners}}) for each in given]
    return [create("workloads", workload("top")), *made]


def running(command: list[str] = RUNS, **spec: Any) -> list[Step]:
    return jobs(job(**{"suspend": False, "backoffLimit": 0, "template": pods(command), **spec}))


def member(name: str, command: list[str] = RUNS, group: str = "g", **notes: str) -> Step:
    """A pod of a gang. It needs a whole node of those that the scene has."""
    template = pods(command, **notes)
    containers = [template["spec"]["containers"][0] | {"resources": {"requests": {"cpu": "1"}}}]
    spec = {
        "restartPolicy": "Never",
        "containers": containers,
        "schedulingGroup": {"podGroupName": group},
        "nodeSelector": {SLOT: "$namespace"},
        "tolerations": [{"key": SLOT, "operator": "Exists"}],
    }
    return create("pods", {"metadata": {**template["metadata"], "name": name}, "spec": spec})


def go(*names: str) -> Move:
    """Terminating pods need not wait any more. Those of the model never wait longer than `terminate_seconds`."""
    notes = {"metadata": {"annotations": {"plane.pyjobset/terminate-after": "0s"}}}
    return Move([patch("pods", name, notes) for name in names])


def gang(least: int, name: str = "g") -> Step:
    return create("podgroups", pod_group(name, schedulingPolicy={"gang": {"minCount": least}}, workloadRef=None))


def owned(kind: str, name: str, *, blocks: bool = True) -> Manifest:
    plural, version = {"Job": ("jobs", "batch/v1"), "Workload": ("workloads", "scheduling.k8s.io/v1beta1")}[kind]
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": f"$uid:{plural}/{name}"}
    return owner | {"blockOwnerDeletion": blocks}


def child(name: str, *owners: Manifest, **metadata: Any) -> Step:
    return create("workloads", workload(name, {"ownerReferences": list(owners), **metadata}))


def user(name: str, of: str, command: list[str] = RUNS, **spec: Any) -> Step:
    """A pod that has a claim as a volume."""
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": of}}
    tolerations = [{"key": SLOT, "operator": "Exists"}]
    more = {**pods(command)["spec"], "volumes": [volume], "tolerations": tolerations, **spec}
    return create("pods", {"metadata": {"name": name}, "spec": more})


DISRUPTED = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
IGNORE_DISRUPTION = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}
SUSPEND, RESUME = patch("jobs", "a", {"spec": {"suspend": True}}), patch("jobs", "a", {"spec": {"suspend": False}})

JOBS: Mapping[str, Scene] = {
    "a Job is suspended and resumed": scene(jobs(job(template=pods(RUNS))), RESUME, SUSPEND, RESUME),
    "a Job that runs is suspended": scene(running(), SUSPEND),
    "a Job completes": scene(running(command=ENDS, parallelism=3, completions=3)),
    "a Job completes in two rounds": scene(running(command=ENDS, parallelism=1, completions=2)),
    "a Job fails, and what still runs is ended": scene(
        running(command=FAILS, parallelism=1, completions=3),
    ),
    "a Job fails while its other pods terminate": scene(
        running(template=pods(RUNS, terminate_after="1h")),
        Move((patch("pods", "#0", {"status": {"phase": "Failed"}}, "status"),), 1.0),
        go("~1"),
        terminate_seconds=4.0,
    ),
    "a Job replaces a failed pod until its limit": scene(
        running(command=FAILS, parallelism=1, completions=1, backoffLimit=1)
    ),
    "a pod that somebody deletes counts as failed and is replaced": scene(
        running(backoffLimit=3), delete("pods", "#0")
    ),
    "a pod that was disrupted is ignored by the pod failure policy and replaced": scene(
        running(podFailurePolicy=IGNORE_DISRUPTION),
        patch("pods", "#0", {"status": {"phase": "Failed", "conditions": [DISRUPTED]}}, "status"),
    ),
    "a pod is replaced when it has gone, where only failed ones are": scene(
        running(backoffLimit=3, podReplacementPolicy="Failed", template=pods(RUNS, terminate_after="1h")),
        Move((delete("pods", "#0"),), 1.0),
        go("~0"),
        terminate_seconds=4.0,
    ),
    "a Job grows and shrinks": scene(
        running(),
        patch("jobs", "a", {"spec": {"parallelism": 4, "completions": 4}}),
        patch("jobs", "a", {"spec": {"parallelism": 1, "completions": 1}}),
        patch("jobs", "a", {"spec": {"parallelism": 0}}),
    ),
    "a Job is deleted in the foreground": scene(
        running(template=pods(RUNS, terminate_after="1h")),
        Move((delete("jobs", "a", "Foreground"),), 1.0),
        go("~0", "~1"),
        terminate_seconds=4.0,
    ),
    "a Job is deleted in the background": scene(
        running(template=pods(RUNS, terminate_after="1h")),
        Move((delete("jobs", "a"),), 1.0),
        go("~0", "~1"),
        terminate_seconds=4.0,
    ),
    "a Job that has ended is deleted in the foreground": scene(
        running(command=ENDS), delete("jobs", "a", "Foreground")
    ),
}

OWNERS: Mapping[str, Scene] = {
    "what is owned goes with its owner": scene(
        [*jobs(job()), child("w", owned("Job", "a")), child("v", owned("Workload", "w")), child("u")],
        delete("jobs", "a"),
    ),
    "an owner that is deleted in the foreground waits": scene(
        [*jobs(job()), child("w", owned("Job", "a"), **HOLD)],
        delete("jobs", "a", "Foreground"),
        patch("workloads", "w", {"metadata": {"finalizers": None}}),
    ),
    "an owner does not wait for what does not block it": scene(
        [*jobs(job()), child("w", owned("Job", "a", blocks=False), **HOLD)],
        delete("jobs", "a", "Foreground"),
        patch("workloads", "w", {"metadata": {"finalizers": None}}),
    ),
    "what has two owners goes with the last one": scene(
        [*jobs(job(), job("b")), child("w", owned("Job", "a"), owned("Job", "b"))],
        delete("jobs", "a"),
        delete("jobs", "b"),
    ),
    "what has an owner that is not there goes": scene(
        [create("workloads", workload("x")), delete("workloads", "x"), child("w", owned("Workload", "x"))],
    ),
    "a claim goes when no pod uses it": scene(
        [create("persistentvolumeclaims", claim()), create("persistentvolumeclaims", claim("b"))],
        user("p", "b", nodeName="$namespace-0"),
        [delete("persistentvolumeclaims", "a"), delete("persistentvolumeclaims", "b")],
        delete("pods", "p"),
        slots=1,
    ),
    "a claim does not wait for a pod without a node": scene(
        [create("persistentvolumeclaims", claim()), user("p", "a", schedulerName="example.com/none")],
        delete("persistentvolumeclaims", "a"),
    ),
    "a claim waits for a pod that has ended": scene(
        [create("persistentvolumeclaims", claim()), user("p", "a", ENDS, nodeName="$namespace-0")],
        delete("persistentvolumeclaims", "a"),
        delete("pods", "p"),
        slots=1,
    ),
}

GANGS: Mapping[str, Scene] = {
    "a gang waits for its members": scene([gang(2), member("a")], member("b"), slots=3),
    "pods of a group that is not there wait": scene(member("a"), gang(1), slots=1),
    "a gang is placed as a whole or not at all": scene(
        [gang(2, "h"), member("x", group="h"), member("y", group="h")],
        [gang(3), member("a"), member("b"), member("c")],
        [delete("pods", "x"), delete("pods", "y")],
        slots=3,
    ),
    # The third comes later: of pods that come together the scheduler says last what it thought of any of them.
    "a gang may be more than it needs": scene([gang(1), member("a"), member("b")], member("c"), slots=2),
    "pods that have ended do not count": scene(
        [gang(2), member("a", ENDS), member("b", ENDS)], member("c"), member("d"), slots=3
    ),
    "pods that terminate count": scene(
        [gang(2), member("a", terminate_after="1h"), member("b", terminate_after="1h")],
        Move((delete("pods", "a"), delete("pods", "b")), 0.5),
        Move((member("c"),), 1.0),
        go("a", "b"),
        slots=3,
        terminate_seconds=6.0,
    ),
    "a PodGroup stays until its pods are gone": scene(
        [gang(1), member("a")], delete("podgroups", "g"), delete("pods", "a"), slots=1
    ),
    "a PodGroup does not wait for pods that have ended": scene(
        [gang(1), member("a", ENDS)], delete("podgroups", "g"), slots=1
    ),
    "a PodGroup waits for pods that wait": scene(
        [gang(2), member("a")], delete("podgroups", "g"), delete("pods", "a"), slots=1
    ),
    "a PodGroup without pods goes": scene(gang(1), delete("podgroups", "g")),
}

GROUPS: Mapping[str, Mapping[str, Scene]] = {"Jobs": JOBS, "Owners and claims": OWNERS, "Gangs": GANGS}
SCENES: Mapping[str, Scene] = {name: each for group in GROUPS.values() for name, each in group.items()}
