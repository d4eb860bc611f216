"""What the API server answered, turned into a struct or one of our errors. No I/O.

`error_of` is the table of statuses. Called by kube.client, and by a Transport when a watch cannot be opened.
A message carries the method, the object and the server's own Status message, cut to a bounded length.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import msgspec

from pyjobset.errors import JobSetError, NotFound, OutcomeUnknown, Raced, Refused, Unavailable
from pyjobset.kube.requests import PATCH_TYPES, Request
from pyjobset.objects.meta import Struct

T = TypeVar("T", bound=Struct)

MESSAGE_LENGTH_MAX = 2048
BODY_BYTES_MAX = 256 * 1024 * 1024
"""A page of 500 objects of 512 KiB each."""
ERROR_BODY_BYTES_MAX = 1024 * 1024
RETRY_AFTER_SECONDS_MAX = 60.0

BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding hostile bytes raises: not JSON, not the type, not UTF-8, nested too deeply."""


class AlreadyExists(Raced):
    """409 AlreadyExists: the name is taken, by an object of ours or of someone else."""


class Expired(Raced):
    """410: the resourceVersion or the continue token is too old. List again."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """Looked up with lower-case names: a case-insensitive mapping, or lower-case keys."""


class StatusCause(Struct, frozen=True):
    field: str = ""
    message: str = ""


class StatusDetails(Struct, frozen=True):
    name: str = ""
    retry_after_seconds: float | None = None
    causes: tuple[StatusCause, ...] = ()


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


class Page(Struct, frozen=True):
    """One page of a list, its items not yet decoded. `items` is null for an empty list of some custom resources."""

    metadata: ListMeta = ListMeta()
    items: tuple[msgspec.Raw, ...] | None = None


class APIResource(Struct, frozen=True):
    name: str = ""


class APIResourceList(Struct, frozen=True):
    """What discovery says of one group and version."""

    resources: tuple[APIResource, ...] = ()


def checked(request: Request, response: Response) -> bytes:
    """The body of a 2xx answer. Raises what any other status means."""
    if 200 <= response.status < 300:
        return response.body
    raise error_of(request, response)


def decoded(request: Request, body: bytes | msgspec.Raw, type_: type[T]) -> T:
    """A 2xx body as a struct. A write that was answered with garbage has happened all the same: OutcomeUnknown."""
    try:
        found: T = _decoder(type_).decode(body)
    except BAD_JSON as error:
        message = f"{request}: the answer ({len(memoryview(body))} bytes) is not a readable {type_.__name__}: {error}"
        if request.is_mutating:
            raise OutcomeUnknown(message) from error
        if isinstance(error, msgspec.ValidationError):
            raise Refused(message, code=200, reason="Unreadable", hint="is the object of another version?") from error
        raise Unavailable(message) from error
    return found


def error_of(request: Request, response: Response) -> JobSetError:
    """The error that an answer other than 2xx means, by status, then by the Status reason."""
    status = status_of(response.body)
    return error_of_status(request, response.status, status, retry_after_seconds(response.headers, status))


def error_of_status(request: Request, code: int, status: Status, retry_after: float | None = None) -> JobSetError:
    text = _shorten(status.message) or f"HTTP status {code}"
    message = f"{request}: {text}"
    match code:
        case 404:
            return _not_found(request, status, message)
        case 409:
            return AlreadyExists(message) if status.reason == "AlreadyExists" else Raced(message)
        case 410:
            return Expired(message)
        case 422 if _is_another_object(request, status):
            return Raced(message, hint="the object is not the one, or not as, the patch expects")
        case 429:
            return Unavailable(message, retry_after_seconds=retry_after)
        case 408 | 502 | 504 if request.is_mutating:
            return OutcomeUnknown(message)
        case 500 if request.is_mutating and "etcdserver:" in status.message:
            # "request timed out", "leader changed": etcd may have stored it all the same
            return OutcomeUnknown(message)
        case 500 if WEBHOOK_FAILED in status.message:
            # Admission said no, in a way: it lasts until somebody mends the webhook
            return Refused(message, code=code, reason=status.reason, hint=WEBHOOK_HINT)
        case _ if code == 408 or code >= 500:
            return Unavailable(message, retry_after_seconds=retry_after)
        case _:
            causes = [(cause.field, _shorten(cause.message)) for cause in _causes(status)]
            return Refused(message, code=code, reason=status.reason, hint=HINTS.get(code, ""), causes=causes)


WEBHOOK_FAILED = "failed calling webhook"
"""What the API server says when an admission webhook that must answer does not. Nothing was stored."""
WEBHOOK_HINT = "mend or remove that admission webhook"
HINTS = {
    401: "the credentials of the kubeconfig are missing, wrong or expired",
    403: "the user may lack the right (kubectl auth can-i), or admission or a quota said no: see the message",
}


def status_of(body: bytes) -> Status:
    """The Status of an error's body; for plain text, a Status with that text."""
    body = body[:ERROR_BODY_BYTES_MAX]
    try:
        status: Status = _decoder(Status).decode(body)
    except BAD_JSON:
        status = Status()
    if status.kind == "Status":
        return status
    return Status(message=body[: MESSAGE_LENGTH_MAX * 4].decode(errors="replace").strip())


def retry_after_seconds(headers: Mapping[str, str], status: Status) -> float | None:
    """The server's wish, bounded. Its HTTP-date form is ignored: the API server sends seconds."""
    wish = headers.get("retry-after", "")
    if wish.isascii() and wish.isdigit():
        return min(float(wish[:9]), RETRY_AFTER_SECONDS_MAX)
    told = status.details.retry_after_seconds if status.details else None
    return None if told is None else min(max(told, 0.0), RETRY_AFTER_SECONDS_MAX)


def _not_found(request: Request, status: Status, message: str) -> JobSetError:
    # A missing object is named in the details; a resource type that is not served is not.
    if not (status.details and status.details.name) or request.method not in ("GET", "PATCH", "DELETE"):
        hint = "" if status.details and status.details.name else "is the API installed, and its feature gate on?"
        return Refused(message, code=404, reason=status.reason or "NotFound", hint=hint)
    if request.method == "DELETE":
        return Raced(message)
    return NotFound(message, code=404, reason="NotFound")


def _is_another_object(request: Request, status: Status) -> bool:
    """A patch with the uid of another object is refused for its field metadata.uid. Of a JSON patch that does not apply
    (a test that fails, a path that is not there) the API server says only "Invalid", naming no object and no field."""
    causes = _causes(status)
    if request.method == "PATCH" and any(cause.field == "metadata.uid" for cause in causes):
        return True
    is_named = status.details is not None and bool(status.details.name or causes)
    return request.content_type == PATCH_TYPES["json"] and not is_named


def _causes(status: Status) -> tuple[StatusCause, ...]:
    return status.details.causes if status.details else ()


def _shorten(text: str) -> str:
    return text if len(text) <= MESSAGE_LENGTH_MAX else text[:MESSAGE_LENGTH_MAX] + "…"


@cache
def _decoder(type_: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(type_)
