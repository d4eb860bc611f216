"""Which spellings are the same, which are a difference, and where it is said to be."""

from fractions import Fraction
from typing import Any

import pytest

from pyjobset.rules.difference import differences
from pyjobset.rules.quantity import quantity

SAME: list[tuple[Any, Any]] = [
    ({}, None),
    ({"a": None}, {}),
    ({"a": {}, "b": []}, {}),
    ({"a": ""}, {}),
    ({"metadata": {"creationTimestamp": None}}, {}),
    ({"hostNetwork": False, "hostPort": 0}, {}),
    ({"a": 3}, {"a": 3.0}),
    ({"requests": {"cpu": 1, "memory": "1Gi"}}, {"requests": {"cpu": "1000m", "memory": "1024Mi"}}),
    ({"limits": {"cpu": "0.5"}}, {"limits": {"cpu": "500m"}}),
    ({"emptyDir": {"sizeLimit": "1k"}}, {"emptyDir": {"sizeLimit": "1e3"}}),
]

DIFFERENT: list[tuple[Any, Any, list[str]]] = [
    ({"a": 1}, {"a": 2}, ["s.a"]),
    ({"a": 1}, {}, ["s.a"]),
    ({}, {"a": {"b": 1, "c": {"d/e": 2}}}, ["s.a.b", "s.a.c[d/e]"]),
    ({"a": [1, 2]}, {"a": [1, 3]}, ["s.a[1]"]),
    ({"a": [1]}, {"a": [1, 2]}, ["s.a"]),
    ({"a": {"b": 1}}, {"a": "b"}, ["s.a"]),
    ({"storageClassName": ""}, {}, ["s.storageClassName"]),
    ({"parallelism": 0}, {}, ["s.parallelism"]),
    ({"automountServiceAccountToken": False}, {}, ["s.automountServiceAccountToken"]),
    ({"hostNetwork": True}, {}, ["s.hostNetwork"]),
    ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}, ["s.requests.cpu"]),
    ({"requests": {"cpu": "x"}}, {"requests": {"cpu": "y"}}, ["s.requests.cpu"]),
    ({"args": ["1"]}, {"args": ["1000m"]}, ["s.args[0]"]),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_same(old: Any, new: Any) -> None:
    assert list(differences(old, new)) == []
    assert list(differences(new, old)) == []


@pytest.mark.parametrize(("old", "new", "paths"), DIFFERENT)
def test_different(old: Any, new: Any, paths: list[str]) -> None:
    assert [difference.under("s") for difference in differences(old, new)] == paths
    assert [difference.under("s") for difference in differences(new, old)] == paths


def test_exact_tells_empty_from_unset() -> None:
    """In a union an empty object is a choice: `basic: {}`."""
    old, new = {"basic": {}}, {"gang": {}}
    assert list(differences(old, new)) == []
    assert [difference.under("p") for difference in differences(old, new, is_exact=True)] == ["p.basic", "p.gang"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (1, None, "was 1, now unset"),
        ("a", "b" * 100, f"was 'a', now '{'b' * 80}... (100 characters)'"),
        ([1, 2], [], "was a list of 2, now a list of 0"),
    ],
)
def test_words(old: Any, new: Any, words: str) -> None:
    (difference,) = differences({"a": old}, {"a": new})
    assert difference.change() == words


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", Fraction(1)),
        (2, Fraction(2)),
        (0.5, Fraction(1, 2)),
        ("1.", Fraction(1)),
        (".5", Fraction(1, 2)),
        ("-3", Fraction(-3)),
        ("100m", Fraction(1, 10)),
        ("1u", Fraction(1, 10**6)),
        ("1n", Fraction(1, 10**9)),
        ("2k", Fraction(2000)),
        ("2M", Fraction(2 * 10**6)),
        ("1E", Fraction(10**18)),
        ("1Ki", Fraction(1024)),
        ("1Mi", Fraction(1024**2)),
        ("1.5Gi", Fraction(3 * 1024**3, 2)),
        ("1Ei", Fraction(1024**6)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("12e-1", Fraction(6, 5)),
    ],
)
def test_quantity(text: object, value: Fraction) -> None:
    assert quantity(text) == value


@pytest.mark.parametrize(
    "text", ["", ".", "1 ", "1K", "1mi", "x", "1e", "0x10", "1_000", "٣", True, None, [1], "9" * 200]
)
def test_no_quantity(text: object) -> None:
    assert quantity(text) is None
