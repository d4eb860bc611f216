"""The names of all fields that the CRD knows, without anything else: what `jobset lint` compares templates with.

The CRD is 300 kB of YAML, which takes longer to read than all the rest of `jobset lint`. Equal objects are stored
once: a list of objects, the first of which is the JobSet's spec; each maps a field to the number of what it holds,
whether one or a list of it. `-1` is a value without fields. `*` stands for any name.
"""

import json
from typing import Any

from crd.definition import definition

PATH = "src/pyjobset/cli/template_fields.json"
LEAF = -1


def files() -> dict[str, str]:
    schema = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    objects: list[dict[str, int]] = [{}]
    objects[0] = _fields(schema["properties"]["spec"], objects)
    return {PATH: json.dumps(objects, separators=(",", ":")).replace("},", "},\n") + "\n"}


def _fields(schema: dict[str, Any], objects: list[dict[str, int]]) -> dict[str, int]:
    return {name: _number(field, objects) for name, field in sorted(schema["properties"].items())}


def _number(schema: dict[str, Any], objects: list[dict[str, int]]) -> int:
    schema = schema.get("items", schema)
    if isinstance(schema.get("additionalProperties"), dict):
        inner = _number(schema["additionalProperties"], objects)
        return LEAF if inner == LEAF else _stored({"*": inner}, objects)
    if not schema.get("properties") or schema.get("x-kubernetes-preserve-unknown-fields"):
        return LEAF
    return _stored(_fields(schema, objects), objects)


def _stored(fields: dict[str, int], objects: list[dict[str, int]]) -> int:
    if fields not in objects:
        objects.append(fields)
    return objects.index(fields)
