"""Several controllers on real Kubernetes: who leads after a kill, a stop and a pause, also against client-go."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from pyjobset.controller.options import LeaderElection
from pyjobset.localplane.options import NodeLayout
from pyjobset.localplane.plane import Plane
from pyjobset.localplane.ports import draw
from pyjobset.localplane.processes import command_line
from tests.server.plane import PATIENCE_SECONDS, MakePlane, wait_for
from tests.server.test_controller import Cluster, Object, manifest, replicated_job
from tests.server.test_controller_crash import writes

NAMESPACE = "jobset-system"
LEASE = LeaderElection().name
ROLE = Path(__file__).parents[2] / "deploy/rbac/leader_election_role.yaml"
LEASE_SECONDS, DEADLINE_SECONDS, RETRY_SECONDS = 10, 8, 1
"""A leader that cannot renew for that deadline ends itself, so it is longer than a loaded machine takes for a write."""


@dataclass
class Replica:
    process: subprocess.Popen[bytes]
    identity: str
    health_port: int
    log: Path

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)


Start = Callable[..., Replica]


@pytest.fixture
def plane(make_plane: MakePlane) -> Plane:
    made = make_plane(layout=NodeLayout(count=2))
    made.run_kubectl("create", "namespace", NAMESPACE)
    return made


@pytest.fixture
def cluster(plane: Plane) -> Cluster:
    return Cluster(plane.run_kubectl, "default")


@pytest.fixture
def start(plane: Plane, tmp_path: Path) -> Iterator[Start]:
    """`start(user="")` is a ready controller that elects, as that user."""
    started: list[Replica] = []

    def start(*flags: str, user: str = "") -> Replica:
        folder = tmp_path / f"replica-{len(started)}"
        folder.mkdir()
        port = draw(set())
        config = {
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{port}"},
            "leaderElection": {
                "leaderElect": True,
                "resourceNamespace": NAMESPACE,
                "leaseDuration": f"{LEASE_SECONDS}s",
                "renewDeadline": f"{DEADLINE_SECONDS}s",
                "retryPeriod": f"{RETRY_SECONDS}s",
            },
        }
        (folder / "config.json").write_text(json.dumps(config))
        access = yaml.safe_load(plane.kubeconfig.read_text())
        if user:
            access["users"][0]["user"]["as"] = user
        (folder / "kubeconfig").write_text(yaml.safe_dump(access))
        log = folder / "log"
        words = ["--config", str(folder / "config.json"), "--kubeconfig", str(folder / "kubeconfig"), *flags]
        with log.open("wb") as output:
            process = subprocess.Popen([sys.executable, "-m", "pyjobset.cli.main", "controller", *words], stderr=output)
        made = Replica(process, "", port, log)
        started.append(made)
        wait_for(lambda: "Waiting for leadership" in log.read_text(), "a controller that is ready to lead")
        made.identity = log.read_text().rpartition("identity=")[2].split()[0]
        return made

    yield start
    for replica in started:
        if replica.process.poll() is None:
            replica.signal(signal.SIGCONT)
            replica.process.kill()
            replica.process.wait(PATIENCE_SECONDS)


def spec(cluster: Cluster) -> Object:
    found: Object = Cluster(cluster._kubectl, NAMESPACE).get("lease", LEASE)["spec"]
    return found


def holder(cluster: Cluster) -> str:
    try:
        return str(spec(cluster).get("holderIdentity", ""))
    except AssertionError:  # there is none yet
        return ""


def leads(cluster: Cluster, replica: Replica) -> datetime:
    """Since when."""
    wait_for(lambda: holder(cluster) == replica.identity, "a new leader")
    return moment(cluster, "acquireTime")


def moment(cluster: Cluster, field: str) -> datetime:
    return datetime.fromisoformat(spec(cluster)[field])


def works(cluster: Cluster, name: str) -> None:
    cluster.apply(manifest(name, replicated_job("w", "sleep infinity")))
    wait_for(lambda: f"Job/{name}-w-0" in cluster.names("jobs"), "the Job")


def test_a_killed_leader_is_followed_after_its_lease_and_a_stopped_one_at_once(cluster: Cluster, start: Start) -> None:
    first = start()
    leads(cluster, first)
    second = start()
    works(cluster, "one")
    assert holder(cluster) == first.identity
    first.signal(signal.SIGKILL)
    first.process.wait(PATIENCE_SECONDS)
    killed = moment(cluster, "renewTime")
    after_a_kill = leads(cluster, second) - killed
    assert after_a_kill >= timedelta(seconds=LEASE_SECONDS), "nobody takes a Lease before its end"
    works(cluster, "two")
    third = start()
    stopped = datetime.now(UTC)
    second.signal(signal.SIGTERM)
    assert second.process.wait(PATIENCE_SECONDS) == 0
    assert "Lease released" in second.log.read_text()
    assert leads(cluster, third) - stopped < after_a_kill
    works(cluster, "three")
    assert spec(cluster)["leaseTransitions"] == 2


def count_jobs(cluster: Cluster) -> int:
    return len(cluster.run("get", "jobs", "-o", "name").split())


def test_a_leader_that_wakes_up_late_writes_nothing(plane: Plane, cluster: Cluster, start: Start) -> None:
    """It is stopped in the middle of 600 Jobs, and loses its rights meanwhile: each write of it would be a 403."""
    cluster.run("create", "clusterrolebinding", "a", "--clusterrole=cluster-admin", "--user=a")
    first = start("--kube-api-qps=20", "--kube-api-burst=20", user="a")
    leads(cluster, first)
    second = start()
    cluster.apply(manifest("big", replicated_job("w", "sleep infinity", 600)))
    wait_for(lambda: count_jobs(cluster) > 60, "the first Jobs")
    first.signal(signal.SIGSTOP)
    assert count_jobs(cluster) < 500, "it is not in the middle any more"
    leads(cluster, second)
    cluster.run("delete", "clusterrolebinding", "a")

    def may_nothing() -> bool:
        return plane.run_kubectl("auth", "can-i", "create", "jobs", "--as=a").stdout.strip() == "no"

    wait_for(may_nothing, "the end of its rights")
    before = writes(plane)
    first.signal(signal.SIGCONT)
    assert first.process.wait(PATIENCE_SECONDS) == 1
    assert "leadership lost" in first.log.read_text()
    wait_for(lambda: count_jobs(cluster) == 600, "the Jobs")
    assert holder(cluster) == second.identity
    refused = {what: count for what, count in (writes(plane) - before).items() if what[3] == "403"}
    assert refused == {}


def test_it_and_kubernetes_own_leader_election_exclude_each_other(
    plane: Plane, cluster: Cluster, start: Start, tmp_path: Path
) -> None:
    """A scheduler that elects by our Lease stands for the original controller: it has the same client-go."""
    pid = next(c.pid for c in plane.status().components if c.name == "kube-scheduler")
    program = command_line(pid)[0]
    log = tmp_path / "scheduler.log"

    def other() -> subprocess.Popen[bytes]:
        durations = [
            f"--leader-elect-lease-duration={LEASE_SECONDS}s",
            f"--leader-elect-renew-deadline={DEADLINE_SECONDS}s",
            f"--leader-elect-retry-period={RETRY_SECONDS}s",
        ]
        names = [f"--leader-elect-resource-namespace={NAMESPACE}", f"--leader-elect-resource-name={LEASE}"]
        access = [f"--{name}={plane.kubeconfig}" for name in ("kubeconfig", "authentication-kubeconfig")]
        access += [f"--authorization-kubeconfig={plane.kubeconfig}", "--secure-port=0"]
        with log.open("wb") as output:
            return subprocess.Popen([program, "--leader-elect", *names, *durations, *access], stderr=output)

    scheduler = other()
    try:
        first = wait_for(lambda: holder(cluster), "the scheduler leads")
        ours = start()
        cluster.apply(manifest("js", replicated_job("w", "sleep infinity")))
        renewed = spec(cluster)["renewTime"]
        wait_for(lambda: spec(cluster)["renewTime"] > renewed, "it renews")
        assert holder(cluster) == first
        assert cluster.names("jobs") == set()
        killed = datetime.now(UTC)
        scheduler.kill()
        after_a_kill = leads(cluster, ours) - killed
        wait_for(lambda: "Job/js-w-0" in cluster.names("jobs"), "the Job")
        scheduler.wait(PATIENCE_SECONDS)
        scheduler = other()
        wait_for(lambda: "attempting to acquire" in log.read_text().lower(), "it waits for the Lease")
        renewed = spec(cluster)["renewTime"]
        wait_for(lambda: spec(cluster)["renewTime"] > renewed, "we renew")
        assert holder(cluster) == ours.identity
        stopped = datetime.now(UTC)
        ours.signal(signal.SIGTERM)
        assert ours.process.wait(PATIENCE_SECONDS) == 0
        wait_for(lambda: holder(cluster) not in ("", ours.identity), "the scheduler leads")
        assert moment(cluster, "acquireTime") - stopped < after_a_kill
        assert spec(cluster)["leaseTransitions"] == 2
    finally:
        scheduler.kill()
        scheduler.wait(PATIENCE_SECONDS)


def test_the_role_that_is_deployed_is_enough(plane: Plane, cluster: Cluster, start: Start) -> None:
    """Whatever else this user may do is reading, so that the controller comes to lead."""
    rbac = "rbac.authorization.k8s.io"
    subject = {"apiGroup": rbac, "kind": "User", "name": "elector"}
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}
    metadata = {"name": "reader"}
    reference = {"apiGroup": rbac, "kind": "ClusterRole", "name": "reader"}
    role, binding = yaml.safe_load_all(ROLE.read_text())
    items = [
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": [subject],
        },
        role,
        {**binding, "subjects": [subject]},
    ]
    made = plane.run_kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert made.returncode == 0, made.stderr
    replica = start(user="elector")
    leads(cluster, replica)
    renewed = spec(cluster)["renewTime"]
    wait_for(lambda: spec(cluster)["renewTime"] > renewed, "a renewal")
    replica.signal(signal.SIGTERM)
    assert replica.process.wait(PATIENCE_SECONDS) == 0
    assert holder(cluster) == ""
