"""JobSets of which only the CRD decides: it is installed again under a group without webhooks and controller."""

import json
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from pyjobset.localplane.plane import Plane
from tests.server.crd.words import Spec, rj
from tests.server.plane import Kubectl, wait_for

CRD = Path(__file__).parents[3] / "deploy/crd/jobset.x-k8s.io_jobsets.yaml"
GROUP = "crd.example.com"
PLURAL = "crdtrials"
"""Not `jobsets`: kubectl must mean the real ones when another test says `jobset`."""
RESOURCE = f"{PLURAL}.{GROUP}"
SKIPPED = "some validation rules were not checked because the object was invalid"
"""The API server adds this to a refusal by the schema: it asks the CEL rules only about what the schema takes."""


def definition(group: str) -> str:
    """The project's CRD, under that group and other resource names."""
    value = yaml.load(CRD.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    value["metadata"]["name"] = f"{PLURAL}.{group}"
    value["spec"]["group"] = group
    value["spec"]["names"] |= {"plural": PLURAL, "singular": PLURAL.removesuffix("s")}
    return json.dumps(value)


def manifest(spec: Spec, group: str = GROUP) -> str:
    spec = {"replicatedJobs": [rj()], **spec}
    return json.dumps({"apiVersion": f"{group}/v1alpha2", "kind": "JobSet", "metadata": {"name": "js"}, "spec": spec})


def problems(result: CompletedProcess[str]) -> list[str]:
    """What the API server refused, each as `path: message`."""
    assert bool(result.returncode) == bool(result.stderr), result
    text = result.stderr.strip().removeprefix('The JobSet "js" is invalid: ')
    return [line.removeprefix("* ") for line in text.splitlines() if line and SKIPPED not in line]


@dataclass(frozen=True)
class JobSets:
    """The JobSet `js` of a namespace. Where nothing else is said, a request is only checked and changes nothing."""

    kubectl: Kubectl
    namespace: str

    def run(self, *arguments: str, stdin: str = "") -> CompletedProcess[str]:
        return self.kubectl(*arguments, "-n", self.namespace, stdin=stdin)

    def check(self, spec: Spec) -> list[str]:
        return problems(self.run("create", "--dry-run=server", "-f", "-", stdin=manifest(spec)))

    def create(self, spec: Spec, *arguments: str) -> Spec:
        """Creates it. The spec as it was stored."""
        created = self.run("create", "-o", "json", "-f", "-", *arguments, stdin=manifest(spec))
        assert created.returncode == 0, created.stderr
        stored: Spec = json.loads(created.stdout)["spec"]
        return stored

    def replace(self, field: str, value: object) -> list[str]:
        """Sets a field of the stored one, or removes it (None)."""
        operation = {"op": "remove"} if value is None else {"op": "add", "value": value}
        patch = json.dumps([{"path": f"/spec/{field}", **operation}])
        return problems(self.run("patch", RESOURCE, "js", "--dry-run=server", "--type=json", "-p", patch))


def install(kubectl: Kubectl, group: str, *how: str) -> None:
    """Applies the CRD under that group and waits until JobSets can be sent. `how`: options of kubectl apply."""
    applied = kubectl("apply", *how, "-f", "-", stdin=definition(group))
    assert applied.returncode == 0, applied.stderr
    assert not applied.stderr
    established = ("wait", f"crd/{PLURAL}.{group}", "--for=condition=Established", "--timeout=100s")
    wait_for(lambda: kubectl(*established).returncode == 0, f"the CRD of {group} is written by nobody any more")
    wait_for(lambda: kubectl("get", f"{PLURAL}.{group}", "-A").returncode == 0, f"JobSets of {group} are served")


@pytest.fixture(scope="session")
def installed(plane: Plane) -> None:
    install(plane.run_kubectl, GROUP, "--server-side")


@pytest.fixture
def jobsets(installed: None, kubectl: Kubectl, namespace: str) -> JobSets:
    return JobSets(kubectl, namespace)


@pytest.fixture
def checked(installed: None, kubectl: Kubectl) -> JobSets:
    """For requests that store nothing: a namespace of their own would only cost time."""
    return JobSets(kubectl, "default")
