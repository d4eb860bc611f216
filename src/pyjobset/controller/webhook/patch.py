"""The defaults that a JobSet lacks, as a JSON Patch (RFC 6902). Pure; called by webhook.admission.

What the defaults are is rules.defaults' matter. Here the JobSet before and after them is compared with what was sent,
and each thing that is missing becomes one `add`; what the user wrote is never touched, and unknown fields stay.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.rules.defaults import with_defaults


def additions(manifest: Manifest, jobset: JobSet) -> list[Manifest]:
    """The operations that give `manifest` its defaults; `jobset` is its typed form. Empty: it has them all."""
    return list(_missing(jobset, with_defaults(jobset), manifest, ""))


def _missing(before: Any, after: Any, sent: Any, path: str) -> Iterator[Manifest]:
    """Parts without a new default are the same object before and after, so that most of a JobSet is not walked."""
    if after is before:
        return
    for key, old, new in _parts(before, after):
        if new is old:
            continue
        there = sent[key] if isinstance(key, int) else sent.get(key)
        inner = f"{path}/{key}"  # names of our own fields and indexes: nothing in them to escape
        if isinstance(key, int) or (there and isinstance(new, msgspec.Struct | dict | tuple)):
            yield from _missing(old, new, there, inner)  # of a list too: to add an item would be to insert one
        elif isinstance(new, dict) or (isinstance(after, dict) and there is not None):
            continue  # of a template: what it must have and has not, or "", is for the verdict to name
        else:
            yield {"op": "add", "path": inner, "value": _spelled(new)}


def _parts(before: Any, after: Any) -> Iterator[tuple[str | int, Any, Any]]:
    if isinstance(after, msgspec.Struct):
        for name, wire in zip(after.__struct_fields__, after.__struct_encode_fields__, strict=True):
            yield wire, getattr(before, name), getattr(after, name)
    elif isinstance(after, dict):
        for key, new in after.items():
            yield key, before.get(key), new
    else:
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield index, old, new


def _spelled(value: Any) -> Any:
    """As JSON, with the defaults that our structs leave out when they are encoded: the schema requires some of them."""
    if isinstance(value, msgspec.Struct):
        fields = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        parts = ((wire, getattr(value, name)) for name, wire in fields)
        return {wire: _spelled(part) for wire, part in parts if part is not None and part != ()}
    return value
