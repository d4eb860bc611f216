"""The Helm chart makes the objects that the kustomizations make, and refuses values that it does not know."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import helm_program
import pytest
import yaml

from pyjobset.localplane import binaries
from pyjobset.localplane.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "jobset"
KUBERNETES = "1.37.0"
HELMS_LABELS = {
    "helm.sh/chart",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
}
HELMS_ANNOTATIONS = {"helm.sh/resource-policy", "checksum/config"}
GATE = "featureGates.JobSetWorkloadAwareSchedulingAPI=true"
Objects = dict[tuple[str, str, str], Any]
Helm = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="session")
def helm() -> Helm:
    """`helm template` of the chart, with more arguments."""
    program = helm_program.ensure(Progress())

    def template(*arguments: str, namespace: str = "jobset-system", stdin: str = "") -> CompletedProcess[str]:
        head = [str(program), "template", "jobset", str(CHART), "--namespace", namespace]
        command = [*head, "--kube-version", KUBERNETES, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    return template


def kustomized(overlay: str) -> Objects:
    kubectl = binaries.kubectl(binaries.ensure("", Progress()))
    command = [str(kubectl), "kustomize", str(ROOT / "deploy" / overlay)]
    found = objects(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    found.pop(("Namespace", "", "jobset-system"), None)  # Helm makes it itself
    return found


def helmed(done: CompletedProcess[str]) -> Objects:
    assert done.returncode == 0, done.stderr
    return objects(done.stdout)


def objects(text: str) -> Objects:
    """By kind, namespace and name; without what only Helm puts there."""
    found = [plain(o) for o in yaml.load_all(text, yaml.CSafeLoader) if o]
    by_key = {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in found}
    assert len(by_key) == len(found)
    return by_key


def plain(found: Any) -> Any:
    metadata = found["metadata"]
    if found["kind"] == "Deployment":
        strip(found["spec"]["template"]["metadata"], "annotations", HELMS_ANNOTATIONS)
    strip(metadata, "annotations", HELMS_ANNOTATIONS)
    strip(metadata, "labels", HELMS_LABELS)
    if metadata["name"] == "jobset-manager-config":
        found["data"] = {name: yaml.safe_load(text) for name, text in found["data"].items()}
    return found


def strip(metadata: Any, field: str, names: set[str]) -> None:
    kept = {name: value for name, value in metadata.pop(field, {}).items() if name not in names}
    if kept:
        metadata[field] = kept


@pytest.mark.parametrize(("overlay", "arguments"), [("default", ()), ("scheduling", ("--set", GATE))])
def test_both_make_the_same(helm: Helm, overlay: str, arguments: tuple[str, ...]) -> None:
    expected = kustomized(overlay)
    found = helmed(helm(*arguments))
    assert found.keys() == expected.keys()
    for key in expected:
        assert found[key] == expected[key], key


def test_both_make_the_same_monitoring(helm: Helm) -> None:
    without, with_ = helmed(helm()), helmed(helm("--set", "monitoring.enabled=true"))
    found = {key: value for key, value in with_.items() if key not in without}
    expected = kustomized("monitoring")
    for value in (*found.values(), *expected.values()):
        strip(value["metadata"], "labels", {"app.kubernetes.io/name"})
    assert found == expected


def test_it_lives_in_any_namespace(helm: Helm) -> None:
    done = helm("--set", GATE, "--set", "monitoring.enabled=true", namespace="elsewhere")
    assert "jobset-system" not in done.stdout
    namespaces = {namespace for _, namespace, _ in helmed(done)}
    assert namespaces == {"", "elsewhere"}


def test_values_are_put_in(helm: Helm) -> None:
    digest = f"sha256:{'0' * 64}"
    values = {
        "image": {"repository": "registry.example.com/jobset", "digest": digest},
        "imagePullSecrets": [{"name": "pull"}],
        "replicas": 1,
        "featureGates": {"RestartJob": True, "ElasticJobSet": False},
        "extraArgs": ["--zap-log-level=debug"],
        "configuration": {"leaderElection": {"leaderElect": False}, "clientConnection": {"qps": 50}},
        "priorityClassName": "high",
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "podAnnotations": {"a": "b"},
        "crds": {"enabled": False},
    }
    done = helm("--values", "-", stdin=yaml.safe_dump(values))
    found = helmed(done)
    assert {"CustomResourceDefinition", "PodDisruptionBudget"}.isdisjoint(kind for kind, _, _ in found)
    template = found["Deployment", "jobset-system", "jobset-controller-manager"]["spec"]["template"]
    pod, (container,) = template["spec"], template["spec"]["containers"]
    assert container["image"] == f"registry.example.com/jobset@{digest}"
    assert container["args"][-2:] == ["--zap-log-level=debug", "--feature-gates=ElasticJobSet=false,RestartJob=true"]
    assert (pod["priorityClassName"], pod["imagePullSecrets"]) == ("high", [{"name": "pull"}])
    assert template["metadata"]["annotations"]["a"] == "b"
    (text,) = found["ConfigMap", "jobset-system", "jobset-manager-config"]["data"].values()
    assert (text["leaderElection"]["leaderElect"], text["clientConnection"]) == (False, {"qps": 50})


def test_a_changed_configuration_replaces_the_pods(helm: Helm) -> None:
    def checksum(*arguments: str) -> str:
        (line,) = (line for line in helm(*arguments).stdout.splitlines() if "checksum/config" in line)
        return line

    assert checksum() == checksum("--set", "replicas=3") != checksum("--set", "configuration.suspendedJobs=Defer")


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("replica=3", "'replica' not allowed"),
        ("image.digest=sha256:aa", "does not match pattern"),
        ("featureGates.Elastic=true", "value must be one of 'InPlaceRestart'"),
        ("replicas=-1", "/replicas"),
        ("configuration.featureGates.RestartJob=true", "/configuration"),
        ("configuration.leaderElection.leaderElect=false", "replicas above 1 need"),
    ],
)
def test_wrong_values_are_refused(helm: Helm, value: str, complaint: str) -> None:
    done = helm("--set", value)
    assert done.returncode != 0
    assert complaint in done.stderr
