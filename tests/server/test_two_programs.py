"""Two programs side by side on live JobSets: the Lease decides who leads, ours serves the webhooks in either case.

The other program is ours too, unless JOBSET_ORIGINAL_CONTROLLER names that of the original controller: an upgrade from
it and back. JobSets have no spec.scheduling here, which its releases need not know.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pyjobset.localplane import components
from pyjobset.localplane.plane import Plane
from pyjobset.localplane.ports import draw
from tests.server.plane import PATIENCE_SECONDS, MakePlane, wait_for
from tests.server.scheduling.lab import RACK, Lab
from tests.server.test_claims import stateful
from tests.server.test_controller import Object, manifest, replicated_job
from tests.server.test_controller_crash import controller_pid
from tests.server.test_exclusive_placement import STRATEGY, TOPOLOGY, exclusive, have_a_rack_each
from tests.server.test_leader_election import LEASE, ROLE
from tests.server.test_upgrade import (
    LAYOUT,
    differences,
    due,
    forever,
    probe,
    quiet,
    restart,
    said,
    start_all,
    stored,
    suspend,
)

ORIGINAL = "JOBSET_ORIGINAL_CONTROLLER"
CERTIFICATE = "pki/webhook"


@dataclass
class Pair:
    """Ours in the plane, which serves the webhooks in either case, and another program. The Lease says who leads."""

    plane: Plane
    lab: Lab
    directory: Path
    process: subprocess.Popen[bytes] | None = None

    def to_other(self) -> None:
        """The other one leads before ours is there again as a follower."""
        os.kill(controller_pid(self.plane), signal.SIGTERM)
        wait_for(lambda: not controller_pid(self.plane), "the end of ours")
        before = self.holder()
        health = draw(set())
        command = [*other_program(), f"--kubeconfig={self.plane.kubeconfig}", f"--config={self._config(health)}"]
        with (self.directory / "other.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        leader = wait_for(lambda: self.holder() not in ("", before) and self.holder(), "the other one leads")
        self.plane.start()
        assert self.holder() == leader

    def to_ours(self) -> None:
        before = self.holder()
        self.end()
        wait_for(lambda: self.holder() not in ("", before), "ours leads")

    def end(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(PATIENCE_SECONDS)

    def holder(self) -> str:
        found = json.loads(self.lab.run("get", "lease", LEASE, "--ignore-not-found", "-o", "json") or "{}")
        return str(found.get("spec", {}).get("holderIdentity", ""))

    def _config(self, health: int) -> Path:
        """Only fields that both know. Nobody asks its webhooks."""
        config = {
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "webhook": {
                "host": "127.0.0.1",
                "port": draw({health}),
                "certDir": str(self.plane.directory / CERTIFICATE),
            },
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
            "leaderElection": {"leaderElect": True, "resourceName": LEASE, "resourceNamespace": "default"},
            "internalCertManagement": {"enable": False},
        }
        file = self.directory / "config.json"
        file.write_text(json.dumps(config))
        return file


def other_program() -> list[str]:
    original = os.environ.get(ORIGINAL)
    return [original] if original else [sys.executable, "-m", "pyjobset", "controller"]


@pytest.fixture
def pair(make_plane: MakePlane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Pair]:
    plain = components._controller
    election = ["--leader-elect", "--leader-election-namespace=default"]
    monkeypatch.setattr(components, "_controller", lambda *given: [*plain(*given), *election])
    plane = make_plane(controller=True, layout=LAYOUT)
    lab = Lab(plane, "default")
    role, binding = (o | {"metadata": {"name": "elects"}} for o in yaml.safe_load_all(ROLE.read_text()))
    subject = {"kind": "User", "name": components.CONTROLLER, "apiGroup": binding["roleRef"]["apiGroup"]}
    lab.apply(role, binding | {"roleRef": binding["roleRef"] | {"name": "elects"}, "subjects": [subject]})
    made = Pair(plane, lab, tmp_path)
    wait_for(made.holder, "ours leads")
    yield made
    made.end()


def test_from_one_program_to_another_and_back_no_pod_restarts(pair: Pair) -> None:
    lab = pair.lab
    pair.to_other()
    start_all(lab)
    for change, attempt, resumed in ((pair.to_ours, 1, "new"), (pair.to_other, 2, "parked")):
        before = quiet(lab)
        change()
        probe(lab)
        written = due(before, stored(lab))
        assert not any({"conditions", "terminalState", "restarts"} & fields for fields in written.values()), written
        restart(lab, "plain", f"plain-w-{attempt - 1}", attempt, 4)
        restart(lab, "racks", "racks-w-1", attempt, 4)
        have_a_rack_each(lab, 2, "racks")
        suspend(lab, resumed, suspended=False)
        lab.wait_running(4, resumed)
    states = {o["metadata"]["name"]: o["status"].get("terminalState") for o in lab.all("jobsets")}
    assert (states["done"], states["failed"]) == ("Completed", "Failed")


def test_two_programs_make_the_same_objects_of_one_manifest(pair: Pair) -> None:
    """Jobs, pods, Services and claims, down to the last field; names of pods are random."""
    pair.to_other()
    theirs = made_of(pair.lab)
    pair.to_ours()
    ours = made_of(pair.lab)
    assert {name.partition("/")[0] for name in ours} == {"Job", "Pod", "Service", "PersistentVolumeClaim"}
    assert "\n".join(differences(theirs, ours)) == ""


def made_of(lab: Lab) -> Object:
    """What is made of a JobSet with most of what a spec can say, and of one with node selectors; both are gone then."""
    leader = replicated_job("l", "sleep infinity", backoffLimit=2)
    leader["groupName"] = "leaders"
    leader["template"]["metadata"] = {"labels": {"example.com/of": "job"}, "annotations": {"example.com/of": "job"}}
    pod = leader["template"]["spec"]["template"]
    pod["metadata"] = {"labels": {"example.com/of": "pod"}, "annotations": {"example.com/of": "pod"}}
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    claims = stateful()["spec"]["volumeClaimPolicies"]
    coordinator = {"replicatedJob": "l", "jobIndex": 0, "podIndex": 0}
    full = manifest("full", leader, forever(), coordinator=coordinator, volumeClaimPolicies=claims)
    full["spec"]["network"] = {"subdomain": "sub", "publishNotReadyAddresses": False}
    selecting = exclusive("selecting", forever(), notes={TOPOLOGY: RACK, STRATEGY: "true"})
    quiet_one = manifest("hidden", forever(), network={"enableDNSHostnames": False}, suspend=True)
    lab.apply(full, selecting, quiet_one)
    wait_for(lambda: len(lab.list_names("pods")) == 9, "the pods")
    wait_for(lambda: len(lab.list_names("jobs")) == 7, "the Jobs")
    made = lab.all("jobs,pods,services,pvc")
    lab.run("delete", "jobsets", "--all")
    wait_for(lambda: not lab.names("jobs,pods,pvc") and lab.list_names("services") == ["kubernetes"], "their end")
    return comparable(o for o in made if o["metadata"]["name"] != "kubernetes")


def comparable(objects: Iterable[Object]) -> Object:
    """By kind and name, a pod's being that of its Job and index; uids are replaced by whose they are."""
    found = {}
    for o in objects:
        labels, name = o["metadata"].get("labels", {}), o["metadata"]["name"]
        found[f"{o['kind']}/{name.rpartition('-')[0] if o['kind'] == 'Pod' else name}"] = o
        assert o["kind"] != "Pod" or labels["job-name"] in name
    text = json.dumps(said(found))
    for name, o in found.items():
        text = text.replace(o["metadata"]["uid"], name)
        text = text.replace(o["metadata"]["ownerReferences"][0]["uid"], "its owner's") if o["kind"] != "Pod" else text
        text = text.replace(o["metadata"]["name"], name) if o["kind"] == "Pod" else text
    return drop(json.loads(text), {"creationTimestamp", "nodeName", "selfLink"})


def drop(value: Any, keys: set[str]) -> Any:
    if isinstance(value, dict):
        return {k: drop(v, keys) for k, v in value.items() if k not in keys}
    return [drop(v, keys) for v in value] if isinstance(value, list) else value
