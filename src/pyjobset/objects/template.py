"""Reads a child Job's template, which is carried as a plain mapping so that unknown fields survive untouched."""

from collections.abc import Mapping
from typing import Any

INT32_MAX = 2_147_483_647


def mapping_at(value: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The mapping at `path`, or an empty one where something on the way is absent or null."""
    for part in path:
        value = value.get(part) or {}
    return value


def pod_spec(template: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_at(template, "spec", "template", "spec")


def parallelism(template: Mapping[str, Any]) -> int:
    """spec.parallelism, 1 when unset (batch/v1)."""
    value = mapping_at(template, "spec").get("parallelism")
    return 1 if value is None else int(value)


def completions(template: Mapping[str, Any]) -> int | None:
    value = mapping_at(template, "spec").get("completions")
    return None if value is None else int(value)


def is_indexed(template: Mapping[str, Any]) -> bool:
    """spec.completionMode; JobSet's default is Indexed, unlike batch/v1's."""
    return mapping_at(template, "spec").get("completionMode") in (None, "Indexed")


def pods(template: Mapping[str, Any]) -> int:
    """How many pods of the Job run at once: parallelism, or completions where set and smaller (decision 19)."""
    most = completions(template)
    return parallelism(template) if most is None else min(parallelism(template), most)


def saturated(value: int) -> int:
    """Clamped to int32, the type of every count in the API: sums saturate, they never wrap."""
    return min(value, INT32_MAX)
