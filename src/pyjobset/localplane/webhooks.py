"""The plane's controller as the admission webhooks of JobSets: registered while it runs, else not. Used by `plane.py`.

By URL, because the controller runs beside the API server and not in a pod. failurePolicy is Fail, as in a cluster:
while the controller is down, no JobSet is created or changed. Status updates are another resource and never come here.
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
from pyjobset.objects.resources import JOBSETS

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
    return [
        _configuration(
            "MutatingWebhookConfiguration",
            admission.MUTATING_CONFIGURATION,
            _webhook(admission.MUTATING_WEBHOOK, admission.MUTATE_PATH, ["CREATE"], port, authority),
        ),
        _configuration(
            "ValidatingWebhookConfiguration",
            admission.VALIDATING_CONFIGURATION,
            _webhook(admission.VALIDATING_WEBHOOK, admission.VALIDATE_PATH, ["CREATE", "UPDATE"], port, authority),
        ),
    ]


def _configuration(kind: str, name: str, webhook: Mapping[str, object]) -> Mapping[str, object]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {_LABEL: _OURS}},
        "webhooks": [webhook],
    }


def _webhook(name: str, path: str, operations: list[str], port: int, authority: bytes) -> Mapping[str, object]:
    return {
        "name": name,
        "clientConfig": {
            "url": f"https://127.0.0.1:{port}{path}",
            "caBundle": base64.b64encode(authority).decode(),
        },
        "rules": [
            {"apiGroups": [GROUP], "apiVersions": [VERSION], "operations": operations, "resources": [JOBSETS.plural]}
        ],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }


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
