"""Label and field selectors, as the controller uses them: `key`, `key=value`, and `metadata.name=value`. Pure."""

from collections.abc import Callable
from functools import lru_cache

from pyjobset.objects.meta import Manifest

Predicate = Callable[[Manifest], bool]
FIELDS = ("metadata.name", "metadata.namespace")
"""All that every kind can be asked for."""


@lru_cache(1000)
def chosen(label_selector: str, field_selector: str = "") -> Predicate:
    """Which objects are meant: all requirements must hold. Raises NotImplementedError for what is not modelled."""
    requirements = [_requirement(part) for part in label_selector.split(",") if part]
    fields = [_equality(part) for part in field_selector.split(",") if part]
    if not requirements and not fields:
        return lambda _: True

    def is_chosen(obj: Manifest) -> bool:
        metadata = obj["metadata"]
        labels = metadata.get("labels") or {}
        has_labels = all(key in labels and (value is None or labels[key] == value) for key, value in requirements)
        return has_labels and all(metadata.get(field) == value for field, value in fields)

    return is_chosen


def _requirement(text: str) -> tuple[str, str | None]:
    if any(mark in text for mark in ("!", "(", ">", "<")):
        raise NotImplementedError(f"label selector {text!r} is not modelled")
    key, equals, value = text.partition("=")
    return key, value.removeprefix("=") if equals else None


def _equality(text: str) -> tuple[str, str]:
    path, _, value = text.partition("=")
    if path not in FIELDS:
        raise NotImplementedError(f"field selector {text!r} is not modelled")
    return path.removeprefix("metadata."), value.removeprefix("=")
