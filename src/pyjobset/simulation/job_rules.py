"""The rules of batch/v1 for what the model API server stores of a Job: defaults, and what may change when.

Mirrors the parts of Kubernetes' Job strategy that a JobSet meets: the generated selector and labels, scheduling
directives that are open while a Job is suspended and has no pods, growing and shrinking, the start time.
"""

from typing import Any

from pyjobset.objects.meta import Manifest

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_OPEN_IN_SPEC = ("nodeSelector", "tolerations", "schedulingGates")
"""Of the template's pod spec, while the Job holds no pods. Resources and node affinity are open too."""
_FIXED = (
    "completionMode",
    "selector",
    "backoffLimitPerIndex",
    "managedBy",
    "podFailurePolicy",
    "successPolicy",
)


def fill_job(job: Manifest) -> Manifest:
    """At creation: defaults, and the selector with the labels that it needs."""
    spec = job.get("spec") or {}
    if not spec.get("manualSelector"):
        uid, name = job["metadata"]["uid"], job["metadata"]["name"]
        generated = {
            CONTROLLER_UID: uid,
            "controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "job-name": name,
        }
        template = spec.get("template") or {}
        metadata = template.get("metadata") or {}
        labels = {**(metadata.get("labels") or {}), **generated}
        template = {**template, "metadata": {**metadata, "labels": labels}}
        spec = {**spec, "template": template, "selector": {"matchLabels": {CONTROLLER_UID: uid}}}
    return plain_job({**job, "spec": spec})


def plain_job(job: Manifest) -> Manifest:
    """Defaults, also those that come back; what is empty is not there. A Job without labels has its template's."""
    given = job["spec"]
    spec: Manifest = {
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": "Failed" if given.get("podFailurePolicy") else "TerminatingOrFailed",
        "parallelism": 1,
    }
    if given.get("parallelism") is None and given.get("completions") is None:
        spec["completions"] = 1
    spec.update((key, value) for key, value in given.items() if value is not None)
    spec["template"] = template = _without_empty(spec["template"])
    metadata, status = job["metadata"], job.get("status") or {}
    if not metadata.get("labels"):
        metadata = {**metadata, "labels": (template.get("metadata") or {}).get("labels") or {}}
    if any(status.get(count) == 0 for count in ("active", "succeeded", "failed")):
        status = {k: v for k, v in status.items() if v != 0 or k not in ("active", "succeeded", "failed")}
    return {**job, "metadata": metadata, "spec": spec, "status": status}


def check_job(old: Manifest, new: Manifest) -> str:
    """The field that may not change, or nothing."""
    was, spec = old["spec"], new["spec"]
    for field in _FIXED:
        if spec.get(field) != was.get(field):
            return f"spec.{field}"
    is_scaled = spec["completionMode"] == "Indexed" and spec.get("completions") == spec["parallelism"]
    if spec.get("completions") != was.get("completions") and not is_scaled:
        return "spec.completions"
    template, before = spec["template"], was["template"]
    if template != before and (not _is_open(old) or _closed(template) != _closed(before)):
        return "spec.template"
    return ""


def check_job_status(old: Manifest, new: Manifest) -> str:
    """Kubernetes holds the whole status together; here only the start time, which we write too."""
    started, was = new["status"].get("startTime"), old["status"].get("startTime")
    if was is not None and started != was and not new["spec"]["suspend"] and not _is_resuming(old, new):
        return "status.startTime"
    return ""


def _is_open(job: Manifest) -> bool:
    """Suspended, never started or known to be suspended, and without pods (1.37)."""
    status = job["status"]
    is_idle = status.get("startTime") is None or suspended(job) == "True"
    return bool(job["spec"]["suspend"]) and is_idle and not status.get("active")


def _closed(template: Manifest) -> Any:
    """The part of a template that is fixed while the other part is open."""
    spec = {key: value for key, value in template["spec"].items() if key not in _OPEN_IN_SPEC}
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [{k: v for k, v in c.items() if k != "resources"} for c in spec[field]]
    if "affinity" in spec:
        spec["affinity"] = {k: v for k, v in (spec["affinity"] or {}).items() if k != "nodeAffinity"}
        if not spec["affinity"]:
            del spec["affinity"]
    return spec


def _without_empty(template: Manifest) -> Manifest:
    metadata, spec = template.get("metadata") or {}, template["spec"]
    if any(key in spec and not spec[key] for key in _OPEN_IN_SPEC):
        template = {**template, "spec": {k: v for k, v in spec.items() if k not in _OPEN_IN_SPEC or v}}
    if "annotations" in metadata and not metadata["annotations"]:
        template = {**template, "metadata": {k: v for k, v in metadata.items() if k != "annotations"}}
    return template


def _is_resuming(old: Manifest, new: Manifest) -> bool:
    return suspended(old) == "True" and suspended(new) == "False"


def suspended(job: Manifest) -> str:
    """The status of the condition, empty without one."""
    conditions = job["status"].get("conditions") or ()
    return next((str(c["status"]) for c in conditions if c["type"] == "Suspended"), "")
