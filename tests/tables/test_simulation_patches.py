"""JSON merge patch, JSON Patch and the apply of conditions, as the model has them."""

from typing import Any

import pytest

from pyjobset.objects.meta import Manifest
from pyjobset.simulation.patches import DoesNotApply, applied, merged, patched


@pytest.mark.parametrize(
    ("old", "patch", "new"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch(old: Any, patch: Manifest, new: Any) -> None:
    """The examples of RFC 7396."""
    assert merged(old, patch) == new


def test_a_merge_patch_shares_what_it_leaves_alone() -> None:
    old = {"a": {"x": 1}, "b": {"y": 1}}
    new = merged(old, {"b": {"y": 2}})
    assert new["a"] is old["a"]
    assert old == {"a": {"x": 1}, "b": {"y": 1}}


OBJECT = {"m": {"a/b": 1, "c~d": 2}, "l": [1, 2], "n": [{"x": 1}]}


@pytest.mark.parametrize(
    ("operation", "path", "value", "new"),
    [
        ("add", "/m/e", 3, {**OBJECT, "m": {"a/b": 1, "c~d": 2, "e": 3}}),
        ("add", "/m/a~1b", 3, {**OBJECT, "m": {"a/b": 3, "c~d": 2}}),
        ("replace", "/m/c~0d", 3, {**OBJECT, "m": {"a/b": 1, "c~d": 3}}),
        ("replace", "/m/e", 3, {**OBJECT, "m": {"a/b": 1, "c~d": 2, "e": 3}}),
        ("remove", "/m/a~1b", None, {**OBJECT, "m": {"c~d": 2}}),
        ("add", "/l/0", 0, {**OBJECT, "l": [0, 1, 2]}),
        ("add", "/l/2", 3, {**OBJECT, "l": [1, 2, 3]}),
        ("add", "/l/-", 3, {**OBJECT, "l": [1, 2, 3]}),
        ("replace", "/l/1", 3, {**OBJECT, "l": [1, 3]}),
        ("remove", "/l/0", None, {**OBJECT, "l": [2]}),
        ("add", "/n/0/y", 2, {**OBJECT, "n": [{"x": 1, "y": 2}]}),
        ("test", "/l", [1, 2], OBJECT),
        ("test", "/m/e", None, OBJECT),
    ],
)
def test_a_json_patch(operation: str, path: str, value: Any, new: Manifest) -> None:
    assert patched(OBJECT, [{"op": operation, "path": path, "value": value}]) == new


@pytest.mark.parametrize(
    ("operation", "path", "value"),
    [
        ("test", "/l", [1]),
        ("test", "/m/e", 1),
        ("remove", "/m/e", None),
        ("remove", "/l/2", None),
        ("replace", "/l/2", 1),
        ("replace", "/l/-", 1),
        ("add", "/l/3", 1),
        ("add", "/l/x", 1),
        ("add", "/x/y", 1),
        ("add", "/l/0/y", 1),
        ("add", "/n/1/y", 1),
    ],
)
def test_a_json_patch_that_does_not_apply(operation: str, path: str, value: Any) -> None:
    with pytest.raises(DoesNotApply):
        patched(OBJECT, [{"op": operation, "path": path, "value": value}])


def test_operations_are_done_in_order_and_leave_the_old_object_alone() -> None:
    old = {"l": [1]}
    operations = [{"op": "add", "path": "/l/-", "value": 2}, {"op": "test", "path": "/l/1", "value": 2}]
    assert patched(old, operations) == {"l": [1, 2]}
    assert old == {"l": [1]}


def test_an_operation_that_is_not_modelled_is_refused_loudly() -> None:
    with pytest.raises(NotImplementedError, match="move"):
        patched(OBJECT, [{"op": "move", "from": "/l", "path": "/m"}])


def test_conditions_are_applied_by_their_type() -> None:
    ready, other = {"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}
    old = {"metadata": {"name": "a"}, "status": {"phase": "Running", "conditions": [ready]}}
    body = {"metadata": {"name": "a"}, "status": {"conditions": [other]}}
    once = applied(old, body)
    assert once["status"] == {"phase": "Running", "conditions": [ready, other]}
    assert applied(once, body) == once


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"name": "a"}, "spec": {}},
        {"metadata": {"name": "a", "labels": {}}, "status": {"conditions": []}},
        {"metadata": {"name": "a"}, "status": {"phase": "Running"}},
    ],
)
def test_nothing_else_is_applied(body: Manifest) -> None:
    with pytest.raises(NotImplementedError):
        applied({"metadata": {"name": "a"}}, body)
