"""Exclusive placement on real Kubernetes: a rack for each Job, with the real Job controller, scheduler and webhooks."""

import json
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from pyjobset.localplane.components import SCHEDULER
from pyjobset.localplane.options import NodeLayout
from pyjobset.localplane.plane import Plane
from pyjobset.objects import labels
from tests.server.plane import MakePlane, wait_for
from tests.server.scheduling.lab import OWN, RACK, Lab
from tests.server.test_controller import Cluster, Object, manifest, replicated_job

TOPOLOGY, STRATEGY = "alpha.jobset.sigs.k8s.io/exclusive-topology", "alpha.jobset.sigs.k8s.io/node-selector"
INDEX = "batch.kubernetes.io/job-completion-index"
WEBHOOKS = "mutatingwebhookconfigurations,validatingwebhookconfigurations"


@pytest.fixture
def lab(plane: Plane, namespace: str) -> Iterator[Lab]:
    made = Lab(plane, namespace)
    yield made
    made.close()


def exclusive(name: str, *replicated_jobs: Object, notes: dict[str, str] | None = None, **spec: Any) -> Object:
    made = manifest(name, *replicated_jobs, **spec)
    made["metadata"]["annotations"] = {TOPOLOGY: RACK} if notes is None else notes
    return made


def racks_of_nodes(lab: Lab) -> dict[str, str]:
    nodes = json.loads(lab.run("get", "nodes", "-l", f"{OWN}={lab.namespace}", "-o", "json"))["items"]
    return {n["metadata"]["name"]: n["metadata"]["labels"][RACK] for n in nodes}


def racks(lab: Lab, name: str = "js") -> dict[str, set[str]]:
    """The racks of the running pods of each Job."""
    by_node = racks_of_nodes(lab)
    found: dict[str, set[str]] = defaultdict(set)
    for pod in lab.of("pods", name):
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]:
            found[pod["metadata"]["labels"]["job-name"]].add(by_node[pod["spec"]["nodeName"]])
    return dict(found)


def have_a_rack_each(lab: Lab, jobs: int, name: str = "js") -> None:
    found = racks(lab, name)
    assert len(found) == jobs, found
    assert all(len(of_job) == 1 for of_job in found.values()), found
    assert len(set.union(*found.values())) == jobs, found


def make_racks(lab: Lab, number: int, nodes: int = 2, cpu: str = "4") -> None:
    for rack in range(number):
        lab.add_nodes(nodes, cpu=cpu, rack=f"rack-{rack}")


@pytest.mark.decision(43)
def test_each_job_has_a_rack_of_its_own(lab: Lab) -> None:
    """4 Jobs of 4 pods on 4 racks. A pod takes a CPU and a rack has 8, so that room alone would not keep them apart.
    The fifth Job waits, and gets the rack of the one that ends."""
    make_racks(lab, 4)
    lab.apply(exclusive("js", lab.job("w", replicas=4, pods=4)))
    lab.wait_running(16)
    have_a_rack_each(lab, 4)
    (priority,) = {p["metadata"]["labels"]["jobset.sigs.k8s.io/priority"] for p in lab.of("pods")}
    assert priority == "0"

    lab.apply(exclusive("fifth", lab.job("w", pods=4)))

    def waits() -> bool:
        (leader,) = lab.of("pods", "fifth")
        assert leader["metadata"]["annotations"][INDEX] == "0"
        conditions = {c["type"]: c for c in leader["status"].get("conditions", [])}
        assert conditions["PodScheduled"]["reason"] == "Unschedulable"
        assert "anti-affinity" in conditions["PodScheduled"]["message"]
        return True

    wait_for(waits, "the leader of the fifth Job finds no rack")
    wait_for(lambda: "is not scheduled yet" in refused(lab, "fifth-w-0"), "the followers wait")
    assert "mpod.kb.io" in refused(lab, "fifth-w-0")
    told = wait_for(lambda: told_of_leaders(lab, "fifth", "False"), "the fifth JobSet says that it waits")
    assert told["reason"] == "LeaderUnschedulable"
    assert told["message"].startswith("Job fifth-w-0 waits for a domain of its own: 0/")
    lab.run("delete", "jobset", "js", "--wait=false")
    lab.wait_running(4, "fifth")
    have_a_rack_each(lab, 1, "fifth")
    assert wait_for(lambda: told_of_leaders(lab, "fifth", "True"), "it says that it waits no more")


def told_of_leaders(lab: Lab, name: str, status: str) -> Object:
    condition_ = condition(lab.get("jobset", name), "LeadersScheduled")
    assert condition_.get("status") == status, condition_
    return condition_


@pytest.mark.decision(42)
def test_late_pods_are_placed_when_their_leader_is_gone(lab: Lab) -> None:
    """Index 0 is done and its pod removed. A later index and the replacement of a failed pod go beside the others; when
    no other is left, the next one leads, and all that follow are beside it."""
    make_racks(lab, 2, cpu="8")
    lab.apply(exclusive("js", lab.job("w", pods=3, parallelism=3, completions=9, backoffLimit=20)))
    first = lab.wait_running(3)
    (rack,) = racks(lab)["js-w-0"]
    indexes = {p["metadata"]["annotations"][INDEX]: p["metadata"]["name"] for p in lab.of("pods")}
    lab.note([indexes["0"]], "plane.pyjobset/run-for", "1s")

    def is_done() -> bool:
        done = lab.get("job", "js-w-0")["status"].get("completedIndexes", "")
        assert done == "0", done
        return True

    wait_for(is_done, "index 0 is done")
    lab.run("delete", "pod", indexes["0"], "--wait=false")
    lab.run("delete", "pod", indexes["1"], "--wait=false")

    def runs(indexes: set[str]) -> dict[str, Object]:
        found = {
            p["metadata"]["annotations"][INDEX]: p
            for p in lab.of("pods")
            if p["status"]["phase"] == "Running" and "deletionTimestamp" not in p["metadata"]
        }
        assert set(found) == indexes, f"{set(found)}: {refused(lab, 'js-w-0')}"
        return found

    pods = wait_for(lambda: runs({"1", "2", "3"}), "the others run on, a new one and a replacement with them")
    assert pods["1"]["metadata"]["name"] not in first
    assert racks(lab)["js-w-0"] == {rack}
    assert {bool(p["spec"].get("affinity")) for p in pods.values()} == {False}

    lab.run("delete", "pods", "--all", "--wait=false")
    again = wait_for(lambda: runs({"1", "2", "3"}), "all run again")
    assert not {p["metadata"]["uid"] for p in again.values()} & {p["metadata"]["uid"] for p in pods.values()}
    assert "podAntiAffinity" in min(again.values(), key=created)["spec"]["affinity"], "the first of them leads"
    assert len(racks(lab)["js-w-0"]) == 1


def created(pod: Object) -> str:
    return str(pod["metadata"]["creationTimestamp"])


def test_a_restart_places_the_jobs_again(lab: Lab) -> None:
    make_racks(lab, 2, nodes=1, cpu="8")
    lab.apply(exclusive("js", lab.job("w", replicas=2, pods=3, backoffLimit=0), failurePolicy={"maxRestarts": 1}))
    first = lab.wait_running(6)
    have_a_rack_each(lab, 2)
    lab.note([min(first)], "plane.pyjobset/fail-after", "0s")

    def is_back() -> bool:
        assert lab.get("jobset", "js")["status"]["restarts"] == 1
        pods = [p for p in lab.of("pods") if p["metadata"]["labels"][labels.RESTART_ATTEMPT] == "1"]
        assert sum(p["status"]["phase"] == "Running" for p in pods) == 6
        return True

    wait_for(is_back, "the second attempt runs")
    have_a_rack_each(lab, 2)


def test_priorities_exclude_only_their_own(lab: Lab) -> None:
    """One rack for two Jobs of different priority, and none for a second one of the same."""
    name = f"high-{lab.namespace}"
    lab.add({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 7})
    lab.add_nodes(1, cpu="8", rack="only")
    lab.apply(exclusive("low", lab.job("w", pods=2)))
    lab.wait_running(2, "low")
    lab.apply(exclusive("high", lab.job("w", pods=2, pod={"priorityClassName": name})))
    lab.wait_running(2, "high")
    assert {p["metadata"]["labels"]["jobset.sigs.k8s.io/priority"] for p in lab.of("pods", "high")} == {"7"}
    lab.apply(exclusive("second", lab.job("w", pods=2)))
    wait_for(lambda: "is not scheduled yet" in refused(lab, "second-w-0"), "the second one waits")
    assert len(lab.wait_running(2, "low")) == len(lab.wait_running(2, "high")) == 2


def test_the_node_selector_strategy(lab: Lab) -> None:
    """Somebody has labelled and tainted the nodes: no webhook is asked, and no pod waits for another."""
    made = [lab.add_nodes(2, cpu="8", rack=f"rack-{i}") for i in range(2)]
    for index, nodes in enumerate(made):
        lab.run("label", "node", *nodes, f"alpha.jobset.sigs.k8s.io/namespaced-job={lab.namespace}_js-w-{index}")
        lab.run("taint", "node", *nodes, "alpha.jobset.sigs.k8s.io/no-schedule=true:NoSchedule")
    lab.apply(exclusive("js", lab.job("w", replicas=2, pods=3), notes={TOPOLOGY: RACK, STRATEGY: "true"}))
    lab.wait_running(6)
    assert racks(lab) == {"js-w-0": {"rack-0"}, "js-w-1": {"rack-1"}}
    for pod in lab.of("pods"):
        assert "affinity" not in pod["spec"]
        assert "jobset.sigs.k8s.io/priority" not in pod["metadata"]["labels"]


SPARED = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
ZONE = "topology.kubernetes.io/rack"


def test_followers_made_without_the_webhooks_are_replaced(make_plane: MakePlane) -> None:
    """They wait for room, as their leader does. A Job that allows no failure outlives it, because each is marked."""
    plane = make_plane(controller=True, layout=NodeLayout(count=4, topology={ZONE: 4}))
    lab = Lab(plane, "default")
    lab.run("delete", WEBHOOKS, "--all")
    lab.run("cordon", "--selector=kubernetes.io/os=linux")
    since = lab.version()
    jobs = (replicated_job("w", "sleep infinity", 2, 3, podFailurePolicy=SPARED),)
    lab.apply(exclusive("js", *jobs, notes={TOPOLOGY: ZONE}))
    assert wait_for(lambda: len(lab.uids("pods")) == 6, "all pods are made, none is refused")
    first = lab.uids("pods")
    plane.start()  # the webhooks are back
    (scheduler,) = (c.pid for c in plane.status().components if c.name == SCHEDULER)
    os.kill(scheduler, signal.SIGSTOP)  # it would put all pods on the node that is free first
    lab.run("uncordon", "--selector=kubernetes.io/os=linux")
    os.kill(scheduler, signal.SIGCONT)

    def is_right() -> bool:
        racks = {n["metadata"]["name"]: n["metadata"]["labels"][ZONE] for n in lab.all("nodes")}
        pods = [p for p in lab.of("pods") if p["status"]["phase"] == "Running"]
        of_jobs = defaultdict(set)
        for pod in pods:
            of_jobs[pod["metadata"]["labels"]["job-name"]].add(racks[pod["spec"]["nodeName"]])
        assert len(pods) == 6, [p["metadata"]["name"] for p in pods]
        assert [len(of_job) for of_job in of_jobs.values()] == [1, 1], of_jobs
        return True

    wait_for(is_right, "each Job is on the rack of its leader")
    by_uid: dict[str, list[Object]] = defaultdict(list)
    for change in lab.history("pods", since):
        by_uid[change.uid].append(change.object)
    replaced = {uid for uid in first.values() if uid not in lab.uids("pods").values()}
    indexes = {by_uid[uid][0]["metadata"]["annotations"][INDEX] for uid in replaced}
    assert indexes == {"1", "2"}, "leaders stay"
    for uid in replaced:
        marked = [o for o in by_uid[uid] if condition(o, "DisruptionTarget")]
        assert condition(marked[0], "DisruptionTarget")["reason"] == "ExclusivePlacementViolation"
        assert "deletionTimestamp" not in marked[0]["metadata"], "the mark comes first"
        assert condition(marked[0], "PodScheduled"), "the other conditions stay"
    assert not any(condition(job, "Failed") for job in lab.of("jobs"))


def condition(found: Object, type_: str) -> Object:
    return next((c for c in found["status"].get("conditions", []) if c["type"] == type_), {})


def test_without_a_controller_only_pods_of_exclusive_placement_wait(make_plane: MakePlane) -> None:
    """A controller that died holds up no other pod of a JobSet, and theirs until it is back."""
    plane = make_plane(controller=True, layout=NodeLayout(count=4))
    cluster = Cluster(plane.run_kubectl, "default")
    cluster.apply(
        manifest("plain", replicated_job("w", "sleep infinity", 1, 2, backoffLimit=6)),
        exclusive("only", replicated_job("w", "sleep infinity", 1, 2, backoffLimit=6), notes={TOPOLOGY: ZONE}),
    )
    wait_for(lambda: len(running(cluster)) == 4, "both run")
    (controller,) = (c for c in plane.status().components if c.name == "jobset-controller")
    os.kill(controller.pid, signal.SIGKILL)
    plane.run_kubectl("delete", "pods", "--all", "--wait=false")
    wait_for(lambda: running(cluster) == ["plain-w-0", "plain-w-0"], "the plain one is back")
    wait_for(lambda: "mpod.kb.io" in refused(cluster, "only-w-0"), "the exclusive one waits")
    plane.start()
    wait_for(lambda: len(running(cluster)) == 4, "both are back with the controller")


def running(cluster: Cluster) -> list[str]:
    pods = (p for p in cluster.all("pods") if p["status"]["phase"] == "Running")
    return sorted(p["metadata"]["labels"]["job-name"] for p in pods if "deletionTimestamp" not in p["metadata"])


def refused(cluster: Cluster, job: str) -> str:
    """What the Job controller was told of the pods that it could not create."""
    of = f"involvedObject.kind=Job,involvedObject.name={job},reason=FailedCreate"
    items = json.loads(cluster.run("get", "events", "--field-selector", of, "-o", "json"))["items"]
    return " ".join(item["message"] for item in items)
