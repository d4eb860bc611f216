"""The schema of a JobSet as rules.parse walks it: made once from the structs and their `schema(...)` annotations.

It is the schema that the CRD has, without the CEL rules, so that a manifest is judged without a cluster as the API
server would judge it. It also knows where a misplaced or misspelled field belongs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal

import msgspec
from msgspec import inspect

from pyjobset.objects.meta import ObjectMeta
from pyjobset.rules.shapes import SHAPES, Open

Kind = Literal["an object", "a list", "a map", "a string", "a boolean", "an integer", "a number", "anything"]

_INT64 = frozenset({"generation", "observedGeneration"})
_IGNORED: Mapping[type, frozenset[str]] = {
    ObjectMeta: frozenset({"selfLink", "managedFields", "deletionGracePeriodSeconds"})
}
"""What the server writes and nobody here reads."""

_SURELY_NEAR, _MAYBE_NEAR = 0.85, 0.6
_KEY_LENGTH_MAX = 64
_LISTED_MAX = 12


@dataclass(frozen=True, slots=True)
class Field:
    """What a value must be. `keywords` are those of its JSON schema (objects.schema)."""

    kind: Kind
    keywords: Mapping[str, Any]
    struct: type[msgspec.Struct] | None = None
    item: "Field | None" = None
    bits: int = 0
    """32 or 64 for an integer."""
    is_carried: bool = False
    """Looked at, and handed on as it is."""


@dataclass(frozen=True, slots=True)
class Fields:
    by_name: Mapping[str, Field]
    required: frozenset[str]
    """By the schema."""
    indispensable: frozenset[str]
    """By the type: without them there is no JobSet to look at further."""
    ignored: frozenset[str]
    is_open: bool


@cache
def fields_of(struct: type[msgspec.Struct]) -> Fields:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    by_name = {field.encode_name: _field_of(struct, field) for field in info.fields}
    indispensable = frozenset(field.encode_name for field in info.fields if field.required)
    return Fields(
        by_name=by_name,
        required=indispensable | {name for name, field in by_name.items() if field.keywords.get("required")},
        indispensable=indispensable,
        ignored=_IGNORED.get(struct, frozenset()),
        is_open=issubclass(struct, Open),
    )


def _field_of(struct: type[msgspec.Struct], info: inspect.Field) -> Field:
    shape = SHAPES.get((struct, info.encode_name))
    if shape is None:
        return _field(info.type, name=info.encode_name)
    field, shaped = _field(info.type), _field(inspect.type_info(shape))
    if field.kind == "a list":
        return Field("a list", field.keywords, item=shaped, is_carried=True)
    return Field(shaped.kind, field.keywords, struct=shaped.struct, is_carried=True)


def _field(type_: inspect.Type, keywords: Mapping[str, Any] | None = None, name: str = "") -> Field:
    keywords = keywords or {}
    match type_:
        case inspect.Metadata():
            return _field(type_.type, {**(type_.extra_json_schema or {}), **keywords}, name)
        case inspect.UnionType():  # with the None of an optional field
            (only,) = (t for t in type_.types if not isinstance(t, inspect.NoneType))
            return _field(only, keywords, name)
        case inspect.StructType():
            return Field("an object", keywords, struct=type_.cls)
        case inspect.VarTupleType():
            return Field("a list", keywords, item=_field(type_.item_type))
        case inspect.DictType():
            return Field("a map", keywords, item=_field(type_.value_type))
        case inspect.StrType():
            return Field("a string", keywords)
        case inspect.BoolType():
            return Field("a boolean", keywords)
        case inspect.FloatType():
            return Field("a number", keywords)
        case inspect.IntType():
            is_long = name in _INT64 or keywords.get("format") == "int64"
            return Field("an integer", keywords, bits=64 if is_long else 32)
        case _:
            assert isinstance(type_, inspect.AnyType), type_
            return Field("anything", keywords)


def hint_for_unknown(key: str, siblings: Fields, root: type[msgspec.Struct]) -> str:
    """The field that was meant: a sibling spelled nearly so, the place in `root` where it exists, or the fields there
    are."""
    names = list(siblings.by_name)
    word = key[:_KEY_LENGTH_MAX]
    near = get_close_matches(word, names, n=1, cutoff=_SURELY_NEAR)
    places = _places(root)
    if not near and key in places:
        return f"it is a field of {places[key]}"
    near = near or get_close_matches(word, names, n=1, cutoff=_MAYBE_NEAR)
    if near:
        return f"did you mean {near[0]}?"
    return f"the fields here are {', '.join(names)}" if len(names) <= _LISTED_MAX else ""


@cache
def _places(root: type[msgspec.Struct]) -> Mapping[str, str]:
    """The object that has a field, for all of a JobSet but its status; the outermost where several do."""
    places: dict[str, str] = {}
    level: list[tuple[str, type[msgspec.Struct]]] = [("", root)]
    while level:
        below: list[tuple[str, type[msgspec.Struct]]] = []
        for path, struct in level:
            for name, field in fields_of(struct).by_name.items():
                if path:
                    places.setdefault(name, path)
                inner = field.item or field
                if inner.struct is not None and name != "status":
                    place = name + ("[]" if field.item else "")
                    below.append((f"{path}.{place}" if path else place, inner.struct))
        level = below
    return places
