"""Turns the stored OpenAPI schemas of Kubernetes into ones that a CRD may hold (structural: types, no references).

What is left out, and why: docs/decisions/0004-crd.md. Values are not judged here, that is the API server's business
when the Job is created: no enums, no defaults but those that a list key needs.
"""

import json
from functools import cache
from typing import Any

from crd.snapshot import PATH, REF, Schema

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"

EMBEDDED_META = ("annotations", "finalizers", "labels", "name", "namespace")
"""The metadata that a template may have: what the user chooses, nothing that the API server sets."""

QUANTITY_PATTERN = r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$"
KEPT = ("type", "format", "additionalProperties", "x-kubernetes-list-type", "x-kubernetes-map-type")


@cache
def stored() -> dict[str, Schema]:
    schemas: dict[str, Schema] = json.loads(PATH.read_text(encoding="utf-8"))["schemas"]
    return schemas


def structural(name: str) -> Schema:
    """The schema of that OpenAPI name, with all references replaced by what they refer to."""
    if name == QUANTITY:
        return {"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN}
    if name == INT_OR_STRING:
        return {"x-kubernetes-int-or-string": True}
    schema = stored()[name]
    if name == OBJECT_META:
        schema = {"type": "object", "properties": {p: schema["properties"][p] for p in EMBEDDED_META}}
    return _structural(schema)


def _structural(schema: Schema) -> Schema:
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf", [])), None)
    if reference:
        return structural(reference.removeprefix(REF))
    kept: Schema = {keyword: schema[keyword] for keyword in KEPT if keyword in schema}
    if isinstance(kept.get("additionalProperties"), dict):
        kept["additionalProperties"] = _structural(kept["additionalProperties"])
    if "properties" in schema:
        kept["properties"] = {name: _structural(part) for name, part in schema["properties"].items()}
    if schema.get("required"):
        kept["required"] = sorted(schema["required"])
    if "items" in schema:
        kept["items"] = _structural(schema["items"])
    if "x-kubernetes-list-map-keys" in schema:
        keys = kept["x-kubernetes-list-map-keys"] = schema["x-kubernetes-list-map-keys"]
        _make_present(kept["items"], keys, schema["items"])
    return kept


def _make_present(item: Schema, keys: list[str], source: Schema) -> None:
    """A CRD wants each key of a list to be required or to have a default, as `protocol` of a container's port has."""
    properties: dict[str, Any] = stored()[source["$ref"].removeprefix(REF)]["properties"]
    for key in keys:
        if key not in item.get("required", []):
            item["properties"][key]["default"] = properties[key]["default"]
