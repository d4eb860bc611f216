"""Plain JSON values -> a typed JobSet, or InvalidSpec with every structural problem at once.

`check`, the webhooks and the SDK call it. It compares the value with the types of objects.jobset, and with the shapes
of what a JobSet only carries. It is as strict as the API server with strict field validation: null in an object is
unset, 3.0 is the integer 3, "3" is not. Input is hostile: depth, size and the number of problems are bounded. It
applies no default and knows no rule between two fields.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from math import isfinite
from typing import Any, TypeVar

import msgspec

from pyjobset.errors import InvalidSpec, Problem
from pyjobset.objects.jobset import API_VERSION, KIND, JobSet
from pyjobset.rules import registry
from pyjobset.rules.durations import counts_seconds, seconds
from pyjobset.rules.fields import Field, Fields, fields_of, hint_for_unknown
from pyjobset.rules.rule import Rule, child, kind_of

T = TypeVar("T", bound=msgspec.Struct)

DEPTH_MAX = 100
SIZE_MAX = 3 * 1024 * 1024
"""Characters of text, and VALUE_SIZE for each value. The API server's limit of one request."""
VALUE_SIZE = 8
PROBLEMS_MAX = 100

_INTEGER_BITS_MAX = 64


def parse(manifest: Any) -> JobSet:
    """The typed JobSet. Raises InvalidSpec, with all problems, where the manifest breaks the schema of one.

    Templates stay the plain mappings that they are, but as the API server has it: 3.0 becomes 3, and nulls go.
    """
    jobset, problems = read(manifest)
    if problems:
        raise InvalidSpec(problems)
    assert jobset is not None
    return jobset


def read(manifest: Any) -> tuple[JobSet | None, tuple[Problem, ...]]:
    """As `parse`, for who goes on after a problem: the JobSet is there whenever it could be typed in spite of them."""
    walk = _Walk()
    try:
        value = walk.jobset(walk.json(manifest))
    except _Enough:
        return None, tuple(walk.problems)
    return msgspec.convert(value, JobSet) if walk.is_whole else None, tuple(walk.problems)


def read_as(manifest: Any, type_: type[T]) -> tuple[T | None, tuple[Problem, ...]]:
    """As `read`, for an object of another struct, which names its own apiVersion and kind."""
    walk = _Walk(type_)
    try:
        value = walk.root(walk.json(manifest))
    except _Enough:
        return None, tuple(walk.problems)
    return msgspec.convert(value, type_) if walk.is_whole else None, tuple(walk.problems)


class _Enough(Exception):
    """There is no use in looking further."""


class _Walk:
    """One pass over one manifest. `_trail` leads to the value at hand; a path is only spelled out for a problem."""

    def __init__(self, root: type[msgspec.Struct] = JobSet) -> None:
        self._root = root
        self.problems: list[Problem] = []
        self.is_whole = True
        self._paths: set[str] = set()
        self._trail: list[str | int] = []
        self._size = 0

    def json(self, value: Any) -> Any:
        """The value with only what JSON has, whatever a YAML loader or a program made, and no null in an object."""
        kind = type(value)
        if kind is str:
            self._spend(VALUE_SIZE + len(value))
            if not value.isascii() and not _is_unicode(value):
                self._report(registry.WRONG_TYPE, None, "is not Unicode text")
            return value
        self._spend(VALUE_SIZE)
        if kind is dict:
            return self._object(value)
        if kind is list:
            return self._list(value)
        if value is None or kind is bool:
            return value
        if isinstance(value, int):
            if value.bit_length() > _INTEGER_BITS_MAX:
                self._report(registry.NUMBER_RANGE, value, "has more than 64 bits")
            return value
        if isinstance(value, float):
            return self._number(value)
        if isinstance(value, Mapping):
            return self._object(value)
        if isinstance(value, list | tuple):
            return self._list(value)
        if not isinstance(value, str):
            hint = "put it in quotes" if hasattr(value, "isoformat") else ""
            self._report(registry.WRONG_TYPE, value, f"must be a JSON value, not {kind_of(value)}", hint)
        return value

    def _number(self, value: float) -> float | int:
        if not isfinite(value):
            self._report(registry.WRONG_TYPE, value, "must be a finite number")
            return value
        return int(value) if value.is_integer() and abs(value) < 2**63 else value

    def _object(self, value: Mapping[Any, Any]) -> Mapping[str, Any]:
        if self._is_too_deep():
            return {}
        items: dict[str, Any] = {}
        has_changed = not isinstance(value, dict)
        for key, item in value.items():
            if not isinstance(key, str):
                message = f"has a key that is {kind_of(key)}, not a string"
                self._report(registry.WRONG_TYPE, None, message, "put the key in quotes")
                continue
            if type(item) is str and item.isascii() and key.isascii():  # most values of a manifest: no call for them
                self._spend(VALUE_SIZE + len(key) + len(item))
                items[key] = item
                continue
            self._spend(len(key))
            self._trail.append(key)
            if not key.isascii() and not _is_unicode(key):
                self._report(registry.WRONG_TYPE, None, "has a name that is not Unicode text")
            if item is not None:
                items[key] = self.json(item)
                has_changed = has_changed or items[key] is not item
            self._trail.pop()
        return items if has_changed or len(items) < len(value) else value

    def _list(self, value: list[Any] | tuple[Any, ...]) -> list[Any]:
        if self._is_too_deep():
            return []
        items: list[Any] = []
        has_changed = not isinstance(value, list)
        for index, item in enumerate(value):
            self._trail.append(index)
            items.append(self.json(item))
            has_changed = has_changed or items[-1] is not item
            self._trail.pop()
        return items if has_changed or not isinstance(value, list) else value

    def root(self, manifest: Any) -> Any:
        """The fields of the root that the manifest has."""
        if not isinstance(manifest, dict):
            hint = f"it starts with apiVersion and kind: {self._root.__name__}"
            self._report(registry.NOT_AN_OBJECT, manifest, f"must be an object, not {kind_of(manifest)}", hint)
            raise _Enough
        return self._struct(fields_of(self._root), manifest)

    def jobset(self, manifest: Any) -> Any:
        """The fields of a JobSet that the manifest has."""
        if not isinstance(manifest, dict):
            self._report(registry.NOT_AN_OBJECT, manifest, f"must be an object, not {kind_of(manifest)}")
            raise _Enough
        self._header(manifest)
        value = self._struct(fields_of(JobSet), {k: v for k, v in manifest.items() if k not in ("apiVersion", "kind")})
        metadata = manifest.get("metadata")
        if isinstance(metadata, dict) and not (metadata.get("name") or metadata.get("generateName")):
            self._trail = ["metadata", "name"]
            self._report(registry.NAME_REQUIRED)
        return value

    def _header(self, manifest: dict[str, Any]) -> None:
        """apiVersion and kind. Something else than a JobSet is not looked into: all of it would be wrong."""
        kind, version = manifest.get("kind"), manifest.get("apiVersion")
        self._trail = ["kind"]
        if kind != KIND:
            is_list = isinstance(kind, str) and kind.endswith("List")
            self._report(registry.WRONG_KIND, kind, hint="give the items of the list one by one" if is_list else "")
        self._trail = ["apiVersion"]
        if version != API_VERSION:
            self._report(registry.WRONG_API_VERSION, version)
        self._trail = []
        if isinstance(kind, str) and kind.casefold() != KIND.casefold():
            raise _Enough

    def _check(self, field: Field, value: Any) -> Any:
        """The value as msgspec can convert it. Where it does not fit the field, a problem is noted."""
        match field.kind:
            case "an object" if isinstance(value, dict):
                assert field.struct is not None
                return self._struct(fields_of(field.struct), value)
            case "a map" if isinstance(value, dict):
                assert field.item is not None
                return {key: self._item(key, field.item, item) for key, item in value.items()}
            case "a list" if isinstance(value, list):
                return self._list_of(field, value)
            case "a string" if isinstance(value, str):
                self._check_string(field, value)
            case "a boolean" if isinstance(value, bool):
                pass
            case "an integer" if isinstance(value, int) and not isinstance(value, bool):
                self._check_integer(field, value)
            case "a number" if isinstance(value, int | float) and not isinstance(value, bool):
                pass
            case "anything":
                pass
            case expected:
                self._wrong_type(expected, value)
        return value

    def _struct(self, fields: Fields, value: dict[str, Any]) -> dict[str, Any]:
        known: dict[str, Any] = {}
        for key, item in value.items():
            field = fields.by_name.get(key)
            self._trail.append(key)
            if field is None:
                if not fields.is_open and isinstance(key, str) and key not in fields.ignored:
                    self._report(registry.UNKNOWN_FIELD, hint=hint_for_unknown(key, fields, self._root))
            else:
                checked = self._check(field, item)
                known[key] = item if field.is_carried else checked
            self._trail.pop()
        for name in fields.required:
            if name not in known:
                self._trail.append(name)
                self._report(registry.REQUIRED_FIELD, is_fatal=name in fields.indispensable)
                self._trail.pop()
        return known

    def _list_of(self, field: Field, value: list[Any]) -> list[Any]:
        assert field.item is not None
        most, least = field.keywords.get("maxItems"), field.keywords.get("minItems", 0)
        if most is not None and len(value) > most:
            self._report(registry.TOO_MANY_ITEMS, None, f"has {len(value)} items; at most {most} are allowed")
        if len(value) < least:
            self._report(registry.TOO_FEW_ITEMS, None, f"has {len(value)} items; at least {least} is needed")
        items = [self._item(index, field.item, item) for index, item in enumerate(value[:most])]
        if "listType" in field.keywords:
            self._check_unique(field, items)
        return items

    def _item(self, key: str | int, field: Field, item: Any) -> Any:
        self._trail.append(key)
        if item is None and field.kind != "anything":
            self._report(registry.NULL_VALUE)
        else:
            item = self._check(field, item)
        self._trail.pop()
        return item

    def _check_unique(self, field: Field, items: list[Any]) -> None:
        """Of a set the items, of a map-list their keys."""
        keys = field.keywords.get("listMapKeys", ())
        seen: set[tuple[Any, ...]] = set()
        for index, item in enumerate(items):
            identity = tuple(item.get(key) for key in keys) if keys and isinstance(item, dict) else (item,)
            if not all(isinstance(part, str) for part in identity):
                continue  # reported as what it is
            if identity in seen:
                self._trail += [index, *keys]
                self._report(registry.DUPLICATE, identity[0])
                del self._trail[-1 - len(keys) :]
            seen.add(identity)

    def _check_string(self, field: Field, value: str) -> None:
        allowed, most = field.keywords.get("enum"), field.keywords.get("maxLength")
        if allowed is not None and value not in allowed:
            near = get_close_matches(value[:64], allowed, n=1)
            hint = f"did you mean {near[0]}?" if near else ""
            self._report(registry.UNSUPPORTED_VALUE, value, f"must be {' or '.join(allowed)}", hint)
        if most is not None and len(value) > most:
            self._report(registry.TOO_LONG, value, f"has {len(value)} characters; at most {most} are allowed")

    def _check_integer(self, field: Field, value: int) -> None:
        limit = 2 ** (field.bits - 1)
        least = field.keywords.get("minimum")
        if not -limit <= value < limit:
            self._report(registry.NUMBER_RANGE, value, f"must be between {-limit} and {limit - 1} (int{field.bits})")
        elif least is not None and value < least:
            self._report(registry.TOO_SMALL, value, f"must be {least} or more")

    def _wrong_type(self, expected: str, value: Any) -> None:
        field = next((key for key in reversed(self._trail) if isinstance(key, str)), "")
        problem = wrong_type("an object" if expected == "a map" else expected, value, field)
        self._report(registry.WRONG_TYPE, value, problem.message, problem.hint)

    def _is_too_deep(self) -> bool:
        if len(self._trail) < DEPTH_MAX:
            return False
        self._report(registry.TOO_DEEP, None, f"is nested more than {DEPTH_MAX} levels deep")
        return True

    def _spend(self, size: int) -> None:
        self._size += size
        if self._size > SIZE_MAX:
            self._trail = []
            self._report(
                registry.TOO_LARGE, None, f"is larger than {SIZE_MAX} characters, what aliases repeat included"
            )
            raise _Enough

    def _report(
        self, rule: Rule, value: object = None, message: str = "", hint: str = "", *, is_fatal: bool = False
    ) -> None:
        """One problem a path: what a value is comes before what it should be."""
        path = ""
        for key in self._trail:
            path = child(path, key)
        path = path or "manifest"
        if path in self._paths:
            return
        self._paths.add(path)
        self.problems.append(rule.at(path, value, message, hint))
        self.is_whole = self.is_whole and not is_fatal and rule not in _FATAL
        if len(self.problems) >= PROBLEMS_MAX:
            raise _Enough


_FATAL = (
    registry.WRONG_TYPE,
    registry.NULL_VALUE,
    registry.NUMBER_RANGE,
    registry.TOO_DEEP,
    registry.TOO_MANY_ITEMS,
)
"""Breaches that leave nothing to look at further, or too much; the others leave a JobSet, though not a good one."""

_HINTS = {
    "an object": "write fields as name: value, without '-'",
    "a list": "start each item with '- '",
    "a boolean": "write true or false, without quotes",
}


def wrong_type(expected: str, value: Any, path: str) -> Problem:
    """`expected` is a kind of JSON value: "a string", "a list". Also told of templates, by cli.template_fields."""
    hint = _HINTS.get(expected, "")
    if expected == "a string":
        hint = _quoted(value)
    elif expected in ("an integer", "a number"):
        hint = (_in_seconds(value) if counts_seconds(path.rpartition(".")[2]) else "") or _unquoted(value)
    return registry.WRONG_TYPE.at(path, value, f"must be {expected}, not {kind_of(value)}", hint)


def _is_unicode(text: str) -> bool:
    """Half of a surrogate pair cannot be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _quoted(value: object) -> str:
    if isinstance(value, bool):
        return f'put it in quotes: "{str(value).lower()}"'
    return f'put it in quotes: "{value}"' if isinstance(value, int | float) and abs(value) < 2**63 else ""


def _in_seconds(value: object) -> str:
    meant = seconds(value) if isinstance(value, str) else None
    if meant is None:
        return ""
    return f"write {meant}: the field counts seconds" if meant.denominator == 1 else "write a whole number of seconds"


def _unquoted(value: object) -> str:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return f"write {value} without quotes"
    return "write a whole number" if isinstance(value, float) else ""
