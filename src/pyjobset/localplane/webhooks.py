"""The plane's controller as the admission webhooks of JobSets: registered while it runs, else not. Used by `plane.py`.

By URL, because the controller runs beside the API server and not in a pod. failurePolicy is Fail, as in a cluster:
while the controller is down, no JobSet is created or changed, and no pod of exclusive placement created. Other pods
and status updates never come here.
"""

import base64
import json
from collections.abc import Mapping

from pyjobset.errors import PlaneError
from pyjobset.localplane.api import ApiServer
from pyjobset.localplane.components import CONTROLLER
from pyjobset.localplane.processes import wait_until
from pyjobset.objects import admission
from pyjobset.objects.jobset import API_VERSION, GROUP, KIND, VERSION
from pyjobset.objects.resources import JOBSETS, PODS

TIMEOUT_SECONDS = 10
_WAIT_SECONDS = 30
_API = "/apis/admissionregistration.k8s.io/v1"
_PATHS = {
    "MutatingWebhookConfiguration": f"{_API}/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": f"{_API}/validatingwebhookconfigurations",
}
_LABEL, _OURS = "app.kubernetes.io/managed-by", "jobset-plane"
_PROBE_PATH = f"/apis/{API_VERSION}/namespaces/default/{JOBSETS.plural}?dryRun=All"
_PROBE = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "0-no-name-of-a-jobset"}}


def register(server: ApiServer, port: int, authority: bytes) -> None:
    """Makes the API server ask the controller at that port of 127.0.0.1. Returns once it does."""
    for manifest in configurations(port, authority):
        path = f"{_PATHS[str(manifest['kind'])]}/{_name(manifest)}"
        server.apply(path, json.dumps(manifest).encode())
    if not wait_until(lambda: _is_asked(server), _WAIT_SECONDS):
        raise PlaneError(
            f"the API server does not ask the webhooks of {CONTROLLER} after {_WAIT_SECONDS} seconds",
            hint="jobset up tries again; jobset logs controller says more",
        )


def unregister(server: ApiServer) -> None:
    """Without a controller nothing would answer, and no JobSet could be created."""
    for path in _PATHS.values():
        server.delete(f"{path}?labelSelector={_LABEL}={_OURS}")


def configurations(port: int, authority: bytes) -> list[Mapping[str, object]]:
    """The two objects. `authority` is the PEM certificate that signed the controller's."""

    def webhook(name: str, path: str, operations: list[str]) -> dict[str, object]:
        bundle = base64.b64encode(authority).decode()
        return {
            "name": name,
            "clientConfig": {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle},
            **_rules(GROUP, VERSION, JOBSETS.plural, operations),
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT_SECONDS,
            "admissionReviewVersions": ["v1"],
        }

    return [
        _configuration(
            "MutatingWebhookConfiguration",
            admission.MUTATING_CONFIGURATION,
            webhook(admission.MUTATING_WEBHOOK, admission.MUTATE_PATH, ["CREATE"]),
            webhook(admission.POD_MUTATING_WEBHOOK, admission.POD_MUTATE_PATH, ["CREATE"]) | _OF_PODS,
        ),
        _configuration(
            "ValidatingWebhookConfiguration",
            admission.VALIDATING_CONFIGURATION,
            webhook(admission.VALIDATING_WEBHOOK, admission.VALIDATE_PATH, ["CREATE", "UPDATE"]),
            webhook(admission.POD_VALIDATING_WEBHOOK, admission.POD_VALIDATE_PATH, ["CREATE"]) | _OF_PODS,
        ),
    ]


def _configuration(kind: str, name: str, *webhooks: Mapping[str, object]) -> Mapping[str, object]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {_LABEL: _OURS}},
        "webhooks": webhooks,
    }


def _rules(group: str, version: str, plural: str, operations: list[str]) -> dict[str, object]:
    rule = {"apiGroups": [group], "apiVersions": [version], "operations": operations, "resources": [plural]}
    return {"rules": [rule]}


_OF_PODS: dict[str, object] = {
    **_rules("", PODS.api_version, PODS.plural, ["CREATE"]),
    "objectSelector": {"matchExpressions": [{"key": admission.POD_LABEL, "operator": "Exists"}]},
    "matchConditions": [{"name": "exclusive-placement", "expression": admission.POD_CONDITION}],
}
"""What differs for the webhooks of pods."""


def _name(manifest: Mapping[str, object]) -> str:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["name"])


def _is_asked(server: ApiServer) -> bool:
    """Refuses the webhook what only it can refuse? A dry run stores nothing, whatever the answer is."""
    try:
        server.create(_PROBE_PATH, _PROBE)
    except PlaneError as error:
        return f'"{admission.VALIDATING_WEBHOOK}" denied' in error.message
    return False
