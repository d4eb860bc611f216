"""The smallest objects of each kind that the real API server takes, and what they are filled up with."""

from typing import Any

from pyjobset.objects.meta import Manifest
from tests.server.conformance.player import END

COLOURS = {"colour": "red"}
MANAGER = "example.com/nobody"


def meta(name: str, **more: Any) -> Manifest:
    return {"name": name, **more}


def template(**spec: Any) -> Manifest:
    container = {"name": "c", "image": "simulated", "command": ["sleep", "infinity"]}
    return {"spec": {"restartPolicy": "Never", "containers": [container], **spec}}


def job(name: str = "a", metadata: Manifest | None = None, **spec: Any) -> Manifest:
    """Suspended. It has a label: one without labels gets its template's, and the first write after that stores them."""
    shape = {"suspend": True, "parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template()}
    metadata = metadata or {}
    metadata = {**metadata, "labels": {"app": "x", **metadata.get("labels", {})}}
    return {"metadata": meta(name, **metadata), "spec": {**shape, **spec}}


def pod(name: str = "a", metadata: Manifest | None = None, **spec: Any) -> Manifest:
    return {"metadata": meta(name, **(metadata or {})), **template(**spec)}


def workload(name: str = "a", metadata: Manifest | None = None, **spec: Any) -> Manifest:
    shape = {
        "controllerRef": {"apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": "js"},
        "podGroupTemplates": [{"name": "g", "schedulingPolicy": {"gang": {"minCount": 2}}}],
    }
    return {"metadata": meta(name, **(metadata or {})), "spec": {**shape, **spec}}


def pod_group(name: str = "a", metadata: Manifest | None = None, **spec: Any) -> Manifest:
    reference = {"workloadName": "w", "templateName": "g"}
    shape = {"workloadRef": reference, "schedulingPolicy": {"gang": {"minCount": 2}}}
    return {"metadata": meta(name, **(metadata or {})), "spec": {**shape, **spec}}


def claim(name: str = "a", metadata: Manifest | None = None, **spec: Any) -> Manifest:
    shape = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": meta(name, **(metadata or {})), "spec": {**shape, **spec}}


def service(name: str = "a", metadata: Manifest | None = None, **spec: Any) -> Manifest:
    shape = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"x": "y"}}
    return {"metadata": meta(name, **(metadata or {})), "spec": {**shape, **spec}}


def jobset(name: str = "a", metadata: Manifest | None = None, **spec: Any) -> Manifest:
    shape = {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": template()}}}]}
    return {"metadata": meta(name, **(metadata or {})), "spec": {**shape, **spec}}


def lease(name: str = "a", metadata: Manifest | None = None, **spec: Any) -> Manifest:
    moment = "2026-01-01T00:00:00.000000Z"
    shape = {"holderIdentity": "x", "leaseDurationSeconds": 15, "acquireTime": moment, "renewTime": moment}
    return {"metadata": meta(name, **(metadata or {})), "spec": {**shape, "leaseTransitions": 1, **spec}}


def event(name: str = "a", metadata: Manifest | None = None, **more: Any) -> Manifest:
    regarding = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "js", "namespace": "$namespace"}
    shape = {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "jobset",
        "reportingInstance": "jobset-0",
        "action": "Reconcile",
        "reason": "R",
        "note": "n",
        "type": "Normal",
        "regarding": regarding,
    }
    return {"metadata": meta(name, **(metadata or {})), **shape, **more}


BODIES = {
    "jobs": job,
    "pods": pod,
    "workloads": workload,
    "podgroups": pod_group,
    "persistentvolumeclaims": claim,
    "services": service,
    "jobsets": jobset,
    "leases": lease,
    "events": event,
}
ENDS = {plural: body(END, {"labels": COLOURS}) for plural, body in BODIES.items()}
