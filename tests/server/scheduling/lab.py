"""A namespace with nodes of its own, so that tests of room and rank do not meet on the shared plane.

The nodes are tainted and the pods select them: nobody else's pods come, and ours go nowhere else. A node has room for
one CPU and a pod takes one unless told otherwise, so that nodes are counted in pods. `history` tells every change of a
kind of object in order, also what no look now and then would have seen.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from pyjobset.localplane.api import tls
from pyjobset.localplane.nodes import manifest as node_manifest
from pyjobset.localplane.options import NodeLayout
from pyjobset.localplane.plane import Plane
from tests.server.plane import wait_for
from tests.server.recorder import Recorder
from tests.server.test_controller import GANG, Cluster, Object, manifest, replicated_job

RACK = "lab.example.com/rack"
TERMINATE_AFTER = "plane.pyjobset/terminate-after"
READY_AFTER = "plane.pyjobset/ready-after"
RUN_FOR = "plane.pyjobset/run-for"
FAIL_AFTER = "plane.pyjobset/fail-after"
OWN = "lab.example.com/own"
JOBSET = "jobset.sigs.k8s.io/jobset-name"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
PATHS = {
    "pods": "/api/v1",
    "jobs": "/apis/batch/v1",
    "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
    "workloads": "/apis/scheduling.k8s.io/v1beta1",
    "podgroups": "/apis/scheduling.k8s.io/v1beta1",
}


@dataclass(frozen=True)
class Change:
    """`version` orders the changes of all objects of the cluster."""

    version: int
    type: str
    object: Object

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.object["metadata"]["uid"])


@dataclass(frozen=True)
class Life:
    """The versions at which a pod was made, got its node, was over and was gone. 0: it has not happened.

    A pod that is over, finished or gone, no longer counts for its gang, and no longer holds its PodGroup.
    """

    name: str
    attempt: str
    born: int
    bound: int
    over: int
    gone: int


class Lab(Cluster):
    def __init__(self, plane: Plane, namespace: str) -> None:
        super().__init__(plane.run_kubectl, namespace)
        self._plane = plane
        self._numbers = count()
        self._added: list[str] = []
        self._recorders: dict[str, Recorder] = {}

    # What there is room for

    def add_nodes(self, number: int, *, cpu: str = "1", rack: str = "") -> list[str]:
        """Nodes of this namespace, once they take pods."""
        labels = {OWN: self.namespace, **({RACK: rack} if rack else {})}
        layout = NodeLayout(count=number, cpu=cpu, topology={}, labels=labels)
        names = [f"{self.namespace}-{next(self._numbers)}" for _ in range(number)]
        taint = {"key": OWN, "value": self.namespace, "effect": "NoSchedule"}
        self.add(*({**node_manifest(name, layout, 0), "spec": {"taints": [taint]}} for name in names))

        def are_ready() -> bool:
            for name in names:
                node = self.get("node", name)
                assert [t["key"] for t in node["spec"]["taints"]] == [OWN], node["spec"]
                assert any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])
            return True

        wait_for(are_ready, f"{number} nodes")
        return names

    def add(self, *objects: Object) -> None:
        """Objects that are in no namespace. They go with the lab."""
        self._added += [f"{o['kind']}/{o['metadata']['name']}" for o in objects]
        self.run("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def close(self) -> None:
        """Pods go at once, because nobody ends them on a node that is gone."""
        for recorder in self._recorders.values():
            recorder.close()
        self._kubectl("delete", "jobsets", "--all", "--wait=false", "-n", self.namespace)
        self._kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false", "-n", self.namespace)
        if self._added:
            self._kubectl("delete", *self._added, "--ignore-not-found", "--wait=false")

    # What runs

    def job(self, name: str, command: str = "sleep infinity", replicas: int = 1, pods: int = 1, **more: Any) -> Object:
        """A ReplicatedJob whose pods run on the lab's nodes. `cpu`, `notes` (annotations of the pods), `depends_on`
        and `pod` (fields of the pods' spec) as named; anything else is the Job's."""
        container = {
            "name": "c",
            "image": "simulated",
            "command": command.split(),
            "resources": {"requests": {"cpu": more.pop("cpu", "1")}, **more.pop("resources", {})},
        }
        pod = {
            "restartPolicy": "Never",
            "nodeSelector": {OWN: self.namespace},
            "tolerations": [{"key": OWN, "operator": "Exists"}],
            "containers": [container],
            **more.pop("pod", {}),
        }
        template = {"metadata": {"annotations": more.pop("notes", {})}, "spec": pod}
        depends_on = more.pop("depends_on", None)
        spec = {"parallelism": pods, "completions": pods, "template": template, **more}
        shape = {"name": name, "replicas": replicas, "template": {"spec": spec}}
        return shape | ({"dependsOn": depends_on} if depends_on else {})

    def start(self, *replicated_jobs: Object, name: str = "js", **spec: Any) -> None:
        """Applies a JobSet. Where `scheduling` is not given it is one gang."""
        self.apply(manifest(name, *replicated_jobs, **{"scheduling": GANG, **spec}))

    def patch(self, kind: str, name: str, patch: Any) -> None:
        """A merge patch, or a JSON patch where it is a list."""
        type_ = "json" if isinstance(patch, list) else "merge"
        self.run("patch", kind, name, f"--type={type_}", "-p", json.dumps(patch))

    def scale(self, pods: int, name: str = "js") -> None:
        path = "/spec/replicatedJobs/0/template/spec"
        fields = ("parallelism", "completions")
        self.patch("jobset", name, [{"op": "replace", "path": f"{path}/{f}", "value": pods} for f in fields])

    def note(self, pods: Iterable[str], key: str, value: str) -> None:
        """Annotates pods, which tells them how to go on."""
        self.run("annotate", "pod", *pods, f"{key}={value}")

    # What became of it

    def of(self, kind: str, name: str = "js") -> list[Object]:
        """The objects of a kind that belong to a JobSet, by name."""
        shown = self.run("get", kind, "-l", f"{JOBSET}={name}", "-o", "json")
        return sorted(json.loads(shown)["items"], key=lambda o: str(o["metadata"]["name"]))

    def list_names(self, kind: str) -> list[str]:
        """Of all objects of a kind, also where they are many."""
        return self.run("get", kind, "-o", "jsonpath={.items[*].metadata.name}").split()

    def uids(self, kinds: str, name: str = "js") -> dict[str, str]:
        return {o["metadata"]["name"]: o["metadata"]["uid"] for o in self.of(kinds, name)}

    def nodes_of_pods(self, name: str = "js") -> dict[str, str]:
        """The pods of a JobSet that are neither finished nor on their way out, with their nodes ("" for none)."""
        live = (p for p in self.of("pods", name) if p["status"]["phase"] in ("Pending", "Running"))
        return {
            p["metadata"]["name"]: p["spec"].get("nodeName", "")
            for p in live
            if "deletionTimestamp" not in p["metadata"]
        }

    def wait_running(self, number: int, name: str = "js") -> dict[str, str]:
        def running() -> dict[str, str]:
            pods = {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in self._ready(name)}
            assert len(pods) == number, pods
            return pods

        return wait_for(running, f"{number} running pods of {name}")

    def _ready(self, name: str) -> list[Object]:
        return [
            p
            for p in self.of("pods", name)
            if p["status"]["phase"] == "Running" and "deletionTimestamp" not in p["metadata"]
        ]

    def wait_condition(self, type_: str, reason: str, name: str = "js") -> Object:
        def is_so() -> Object:
            found = self.condition(type_, name)
            assert found["reason"] == reason, f"{name}: {type_} is {found}"
            return found

        return wait_for(is_so, f"{type_} {reason} of {name}")

    def wait_unschedulable(self, *words: str, name: str = "js") -> Object:
        def is_so() -> Object:
            found = self.condition("PodGroupsScheduled", name)
            assert found["reason"] == "PodGroupUnschedulable", found
            assert [word for word in words if word not in found["message"]] == [], found
            return found

        return wait_for(is_so, f"{name} is told to be unschedulable")

    def wait_looked(self) -> None:
        """Until the controller has looked at all that was there before, for it serves a JobSet that is made now."""
        name = f"looked-{next(self._numbers)}"
        self.apply(manifest(name, replicated_job("w", "sleep infinity"), suspend=True))
        self.wait_true("Suspended", name)
        self.run("delete", "jobset", name, "--wait=false")

    def version(self) -> int:
        """Of the whole cluster, now. From the first one on the changes of this namespace are kept."""
        listed = json.loads(self.run("get", "--raw", self._path("pods") + "?limit=1"))
        version = int(listed["metadata"]["resourceVersion"])
        if not self._recorders:
            port, access = urlsplit(self._plane.status().server).port, tls(self._plane.directory / "pki", "ca", "admin")
            assert port
            self._recorders = {kind: Recorder(port, access, self._path(kind), version) for kind in PATHS}
        return version

    def changes(self, kind: str, since: int) -> list[Change]:
        """Those after `since` that were told until now."""
        found = (
            Change(int(event["object"]["metadata"]["resourceVersion"]), event["type"], event["object"])
            for event in self._recorders[kind].told()
        )
        return [change for change in found if change.version > since]

    def history(self, kind: str, since: int, name: str = "js") -> list[Change]:
        """Every change of a JobSet after `since`, or of its objects, in order."""

        def told() -> tuple[list[Change]]:
            there = [self.get(kind, name)] if kind == "jobsets" else self.of(kind, name)
            now = {o["metadata"]["name"]: int(o["metadata"]["resourceVersion"]) for o in there}
            changes = self.changes(kind, since)
            last = {c.name: c.version for c in changes}
            assert all(last.get(n, 0) >= v for n, v in now.items() if v > since), f"told {last}, there is {now}"
            return (changes,)

        (changes,) = wait_for(told, f"the history of {kind}")
        whose = (
            (lambda c: c.name) if kind == "jobsets" else lambda c: c.object["metadata"].get("labels", {}).get(JOBSET)
        )
        return [change for change in changes if whose(change) == name]

    def watch(self, kind: str, since: int, *, seconds: int) -> list[Change]:
        """The changes after `since` until `seconds` from now."""
        query = f"?watch=1&resourceVersion={since}&timeoutSeconds={seconds}"
        done = self._kubectl("get", "--raw", self._path(kind) + query, timeout_seconds=seconds + 120)
        assert done.returncode == 0, done.stderr
        changes = [json.loads(line) for line in done.stdout.splitlines() if line]
        assert all(c["type"] != "ERROR" for c in changes), changes
        return [Change(int(c["object"]["metadata"]["resourceVersion"]), c["type"], c["object"]) for c in changes]

    def lives(self, since: int, name: str = "js") -> list[Life]:
        """The pods of a JobSet that were made after `since`, in order."""
        by_uid: dict[str, list[Change]] = defaultdict(list)
        for change in self.history("pods", since, name):
            by_uid[change.uid].append(change)
        return [_life(changes) for changes in by_uid.values() if changes[0].type == "ADDED"]

    def _path(self, kind: str) -> str:
        return f"{PATHS[kind]}/namespaces/{self.namespace}/{kind}"


def _life(changes: list[Change]) -> Life:
    return Life(
        name=changes[0].name,
        attempt=changes[0].object["metadata"]["labels"][ATTEMPT],
        born=changes[0].version,
        bound=next((c.version for c in changes if c.object["spec"].get("nodeName")), 0),
        over=next((c.version for c in changes if c.type == "DELETED" or _is_finished(c.object)), 0),
        gone=next((c.version for c in changes if c.type == "DELETED"), 0),
    )


def _is_finished(pod: Object) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def min_count(group: Object) -> int:
    """Of a PodGroup, or of a template of a Workload."""
    return int(group.get("spec", group)["schedulingPolicy"]["gang"]["minCount"])
