"""Metadata that every Kubernetes object has, as far as we read it. Frozen msgspec structs.

Attributes are snake_case, the wire is camelCase. Times stay RFC 3339 strings: we compare and copy them.
"""

from typing import Any

import msgspec


class Struct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The base of all wire types: immutable, camelCase on the wire, unset fields left out."""


class OwnerReference(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, frozen=True):
    """`labels` and `annotations` are complete here. Types cached by the thousand use a narrower metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    generate_name: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class Condition(Struct, frozen=True):
    """metav1.Condition. Job and pod conditions have the same fields that we read."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


class Key(Struct, frozen=True):
    """The identity of a namespaced object of a known kind."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


Manifest = dict[str, Any]
"""A Kubernetes object, or a part of one, as plain JSON values. Never mutated once it was handed over."""


def controller_of(references: tuple[OwnerReference, ...]) -> OwnerReference | None:
    """The owner that controls the object, if any (at most one by Kubernetes' rules)."""
    return next((r for r in references if r.controller), None)
