"""What the CRD's schema refuses in Job and claim templates: `paralelism`, `cpu: 0.5`. Asked by `plan` and `lint`.

JobSet carries templates unseen, so rules.parse lets them pass. The API server does not: a value of another type is
refused, and an unknown field too where the client is strict, as kubectl is; else the field is lost without a word. A
null does not make a field known: some tools write a creationTimestamp into templates; its value is not judged. Names
and kinds come from the CRD (template_fields.json, made by `make generate`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any

import msgspec

from pyjobset.errors import Problem
from pyjobset.rules.parse import DEPTH_MAX, PROBLEMS_MAX, wrong_type
from pyjobset.rules.registry import UNKNOWN_FIELD, WRONG_TYPE
from pyjobset.rules.rule import child

ANY = "*"
LIST = "["
QUANTITY = "q"
_WORD_LENGTH_MAX = 64
_QUANTITY = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?")

Objects = list[dict[str, str]]
"""What each may have: by field which of these objects it holds, or a letter of _KINDS. The first is a JobSet's spec."""


def field_problems(manifest: dict[str, Any]) -> tuple[Problem, ...]:
    """One problem a field. A manifest that is broken otherwise is looked into as far as it goes."""
    return tuple(islice(_problems(_objects(), "0", manifest.get("spec"), "spec", DEPTH_MAX), PROBLEMS_MAX))


@cache
def _objects() -> Objects:
    content = resources.files(__package__).joinpath("template_fields.json").read_bytes()
    return msgspec.json.decode(content, type=Objects)


def _problems(objects: Objects, held: str, value: Any, path: str, depth: int) -> Iterator[Problem]:
    if value is None or not depth:
        return
    if held.startswith(LIST):
        if not isinstance(value, list):
            yield wrong_type("a list", value, path)
            return
        for index, item in enumerate(value):
            yield from _problems(objects, held[1:], item, child(path, index), depth - 1)
    elif held.isdigit():
        if not isinstance(value, dict):
            yield wrong_type("an object", value, path)
            return
        yield from _fields(objects, objects[int(held)], value, path, depth)
    elif held == QUANTITY:
        yield from _quantity(value, path)
    else:
        expected, is_good = _KINDS[held]
        if not is_good(value):
            yield wrong_type(expected, value, path)


def _fields(
    objects: Objects, known: Mapping[str, str], value: dict[Any, Any], path: str, depth: int
) -> Iterator[Problem]:
    for key, item in value.items():
        if not isinstance(key, str):
            continue
        inner = known.get(key, known.get(ANY))
        if inner is None:
            yield UNKNOWN_FIELD.at(child(path, key), hint=_hint(key, known))
        else:
            yield from _problems(objects, inner, item, child(path, key), depth - 1)


def _quantity(value: Any, path: str) -> Iterator[Problem]:
    """The schema takes strings and whole numbers. A container's `cpu: 0.5` works in a pod, and not in a JobSet."""
    if isinstance(value, float) and not value.is_integer():
        yield WRONG_TYPE.at(
            path, value, "must be a quantity: a string or a whole number", f'put it in quotes: "{value}"'
        )
    elif not _is_integer(value) and not (isinstance(value, str) and _QUANTITY.fullmatch(value)):
        yield WRONG_TYPE.at(path, value, "must be a quantity", "write a number and a unit, such as 500m, 2 or 16Gi")


def _is_integer(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


_KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "s": ("a string", lambda value: isinstance(value, str)),
    "i": ("an integer", _is_integer),
    "b": ("a boolean", lambda value: isinstance(value, bool)),
    "m": ("an integer or a string", lambda value: _is_integer(value) or isinstance(value, str)),
    "x": ("anything", lambda _: True),
}


def _hint(key: str, known: Mapping[str, str]) -> str:
    near = get_close_matches(key[:_WORD_LENGTH_MAX], known, n=1)
    return f"did you mean {near[0]}?" if near else ""
