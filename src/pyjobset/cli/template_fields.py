"""Fields of Job and claim templates that Kubernetes does not have, such as `paralelism`. Asked by `plan` and `lint`.

JobSet carries templates unseen, so rules.parse lets such a field pass. The API server does not: kubectl asks it to be
strict, and anyone else loses the field without a word. A null does not make it known: some tools write a
creationTimestamp into templates. The names come from the CRD (template_fields.json, made by `make generate`). Values
are not judged here.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any

import msgspec

from pyjobset.errors import Problem
from pyjobset.rules.parse import DEPTH_MAX, PROBLEMS_MAX
from pyjobset.rules.registry import UNKNOWN_FIELD
from pyjobset.rules.rule import child

ANY = "*"
LEAF = -1
_WORD_LENGTH_MAX = 64

Objects = list[dict[str, int]]
"""What each may have: by field which of these objects it holds, or LEAF. The first is a JobSet's spec."""


def unknown_fields(manifest: dict[str, Any]) -> tuple[Problem, ...]:
    """One problem a field. A manifest that is broken otherwise is looked into as far as it goes."""
    return tuple(islice(_unknown(_objects(), 0, manifest.get("spec"), "spec", DEPTH_MAX), PROBLEMS_MAX))


@cache
def _objects() -> Objects:
    content = resources.files(__package__).joinpath("template_fields.json").read_bytes()
    return msgspec.json.decode(content, type=Objects)


def _unknown(objects: Objects, number: int, value: Any, path: str, depth: int) -> Iterator[Problem]:
    if number == LEAF or not depth:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(objects, number, item, child(path, index), depth - 1)
        return
    if not isinstance(value, dict):
        return
    known = objects[number]
    for key, item in value.items():
        if not isinstance(key, str):
            continue
        inner = known.get(key, known.get(ANY))
        if inner is None:
            yield UNKNOWN_FIELD.at(child(path, key), hint=_hint(key, known))
        else:
            yield from _unknown(objects, inner, item, child(path, key), depth - 1)


def _hint(key: str, known: dict[str, int]) -> str:
    near = get_close_matches(key[:_WORD_LENGTH_MAX], known, n=1)
    return f"did you mean {near[0]}?" if near else ""
