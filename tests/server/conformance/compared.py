"""What is compared of two stories: everything but what the mask names, with identities and times by their order.

Resource versions become ranks: which write made a new one, and in which order. Uids become numbers by first
appearance, times become `<time>`, names that the server made up lose their end.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyjobset.objects.meta import Manifest
from tests.server.conformance.player import Story

Lines = list[tuple[str, Any]]
"""What happened, and the object or status that was told."""

_POD_DEFAULTS = (
    "dnsPolicy=ClusterFirst",
    "schedulerName=default-scheduler",
    "securityContext={}",
    "terminationGracePeriodSeconds=30",
    "containers.*.imagePullPolicy=Always",
    "containers.*.resources={}",
    "containers.*.terminationMessagePath=/dev/termination-log",
    "containers.*.terminationMessagePolicy=File",
)
_CARRIED = "templates and pods are only carried: nobody reads these defaults"
_SERVICE = "the controller reads of a Service only what it writes"
MASK: Mapping[str, str] = {
    "*.metadata.managedFields": "the controller reads none",
    "*.metadata.namespace": "each side plays in one of its own",
    "Event.regarding.namespace": "each side plays in one of its own",
    "Event.deprecatedSource={}": "nobody reads it",
    "JobSet.status={}": "a new JobSet has none on the real server; no status and an empty one are the same to readers",
    **{f"Job.spec.template.spec.{field}": _CARRIED for field in _POD_DEFAULTS},
    **{f"Pod.spec.{field}": _CARRIED for field in _POD_DEFAULTS},
    "Pod.spec.enableServiceLinks": _CARRIED,
    "Pod.spec.preemptionPolicy": _CARRIED,
    "Pod.spec.priority": _CARRIED,
    "Pod.spec.tolerations": _CARRIED,
    "Pod.status.qosClass": _CARRIED,
    "Service.spec.clusterIPs": _SERVICE,
    "Service.spec.internalTrafficPolicy": _SERVICE,
    "Service.spec.ipFamilies": _SERVICE,
    "Service.spec.ipFamilyPolicy": _SERVICE,
    "Service.spec.sessionAffinity": _SERVICE,
    "Service.spec.type": _SERVICE,
    "Service.status.loadBalancer": _SERVICE,
    "PersistentVolumeClaim.spec.volumeMode": "the controller does not read it",
}
_MASKED: dict[int, list[tuple[str, tuple[str, ...], str]]] = {}
for _mask in MASK:
    """By length: the mask, its path, and the value that is a default, or nothing for any."""
    _path, _, _value = _mask.partition("=")
    _names = tuple(_path.split("."))
    _MASKED.setdefault(len(_names), []).append((_mask, _names, _value))
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
GENERATED = re.compile(r"^(made-)[a-z0-9]{5,}$")
_ABSENT = object()


def compared(story: Story, masked: set[str]) -> Lines:
    """What two sides must agree on. `masked` gets those of the mask that hid something."""
    versions = sorted({int(found) for found in _versions(story)})
    plain = _Plain(masked, {str(version): f"<{rank}>" for rank, version in enumerate(versions, 1)})
    lines: Lines = [(f"{a['step']} -> {a['code']}", plain.answer(a["body"])) for a in story.answers]
    for number, events in enumerate(story.told):
        lines += [(f"watch {number}: {e['type']}", plain.answer(e["object"])) for e in events]
    return lines + [("left", plain.object(obj)) for obj in story.left]


def differences(real: Lines, model: Lines) -> Iterator[str]:
    """One line each: where, what the real API server says, what the model does."""
    for number in range(max(len(real), len(model))):
        theirs = real[number] if number < len(real) else ("nothing", None)
        ours = model[number] if number < len(model) else ("nothing", None)
        if theirs[0] != ours[0]:
            yield f"{number}: real {theirs[0]} {theirs[1]}, model {ours[0]} {ours[1]}"
        else:
            yield from (f"{number}: {theirs[0]} {line}" for line in _unlike(theirs[1], ours[1], ""))


def _unlike(real: Any, model: Any, path: str) -> Iterator[str]:
    if isinstance(real, dict) and isinstance(model, dict):
        for key in dict.fromkeys((*real, *model)):
            yield from _unlike(real.get(key, _ABSENT), model.get(key, _ABSENT), f"{path}.{key}")
    elif real != model:
        said = ["nothing" if each is _ABSENT else repr(each) for each in (real, model)]
        yield f"{path}: real {said[0]}, model {said[1]}"


def _versions(story: Story) -> Iterator[str]:
    """Of all objects, but not of lists: those go up with everything that happens on the server."""
    bodies = [answer["body"] for answer in story.answers]
    objects = [item for body in bodies for item in body.get("items", [body])]
    objects += [event["object"] for events in story.told for event in events] + story.left
    for obj in objects:
        value = (obj.get("metadata") or {}).get("resourceVersion")
        if value:
            yield value


class _Plain:
    def __init__(self, masked: set[str], versions: Mapping[str, str]) -> None:
        self._masked = masked
        self._versions = versions
        self._uids: dict[str, str] = {}

    def answer(self, body: Manifest) -> Any:
        if body.get("kind") == "Status":
            return self._status(body)
        if "items" in body:
            return sorted((self.object(item) for item in body["items"]), key=lambda item: str(item["metadata"]["name"]))
        return self.object(body)

    def _status(self, body: Manifest) -> Manifest:
        """What the client and the controller read of a Status."""
        details = body.get("details") or {}
        if body["status"] == "Success":
            return {"status": "Success", "name": details.get("name")}
        return {
            "reason": body.get("reason") or None,
            "is named": bool(details.get("name")),
            "is uid": any(cause.get("field") == "metadata.uid" for cause in details.get("causes") or ()),
            "is being deleted": str(body.get("message")).startswith("object is being deleted"),
        }

    def object(self, obj: Manifest) -> Any:
        uid = (obj.get("metadata") or {}).get("uid")
        if uid:
            self._uids.setdefault(uid, f"<uid {len(self._uids) + 1}>")
        return self._value(obj, (str(obj.get("kind")),))

    def _value(self, value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            # an absent member and a null one are the same to every reader
            parts = ((key, self._value(each, (*path, key))) for key, each in sorted(value.items()) if each is not None)
            return {key: each for key, each in parts if not self._is_masked((*path, key), each)}
        if isinstance(value, list):
            return [self._value(each, (*path, "*")) for each in value]
        if path[-1] == "resourceVersion":
            return self._versions.get(value, value)
        if not isinstance(value, str):
            return value
        if TIME.fullmatch(value):
            return "<time>"
        return GENERATED.sub(r"\1*", self._uids.get(value, value))

    def _is_masked(self, path: tuple[str, ...], value: Any) -> bool:
        for mask, names, wanted in _MASKED.get(len(path), ()):
            if wanted in ("", str(value)) and all(n in ("*", p) for n, p in zip(names, path, strict=True)):
                self._masked.add(mask)
                return True
        return False
