"""Text becomes documents, and every fault has its place. Hostile text is refused at a bounded cost."""

import tracemalloc
from typing import Any

import pytest

from pyjobset.cli import documents
from pyjobset.cli.documents import DEPTH_MAX, VALUES_MAX, Document, Fault, load

DEEP = DEPTH_MAX + 1


def values(text: str) -> list[Any]:
    documents = load(text)
    assert all(isinstance(d, Document) for d in documents), documents
    return [d.value for d in documents if isinstance(d, Document)]


def fault(text: str) -> Fault:
    (only,) = (d for d in load(text) if isinstance(d, Fault))
    return only


GOOD = {
    "several documents": ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
    "empty ones are left out": ("---\n# only a comment\n---\n\n---\na: 1\n---\n", [{"a": 1}]),
    "a comment after the separator": ("a: 1\n--- # next\nb: 2\n", [{"a": 1}, {"b": 2}]),
    "a separator inside a block of text": ("a: |\n  x\n  ---\n  y\n", [{"a": "x\n---\ny\n"}]),
    "dashes that begin a value": ("a: 1\n---- : 2\n", [{"a": 1, "----": 2}]),
    "windows line ends": ("a: 1\r\n---\r\nb: 2\r\n", [{"a": 1}, {"b": 2}]),
    "quoted words are text": ("a: 'yes'\nb: \"1\"\n", [{"a": "yes", "b": "1"}]),
    "keys become text as in JSON": ("1: a\ntrue: b\n2.5: c\n", [{"1": "a", "true": "b", "2.5": "c"}]),
    "an alias repeats a value": ("a: &x [1, 2]\nb: *x\n", [{"a": [1, 2], "b": [1, 2]}]),
    "a merge lends what is not there": (
        "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\n",
        [{"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}}],
    ),
    "a merge of several, the first wins": (
        "a: &x {p: 1}\nb: &y {p: 2, q: 2}\nc: {<<: [*x, *y]}\n",
        [{"a": {"p": 1}, "b": {"p": 2, "q": 2}, "c": {"p": 1, "q": 2}}],
    ),
    "<< as a value is text": ("a: <<\n", [{"a": "<<"}]),
    "tags of JSON's own types": ("a: !!str 1\nb: !!int 2\nc: ! 3\n", [{"a": "1", "b": 2, "c": "3"}]),
    "JSON": ('{"a": [1, 2.5, true, null, "\\ud83d\\ude00"]}', [{"a": [1, 2.5, True, None, "\U0001f600"]}]),
    "JSON one after the other": ('{"a": 1}\n{"a": 2}{"a": 3}', [{"a": 1}, {"a": 2}, {"a": 3}]),
    "flow YAML is not JSON": ('{"a": 1}\n---\n{b: yes}\n', [{"a": 1}, {"b": True}]),
    "text of other scripts": ("a: größe\n", [{"a": "größe"}]),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("text", "expected"), GOOD.values(), ids=GOOD.keys())
def test_text_becomes_values(text: str, expected: list[Any]) -> None:
    assert values(text) == expected


BAD = {
    "not YAML": ("a: b: c\n", 1, 5, "mapping values are not allowed", "quote"),
    "a tab": ("a:\n\tb: 1\n", 2, 1, "cannot start any token", "spaces"),
    "an open bracket": ("a: [1, 2\nb: 3\n", 2, 2, "did not find expected", "brackets"),
    "a template": ("a:\n  b: {{ .Values.b }}\n", 2, 7, "a key must be a plain value", "render it first"),
    "a bare template": ("{{ if .Values.b }}\na: 1\n{{ end }}\n", 1, 2, "a key must be a plain value", "render"),
    "a key twice": ("a: 1\nb: 2\na: 3\n", 3, 1, "key 'a' appears twice", "line 1"),
    "a key twice after conversion": ('1: a\n"1": b\n', 2, 1, "key '1' appears twice", "line 1"),
    "a key twice in JSON": ('{"a": 1, "a": 2}', 1, 1, "key 'a' appears twice", ""),
    "a null key": ("~: 1\n", 1, 1, "a key must be a plain value", "quote"),
    "a list as a key": ("? [a]\n: 1\n", 1, 3, "a key must be a plain value", "quote"),
    "an alias as a key of a mapping": ("a: &x [1]\nb: {*x : 1}\n", 2, 5, "a key must be a plain value", "quote"),
    "an unknown alias": ("a: *x\n", 1, 4, "alias *x names nothing", ""),
    "an alias of itself": ("a: &x [*x]\n", 1, 8, "alias *x names nothing", ""),
    "an alias of another document": ("a: &x 1\n---\nb: *x\n", 3, 4, "alias *x names nothing", ""),
    "a tag of Python": ("a: !!python/object:os.system x\n", 1, 4, "unknown tag", "remove"),
    "a tag of one's own": ("a: !thing {}\n", 1, 4, "unknown tag", "remove"),
    "a lying tag": ("a: !!int yes\n", 1, 4, "not of the type", ""),
    "a merge of text": ("a: {<<: x}\n", 1, 10, "a merge (<<) takes a mapping", ""),
    "infinity": ("a: .inf\n", 1, 4, "not a number in JSON", "quote"),
    "infinity in JSON": ('{"a": Infinity}', 1, 1, "not a number in JSON", ""),
    "half of JSON": ('{"a": 1,\n "b": ', 2, 7, "Expecting value", "complete"),
    "half of a character": ('{"a": "\\ud83d"}', 1, 1, "surrogates", ""),
    "a control character": ("a: 1\nb: \x01\n", 2, 1, "control characters", "text"),
    "deep YAML": ("[" * DEEP, 1, DEEP, f"deeper than {DEPTH_MAX}", ""),
    "deep block YAML": ("- " * DEEP + "x", 1, 2 * DEEP - 1, f"deeper than {DEPTH_MAX}", ""),
    "deep JSON": ('{"a":' * DEEP + "1" + "}" * DEEP, 1, 1, f"deeper than {DEPTH_MAX}", ""),
}


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), BAD.values(), ids=BAD.keys())
def test_a_fault_has_its_place_and_a_hint(text: str, line: int, column: int, message: str, hint: str) -> None:
    found = fault(text)
    assert message in found.message
    assert hint in found.hint
    assert (found.line, found.column) == (line, column)


def test_a_broken_document_does_not_hide_the_others() -> None:
    documents = load("a: 1\n---\nb: [\n---\nc: 3\n---\nd: 1\nd: 2\n")
    assert [d.line for d in documents] == [1, 4, 5, 8]
    assert [isinstance(d, Fault) for d in documents] == [False, True, False, True]


FEW = 2_000
"""In the place of VALUES_MAX, to be quick."""


def bomb(levels: int = 12, width: int = 9) -> str:
    lines = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines)


MERGES = f"a: &a {{{', '.join(f'k{n}: 1' for n in range(99))}}}\n" + "".join(f"b{n}: {{<<: *a}}\n" for n in range(99))
HOSTILE = {
    "an alias bomb": (bomb(), "aliases expanded"),
    "a merge bomb": (MERGES, "aliases expanded"),
    "a very wide list": ("[" + "x," * (VALUES_MAX * 9) + "]", "more than"),
    "a wide JSON list": ('{"a": [' + "1," * (FEW + 10) + "1]}", "more than"),
    "a million brackets": ("[" * 1_000_000, "deeper than"),
    "a million braces": ('{"a":' * 1_000_000, "deeper than"),
    "a million dashes": ("- " * 1_000_000, "deeper than"),
}


@pytest.mark.parametrize(("text", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_refused_in_little_memory(monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.setattr(documents, "VALUES_MAX", FEW)
    tracemalloc.start()
    try:
        found = fault(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message in found.message
    assert peak < 8 * len(text) + 2_000_000
