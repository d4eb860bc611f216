"""The two patches that the controller sends: JSON merge patch (RFC 7396) and JSON Patch (RFC 6902). Pure.

Nothing is changed in place: what a patch leaves alone is shared between the old object and the new one.
"""

from collections.abc import Sequence
from typing import Any

from pyjobset.objects.meta import Manifest

OPERATIONS = ("add", "replace", "remove", "test")


class DoesNotApply(Exception):
    """A path is not there, or a test failed."""


def merged(old: Any, patch: Any) -> Any:
    """null removes a member."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def patched(value: Any, operations: Sequence[Manifest]) -> Any:
    """add, replace, remove and test. Raises DoesNotApply."""
    for operation in operations:
        path = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        if operation["op"] not in OPERATIONS:
            raise NotImplementedError(f"the model knows no JSON patch operation {operation['op']!r}")
        if operation["op"] == "test":
            _test(value, path, operation["value"])
        else:
            value = _changed(value, path, operation)
    return value


def _test(value: Any, path: Sequence[str], wanted: Any) -> None:
    *above, last = path
    holder = _at(value, above)
    is_absent = isinstance(holder, dict) and last not in holder
    found = None if is_absent and wanted is None else _at(holder, [last])  # what is not there is null
    if found != wanted:
        raise DoesNotApply(f"a test of {last!r} failed")


def applied(old: Manifest, body: Manifest) -> Manifest:
    """Server-side apply of conditions, the only one that the controller does: lists are merged by their type."""
    status = body.get("status") or {}
    if not set(body) <= {"apiVersion", "kind", "metadata", "status"} or set(status) != {"conditions"}:
        raise NotImplementedError("the model applies conditions of a status only")
    if not set(body["metadata"]) <= {"name", "namespace", "uid", "resourceVersion"}:
        raise NotImplementedError("the model applies no metadata")
    wanted = {condition["type"]: condition for condition in status["conditions"]}
    before = (old.get("status") or {}).get("conditions") or ()
    kept = [{**each, **wanted.pop(each["type"], {})} for each in before]
    conditions = [*kept, *wanted.values()]
    return {
        **old,
        "metadata": {**old["metadata"], **body["metadata"]},
        "status": {**(old.get("status") or {}), "conditions": conditions},
    }


def _at(value: Any, path: Sequence[str]) -> Any:
    for part in path:
        try:
            value = value[_index(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, TypeError) as error:
            raise DoesNotApply(f"there is no {part!r}") from error
    return value


def _changed(value: Any, path: Sequence[str], operation: Manifest) -> Any:
    if not path:
        return operation["value"]
    key, *rest = path
    if isinstance(value, list):
        return _changed_list(value, key, rest, operation)
    if not isinstance(value, dict):
        raise DoesNotApply(f"there is no {key!r}")
    if rest:
        return {**value, key: _changed(_at(value, [key]), rest, operation)}
    if operation["op"] == "remove":
        _at(value, [key])
        return {k: v for k, v in value.items() if k != key}
    return {**value, key: operation["value"]}  # Kubernetes also replaces a member that is not there


def _changed_list(value: list[Any], key: str, rest: Sequence[str], operation: Manifest) -> Any:
    is_new = operation["op"] == "add" and not rest
    index = len(value) if key == "-" and is_new else _index(key)
    if index >= len(value) + is_new:
        raise DoesNotApply(f"there is no {key!r}")
    before, after = value[:index], value[index:]
    if is_new:
        return [*before, operation["value"], *after]
    if operation["op"] == "remove" and not rest:
        return [*before, *after[1:]]
    return [*before, _changed(after[0], rest, operation), *after[1:]]


def _index(key: str) -> int:
    if not key.isdigit():
        raise DoesNotApply(f"{key!r} is not a place in a list")
    return int(key)
