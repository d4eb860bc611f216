"""Metrics on real Kubernetes: who may read them is the cluster's word, and the end of a JobSet is counted once."""

import asyncio
import json
import os
import re
import signal
import ssl
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyjobset.controller.metrics_server import serving
from pyjobset.controller.options import Address, Metrics
from pyjobset.kube.client import connect
from pyjobset.localplane.options import NodeLayout
from pyjobset.localplane.plane import Plane
from tests.controller_world import new_manager
from tests.server.plane import PATIENCE_SECONDS, MakePlane, wait_for
from tests.server.test_controller import Cluster, manifest, replicated_job
from tests.server.test_controller_crash import controller_pid
from tests.tables.test_metrics import sources_of

JOBSETS = 30
ENDS = re.compile(r'^jobset_(completed|failed)_total\{jobset_name="([^"]*)",namespace="([^"]*)"\} (\S+)$', re.MULTILINE)

AUTHENTICATION = {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}
AUTHORIZATION = {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}
READING = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}


@pytest.fixture
def cluster(plane: Plane, namespace: str) -> Cluster:
    return Cluster(plane.run_kubectl, namespace)


class Accounts:
    """ServiceAccounts of one namespace, and what they may do in the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.made: list[str] = []

    def make(self, name: str) -> str:
        """Its token."""
        self._cluster.run("create", "serviceaccount", name)
        return self._cluster.run("create", "token", name).strip()

    def allow(self, name: str, *rules: Any) -> None:
        role = f"{self._cluster.namespace}-{name}"
        self.made.append(role)
        metadata = {"name": role}
        group, subject = "rbac.authorization.k8s.io", {"kind": "ServiceAccount", "name": name}
        self._cluster.apply(
            {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": list(rules)},
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": metadata,
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                "subjects": [subject | {"namespace": self._cluster.namespace}],
            },
        )


@pytest.fixture
def accounts(cluster: Cluster) -> Iterator[Accounts]:
    made = Accounts(cluster)
    yield made
    for role in made.made:
        cluster.run("delete", "clusterrole,clusterrolebinding", role)


def kubeconfig_of(plane: Plane, token: str, path: Path) -> Path:
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path.write_text(json.dumps(config))
    return path


def get(url: str, token: str = "") -> tuple[int, str]:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        context = trusting if url.startswith("https") else None
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_cluster_says_who_may_read(plane: Plane, accounts: Accounts, tmp_path: Path) -> None:
    """With the rights that the documents name, and no more. One that is missing is a closed door, not an open one."""
    ours, reader, nobody = (accounts.make(name) for name in ("controller", "reader", "nobody"))
    accounts.allow("reader", READING)
    config = kubeconfig_of(plane, ours, tmp_path / "config")

    async def main() -> None:
        async with connect(kubeconfig=str(config)) as client:
            sources = sources_of(new_manager(client))
            async with serving(Metrics(Address("127.0.0.1", 0)), sources, client) as port:

                async def code(token: str = "") -> int:
                    return (await asyncio.to_thread(get, f"https://127.0.0.1:{port}/metrics", token))[0]

                assert await code(reader) == 503, "the controller has no rights yet"
                accounts.allow("controller", AUTHENTICATION, AUTHORIZATION)
                await asyncio.to_thread(wait_for, lambda: can_ask(plane, ours, tmp_path / "config"), "the rights")
                assert await code() == 401
                assert await code("no.such.token") == 401
                assert await code(reader[:-8] + "AAAAAAAA") == 401, "a signature that is wrong"
                assert await code(nobody) == 403
                status, page = await asyncio.to_thread(get, f"https://127.0.0.1:{port}/metrics", reader)
                assert (status, "# TYPE jobset_failed_total counter" in page) == (200, True)
                posts = re.findall(
                    r'^rest_client_requests_total\{code="(\d+)",host="[^"]+",method="POST"\} ', page, re.MULTILINE
                )
                assert {"201", "403"} <= set(posts), "the questions are counted, those that were refused too"

    asyncio.run(main())


def can_ask(plane: Plane, token: str, config: Path) -> bool:
    asked = ("auth", "can-i", "create", "subjectaccessreviews.authorization.k8s.io", f"--kubeconfig={config}")
    return plane.run_kubectl(*asked).stdout.strip() == "yes"


def ends(page: str, namespace: str) -> Counter[tuple[str, str]]:
    """How often each JobSet of the namespace completed or failed."""
    counted: Counter[tuple[str, str]] = Counter()
    for result, name, of, value in ENDS.findall(page):
        if of == namespace:
            counted[name, result] += int(float(value))
    return counted


@pytest.mark.decision(16)
def test_each_end_is_counted_once(plane: Plane, cluster: Cluster) -> None:
    cluster.apply(
        manifest("good", replicated_job("w", "sleep 1", 2, 2)),
        manifest("bad", replicated_job("w", "sleep 1; exit 3")),
        manifest("on", replicated_job("w", "sleep infinity")),
    )
    cluster.wait_true("Completed", "good")
    cluster.wait_true("Failed", "bad")
    url = plane.status().metrics
    expected = {("good", "completed"): 1, ("bad", "failed"): 1}
    wait_for(lambda: ends(get(url)[1], cluster.namespace) == expected, "both ends are counted")
    page = get(url)[1]
    host = plane.status().server.removeprefix("https://")
    assert f'rest_client_requests_total{{code="201",host="{host}",method="POST"}}' in page
    assert (
        'pyjobset_webhook_reviews_total{verdict="allowed",webhook="/validate-jobset-x-k8s-io-v1alpha2-jobset"}' in page
    )
    assert 'pyjobset_cache_following{resource="jobsets"} 1.0' in page
    cluster.run("delete", "jobset", "good", "bad", "on")
    wait_for(lambda: not cluster.names("jobsets"), "the end of the JobSets")
    assert ends(get(url)[1], cluster.namespace) == expected, "the next scrape can still read it"


@pytest.mark.decision(16)
def test_a_killed_controller_counts_no_end_twice(make_plane: MakePlane) -> None:
    plane = make_plane(controller=True, layout=NodeLayout(count=2, cpu="64"))
    cluster = Cluster(plane.run_kubectl, "default")
    for number in range(JOBSETS):
        cluster.apply(manifest(f"js-{number}", replicated_job("w", f"sleep {1 + number // 3}")))
    url = plane.status().metrics
    pid = controller_pid(plane)
    before = wait_for(lambda: len(found := ends(get(url)[1], "default")) >= 5 and found, "the first ends")
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not controller_pid(plane), "the end of the controller")
    ended = {o["metadata"]["name"] for o in cluster.all("jobsets") if o.get("status", {}).get("terminalState")}
    assert {name for name, _ in before} <= ended < {f"js-{n}" for n in range(JOBSETS)}, "it was killed in the middle"
    plane.start()

    def has_ended() -> bool:
        running = [o for o in cluster.all("jobsets") if o.get("status", {}).get("terminalState") != "Completed"]
        assert running == []
        return True

    assert wait_for(has_ended, "all JobSets end")
    after = ends(get(url)[1], "default")
    assert max((before + after).values()) == 1
    assert {name for name, _ in after} == {f"js-{n}" for n in range(JOBSETS)} - ended
