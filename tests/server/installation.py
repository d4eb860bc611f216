"""An installation of deploy/ on a plane of its own, whose API server writes down what the manager asks of it.

Objects come from the kustomizations as they are. The plane has no network between pods and API server, so the manager
runs beside it, with the arguments, the Configuration and the token that its pod would have, and the webhooks are asked
by URL.
"""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from pyjobset.localplane import components
from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import Plane
from pyjobset.localplane.ports import draw
from tests.server.plane import PATIENCE_SECONDS, wait_for
from tests.server.test_controller import Cluster, Object
from tests.server.test_metrics import kubeconfig_of

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE, ACCOUNT = "jobset-system", "jobset-controller-manager"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
RACK = "topology.kubernetes.io/rack"
WEBHOOKS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")
BY_THE_PLANE = (
    "customresourcedefinition/jobsets.jobset.x-k8s.io",
    "clusterrole/jobset-manager-role",
    "clusterrole/jobset-manager-scheduling-role",
    "role/jobset-leader-election-role",
)
"""What it brings for its own controller, which does not run here: an installation begins with an empty cluster."""
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [USER]}, {"level": "None"}],
}


@dataclass
class Manager:
    """One replica that runs, and its ports."""

    process: subprocess.Popen[bytes]
    health: int
    webhook: int
    metrics: int

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError):
            assert self.process.poll() is None, "the manager has ended"
            return False


@dataclass
class Installation:
    plane: Plane
    directory: Path
    managers: list[Manager] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.system = Cluster(self.plane.run_kubectl, NAMESPACE)

    def rendered(self, overlay: str) -> list[Object]:
        done = self.plane.run_kubectl("kustomize", str(ROOT / "deploy" / overlay))
        assert done.returncode == 0, done.stderr
        return [found for found in yaml.safe_load_all(done.stdout) if found]

    def apply(self, overlay: str) -> None:
        """The one command of the documents."""
        done = self.plane.run_kubectl("apply", "--server-side", "-k", str(ROOT / "deploy" / overlay))
        assert done.returncode == 0, done.stderr

    def kubeconfig(self) -> Path:
        token = self.system.run("create", "token", ACCOUNT).strip()
        return kubeconfig_of(self.plane, token, self.directory / "kubeconfig")

    def start(self) -> Manager:
        """A replica as the Deployment has it, once it is ready."""
        deployment = self.system.get("deployment", "jobset-controller-manager")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        file = self.directory / "controller_manager_config.yaml"
        file.write_text(self.system.get("configmap", "jobset-manager-config")["data"][file.name])
        health, webhook, metrics = (draw(set()) for _ in range(3))
        words = [
            *container["args"],
            f"--config={file}",
            f"--kubeconfig={self.kubeconfig()}",
            f"--health-probe-bind-address=127.0.0.1:{health}",
            f"--webhook-bind-address=127.0.0.1:{webhook}",
            f"--metrics-bind-address=127.0.0.1:{metrics}",
        ]
        process = subprocess.Popen([sys.executable, "-m", "pyjobset.cli.main", *words])
        manager = Manager(process, health, webhook, metrics)
        self.managers.append(manager)
        wait_for(manager.is_ready, "the manager")
        return manager

    def ask(self, manager: Manager) -> None:
        """Points the webhooks at this replica."""
        for kind in WEBHOOKS:
            (found,) = (w for w in self.system.all(kind) if w["metadata"]["name"].startswith("jobset-"))
            patch = []
            for index, webhook in enumerate(found["webhooks"]):
                path = f"/webhooks/{index}/clientConfig"
                url = f"https://127.0.0.1:{manager.webhook}{webhook['clientConfig']['service']['path']}"
                patch += [{"op": "add", "path": f"{path}/url", "value": url}]
                patch += [{"op": "remove", "path": f"{path}/service"}]
            self.system.run("patch", kind, found["metadata"]["name"], "--type=json", "-p", json.dumps(patch))

    def requests(self) -> Iterator[Any]:
        """What the manager asked of the API server, as its audit log has it."""
        for line in (self.directory / "audit.log").read_text().splitlines():
            yield json.loads(line)


@contextmanager
def installation(directory: Path) -> Iterator[Installation]:
    """A plane for one, with the admission plugin on that asks for rights on finalizers."""
    policy, log = directory / "policy.json", directory / "audit.log"
    policy.write_text(json.dumps(POLICY))
    flags = [
        f"--audit-policy-file={policy}",
        f"--audit-log-path={log}",
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
    ]
    plain: Callable[..., list[str]] = components._api_server
    layout = NodeLayout(count=6, cpu="8", topology={RACK: 3})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(components, "_api_server", lambda *given: [*plain(*given), *flags])
        plane = Plane(directory / "plane", PlaneOptions(controller=False, layout=layout))
        made = Installation(plane, directory)
        try:
            plane.start()
            made.system.run("delete", *BY_THE_PLANE, "--ignore-not-found")
            yield made
        finally:
            for manager in made.managers:
                manager.process.terminate()
            for manager in made.managers:
                manager.process.wait(PATIENCE_SECONDS)
            plane.reset()
