"""What the API server answered, turned into a struct or one of our errors. No I/O.

The table of statuses is `error_of`. Called by kube.client and, for the first line of a watch, by a Transport.
A message carries the method, the object and the server's own Status message, cut to a bounded length.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Generic, NoReturn, TypeVar

import msgspec

from pyjobset.errors import JobSetError, NotFound, OutcomeUnknown, Raced, Refused, Unavailable
from pyjobset.kube.requests import Request
from pyjobset.objects.meta import Struct

T = TypeVar("T", bound=Struct)

MESSAGE_LENGTH_MAX = 2048
BODY_BYTES_MAX = 256 * 1024 * 1024
"""A page of 500 objects of 512 KiB each."""
ERROR_BODY_BYTES_MAX = 1024 * 1024
RETRY_AFTER_SECONDS_MAX = 60.0


class AlreadyExists(Raced):
    """409 AlreadyExists: the name is taken, by an object of ours or of someone else."""


class Expired(Raced):
    """410: the resourceVersion or the continue token is too old. List again."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """Case-insensitive, or with capitalised names (`Retry-After`)."""


class StatusDetails(Struct, frozen=True):
    name: str = ""
    kind: str = ""
    retry_after_seconds: float | None = None


class Status(Struct, frozen=True):
    """metav1.Status, the body of an answer that is not an object."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class ListMeta(Struct, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(Struct, Generic[T], frozen=True):
    """One page of a list."""

    metadata: ListMeta = ListMeta()
    items: tuple[T, ...] = ()
