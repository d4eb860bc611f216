"""The two patches that the controller sends: JSON merge patch (RFC 7396) and JSON Patch (RFC 6902). Pure.

Nothing is changed in place: what a patch leaves alone is shared between the old object and the new one.
"""

from collections.abc import Sequence
from typing import Any

from pyjobset.objects.meta import Manifest


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
        if operation["op"] == "test":
            if _at(value, path) != operation["value"]:
                raise DoesNotApply(f"test of {operation['path']} failed")
        else:
            value = _changed(value, path, operation)
    return value


def _at(value: Any, path: Sequence[str]) -> Any:
    for part in path:
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise DoesNotApply(f"there is no {part!r}") from error
    return value


def _changed(value: Any, path: Sequence[str], operation: Manifest) -> Any:
    if not path:
        return operation["value"]
    key, *rest = path
    if isinstance(value, list):
        index = len(value) if key == "-" else int(key)
        if rest or operation["op"] == "replace":
            changed = _changed(_at(value, [key]), rest, operation)
            return [*value[:index], changed, *value[index + 1 :]]
        if operation["op"] == "remove":
            _at(value, [key])
            return [*value[:index], *value[index + 1 :]]
        return [*value[:index], operation["value"], *value[index:]]
    if not isinstance(value, dict):
        raise DoesNotApply(f"there is no {key!r}")
    if rest:
        return {**value, key: _changed(_at(value, [key]), rest, operation)}
    if operation["op"] == "add":
        return {**value, key: operation["value"]}
    _at(value, [key])
    if operation["op"] == "replace":
        return {**value, key: operation["value"]}
    return {k: v for k, v in value.items() if k != key}
