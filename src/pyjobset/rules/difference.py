"""The fields in which two plain values differ, one by one (decision 14). Called by rules.immutability.

Two spellings of the same count as equal, as they do for the API server's own types: unset, null and empty, and
quantities by value. A client written in Go (Kueue) sends a template back in its own spelling and changes nothing by it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyjobset.rules.quantity import quantity
from pyjobset.rules.rule import child, shown

Path = tuple[str | int, ...]

_QUANTITIES = frozenset({"requests", "limits", "sizeLimit", "divisor"})
_ZERO_IS_UNSET = frozenset(
    {"hostNetwork", "hostPID", "hostIPC", "readOnly", "stdin", "stdinOnce", "tty", "hostPort", "initialDelaySeconds"}
    | {"timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"}
)
"""Fields of a pod that are false or 0 when they are not given; others may tell the two apart."""
_EMPTY_TEXT_IS_SET = frozenset({"storageClassName", "volumeAttributesClassName"})
"""Fields of a claim in which an empty text says: none."""


@dataclass(frozen=True, slots=True)
class Difference:
    path: Path
    old: Any
    new: Any

    def under(self, prefix: str) -> str:
        """The whole path, as text."""
        for key in self.path:
            prefix = child(prefix, key)
        return prefix

    def change(self) -> str:
        return f"was {_word(self.old)}, now {_word(self.new)}"


def differences(old: Any, new: Any, path: Path = (), *, is_exact: bool = False) -> Iterator[Difference]:
    """In the order of the old value's fields, then those that are new. If `is_exact`, `{}` is not the same as unset."""
    if old == new:
        return
    if isinstance(old or {}, Mapping) and isinstance(new or {}, Mapping) and (old or new):
        before, after = old or {}, new or {}
        for key in [*before, *(key for key in after if key not in before)]:
            yield from differences(before.get(key), after.get(key), (*path, key), is_exact=is_exact)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, (*path, index), is_exact=is_exact)
    elif is_exact or not _is_same(old, new, path):
        yield Difference(path, old, new)


def _is_same(old: Any, new: Any, path: Path) -> bool:
    if _is_unset(old, path) and _is_unset(new, path):
        return True
    return not _QUANTITIES.isdisjoint(path) and quantity(old) is not None and quantity(old) == quantity(new)


def _is_unset(value: Any, path: Path) -> bool:
    key = path[-1] if path else ""
    if value is None or (isinstance(value, Mapping | list | tuple) and not value):
        return True
    if isinstance(value, str):
        return not value and key not in _EMPTY_TEXT_IS_SET
    return value in (False, 0) and key in _ZERO_IS_UNSET


def _word(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return repr(shown(value))
