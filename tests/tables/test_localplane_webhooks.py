"""The webhook configurations of a plane: who is asked, about what, and when they go."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from pyjobset.errors import PlaneError
from pyjobset.localplane import webhooks
from pyjobset.localplane.components import CONTROLLER, PORTS, Places, components
from pyjobset.localplane.options import PlaneOptions

KINDS = {"mutatingwebhookconfigurations": "mutating", "validatingwebhookconfigurations": "validating"}
DENIED = 'the API server refused POST x: 422 admission webhook "vjobset.kb.io" denied the request: no'


class Server:
    """An API server that only remembers what it was asked, and refuses each creation in the next of these words."""

    def __init__(self, *refusals: str) -> None:
        self.applied: dict[str, Any] = {}
        self.deleted: list[str] = []
        self._refusals = list(refusals)

    def apply(self, path: str, manifest: bytes) -> None:
        self.applied[path.rpartition("/")[2]] = manifest

    def create(self, path: str, _: Mapping[str, object]) -> bool:
        assert path.endswith("/namespaces/default/jobsets?dryRun=All")
        if refusal := self._refusals.pop(0):
            raise PlaneError(refusal)
        return True

    def delete(self, path: str) -> bool:
        self.deleted.append(path)
        return True


@pytest.mark.parametrize("mutating", [True, False], ids=["mutating", "validating"])
def test_the_configurations(mutating: bool) -> None:
    first, second = webhooks.configurations(7000, b"PEM")
    configuration: Any = first if mutating else second
    word, letter, verb = ("mutating", "m", "mutate") if mutating else ("validating", "v", "validate")
    assert configuration["metadata"]["name"] == f"jobset-{word}-webhook-configuration"
    of_jobsets, of_pods = configuration["webhooks"]

    def common(path: str) -> dict[str, Any]:
        return {
            "clientConfig": {
                "url": f"https://127.0.0.1:7000/{verb}-{path}",
                "caBundle": base64.b64encode(b"PEM").decode(),
            },
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 10,
            "admissionReviewVersions": ["v1"],
        }

    assert of_jobsets == common("jobset-x-k8s-io-v1alpha2-jobset") | {
        "name": f"{letter}jobset.kb.io",
        "rules": [
            {
                "apiGroups": ["jobset.x-k8s.io"],
                "apiVersions": ["v1alpha2"],
                "operations": ["CREATE"] if mutating else ["CREATE", "UPDATE"],
                "resources": ["jobsets"],
            }
        ],
    }
    (condition,) = of_pods.pop("matchConditions")
    assert condition["name"]
    assert of_pods == common("-v1-pod") | {
        "name": f"{letter}pod.kb.io",
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "objectSelector": {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]},
    }


def test_registered_means_asked() -> None:
    """The API server takes a moment; an error of the call is not yet a verdict."""
    server = Server("", 'failed calling webhook "vjobset.kb.io": connection refused', DENIED, "not asked again")
    webhooks.register(server, 7000, b"PEM")  # type: ignore[arg-type]
    assert set(server.applied) == {f"jobset-{word}-webhook-configuration" for word in KINDS.values()}
    assert server._refusals == ["not asked again"]


def test_only_ours_are_taken_away() -> None:
    server = Server()
    webhooks.unregister(server)  # type: ignore[arg-type]
    selector = "labelSelector=app.kubernetes.io/managed-by=jobset-plane"
    assert server.deleted == [f"/apis/admissionregistration.k8s.io/v1/{kind}?{selector}" for kind in KINDS]
    configurations: Any = webhooks.configurations(1, b"")
    assert {c["metadata"]["labels"]["app.kubernetes.io/managed-by"] for c in configurations} == {"jobset-plane"}


def test_the_controller_serves_where_the_configurations_point(tmp_path: Any) -> None:
    ports = {name: 7000 + number for number, name in enumerate(PORTS)}
    (command,) = (
        c.command for c in components(PlaneOptions(), ports, Places(tmp_path, tmp_path)) if c.name == CONTROLLER
    )
    assert f"--webhook-bind-address=127.0.0.1:{ports['jobset-webhook']}" in command
    assert f"--webhook-cert-dir={tmp_path}/pki/webhook" in command
