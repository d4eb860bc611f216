"""AdmissionReviews as an API server sends them, and what comes back of one."""

import base64
import json
from typing import Any

from pyjobset.controller.webhook.review import Response, encode
from pyjobset.objects.meta import Manifest

UID = "0b4f7c9e-3f0e-4c7f-9f0e-6a1d0d9d1f11"
RESOURCE = {"group": "jobset.x-k8s.io", "version": "v1alpha2", "resource": "jobsets"}
JOBSET_KIND = {"group": "jobset.x-k8s.io", "version": "v1alpha2", "kind": "JobSet"}


def review(new: Any, old: Any = None, **request: Any) -> Manifest:
    """A creation, or with `old` an update."""
    metadata = new.get("metadata") if isinstance(new, dict) else None
    asked = {
        "uid": UID,
        "kind": JOBSET_KIND,
        "resource": RESOURCE,
        "requestKind": JOBSET_KIND,
        "requestResource": RESOURCE,
        "name": metadata.get("name", "") if isinstance(metadata, dict) else "",
        "namespace": "default",
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        **request,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": asked}


def body(new: Any, old: Any = None, **request: Any) -> bytes:
    return json.dumps(review(new, old, **request)).encode()


def on_the_wire(response: Response) -> Manifest:
    """The response of the AdmissionReview, as the API server decodes it."""
    answer = json.loads(encode(response))
    assert answer.pop("apiVersion") == "admission.k8s.io/v1"
    assert answer.pop("kind") == "AdmissionReview"
    assert list(answer) == ["response"]
    found: Manifest = answer["response"]
    return found


def patched(manifest: Manifest, response: Manifest) -> Manifest:
    """The object after the response's JSON Patch, which may only add. RFC 6902, section 4.1."""
    if "patch" not in response:
        assert "patchType" not in response
        return manifest
    assert response["patchType"] == "JSONPatch"
    result: Manifest = json.loads(json.dumps(manifest))
    for operation in json.loads(base64.b64decode(response["patch"])):
        assert set(operation) == {"op", "path", "value"}
        assert operation["op"] == "add"
        steps = operation["path"].removeprefix("/").split("/")
        *way, last = (step.replace("~1", "/").replace("~0", "~") for step in steps)
        target: Any = result
        for step in way:
            target = target[int(step)] if isinstance(target, list) else target[step]
        if isinstance(target, list):
            target.insert(len(target) if last == "-" else int(last), operation["value"])
        else:
            target[last] = operation["value"]
    return result
