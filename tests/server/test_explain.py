"""`jobset explain` on real Kubernetes: what it says of JobSets that wait, and that it says so no more when they run."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pyjobset.localplane.options import NodeLayout
from pyjobset.localplane.plane import Plane
from tests.server.plane import PATIENCE_SECONDS, Kubectl, MakePlane, wait_for
from tests.server.scheduling.lab import OWN, RACK, Lab
from tests.server.test_controller import Cluster, manifest, replicated_job

GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}


def asking(cpu: str, pods: int, **pod: Any) -> dict[str, Any]:
    """A ReplicatedJob of one Job whose pods never end."""
    job = replicated_job("w", "sleep infinity", pods=pods)
    spec = job["template"]["spec"]["template"]["spec"]
    spec["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    spec.update(pod)
    return job


class Explainer:
    """The command, as a person runs it, in one namespace."""

    def __init__(self, plane: Plane, namespace: str) -> None:
        self._words = ["-n", namespace, "--kubeconfig", str(plane.kubeconfig)]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pyjobset", "explain", *arguments, *self._words]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)

    def json(self) -> dict[str, Any]:
        done = self.run("js", "-o", "json")
        assert (done.returncode, done.stderr) == (0, "")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def wait(self, *codes: str, state: str = "", words: str = "") -> dict[str, Any]:
        """The explanation once its findings have these codes, and its headline the words."""

        def has() -> dict[str, Any]:
            found = self.json()
            assert [f["code"] for f in found.get("findings", [])] == list(codes), found
            assert state in ("", found["code"]), found
            assert words in found["headline"], found
            return found

        return wait_for(has, f"explained by {codes}")


@pytest.fixture
def cluster(kubectl: Kubectl, namespace: str) -> Cluster:
    return Cluster(kubectl, namespace)


@pytest.fixture
def explained(plane: Plane, namespace: str) -> Explainer:
    return Explainer(plane, namespace)


@pytest.fixture
def lab(plane: Plane, namespace: str) -> Iterator[Lab]:
    made = Lab(plane, namespace)
    yield made
    made.close()


def test_a_gang_that_is_too_large_and_the_node_that_helps(lab: Lab, explained: Explainer) -> None:
    lab.add_nodes(2)
    lab.start(lab.job("w", pods=3, cpu="600m"))
    (found,) = explained.wait("gang-too-large")["findings"]
    told = found["arguments"]
    assert (told["quorum"], told["fit"], told["usable"], told["scarce"], told["asks"]) == (3, 2, 2, "cpu", "600m")
    assert "minCount (3) cannot be satisfied: 2 scheduled" in " ".join(e["says"] for e in found["evidence"])
    help_ = found["advice"][0]["command"].split()
    assert help_[:5] == ["jobset", "nodes", "add", "--count", "1"]
    assert help_[help_.index("--label") + 1] == f"{OWN}={lab.namespace}"
    said = explained.run("js").stdout
    assert said.startswith(f"JobSet {lab.namespace}/js waits: there is room for 2 of the 3 pods that start together\n")

    lab.add_nodes(1)
    explained.wait(state="running", words=f"JobSet {lab.namespace}/js runs: 3 of 3 pods placed, 3 ready")


@pytest.mark.decision(38)
def test_room_at_which_the_scheduler_has_not_looked_yet(make_plane: MakePlane) -> None:
    """It looks on a timer only. Here it is killed, so that it certainly has not looked."""
    plane = make_plane(controller=True, layout=NodeLayout(count=2, cpu="1"))
    explained = Explainer(plane, "default")
    Cluster(plane.run_kubectl, "default").apply(manifest("js", asking("600m", 3), scheduling=GANG))
    explained.wait("gang-too-large")
    os.kill(next(c.pid for c in plane.status().components if c.name == "kube-scheduler"), signal.SIGKILL)
    plane.add_nodes(NodeLayout(count=1, cpu="1"))
    (found,) = explained.wait("room-not-seen")["findings"]
    assert "the scheduler has not looked again" in found["text"]
    assert [a["code"] for a in found["advice"]] == ["wait"]
    plane.start()
    explained.wait(state="running")


def test_a_priority_class_that_does_not_exist(cluster: Cluster, explained: Explainer) -> None:
    cluster.apply(manifest("js", asking("1m", 1, priorityClassName="no-such-class"), scheduling=GANG))
    cluster.wait_true("Blocked")
    (found,) = explained.wait("priority-class-missing")["findings"]
    assert found["arguments"] == {"name": "no-such-class", "again": "as soon as there is one"}
    assert "no PriorityClass with name no-such-class was found" in found["evidence"][0]["says"]


def test_pods_that_a_quota_refuses(cluster: Cluster, explained: Explainer) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    cluster.apply(quota)
    wait_for(lambda: cluster.get("resourcequota", "none").get("status", {}).get("hard"), "the quota is counted")
    cluster.apply(manifest("js", asking("1m", 1)))
    (found,) = explained.wait("quota-exceeded")["findings"]
    assert (found["about"], found["arguments"]) == ("Job js-w-0", {"name": "none"})


def test_a_topology_key_that_no_node_has(cluster: Cluster, explained: Explainer) -> None:
    key = "example.com/no-such-label"
    cluster.apply(
        manifest("js", asking("1m", 2), scheduling={**GANG, "schedulingConstraints": {"topology": [{"key": key}]}})
    )
    (found,) = explained.wait("topology-label-missing")["findings"]
    assert (found["arguments"]["key"], found["arguments"]["quorum"]) == (key, 2)
    assert f"kubectl label node NODE {key}=VALUE" in [a.get("command") for a in found["advice"]]


def test_a_suspended_jobset_and_its_resumption(cluster: Cluster, explained: Explainer) -> None:
    cluster.apply(manifest("js", asking("1m", 1), scheduling=GANG, suspend=True))
    cluster.wait_true("Suspended")
    found = explained.wait("suspended")
    assert found["code"] == "suspended"
    assert found["findings"][0]["advice"][0]["command"].startswith("kubectl patch jobset js ")
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    explained.wait(state="running")


def test_a_failed_job_with_its_exit_code(cluster: Cluster, explained: Explainer) -> None:
    cluster.apply(manifest("js", replicated_job("w", "sleep 1; exit 3")))
    cluster.wait_true("Failed")
    found = explained.wait("job-failed", "failure-policy")
    assert found["code"] == "failed"
    assert "ended with exit code 3" in found["findings"][0]["arguments"]["exit"]


def test_the_second_of_two_steps(cluster: Cluster, explained: Explainer) -> None:
    first = asking("1m", 1, nodeSelector={"no-such": "label"})
    second = {**replicated_job("v", "sleep infinity"), "dependsOn": [{"name": "w", "status": "Ready"}]}
    cluster.apply(manifest("js", first, second, scheduling={}))
    found = explained.wait("no-node-usable", "startup-waits")["findings"]
    assert found[1]["arguments"] == {"replicated_job": "v", "on": "w", "status": "Ready", "count": 0, "replicas": 1}


def test_a_job_that_waits_for_a_domain_of_its_own(lab: Lab, explained: Explainer) -> None:
    racks = [f"{lab.namespace}-{n}" for n in range(3)]
    for rack in racks[:2]:
        lab.add_nodes(1, cpu="2", rack=rack)
    js = manifest("js", lab.job("w", replicas=3))
    js["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}
    lab.apply(js)
    (found,) = explained.wait("domains-taken")["findings"]
    told = found["arguments"]
    assert [told[name] for name in ("domains", "taken", "free", "jobs", "key")] == [2, 2, 0, 1, RACK]
    assert told["holders"] == "2 by this JobSet"
    assert "anti-affinity" in found["evidence"][0]["says"]
    words = found["advice"][0]["command"].split()
    labels = dict(word.split("=") for word, flag in zip(words[1:], words, strict=False) if flag == "--label")
    assert labels[OWN] == lab.namespace
    assert labels[RACK] not in racks
    lab.add_nodes(1, cpu="2", rack=racks[2])
    explained.wait(state="running")


def test_a_restart_by_a_rule(cluster: Cluster, explained: Explainer) -> None:
    """The Job that failed is gone; its failure is in its event."""
    on_42 = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
    job = replicated_job("w", "sleep 2; exit 42", podFailurePolicy=on_42)
    rules = [
        {"name": "never", "action": "FailJobSet", "onJobFailureMessagePatterns": ["exit code 3 "]},
        {"name": "again", "action": "RestartJobSet", "onJobFailureReasons": ["PodFailurePolicy"]},
    ]
    cluster.apply(manifest("js", job, failurePolicy={"maxRestarts": 9, "rules": rules}))

    def restarted() -> dict[str, Any]:
        (told,) = [f for f in explained.json().get("findings", []) if f["code"] == "failure-policy"]
        assert "event" in told["evidence"][0]["where"]
        return dict(told)

    found = wait_for(restarted, "a restart is explained by the event of the Job that is gone")
    assert "failed with exit code 42 matching FailJob rule at index 0" in found["evidence"][0]["says"]
    assert [(r["rule"], r["matches"]) for r in found["arguments"]["rules"]] == [("never", False), ("again", True)]
    assert found["arguments"]["outcome"] == "restarts"


def test_a_name_that_is_not_there_ends_with_4(explained: Explainer) -> None:
    done = explained.run("nobody")
    assert (done.returncode, done.stdout) == (4, "")
    assert "nobody not found" in done.stderr
