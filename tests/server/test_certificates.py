"""Certificates that controllers make themselves, on real Kubernetes: with the rights of deploy/rbac and nothing more.

Two replicas share a Secret. The webhooks are those of deploy/webhook, asked by the URL of the first replica, because no
Service leads out of the plane; its address gets into the certificate for that reason alone.
"""

import base64
import json
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from pyjobset.controller.certificates.content import Content, encode, read
from pyjobset.controller.certificates.plan import Terms, carry_out, decide
from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import Plane
from pyjobset.localplane.ports import draw
from pyjobset.objects.meta import Manifest
from tests.server.plane import PATIENCE_SECONDS, wait_for
from tests.server.test_controller import Cluster, manifest, replicated_job
from tests.server.test_metrics import kubeconfig_of

DEPLOY = Path(__file__).parents[2] / "deploy"
NAMESPACE, ACCOUNT = "jobset-system", "jobset-controller-manager"
SECRET, HOST = "jobset-webhook-server-cert", "127.0.0.1"
CONFIGURATIONS = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
CONFIGURATION = {
    "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
    "kind": "Configuration",
    "leaderElection": {"leaderElect": True, "resourceNamespace": NAMESPACE},
    "internalCertManagement": {"enable": True},
    "metrics": {"bindAddress": "0"},
}
JOBSET = manifest("js", replicated_job("w", "sleep infinity"), suspend=True)
BAD = manifest("js", replicated_job("w", "sleep infinity") | {"groupName": "G"})


@dataclass
class Replica:
    process: subprocess.Popen[bytes]
    port: int
    health_port: int
    log: Path

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health_port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@dataclass
class Lab:
    plane: Plane
    system: Cluster
    users: Cluster
    replicas: list[Replica]

    def kubectl(self, *arguments: str, stdin: Any = None) -> str:
        done = self.plane.run_kubectl(*arguments, stdin="" if stdin is None else json.dumps(stdin))
        return done.stderr if done.returncode else ""

    def apply_webhooks(self) -> None:
        """With kubectl replace or create, so that no caBundle is left."""
        found = yaml.safe_load_all((DEPLOY / "webhook/configurations.yaml").read_text())
        for configuration in found:
            for webhook in configuration["webhooks"]:
                path = webhook["clientConfig"].pop("service")["path"]
                webhook["clientConfig"]["url"] = f"https://{HOST}:{self.replicas[0].port}{path}"
            self.kubectl("delete", configuration["kind"], configuration["metadata"]["name"])
            assert self.kubectl("create", "-f", "-", stdin=configuration) == ""

    def bundles(self) -> set[bytes]:
        found = json.loads(self.system.run("get", CONFIGURATIONS, "-o", "json"))["items"]
        assert len(found) == 2
        return {base64.b64decode(w["clientConfig"].get("caBundle", "")) for c in found for w in c["webhooks"]}

    def content(self) -> Content:
        return read(self.system.get("secret", SECRET).get("data", {}))

    def served(self, bundle: bytes) -> set[str]:
        """Serial numbers. Raises ssl.SSLError where a replica serves what the bundle does not trust."""
        context = ssl.create_default_context(cadata=bundle.decode())
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        found = set()
        for replica in self.replicas:
            with (
                socket.create_connection((HOST, replica.port), timeout=PATIENCE_SECONDS) as raw,
                context.wrap_socket(raw, server_hostname=HOST) as connection,
            ):
                found.add(str((connection.getpeercert() or {})["serialNumber"]))
        return found

    def serves(self, content: Content) -> bool:
        """Both replicas serve it, and it is trusted, and nobody else."""
        assert content.serving is not None
        trusted = b"".join(certificate.pem for certificate in content.trusted)
        serial = f"{content.serving.certificate.parsed.serial_number:x}"
        assert self.bundles() == {trusted}
        return {int(s, 16) for s in self.served(trusted)} == {int(serial, 16)}

    def admits(self, jobset: Manifest, *flags: str) -> str:
        """What kubectl says to it, if it is refused."""
        return self.kubectl("apply", "-n", "default", "-f", "-", *flags, stdin=jobset)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    directory = tmp_path_factory.mktemp("certificates")
    plane = Plane(directory, PlaneOptions(controller=False, layout=NodeLayout(count=1)))
    plane.start()
    yield plane
    plane.reset()


@pytest.fixture(scope="module")
def lab(own: Plane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    for arguments in (("-f", str(DEPLOY / "manager/namespace.yaml")), ("-k", str(DEPLOY / "rbac"))):
        done = own.run_kubectl("apply", *arguments)
        assert done.returncode == 0, done.stderr
    system = Cluster(own.run_kubectl, NAMESPACE)
    token = system.run("create", "token", ACCOUNT).strip()
    made = Lab(own, system, Cluster(own.run_kubectl, "default"), [])
    try:
        for number in range(2):
            folder = tmp_path_factory.mktemp(f"replica-{number}")
            made.replicas.append(start(folder, kubeconfig_of(own, token, folder / "kubeconfig")))
        made.apply_webhooks()
        for replica in made.replicas:
            wait_for(replica.is_ready, f"a ready replica: {replica.log.read_text()}")
        yield made
    finally:
        for replica in made.replicas:
            replica.process.terminate()
            replica.process.wait(PATIENCE_SECONDS)


def start(folder: Path, kubeconfig: Path) -> Replica:
    port, health_port = draw(set()), draw(set())
    sections = {
        "webhook": {"host": HOST, "port": port},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
    }
    (folder / "config.json").write_text(json.dumps(CONFIGURATION | sections))
    words = ["controller", "--config", str(folder / "config.json"), "--kubeconfig", str(kubeconfig)]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "pyjobset.cli.main", *words], stderr=output)
    return Replica(process, port, health_port, log)


@pytest.fixture
def rested(lab: Lab) -> Lab:
    wait_for(lambda: lab.serves(lab.content()), "all agree")
    return lab


def another(now: datetime, terms: Terms = Terms()) -> dict[str, str]:  # noqa: B008
    """The Secret of another installation: nobody trusts it yet."""
    hosts = frozenset({HOST})
    return encode(carry_out(decide(Content(), hosts, now, terms), hosts, now, terms))


def test_jobsets_are_admitted_and_refused_through_webhooks_with_the_injected_bundle(rested: Lab) -> None:
    assert rested.admits(JOBSET) == ""
    assert "[group-name]" in rested.admits(BAD)
    assert rested.content().trusted[0].parsed.subject.rfc4514_string() == "CN=jobset-ca,O=jobset"
    assert rested.system.get("secret", SECRET)["type"] == "kubernetes.io/tls"


def test_nobody_is_refused_while_certificates_and_authorities_are_replaced(rested: Lab) -> None:
    """100 JobSets and more; meanwhile the Secret is deleted, replaced, and made to expire within seconds."""
    soon = Terms(authority=timedelta(seconds=60), serving=timedelta(seconds=45), backdated=timedelta(seconds=5))

    def delete() -> None:
        rested.system.run("delete", "secret", SECRET)

    def replace(data: Callable[[], dict[str, str]]) -> Callable[[], None]:
        return lambda: rested.system.run("patch", "secret", SECRET, "-p", json.dumps({"data": data()})) and None

    damages = [delete, replace(lambda: another(datetime.now(UTC))), replace(lambda: another(datetime.now(UTC), soon))]
    refused: list[str] = []
    asked, authorities, serials = 0, {rested.content().trusted[0]}, set[str]()
    since = time.monotonic()
    while asked < 100 or damages:
        jobset = manifest(f"loop-{asked}", replicated_job("w", "sleep infinity"), suspend=True)
        if said := rested.admits(jobset, "--dry-run=server"):
            refused.append(f"{asked}: {said}")
        asked += 1
        for bundle in (bundles := rested.bundles()):
            try:
                serials |= rested.served(bundle)
            except ssl.SSLError as error:  # no fault where another one is trusted by now
                refused += [f"{asked}: {error}"] if rested.bundles() == bundles else []
        if damages and asked % 15 == 10 and time.monotonic() - since > 12:
            since = time.monotonic()
            damages.pop(0)()
    assert refused == []
    wait_for(lambda: rested.serves(rested.content()), "all agree")
    authorities.add(rested.content().trusted[0])
    assert rested.admits(manifest("last", replicated_job("w", "sleep infinity"), suspend=True)) == ""
    assert len(authorities) == 2
    assert len(serials) >= 3
    assert all(replica.is_ready() for replica in rested.replicas)


@pytest.mark.parametrize(
    "data",
    [
        {"tls.crt": "Z2FyYmFnZQ==", "tls.key": ""},
        {"ca.crt": "", "ca.key": "AAAA", "tls.crt": "/////w==", "tls.key": "AAAA"},
    ],
    ids=["no certificate", "garbage"],
)
def test_a_damaged_secret_heals(rested: Lab, data: dict[str, str]) -> None:
    before = rested.system.get("secret", SECRET)["metadata"]["resourceVersion"]
    rested.system.run("patch", "secret", SECRET, "-p", json.dumps({"data": data}))
    wait_for(lambda: rested.content().issuer is not None, "the Secret is good")
    assert rested.system.get("secret", SECRET)["metadata"]["resourceVersion"] != before
    wait_for(lambda: rested.serves(rested.content()), "both serve it")
    assert rested.admits(JOBSET) == ""


def test_expired_certificates_are_renewed(rested: Lab) -> None:
    rested.system.run("patch", "secret", SECRET, "-p", json.dumps({"data": another(datetime(2020, 1, 1, tzinfo=UTC))}))
    wait_for(lambda: rested.serves(rested.content()), "both serve what is valid")
    assert rested.admits(JOBSET) == ""


def test_configurations_that_are_made_again_are_trusted_again(rested: Lab) -> None:
    rested.apply_webhooks()
    wait_for(lambda: b"" not in rested.bundles(), "they have a bundle")
    wait_for(lambda: "[group-name]" in rested.admits(BAD), "they are asked")
    assert rested.admits(JOBSET) == ""


def test_the_rights_are_enough_and_no_key_is_logged(rested: Lab) -> None:
    before = rested.system.get("secret", SECRET)
    assert rested.content().authority is not None
    for replica in rested.replicas:
        text = replica.log.read_text()
        assert "Serving certificate taken" in text
        assert "Forbidden" not in text
        assert "PRIVATE" not in text
        assert not [value for value in before["data"].values() if value[:60] in text]
