"""The manifests of deploy/ fit the code and each other: names, ports, paths, flags, rights, and nothing forgotten."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from pyjobset import __version__
from pyjobset.cli.main import app
from pyjobset.controller.configuration import Configuration
from pyjobset.controller.configured import parse
from pyjobset.controller.options import Certificates, LeaderElection
from pyjobset.localplane.webhooks import configurations
from pyjobset.objects import features as gates
from pyjobset.objects.admission import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NAMESPACE, ACCOUNT = "jobset-system", "jobset-controller-manager"
LABELS = {"app.kubernetes.io/name": "jobset", "control-plane": "controller-manager"}
CONFIGURATION = Configuration()
Object = dict[str, Any]


def kustomization(folder: Path) -> Any:
    return yaml.safe_load((folder / "kustomization.yaml").read_text())


def files(folder: Path) -> Iterator[Path]:
    """What a kustomization takes, those that it is made of included."""
    for name in kustomization(folder)["resources"]:
        path = (folder / name).resolve()
        if path.is_dir():
            yield from files(path)
        else:
            yield path


@cache
def objects(overlay: str) -> list[Object]:
    texts = (path.read_text() for path in files(DEPLOY / overlay))
    return [found for text in texts for found in yaml.load_all(text, yaml.CSafeLoader) if found]


def one(kind: str, name: str = "", overlay: str = "scheduling") -> Object:
    (found,) = (o for o in objects(overlay) if o["kind"] == kind and name in ("", o["metadata"]["name"]))
    return found


def pod() -> Any:
    return one("Deployment")["spec"]["template"]["spec"]


def container() -> Any:
    (found,) = pod()["containers"]
    return found


@pytest.mark.parametrize("folder", ["rbac", "webhook", "manager", "crd"])
def test_no_file_is_forgotten(folder: str) -> None:
    there = {path for path in (DEPLOY / folder).glob("*.yaml") if path.name != "kustomization.yaml"}
    assert there - {DEPLOY / "manager" / "controller_manager_config.yaml"} == set(files(DEPLOY / folder))


def test_the_webhooks_are_those_that_are_served() -> None:
    """As on the local plane, but for where they are asked."""
    for expected in configurations(0, b""):
        found = one(str(expected["kind"]))
        assert found["metadata"]["name"] == expected["metadata"]["name"]  # type: ignore[index]
        for ours, theirs in zip(found["webhooks"], expected["webhooks"], strict=True):  # type: ignore[call-overload]
            url = theirs["clientConfig"]["url"].removeprefix("https://127.0.0.1:0")
            service = {"name": Certificates().service, "namespace": NAMESPACE, "path": url}
            assert ours == theirs | {"clientConfig": {"service": service}}


def test_services_and_probes_lead_to_the_manager() -> None:
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert ports["webhook"] == CONFIGURATION.webhook.port
    assert f":{ports['metrics']}" == CONFIGURATION.metrics.bind_address
    assert f":{ports['health']}" == CONFIGURATION.health.health_probe_bind_address
    service = one("Service", Certificates().service)["spec"]
    monitoring = yaml.safe_load((DEPLOY / "monitoring" / "service.yaml").read_text())["spec"]
    budget = one("PodDisruptionBudget")["spec"]
    spread = [constraint["labelSelector"] for constraint in pod()["topologySpreadConstraints"]]
    selector = one("Deployment")["spec"]["selector"]
    assert one("Deployment")["spec"]["template"]["metadata"]["labels"] == LABELS
    assert service["selector"] == monitoring["selector"] == LABELS
    assert [*spread, selector, budget["selector"]] == [{"matchLabels": LABELS}] * 3
    assert [(p["port"], p["targetPort"]) for p in service["ports"]] == [(443, "webhook")]
    assert [p["targetPort"] for p in monitoring["ports"]] == [ports["metrics"]]
    paths = {kind: container()[kind]["httpGet"] for kind in ("livenessProbe", "readinessProbe")}
    assert paths["livenessProbe"] == {"path": f"/{CONFIGURATION.health.liveness_endpoint_name}", "port": "health"}
    assert paths["readinessProbe"] == {"path": f"/{CONFIGURATION.health.readiness_endpoint_name}", "port": "health"}


def test_the_manager_takes_its_arguments_and_its_configuration(tmp_path: Path) -> None:
    data = one("ConfigMap", "jobset-manager-config")["data"]
    ((name, text),) = data.items()
    parsed = parse(yaml.safe_load(text), name)
    assert (parsed.leader_election.leader_elect, parsed.internal_cert_management.enable) == (True, True)
    (tmp_path / name).write_text(text)
    (mount,) = (m for m in container()["volumeMounts"] if m["name"] == "config")
    arguments = [word.replace(mount["mountPath"], str(tmp_path)) for word in container()["args"]]
    assert f"--config={tmp_path}/{name}" in arguments
    (patch,) = yaml.safe_load(kustomization(DEPLOY / "scheduling")["patches"][0]["patch"])
    assert patch["path"] == "/spec/template/spec/containers/0/args/-"
    shown = CliRunner().invoke(app(), [*arguments, patch["value"], "--print-config"])
    assert shown.exit_code == 0, shown.output
    assert parse(yaml.safe_load(shown.stdout), "").feature_gates == {gates.WORKLOAD_AWARE_SCHEDULING: True}
    assert {volume["name"] for volume in pod()["volumes"]} == {m["name"] for m in container()["volumeMounts"]}


def test_the_image_is_that_of_this_version() -> None:
    (image,) = kustomization(DEPLOY / "default")["images"]
    assert container()["image"] == f"{image['name']}:{image['newTag']}" == f"{image['name']}:{__version__}"


def roles(kind: str) -> list[Object]:
    return [o for o in objects("scheduling") if o["kind"] == kind]


def bound() -> Iterator[tuple[Object, Object]]:
    """Each binding with its role."""
    for kind in ("Role", "ClusterRole"):
        for binding in roles(f"{kind}Binding"):
            yield binding, one(kind, binding["roleRef"]["name"])
            assert binding["roleRef"]["kind"] == kind


def test_roles_are_bound_to_the_one_account() -> None:
    account = one("ServiceAccount")
    assert account["metadata"] == {"name": ACCOUNT, "namespace": NAMESPACE}
    assert pod()["serviceAccountName"] == ACCOUNT
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    assert all(binding["subjects"] == [subject] for binding, _ in bound())
    used = [role["metadata"]["name"] for _, role in bound() if role["kind"] == "ClusterRole"]
    unbound = {role["metadata"]["name"] for role in roles("ClusterRole")} - set(used)
    assert unbound == {"jobset-editor-role", "jobset-viewer-role"}


def test_nothing_is_granted_at_large() -> None:
    """No wildcard; secrets and webhook configurations by name; what is decided for others' rights, not at all."""
    named = {
        "secrets": Certificates().secret,
        "leases": LeaderElection().name,
        "mutatingwebhookconfigurations": MUTATING_CONFIGURATION,
        "validatingwebhookconfigurations": VALIDATING_CONFIGURATION,
    }
    seen = set()
    for _, role in bound():
        for rule in role["rules"]:
            words = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not words & {"*", "bind", "escalate", "impersonate", "approve", "pods/exec", "serviceaccounts/token"}
            for resource in named.keys() & set(rule["resources"]):
                seen.add(resource)
                assert rule["verbs"] == ["create"] or rule["resourceNames"] == [named[resource]]
                assert role["kind"] == "Role" or "create" not in rule["verbs"]
    assert seen == named.keys()


def test_people_get_what_their_role_says() -> None:
    verbs = {
        role["metadata"]["name"]: {verb for rule in role["rules"] for verb in rule["verbs"]}
        for role in roles("ClusterRole")
        if "labels" in role["metadata"]
    }
    reading = {"get", "list", "watch"}
    assert verbs["jobset-viewer-role"] == reading
    assert verbs["jobset-editor-role"] == reading | {"create", "update", "patch", "delete", "deletecollection"}
    assert [rule["resources"] for rule in one("ClusterRole", "jobset-viewer-role")["rules"]] == [
        ["jobsets"],
        ["jobsets/status"],
    ]


CHART = DEPLOY / "helm" / "jobset"


def test_the_chart_is_of_this_version_and_its_schema_knows_all_values() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(schema["properties"]) - {"global"} == set(values)
    assert schema["properties"]["featureGates"]["propertyNames"]["enum"] == list(gates.GATES)


def test_the_chart_has_no_copies() -> None:
    """It reads the files of the kustomizations, through links."""
    links = {path.name: path.resolve() for path in (CHART / "files").iterdir()}
    assert links == {name: DEPLOY / name for name in ("crd", "rbac", "manager", "webhook", "scheduling", "monitoring")}
