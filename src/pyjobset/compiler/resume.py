"""What replaces the mutable part of a suspended Job's template when it is resumed, as a JSON Patch (decision 7).

Called by the reconciler. The patch names every mutable field, also those that are gone from the JobSet's template: a
merge would keep a node selector of an earlier admission, and the pods would fit nowhere.
"""

from typing import Any

from pyjobset.objects import features as gates
from pyjobset.objects import labels
from pyjobset.objects.features import Features
from pyjobset.objects.meta import Manifest
from pyjobset.objects.template import mapping_at

_POD = "/spec/template"


def resume_operations(wanted: Manifest, uid: str, features: Features) -> tuple[Manifest, ...]:
    """`wanted` is the Job's manifest by `compile_job`, `uid` that of the Job. The last operation resumes it."""
    template = wanted["spec"]["template"]
    pod_spec = template["spec"]
    operations = [
        _set(f"{_POD}/metadata/labels", template["metadata"]["labels"] | _generated(wanted, uid)),
        _set(f"{_POD}/metadata/annotations", template["metadata"]["annotations"]),
        _set(f"{_POD}/spec/nodeSelector", pod_spec.get("nodeSelector") or {}),
        _set(f"{_POD}/spec/tolerations", pod_spec.get("tolerations") or []),
        _set(f"{_POD}/spec/schedulingGates", pod_spec.get("schedulingGates") or []),
    ]
    if gates.MUTABLE_POD_RESOURCES in features:
        operations += [
            _set(f"{_POD}/spec/{kind}/{index}/resources", container.get("resources") or {})
            for kind in ("initContainers", "containers")
            for index, container in enumerate(pod_spec.get(kind) or ())
        ]
    attempt = wanted["metadata"]["annotations"].get(labels.EXECUTION_ATTEMPT)
    if attempt is not None:
        operations.append(_set(f"/metadata/annotations/{_escaped(labels.EXECUTION_ATTEMPT)}", attempt))
    return (*operations, _set("/spec/suspend", False))


def _generated(wanted: Manifest, uid: str) -> dict[str, str]:
    """The labels that the API server put into the template, by which the Job finds its pods."""
    if mapping_at(wanted, "spec").get("manualSelector"):
        return {}
    name = wanted["metadata"]["name"]
    keys = ("batch.kubernetes.io/controller-uid", "controller-uid", "batch.kubernetes.io/job-name", "job-name")
    return dict(zip(keys, (uid, uid, name, name), strict=True))


def _set(path: str, value: Any) -> Manifest:
    """Replaces the member when it is there (RFC 6902)."""
    return {"op": "add", "path": path, "value": value}


def _escaped(key: str) -> str:
    """For a JSON Pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
