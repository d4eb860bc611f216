"""A namespace in which things are refused: how the real API server is told, and the model. Used by test_requests.

Who refuses takes a moment to hear of it: a ConfigMap, of which there may be none, shows when it has.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from pyjobset.kube.requests import Request
from pyjobset.kube.transport import Transport
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.server import Server
from pyjobset.simulation.store import Name
from pyjobset.simulation.strangers import refused
from tests.server.conformance.scripts.refusals import BODIES

HEARD_SECONDS = 30
GROUPS = {"jobs": ".batch", "podgroups": ".scheduling.k8s.io", "workloads": ".scheduling.k8s.io"}
CODES = {"quota": 403, "policy": 422}


def tell_model(server: Server, how: str) -> None:
    def admit(name: Name, _: Manifest, is_new: bool) -> None:
        is_full = any(server.store.of(name.plural)) if how == "quota" else name.name != "a"
        if is_new and how and is_full:
            raise refused(name, CODES[how])

    server.admit = admit


async def tell_server(transport: Transport, namespace: str, how: str) -> None:
    if how == "quota":
        await _set_quota(transport, namespace)
    elif how == "policy":
        await _set_policy(transport, namespace)
    if how:
        await _heard(transport, namespace, CODES[how])


async def _set_quota(transport: Transport, namespace: str) -> None:
    """Nobody counts on this server, so that what is used is written here."""
    hard = {f"count/{plural}{GROUPS.get(plural, '')}": "1" for plural in BODIES} | {"count/configmaps": "0"}
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    await _send(transport, "POST", path, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    await _send(transport, "PATCH", f"{path}/q/status", {"status": status})


async def _set_policy(transport: Transport, namespace: str) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": [*BODIES, "configmaps"]}]},
        "validations": [{"expression": "object.metadata.name == 'a'", "message": "not allowed here"}],
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    await _send(transport, "POST", f"{path}ies", {"metadata": {"name": namespace}, "spec": spec})
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding = {
        "policyName": namespace,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": selector},
    }
    await _send(transport, "POST", f"{path}ybindings", {"metadata": {"name": namespace}, "spec": binding})


async def _heard(transport: Transport, namespace: str, code: int) -> None:
    request = Request(
        "POST", f"/api/v1/namespaces/{namespace}/configmaps", "dryRun=All", _json({"metadata": {"name": "x"}})
    )
    async with asyncio.timeout(HEARD_SECONDS):
        while True:
            response = await transport.send(request)
            if response.status == code and b"status unknown" not in response.body:
                return
            await asyncio.sleep(0.1)


async def _send(transport: Transport, method: str, path: str, body: Mapping[str, Any]) -> None:
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    response = await transport.send(Request(method, path, body=_json(body), content_type=content_type))
    assert response.status < 300, response.body


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body).encode()
