"""A controller that runs with a Configuration file, on real Kubernetes: what the file switches is what happens."""

import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyjobset.localplane import certificates
from pyjobset.localplane.options import NodeLayout
from pyjobset.localplane.plane import Plane
from pyjobset.localplane.ports import draw
from tests.server.plane import PATIENCE_SECONDS, MakePlane, wait_for
from tests.server.test_controller import Cluster, manifest, replicated_job

Run = Callable[..., int]


@pytest.fixture
def plane(make_plane: MakePlane) -> Plane:
    return make_plane(layout=NodeLayout(count=2))


@pytest.fixture
def run(plane: Plane, tmp_path: Path) -> Iterator[Run]:
    """`run(**sections)` is the health port of a controller with that Configuration, once it is ready."""
    started: list[subprocess.Popen[bytes]] = []

    def run(**sections: Any) -> int:
        port = draw(set())
        sections = {
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{port}", "readinessEndpointName": "ready"},
            **sections,
        }
        head = {"apiVersion": "config.jobset.x-k8s.io/v1alpha1", "kind": "Configuration"}
        file = tmp_path / "config.json"
        file.write_text(json.dumps(head | sections))
        words = ["-m", "pyjobset.cli.main", "controller", "--config", str(file), "--kubeconfig", str(plane.kubeconfig)]
        started.append(subprocess.Popen([sys.executable, *words]))
        assert wait_for(lambda: is_ready(port), "the controller")
        return port

    yield run
    for process in started:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


@pytest.mark.decision(29)
def test_deferred_jobs_come_with_the_first_resume(plane: Plane, run: Run) -> None:
    run(suspendedJobs="Defer")
    cluster = Cluster(plane.run_kubectl, "default")
    children = "jobs,services,persistentvolumeclaims"
    before = cluster.names(children)
    jobset = manifest("js", replicated_job("w", "sleep infinity", 2), suspend=True)
    # `seen` is there to know that the controller has had its time: it comes later, and has its Jobs.
    cluster.apply(jobset, manifest("seen", replicated_job("w", "sleep infinity")))
    cluster.wait_true("Suspended")
    seen = {"Job/seen-w-0", "Service/seen"}
    wait_for(lambda: seen <= cluster.names(children), "what another JobSet has")
    assert cluster.names(children) - before == seen
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    own = {"Job/js-w-0", "Job/js-w-1", "Service/js"}
    assert wait_for(lambda: own <= cluster.names(children), "its Jobs and Service")
    uids = {o["metadata"]["name"]: o["metadata"]["uid"] for o in cluster.all("jobs")}
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    cluster.wait_true("Suspended")
    assert wait_for(lambda: cluster.get("job", "js-w-1")["spec"]["suspend"], "the Jobs are suspended")
    assert {o["metadata"]["name"]: o["metadata"]["uid"] for o in cluster.all("jobs")} == uids


def test_tls_1_2_is_refused_where_the_file_says_so(plane: Plane, run: Run, tmp_path: Path) -> None:
    certificates.ensure(tmp_path)
    port = draw(set())
    section = {"port": port, "host": "127.0.0.1", "certDir": str(tmp_path / "webhook")}
    run(webhook=section, tls={"minVersion": "VersionTLS13"})
    client = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    client.verify_flags &= ~ssl.VERIFY_X509_STRICT
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(urllib.error.URLError, match=r"(?i)protocol|alert|eof"):
        urllib.request.urlopen(f"https://127.0.0.1:{port}/", context=client, timeout=PATIENCE_SECONDS)
    client.maximum_version = ssl.TLSVersion.TLSv1_3
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"https://127.0.0.1:{port}/", context=client, timeout=PATIENCE_SECONDS)
