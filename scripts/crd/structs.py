"""Turns the structs of pyjobset.objects into structural schemas.

A type gives the JSON type, `schema(...)` beside it the rest, the text below a field its description, crd.rules the CEL
rules. What it does not understand, or a field without a description, stops it: nothing is left out silently.
"""

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec import NODEFAULT, UnsetType
from msgspec.structs import FieldInfo, fields

from crd import native, rules
from crd.snapshot import Schema
from pyjobset.objects.meta import ObjectMeta, Struct

SCALARS: dict[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int32"},
    str: {"type": "string"},
}


def of(struct: type[Struct]) -> Schema:
    """The schema of an object of this type. The API server itself adds metadata, apiVersion and kind."""
    schema: Schema = {"type": "object"}
    own = [field for field in fields(struct) if field.type is not ObjectMeta]
    if own:
        schema["properties"] = {field.encode_name: _property(struct, field) for field in own}
    if required := sorted(field.encode_name for field in own if _is_required(field)):
        schema["required"] = required
    return schema | _validations(struct)


def _validations(subject: object) -> Schema:
    own = rules.of(subject)
    return {"x-kubernetes-validations": own} if own else {}


def _is_required(field: FieldInfo) -> bool:
    has_default = field.default is not NODEFAULT or field.default_factory is not NODEFAULT
    return bool(_split(field.type)[1].get("required", not has_default))


def _property(struct: type[Struct], field: FieldInfo) -> Schema:
    return {"description": _texts(struct)[field.name]} | _schema(field.type)


def _split(hint: Any) -> tuple[Any, Schema]:
    """The type without None and Unset, and the keywords of the `schema(...)` beside it."""
    keywords: Schema = {}
    if get_origin(hint) is Annotated:
        hint, note = get_args(hint)
        keywords = dict(note.extra_json_schema)
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (member for member in get_args(hint) if member not in (NoneType, UnsetType))
    return hint, keywords


def _schema(annotated: Any) -> Schema:
    hint, keywords = _split(annotated)
    keywords.pop("required", None)
    without = keywords.pop("without", [])
    if "native" in keywords:
        name = keywords.pop("native")
        schema = native.structural(name) | _validations(name)
    elif get_origin(hint) is tuple:
        item, _ = get_args(hint)
        schema = {"type": "array", "items": _schema(item), "x-kubernetes-list-type": keywords.pop("listType", "atomic")}
        if "listMapKeys" in keywords:
            schema["x-kubernetes-list-map-keys"] = keywords.pop("listMapKeys")
    elif hint in SCALARS:
        schema = dict(SCALARS[hint])
    elif isinstance(hint, type) and issubclass(hint, Struct):
        schema = of(hint)
    else:
        raise TypeError(f"{annotated}: no rule says what its schema is")
    for path in without:
        _remove(schema, *path.split("."))
    return schema | keywords


def _remove(schema: Schema, *path: str) -> None:
    *parents, last = path
    for name in parents:
        schema = schema["properties"][name]
    del schema["properties"][last]
    if not schema["properties"]:
        del schema["properties"]


def _texts(struct: type[Struct]) -> dict[str, str]:
    """The texts below the fields of a struct, by field name."""
    class_ = _classes(struct.__module__)[struct.__name__]
    texts = {}
    for statement, following in pairwise(class_.body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = " ".join(text.split())
    return texts


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {statement.name: statement for statement in tree.body if isinstance(statement, ast.ClassDef)}
