"""admission.k8s.io/v1 AdmissionReview: the request that the API server sends and the response that it takes. Pure.

webhook.admission decides between the two, webhook.server carries them. Only the fields that we read are typed; the
objects stay raw JSON until somebody looks at them. What is no review is a MalformedReview, never anything else.
"""

from typing import Any

import msgspec

from pyjobset.objects.meta import Manifest, Struct

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
CREATE, UPDATE = "CREATE", "UPDATE"

_ABSENT = msgspec.Raw(b"null")


class MalformedReview(Exception):
    """The request is none that an API server sends. The text is for its log."""


class GroupVersionKind(Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class Request(Struct, frozen=True):
    """`old_object` is there for updates and deletions, `object` for all but deletions."""

    uid: str
    operation: str
    kind: GroupVersionKind = GroupVersionKind()
    name: str = ""
    namespace: str = ""
    object: msgspec.Raw = _ABSENT
    old_object: msgspec.Raw = _ABSENT


class Cause(Struct, frozen=True):
    """metav1.StatusCause. `field` is a path such as spec.replicatedJobs[0].name."""

    reason: str
    message: str
    field: str


class Details(Struct, frozen=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()


class Status(Struct, frozen=True, omit_defaults=False):
    """metav1.Status of a failure."""

    message: str
    reason: str
    code: int
    status: str = "Failure"
    details: Details | msgspec.UnsetType = msgspec.UNSET


class Response(Struct, frozen=True):
    """`patch` is a JSON Patch; on the wire it is base64."""

    uid: str
    allowed: bool
    status: Status | None = None
    patch: bytes | None = None
    patch_type: str | None = None
    warnings: tuple[str, ...] = ()


class _Review(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    request: Request | None = None


def decode(body: bytes) -> Request:
    """Raises MalformedReview."""
    try:
        review = msgspec.json.decode(body, type=_Review)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise MalformedReview(f"the body is not an {KIND}: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise MalformedReview(f"expected {API_VERSION} {KIND}, not {review.api_version[:80]!r} {review.kind[:80]!r}")
    if review.request is None or not review.request.uid:
        raise MalformedReview(f"the {KIND} has no request with a uid")
    return review.request


def encode(response: Response) -> bytes:
    """The AdmissionReview around a response."""
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def encode_status(status: Status) -> bytes:
    """A Status as the body of an HTTP error: the API server shows its message."""
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Status", "metadata": {}} | msgspec.to_builtins(status))


def manifest(raw: msgspec.Raw, what: str) -> Manifest:
    """An object of the request as plain JSON values, without its managed fields: nobody here reads them, and they are
    as large as the rest. Raises MalformedReview.
    """
    try:
        value: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise MalformedReview(f"{what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise MalformedReview(f"{what} is not an object")
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return value
