"""The fields that the CRD knows and the kinds of their values: what `jobset lint` compares templates with.

The CRD is 300 kB of YAML, which takes longer to read than all the rest of `jobset lint`. Equal objects are stored
once: a list of objects, the first of which is the JobSet's spec; each maps a field to what it holds: the number of an
object, or `s` string, `i` integer, `b` boolean, `m` integer or string, `q` quantity, `x` anything; `[` before it is a
list of such. `*` stands for any name.
"""

import json
from typing import Any

from crd.definition import definition

PATH = "src/pyjobset/cli/template_fields.json"
KINDS = {"string": "s", "integer": "i", "boolean": "b"}
ANYTHING = "x"


def files() -> dict[str, str]:
    schema = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    objects: list[dict[str, str]] = [{}]
    objects[0] = _fields(schema["properties"]["spec"], objects)
    return {PATH: json.dumps(objects, separators=(",", ":")).replace("},", "},\n") + "\n"}


def _fields(schema: dict[str, Any], objects: list[dict[str, str]]) -> dict[str, str]:
    return {name: _held(field, objects) for name, field in sorted(schema["properties"].items())}


def _held(schema: dict[str, Any], objects: list[dict[str, str]]) -> str:
    if schema.get("type") == "array":
        return "[" + _held(schema["items"], objects)
    if schema.get("x-kubernetes-int-or-string"):
        return "q" if "pattern" in schema else "m"
    if isinstance(schema.get("additionalProperties"), dict):
        return _stored({"*": _held(schema["additionalProperties"], objects)}, objects)
    if schema.get("properties") and not schema.get("x-kubernetes-preserve-unknown-fields"):
        return _stored(_fields(schema, objects), objects)
    return KINDS.get(schema.get("type", ""), ANYTHING)


def _stored(fields: dict[str, str], objects: list[dict[str, str]]) -> str:
    if fields not in objects:
        objects.append(fields)
    return str(objects.index(fields))
