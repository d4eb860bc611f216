"""What each answer of the API server means. Bodies as kube-apiserver 1.37 sends them."""

import json
from typing import Any

import pytest

from pyjobset.errors import JobSetError, NotFound, OutcomeUnknown, Raced, Refused, Unavailable
from pyjobset.kube import requests, responses
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import AlreadyExists, Expired, Response
from pyjobset.objects.batch import Job
from pyjobset.objects.resources import JOBS

GET = requests.get(JOBS, "ns", "a")
LIST = requests.list_(JOBS, "ns")
CREATE = requests.create(JOBS, "ns", {"metadata": {"name": "a"}}, dry_run=False)
MERGE = requests.patch(JOBS, "ns", "a", {}, kind="merge", subresource=None, field_manager="m", force=False)
JSON = requests.patch(JOBS, "ns", "a", [], kind="json", subresource=None, field_manager="m", force=False)
DELETE = requests.delete(JOBS, "ns", "a", uid="u", resource_version=None, propagation="Background")


def status(code: int, reason: str, message: str = "as the server says", **details: Any) -> Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return Response(code, json.dumps(body | {"message": message, "details": details}).encode())


NO_SUCH_PATH = Response(404, b"404 page not found\n")
NO_SUCH_TYPE = status(404, "NotFound", "the server could not find the requested resource")
NO_SUCH_OBJECT = status(404, "NotFound", 'jobs.batch "a" not found', name="a", group="batch", kind="jobs")
NO_SUCH_NAMESPACE = status(404, "NotFound", 'namespaces "ns" not found', name="ns", kind="namespaces")
PATCH_DOES_NOT_FIT = status(422, "Invalid", "the server rejected our request due to an error in our request")
ANOTHER_UID = status(
    422, "Invalid", name="a", causes=[{"reason": "FieldValueInvalid", "field": "metadata.uid", "message": "immutable"}]
)


@pytest.mark.parametrize(
    ("request_", "response", "error"),
    [
        pytest.param(CREATE, status(409, "AlreadyExists", name="a"), AlreadyExists, id="taken"),
        pytest.param(CREATE, status(409, "Conflict"), Raced, id="quota written by two"),
        pytest.param(MERGE, status(409, "Conflict", name="a"), Raced, id="stale resourceVersion"),
        pytest.param(DELETE, status(409, "Conflict", name="a"), Raced, id="another uid"),
        pytest.param(LIST, status(410, "Expired"), Expired, id="continue token too old"),
        pytest.param(LIST, status(410, "Gone"), Expired, id="watch too old"),
        pytest.param(GET, NO_SUCH_OBJECT, NotFound, id="get of nothing"),
        pytest.param(MERGE, NO_SUCH_OBJECT, NotFound, id="patch of nothing"),
        pytest.param(DELETE, NO_SUCH_OBJECT, Raced, id="delete of nothing"),
        pytest.param(CREATE, NO_SUCH_NAMESPACE, Refused, id="create in no namespace"),
        pytest.param(GET, NO_SUCH_PATH, Refused, id="get, group not served"),
        pytest.param(LIST, NO_SUCH_PATH, Refused, id="list, group not served"),
        pytest.param(DELETE, NO_SUCH_TYPE, Refused, id="delete, resource not served"),
        pytest.param(MERGE, NO_SUCH_TYPE, Refused, id="patch, resource not served"),
        pytest.param(GET, status(400, "BadRequest"), Refused, id="bad request"),
        pytest.param(GET, status(401, "Unauthorized"), Refused, id="who are you"),
        pytest.param(CREATE, status(403, "Forbidden", name="a"), Refused, id="no right, quota or admission"),
        pytest.param(CREATE, status(405, "MethodNotAllowed"), Refused, id="method"),
        pytest.param(CREATE, status(413, "RequestEntityTooLarge"), Refused, id="too large"),
        pytest.param(CREATE, status(415, "UnsupportedMediaType"), Refused, id="media type"),
        pytest.param(CREATE, status(422, "Invalid", name="a", causes=[{"field": "spec"}]), Refused, id="invalid"),
        pytest.param(MERGE, PATCH_DOES_NOT_FIT, Refused, id="merge patch that does not fit"),
        pytest.param(JSON, PATCH_DOES_NOT_FIT, Raced, id="JSON patch whose test fails"),
        pytest.param(JSON, status(422, "Invalid", name="a", causes=[{}]), Refused, id="JSON patch to invalid"),
        pytest.param(MERGE, ANOTHER_UID, Raced, id="patch of another uid"),
        pytest.param(CREATE, ANOTHER_UID, Refused, id="create with a uid"),
        pytest.param(GET, Response(301, b""), Refused, id="redirect"),
        pytest.param(GET, status(429, "TooManyRequests"), Unavailable, id="too many, read"),
        pytest.param(CREATE, status(429, "TooManyRequests"), Unavailable, id="too many, write: not executed"),
        pytest.param(GET, status(500, "InternalError"), Unavailable, id="internal, read"),
        pytest.param(CREATE, status(500, "InternalError"), Unavailable, id="internal, write"),
        pytest.param(CREATE, status(500, "InternalError", "failed calling webhook"), Refused, id="webhook down"),
        pytest.param(
            CREATE, status(500, "InternalError", "etcdserver: request timed out"), OutcomeUnknown, id="etcd, write"
        ),
        pytest.param(GET, status(500, "InternalError", "etcdserver: leader changed"), Unavailable, id="etcd, read"),
        pytest.param(CREATE, status(503, "ServiceUnavailable"), Unavailable, id="unavailable"),
        pytest.param(CREATE, Response(502, b"<html>Bad Gateway"), OutcomeUnknown, id="proxy lost the server, write"),
        pytest.param(GET, Response(502, b"<html>Bad Gateway"), Unavailable, id="proxy lost the server, read"),
        pytest.param(DELETE, status(504, "Timeout"), OutcomeUnknown, id="timeout, write"),
        pytest.param(GET, status(504, "Timeout"), Unavailable, id="timeout, read"),
        pytest.param(MERGE, Response(408, b""), OutcomeUnknown, id="request timeout, write"),
        pytest.param(GET, Response(408, b""), Unavailable, id="request timeout, read"),
        pytest.param(GET, Response(599, b"\xff\xfe"), Unavailable, id="garbage"),
        pytest.param(GET, Response(403, b"[" * 100_000), Refused, id="nested without end"),
    ],
)
def test_an_answer_means(request_: Request, response: Response, error: type[JobSetError]) -> None:
    with pytest.raises(JobSetError) as raised:
        responses.checked(request_, response)
    assert type(raised.value) is error
    assert raised.value.message.startswith(f"{request_.method} jobs.batch ns")
    if isinstance(raised.value, Refused):
        assert raised.value.code == response.status


@pytest.mark.parametrize("code", [200, 201, 202])
def test_success_is_the_body(code: int) -> None:
    assert responses.checked(GET, Response(code, b"{}")) == b"{}"


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (status(403, "Forbidden", "exceeded quota: q"), "GET jobs.batch ns/a: exceeded quota: q"),
        (NO_SUCH_PATH, "GET jobs.batch ns/a: 404 page not found"),
        (Response(418, b""), "GET jobs.batch ns/a: HTTP status 418"),
        (Response(403, b'{"kind": "Status", "code": "x"}'), 'GET jobs.batch ns/a: {"kind": "Status", "code": "x"}'),
        (Response(403, b'{"kind": "Pod", "message": "no"}'), 'GET jobs.batch ns/a: {"kind": "Pod", "message": "no"}'),
    ],
)
def test_a_message_carries_the_method_the_object_and_the_server_s_words(response: Response, words: str) -> None:
    assert responses.error_of(GET, response).message == words


def test_reason_and_hint_of_a_refusal() -> None:
    error = responses.error_of(CREATE, status(403, "Forbidden"))
    assert isinstance(error, Refused)
    assert (error.code, error.reason) == (403, "Forbidden")
    assert "can-i" in error.hint
    unserved = responses.error_of(LIST, NO_SUCH_PATH)
    assert isinstance(unserved, Refused)
    assert (unserved.reason, unserved.hint) == ("NotFound", "is the API installed, and its feature gate on?")


@pytest.mark.parametrize("response", [status(403, "Forbidden", "x" * 99_999), Response(403, b"y" * 5_000_000)])
def test_a_message_is_bounded(response: Response) -> None:
    assert len(responses.error_of(GET, response).message) < responses.MESSAGE_LENGTH_MAX + 100


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        ({"retry-after": "2"}, {}, 2.0),
        ({"retry-after": "2"}, {"retryAfterSeconds": 9}, 2.0),
        ({}, {"retryAfterSeconds": 9}, 9.0),
        ({}, {}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}, None),
        ({"retry-after": "-3"}, {}, None),
        ({"retry-after": "9" * 400}, {}, responses.RETRY_AFTER_SECONDS_MAX),
        ({}, {"retryAfterSeconds": -9}, 0.0),
        ({"retry-after": "٣"}, {}, None),
    ],
)
@pytest.mark.parametrize("code", [429, 503])
def test_the_server_s_wish_when_to_come_back(
    code: int, headers: dict[str, str], details: dict[str, int], seconds: float | None
) -> None:
    response = Response(code, status(code, "TooManyRequests", **details).body, headers)
    error = responses.error_of(CREATE, response)
    assert isinstance(error, Unavailable)
    assert error.retry_after_seconds == seconds


@pytest.mark.parametrize(
    ("request_", "body", "error"),
    [
        pytest.param(GET, b'{"metadata": {"name": 5}}', Refused, id="read: not the type"),
        pytest.param(GET, b'{"spec": {}}', Refused, id="read: no metadata"),
        pytest.param(GET, b'{"metadata": {', Unavailable, id="read: cut off"),
        pytest.param(GET, b"<html>login", Unavailable, id="read: a login page"),
        pytest.param(GET, b'{"metadata": {"name": "\xff"}}', Unavailable, id="read: not UTF-8"),
        pytest.param(GET, b'{"x":' * 100_000, Unavailable, id="read: nested without end"),
        pytest.param(CREATE, b'{"metadata": {"name": 5}}', OutcomeUnknown, id="write: it has happened"),
        pytest.param(DELETE, b"", OutcomeUnknown, id="write: no body"),
    ],
)
def test_a_success_that_cannot_be_read(request_: Request, body: bytes, error: type[JobSetError]) -> None:
    with pytest.raises(JobSetError) as raised:
        responses.decoded(request_, body, Job)
    assert type(raised.value) is error
    assert "readable Job" in raised.value.message


def test_unknown_fields_are_ignored() -> None:
    body = b'{"kind": "Job", "metadata": {"name": "a", "new": 1}, "spec": {"new": [{"deep": {}}]}, "new": true}'
    assert responses.decoded(GET, body, Job).metadata.name == "a"
