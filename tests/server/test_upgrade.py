"""One controller follows another on live JobSets: a roll of ours, other gates, objects that were written elsewhere.

A roll is what a Deployment does: SIGTERM to the one, a new process, which looks at everything as after a resync. What
was there is compared object by object, uid and resourceVersion: a write that changed nothing would not be seen, any
other is. test_two_programs.py has two at a time.
"""

import hashlib
import os
import signal
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import pytest

from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import Plane
from pyjobset.objects import features as gates
from tests.server.plane import MakePlane, wait_for
from tests.server.scheduling.lab import ATTEMPT, TERMINATE_AFTER, Lab
from tests.server.test_claims import stateful
from tests.server.test_controller import GANG, Object, manifest, replicated_job
from tests.server.test_controller_crash import controller_pid
from tests.server.test_exclusive_placement import exclusive, have_a_rack_each, make_racks

PREFIX = "jobset.sigs.k8s.io"
KINDS = "jobsets,jobs,services,pods,pvc,workloads,podgroups"
LAYOUT = NodeLayout(count=2, cpu="64")
OFF = {gates.WORKLOAD_AWARE_SCHEDULING: False, gates.ELASTIC_JOBSET: False}
MORE = (gates.RESTART_JOB, gates.EXECUTION_ATTEMPTS_TRACKING, gates.ACTIVE_DEADLINE_SECONDS, gates.IN_PLACE_RESTART)
PROBES = count()

Stored = dict[str, Object]
"""By kind and name, as the API server has them."""


# What lives


def forever(name: str = "w", replicas: int = 2, **job: Any) -> Object:
    return replicated_job(name, "sleep infinity", replicas, 2, **job)


def start_all(lab: Lab, **gang: Any) -> None:
    """JobSets in every state that lasts. `gang`: the spec of the one that is a gang, where there is one."""
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
        "storageClassName": "roll",
        "hostPath": {"path": "/simulated"},
    }
    lab.add({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "roll"}, "spec": volume})
    make_racks(lab, 2, nodes=1, cpu="8")
    lab.apply(
        manifest("plain", forever(), failurePolicy={"maxRestarts": 5}),
        manifest("ordered", forever("a"), forever("b"), startupPolicy={"startupPolicyOrder": "InOrder"}),
        manifest("new", forever(), suspend=True),
        manifest("parked", forever()),
        manifest("done", replicated_job("w", "sleep 1", 2)),
        manifest("failed", replicated_job("w", "sleep 1; exit 3")),
        exclusive("racks", lab.job("w", replicas=2, pods=2, backoffLimit=0), failurePolicy={"maxRestarts": 5}),
        stateful("stateful", command="sleep infinity", storage_class="roll"),
        *([manifest("gang", forever(), **gang)] if gang else []),
    )
    sizes = {"plain": 4, "ordered": 8, "parked": 4, "racks": 4, "stateful": 1} | ({"gang": 4} if gang else {})
    for name, pods in sizes.items():
        lab.wait_running(pods, name)
    suspend(lab, "parked", suspended=True)
    lab.wait_true("Suspended", "new")
    lab.wait_true("Completed", "done")
    lab.wait_true("Failed", "failed")
    wait_for(lambda: not lab.of("pods", "parked"), "the end of the parked pods")


def suspend(lab: Lab, name: str, *, suspended: bool) -> None:
    lab.patch("jobset", name, {"spec": {"suspend": suspended}})
    lab.wait_condition("Suspended", "SuspendedJobs" if suspended else "ResumeJobs", name)


def fail_one(lab: Lab, name: str, job: str) -> None:
    """A pod whose Job has no second try."""
    pods = (p["metadata"] for p in lab.of("pods", name))
    lab.run("delete", "pod", next(p["name"] for p in pods if p["labels"]["job-name"] == job), "--wait=false")


def restart(lab: Lab, name: str, job: str, attempt: int, pods: int) -> None:
    """A Job fails, and all that runs afterwards is of that attempt."""
    fail_one(lab, name, job)

    def is_running() -> bool:
        lab.wait_running(pods, name)
        assert {o["metadata"]["labels"][ATTEMPT] for o in lab.of("jobs,pods", name)} == {str(attempt)}
        return True

    wait_for(is_running, f"attempt {attempt} of {name}")
    assert lab.get("jobset", name)["status"]["restarts"] == attempt


# What is compared


def stored(lab: Lab) -> Stored:
    found = (o for o in lab.all(KINDS) if not o["metadata"]["name"].startswith("probe-"))
    return {f"{o['kind']}/{o['metadata']['name']}": o for o in found}


def probe(lab: Lab) -> None:
    """A JobSet from its beginning to its end: by then the controller has looked at all that was there before it."""
    name = f"probe-{next(PROBES)}"
    lab.apply(manifest(name, replicated_job("w", "sleep 1")))
    lab.wait_true("Completed", name)


def quiet(lab: Lab) -> Stored:
    """What is there once nobody writes it any more."""

    def is_quiet() -> tuple[Stored]:
        before = stored(lab)
        probe(lab)
        assert differences(before, stored(lab)) == []
        return (before,)

    return wait_for(is_quiet, "an end of all writes")[0]


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Every leaf in which two JSON values differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        keys = [*one, *(k for k in other if k not in one)]
        return [d for k in keys for d in differences(one.get(k), other.get(k), f"{path}.{k}" if path else str(k))]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [d for i, pair in enumerate(zip(one, other, strict=True)) for d in differences(*pair, f"{path}[{i}]")]
    return [] if one == other else [f"{path}: {one!r} -> {other!r}"]


def said(objects: Stored) -> Stored:
    """Without who wrote it and when, and without what others made of it."""
    drop = {"resourceVersion", "managedFields", "generation"}
    return {
        name: {
            "metadata": {k: v for k, v in o["metadata"].items() if k not in drop},
            "spec": o.get("spec") if o["kind"] != "PodGroup" else None,
        }
        for name, o in objects.items()
    }


def test_every_difference_is_found() -> None:
    one = {"a": [1, {"b": 2}], "c": None, "d": [1]}
    assert differences(one, one) == []
    assert differences(one, {"a": [1, {"b": 3}], "d": [1, 2], "e": ""}) == [
        "a[1].b: 2 -> 3",
        "d: [1] -> [1, 2]",
        "e: None -> ''",
    ]


# A roll of ours


@pytest.fixture
def plane(make_plane: MakePlane) -> Plane:
    return make_plane(controller=True, layout=LAYOUT)


@pytest.fixture
def lab(plane: Plane) -> Lab:
    return Lab(plane, "default")


def roll(plane: Plane, **feature_gates: bool) -> None:
    """SIGTERM to the controller, and another one with these gates."""
    os.kill(controller_pid(plane), signal.SIGTERM)
    wait_for(lambda: not controller_pid(plane), "the end of the controller")
    Plane(plane.directory, PlaneOptions(layout=LAYOUT, feature_gates=feature_gates)).start()


def due(before: Stored, after: Stored) -> dict[str, set[str]]:
    """The fields of status that were written, by JobSet. Nothing else may have been."""
    found = {}
    for name in before.keys() | after.keys():
        changes = differences(before.get(name), after.get(name))
        if changes:
            assert name.startswith("JobSet/"), changes
            assert said({name: before[name]}) == said({name: after[name]})
            was, now = before[name].get("status", {}), after[name].get("status", {})
            found[name.removeprefix("JobSet/")] = {k for k in was.keys() | now.keys() if was.get(k) != now.get(k)}
    return found


def test_a_roll_restarts_nothing_and_writes_nothing_but_what_is_due(plane: Plane, lab: Lab) -> None:
    start_all(lab, scheduling=GANG)
    running = {"plain", "ordered", "racks", "stateful", "gang"}

    before = quiet(lab)
    roll(plane)
    probe(lab)
    assert due(before, stored(lab)) == {}

    # More gates: what they count begins now, in status only.
    roll(plane, **dict.fromkeys(MORE, True))
    probe(lab)
    after = stored(lab)
    assert due(before, after) == {name: {"executionAttempts", "startTime"} for name in running}
    assert {after[f"JobSet/{name}"]["status"]["executionAttempts"] for name in running} == {0}

    # A new attempt has the new labels.
    restart(lab, "plain", "plain-w-0", 1, 4)
    made = [o["metadata"] for o in lab.of("jobs,pods", "plain")]
    assert {m["annotations"][f"{PREFIX}/execution-attempt"] for m in made} == {"1"}
    assert {m["labels"][f"{PREFIX}/job-restart-attempt"] for m in made} == {"0"}

    # No gates at all: the gang keeps what it has.
    before = quiet(lab)
    roll(plane, **OFF)
    probe(lab)
    assert due(before, stored(lab)) == {name: {"startTime"} for name in running}

    # And back to those of the beginning.
    before = quiet(lab)
    roll(plane)
    probe(lab)
    assert due(before, stored(lab)) == {}
    restart(lab, "plain", "plain-w-1", 2, 4)
    restart(lab, "racks", "racks-w-1", 1, 4)
    have_a_rack_each(lab, 2, "racks")
    for name in ("new", "parked"):
        suspend(lab, name, suspended=False)
        lab.wait_running(4, name)
    after = stored(lab)
    assert [after[f"JobSet/{n}"]["status"]["terminalState"] for n in ("done", "failed")] == ["Completed", "Failed"]


@pytest.mark.parametrize("strategy", ["Recreate", "BlockingRecreate"])
def test_a_restart_under_way_is_finished_by_the_next_one(plane: Plane, lab: Lab, strategy: str) -> None:
    """Old pods that take their time are there before and after the roll."""
    slow = forever("w")
    slow["template"]["spec"]["template"]["metadata"] = {"annotations": {TERMINATE_AFTER: "1h"}}
    policy = {"maxRestarts": 1, "restartStrategy": strategy}
    since = lab.version()
    lab.apply(manifest("js", replicated_job("f", "sleep infinity"), slow, failurePolicy=policy))
    lab.wait_running(5)
    fail_one(lab, "js", "js-f-0")
    wait_for(lambda: all("deletionTimestamp" in j["metadata"] for j in lab.of("jobs") if "-w-" in str(j)), "a restart")
    old = [p["metadata"]["name"] for p in lab.of("pods") if "-w-" in p["metadata"]["name"]]
    assert len(old) == 4
    roll(plane, **dict.fromkeys(MORE, True))
    probe(lab)
    assert set(old) <= {p["metadata"]["name"] for p in lab.of("pods") if "deletionTimestamp" in p["metadata"]}
    lab.run("annotate", "pod", *old, f"{TERMINATE_AFTER}=0s", "--overwrite")

    def is_running() -> bool:
        lab.wait_running(5)
        assert {p["metadata"]["labels"][ATTEMPT] for p in lab.of("pods")} == {"1"}
        return True

    wait_for(is_running, "the second attempt")
    assert lab.get("jobset", "js")["status"]["restarts"] == 1
    made = sorted(
        (c.object["metadata"]["labels"][ATTEMPT], c.name) for c in lab.history("jobs", since) if c.type == "ADDED"
    )
    assert made == [(attempt, name) for attempt in "01" for name in ("js-f-0", "js-w-0", "js-w-1")]
    assert not lab.get("jobset", "js")["status"].get("terminalState")


# Objects that were written elsewhere


LITERAL = {
    "jobset-name": "js",
    "replicatedjob-name": "w",
    "replicatedjob-replicas": "2",
    "global-replicas": "2",
    "group-name": "default",
    "group-replicas": "2",
    "restart-attempt": "0",
}
"""What the API documents for both Jobs of a JobSet `js`, spelled out here and not compiled."""
LEAST = ("jobset-name", "replicatedjob-name", "job-index", "restart-attempt")
"""What an old release had already."""


def written_elsewhere(jobset: Object, index: int, kept: Sequence[str]) -> Object:
    """A child Job with the `kept` ones of the documented labels, and one of somebody else."""
    key = hashlib.sha1(f"default/js-w-{index}".encode(), usedforsecurity=False).hexdigest()
    of_index = dict.fromkeys(("job-index", "job-global-index", "job-group-index"), str(index)) | {"job-key": key}
    full = {**LITERAL, **of_index, "jobset-uid": jobset["metadata"]["uid"]}
    labels = {f"{PREFIX}/{name}": full[name] for name in kept or full}
    spec = replicated_job("w", "sleep infinity", pods=2, completionMode="Indexed")["template"]["spec"]
    pod = {
        "metadata": {"labels": labels, "annotations": labels},
        "spec": spec["template"]["spec"] | {"subdomain": "js"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": owned(jobset, f"js-w-{index}", {**labels, "example.com/team": "x"}) | {"annotations": labels},
        "spec": {**spec, "suspend": False, "template": pod},
    }


def owned(jobset: Object, name: str, labels: Mapping[str, str]) -> Object:
    owner = {k: jobset[k] for k in ("apiVersion", "kind")} | {k: jobset["metadata"][k] for k in ("name", "uid")}
    return {
        "name": name,
        "labels": labels,
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }


@pytest.mark.parametrize("kept", [(), LEAST], ids=["every label", "those of an old release"])
def test_objects_that_another_release_wrote_are_taken_over_as_they_are(
    make_plane: MakePlane, kept: Sequence[str]
) -> None:
    """No release of ours ran here. The Service has no labels, and the Jobs have one that is not ours."""
    plane = make_plane(layout=LAYOUT)
    lab = Lab(plane, "default")
    lab.apply(manifest("js", forever(completionMode="Indexed"), failurePolicy={"maxRestarts": 1}))
    jobset = lab.get("jobset", "js")
    service = {"clusterIP": "None", "selector": {f"{PREFIX}/jobset-name": "js"}, "publishNotReadyAddresses": True}
    lab.apply({"apiVersion": "v1", "kind": "Service", "metadata": owned(jobset, "js", {}), "spec": service})
    lab.apply(*(written_elsewhere(jobset, index, kept) for index in (0, 1)))
    lab.wait_running(4)
    jobs_ready = wait_for(lambda: [j["status"].get("ready") for j in lab.all("jobs")] == [2, 2], "both Jobs")
    assert jobs_ready
    before = stored(lab)

    Plane(plane.directory, PlaneOptions(layout=LAYOUT)).start()
    probe(lab)
    assert due(before, stored(lab)) == {"js": {"replicatedJobsStatus", "restarts"}}

    fail_one(lab, "js", "js-w-0")
    lab.wait_condition("RestartingJobSet", "JobsReady")
    after = stored(lab)
    assert after["Service/js"] == before["Service/js"]
    for index in (0, 1):
        made = after[f"Job/js-w-{index}"]
        wanted = written_elsewhere(jobset, index, ())["spec"]["template"]["metadata"]["labels"]
        wanted |= {f"{PREFIX}/restart-attempt": "1"}
        pod = made["spec"]["template"]["metadata"]
        assert made["metadata"]["labels"] == made["metadata"]["annotations"] == wanted
        assert wanted.items() <= pod["labels"].items()
        assert wanted == pod["annotations"]
