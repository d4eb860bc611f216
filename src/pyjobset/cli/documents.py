"""YAML and JSON text -> documents of plain JSON values, or a Fault with its place for each that cannot be read. Pure.

files.py hands it text. The text is cut at `---` lines first, so that one broken document does not hide the others.
Values are built from parser events, without recursion: depth and size are bounded, an alias counts as all that it
repeats, a key may not appear twice. It makes nothing but dict, list, str, int, float, bool and None.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import yaml

from pyjobset.cli.scalars import integer, real, resolve

DEPTH_MAX = 100
VALUES_MAX = 100_000
"""Values of one document, aliases expanded. The largest object that an API server stores (1.5 MB) has fewer."""
TOO_DEEP = f"nested deeper than {DEPTH_MAX} levels"
TOO_LARGE = f"more than {VALUES_MAX:,} values, aliases expanded"

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_JSON = re.compile(r'\s*\{\s*["}]')
_SEPARATOR = re.compile(r"---\s*(#.*)?$")
_TAG = "tag:yaml.org,2002:"
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
    "timestamp": (str,),
}
_QUOTE = "quote it if it is text; if it is a template ({{ ... }}), render it first"
_HINTS = (
    ("mapping values are not allowed", "check the indentation, or quote the value if it contains ': '"),
    ("could not find expected ':'", "check the indentation and the colon after each key"),
    ("did not find expected", "check the indentation and the brackets from here upwards"),
    ("cannot start any token", "put the value in quotes"),
    ("control characters", "it does not look like text: check what wrote it"),
)


@dataclass(frozen=True, slots=True)
class Document:
    value: object
    line: int
    """Where it begins, counted from 1 as in editors."""


@dataclass(slots=True)
class Fault(Exception):
    """Why one document cannot be read. Raised inside this module, returned in the document's place."""

    line: int
    column: int
    message: str
    hint: str = ""


def load(text: str) -> list[Document | Fault]:
    """All documents of `text` in order, empty ones left out."""
    if not _JSON.match(text):
        return list(_yaml_documents(text))
    try:
        return list(_json_documents(text))
    except Fault as refused:
        return [refused]
    except json.JSONDecodeError as error:
        documents = list(_yaml_documents(text))  # `{"a": yes}` is YAML
        fault = Fault(error.lineno, error.colno, error.msg, "is the JSON complete?")
        return [fault] if any(isinstance(d, Fault) for d in documents) else documents


def _json_documents(text: str) -> Iterator[Document]:
    """One after the other, with nothing or white space between them."""
    decoder = json.JSONDecoder(object_pairs_hook=_mapping, parse_int=integer, parse_float=real, parse_constant=real)
    start = _skip_space(text, 0)
    while start < len(text):
        line = text.count("\n", 0, start) + 1
        try:
            value, end = decoder.raw_decode(text, start)
            _check_size(value)
            if _SURROGATE.search(text):
                json.dumps(value, ensure_ascii=False).encode()  # half of a character cannot be printed or sent
        except json.JSONDecodeError:
            raise
        except RecursionError as error:
            raise Fault(line, 1, TOO_DEEP) from error
        except ValueError as error:
            raise Fault(line, 1, str(error)) from error
        yield Document(value, line)
        start = _skip_space(text, end)


def _skip_space(text: str, start: int) -> int:
    match = re.compile(r"\s*").match(text, start)
    assert match is not None
    return match.end()


def _mapping(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value: dict[str, object] = {}
    for key, item in pairs:
        if key in value:
            raise ValueError(_twice(key))
        value[key] = item
    return value


def _check_size(value: object) -> None:
    level, depth, count = [value], 0, 0
    while level:
        depth += 1
        count += len(level)
        if depth > DEPTH_MAX or count > VALUES_MAX:
            raise ValueError(TOO_DEEP if depth > DEPTH_MAX else TOO_LARGE)
        level = [
            item
            for outer in level
            if isinstance(outer, (dict, list))
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]


def _twice(key: str) -> str:
    return f"key {key!r} appears twice in one mapping"


def _yaml_documents(text: str) -> Iterator[Document | Fault]:
    part: list[str] = []
    first_line = 1
    for number, line in enumerate([*StringIO(text), "---"], start=1):
        if not _SEPARATOR.match(line):
            part.append(line)
            continue
        try:
            yield from _Builder(first_line).documents("".join(part))
        except Fault as fault:
            yield fault
        part, first_line = [], number + 1


_NO_KEY = object()
_MERGE = object()
"""The key `<<`: the mappings that it names lend their entries."""


@dataclass(slots=True)
class _Open:
    """A collection that has begun and not yet ended."""

    value: dict[str, object] | list[object]
    anchor: str | None
    size_before: int
    key: object = _NO_KEY
    lines: dict[str, int] = field(default_factory=dict)
    lenders: list[object] = field(default_factory=list)

    @property
    def wants_key(self) -> bool:
        return isinstance(self.value, dict) and self.key is _NO_KEY


class _Builder:
    """Builds the documents of one part of a stream. `first_line` is where that part begins in the file."""

    def __init__(self, first_line: int) -> None:
        self._first_line = first_line
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[object, int]] = {}
        self._size = 0

    def documents(self, text: str) -> Iterator[Document]:
        line: int | None = None
        try:
            for event in yaml.parse(text, Loader=_LOADER):
                if isinstance(event, yaml.DocumentStartEvent):
                    self._anchors, self._size, line = {}, 0, None
                elif isinstance(event, (yaml.NodeEvent, yaml.CollectionEndEvent)):
                    line = line or self._line(event)
                    value = self._take(event)
                    if value is not None:
                        yield Document(value, line)
        except yaml.YAMLError as error:
            raise self._explain(error, text) from error

    def _take(self, event: Any) -> object:
        """Takes one event. Returns the value of the document when this event completes it."""
        if isinstance(event, yaml.CollectionEndEvent):
            return self._end(event)
        self._size += 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise self._fault(event, f"alias *{event.anchor} names nothing that ended before it")
            value, size = self._anchors[event.anchor]
            self._size += size
        elif isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
            if event.anchor:
                self._anchors[event.anchor] = (value, 0)
        else:
            self._begin(event)
            return None
        return self._put(value, event)

    def _begin(self, event: Any) -> None:
        if len(self._stack) >= DEPTH_MAX:
            raise self._fault(event, TOO_DEEP)
        if event.tag not in (None, "!", f"{_TAG}map", f"{_TAG}seq"):
            raise self._unknown_tag(event)
        if self._stack and self._stack[-1].wants_key:
            raise self._fault(event, "a key must be a plain value, not a list or a mapping", _QUOTE)
        self._stack.append(_Open({} if isinstance(event, yaml.MappingStartEvent) else [], event.anchor, self._size))

    def _end(self, event: Any) -> object:
        done = self._stack.pop()
        if isinstance(done.value, dict):
            for lender in done.lenders:
                if not isinstance(lender, dict):
                    raise self._fault(event, "a merge (<<) takes a mapping or a list of mappings")
                done.value = lender | done.value
        if done.anchor:
            self._anchors[done.anchor] = (done.value, self._size - done.size_before)
        return self._put(done.value, event)

    def _put(self, value: object, event: Any) -> object:
        """Puts a complete value into the collection around it; returns it when there is none."""
        if self._size > VALUES_MAX:
            hint = "write out what the aliases (*name) repeat" if self._anchors else "split it into several documents"
            raise self._fault(event, TOO_LARGE, hint)
        top = self._stack[-1] if self._stack else None
        if top is not None and top.wants_key:
            top.key = value if value is _MERGE else self._key(top, value, event)
            return None
        value = "<<" if value is _MERGE else value
        if top is None:
            return value
        if isinstance(top.value, list):
            top.value.append(value)
            return None
        if top.key is _MERGE:
            top.lenders += value if isinstance(value, list) else [value]
        else:
            assert isinstance(top.key, str)
            top.value[top.key] = value
        top.key = _NO_KEY
        return None

    def _key(self, top: _Open, value: object, event: Any) -> str:
        if value is None or isinstance(value, (dict, list)):
            raise self._fault(event, "a key must be a plain value", _QUOTE)
        key = value if isinstance(value, str) else json.dumps(value)
        if key in top.lines:
            raise self._fault(event, _twice(key), f"the first is on line {top.lines[key]}")
        top.lines[key] = self._line(event)
        return key

    def _scalar(self, event: Any) -> object:
        tag = event.tag.removeprefix(_TAG) if event.tag else ""
        if tag in ("str", "!") or (not tag and event.style):
            return event.value
        if tag and tag not in _TYPES:
            raise self._unknown_tag(event)
        if not tag and event.value == "<<":
            return _MERGE
        try:
            value = resolve(event.value)
        except ValueError as error:
            raise self._fault(event, str(error), "quote it if it is text") from error
        if tag and (not isinstance(value, _TYPES[tag]) or isinstance(value, bool) != (tag == "bool")):
            raise self._fault(event, f"{event.value!r} is not of the type that its tag !!{tag} says")
        return value

    def _unknown_tag(self, event: Any) -> Fault:
        return self._fault(event, f"unknown tag {event.tag!r}", "Kubernetes manifests use no tags: remove it")

    def _fault(self, event: Any, message: str, hint: str = "") -> Fault:
        return Fault(self._line(event), event.start_mark.column + 1, message, hint)

    def _line(self, event: Any) -> int:
        return self._first_line + int(event.start_mark.line)

    def _explain(self, error: yaml.YAMLError, text: str) -> Fault:
        """PyYAML's error with a hint for the usual causes."""
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        message = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
        line = mark.line if mark else text.count("\n", 0, getattr(error, "position", 0))
        content = [*StringIO(text), ""][line]
        hint = next((hint for part, hint in _HINTS if part in message), "")
        if "nesting depth" in message:
            message = TOO_DEEP
        if "{{" in text:
            hint = "it looks like a template: render it first"
        elif "\t" in content[: len(content) - len(content.lstrip())]:
            hint = "indent with spaces: YAML does not allow tabs"
        return Fault(self._first_line + line, mark.column + 1 if mark else 1, message, hint)
