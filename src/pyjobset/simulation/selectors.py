"""Label and field selectors, as the controller uses them: `key`, `key=value`, and `metadata.name=value`. Pure."""

from collections.abc import Callable
from typing import Any

from pyjobset.objects.meta import Manifest

Predicate = Callable[[Manifest], bool]


def chosen(label_selector: str, field_selector: str = "") -> Predicate:
    """Which objects are meant. All requirements of a list must hold. Raises ValueError for what is not modelled."""
    requirements = [_requirement(part) for part in label_selector.split(",") if part]
    fields = [_equality(part) for part in field_selector.split(",") if part]

    def is_chosen(obj: Manifest) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(key in labels and (value is None or labels[key] == value) for key, value in requirements) and all(
            _field(obj, path) == value for path, value in fields
        )

    return is_chosen


def _requirement(text: str) -> tuple[str, str | None]:
    if any(mark in text for mark in ("!", "(", ">", "<")):
        raise ValueError(f"label selector {text!r} is not modelled")
    key, equals, value = text.partition("=")
    return key, value.removeprefix("=") if equals else None


def _equality(text: str) -> tuple[tuple[str, ...], str]:
    path, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"field selector {text!r} is not modelled")
    return tuple(path.split(".")), value.removeprefix("=")


def _field(obj: Any, path: tuple[str, ...]) -> str:
    for part in path:
        obj = obj.get(part) or {}
    return obj if isinstance(obj, str) else ""
