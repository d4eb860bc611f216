"""The webhooks over HTTPS: reads a review, asks webhook.admission, writes the answer. Run by the manager.

What the rules allow may be looked at once more, with a question to the API server (webhook.dry_run).

Bodies and waits are bounded. A request that is no review gets a 4xx with a Status; a bug refuses what was asked, and
its traceback is in the log. TLS 1.2 at least, HTTP/1.1 only; clients need no certificate, as nothing secret is told.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from pyjobset.controller.certificate import ServingCertificate
from pyjobset.controller.listener import listening
from pyjobset.controller.log import Log
from pyjobset.controller.metrics import Reviews
from pyjobset.controller.options import Webhooks
from pyjobset.controller.webhook import admission, denial, pods
from pyjobset.controller.webhook.review import MalformedReview, Request, Response, Status, decode, encode, encode_status
from pyjobset.objects.admission import MUTATE_PATH, POD_MUTATE_PATH, POD_VALIDATE_PATH, VALIDATE_PATH
from pyjobset.objects.features import Features

BODY_BYTES_MAX = 8 * 1024 * 1024
"""A review of an update has two objects; the API server takes none above 3 MiB."""
READ_SECONDS_MAX = 10.0

log = Log(__name__)

Judge = Callable[[Request], Response | Awaitable[Response]]
Look = Callable[[Request, Response], Awaitable[Response]]
"""A second look at what a judge allowed: that response, or another one."""


@asynccontextmanager
async def serving(
    options: Webhooks,
    features: Features,
    look: Look | None = None,
    *,
    lookup: pods.Lookup | None = None,
    reviews: Reviews | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Listens before it yields the port, and ends what runs after. Pods are reviewed where there is a `lookup` of their
    leaders. `tls` is where the options name no directory. Raises UsageError."""
    if options.certificates is not None:
        tls = ServingCertificate(options.certificates, "--webhook-cert-dir", options.tls).context
    assert tls is not None, "webhooks are served over TLS only"
    app = application(features, look, lookup=lookup, reviews=reviews)
    async with listening(app, options.address, tls, "--webhook-bind-address") as port:
        log.info("Webhooks are served", port=port)
        yield port


def application(
    features: Features,
    look: Look | None = None,
    *,
    lookup: pods.Lookup | None = None,
    reviews: Reviews | None = None,
) -> web.Application:
    made = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=[_counting(reviews or Reviews())])
    made.router.add_post(MUTATE_PATH, _handler(admission.mutate))
    made.router.add_post(VALIDATE_PATH, _handler(partial(admission.validate, features=features), look))
    if lookup is not None:
        made.router.add_post(POD_MUTATE_PATH, _handler(partial(pods.mutate, lookup=lookup)))
        made.router.add_post(POD_VALIDATE_PATH, _handler(partial(pods.validate, lookup=lookup)))
    return made


class _Answer(web.Response):
    """To what is a review. The verdict is for the metrics."""

    def __init__(self, verdict: str, *, body: bytes, content_type: str) -> None:
        super().__init__(body=body, content_type=content_type)
        self.verdict = verdict


def _counting(reviews: Reviews) -> Middleware:
    @web.middleware
    async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
        started = time.monotonic()
        response = await handler(request)  # of another path or method it raises: that is no review
        verdict = response.verdict if isinstance(response, _Answer) else "malformed"
        reviews.judged(request.path, verdict, time.monotonic() - started)
        return response

    return counted


def _handler(judge: Judge, look: Look | None = None) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                body = await request.read()
        except TimeoutError:
            return _refused(HTTPStatus.REQUEST_TIMEOUT, f"the body did not come within {READ_SECONDS_MAX:g} s")
        except web.HTTPRequestEntityTooLarge:
            limit = f"the body is larger than {BODY_BYTES_MAX} bytes"
            return _refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit)
        except Exception as error:  # of the client's making: it hung up, or its chunks are none
            return _refused(HTTPStatus.BAD_REQUEST, f"the body cannot be read: {type(error).__name__}")
        return await answer(body, judge, look)

    return handle


async def answer(body: bytes, judge: Judge, look: Look | None = None) -> web.Response:
    """One review. Never raises."""
    try:
        asked = decode(body)
    except MalformedReview as error:
        return _refused(HTTPStatus.BAD_REQUEST, str(error))
    try:
        said = judge(asked)
        response = said if isinstance(said, Response) else await said
        if look is not None and response.allowed:
            response = await look(asked, response)
    except MalformedReview as error:
        return _refused(HTTPStatus.BAD_REQUEST, str(error))
    except Exception as error:
        subject = f"{asked.kind.kind} {asked.namespace}/{asked.name}"
        log.bug("Review failed", error, operation=asked.operation, object=subject)
        response, verdict = denial.failed(asked.uid), "failed"
    else:
        verdict = "allowed" if response.allowed else "denied"
    return _Answer(verdict, body=encode(response), content_type="application/json")


def _refused(code: HTTPStatus, message: str) -> web.Response:
    status = Status(message, code.phrase.replace(" ", ""), code)
    return web.Response(status=code, body=encode_status(status), content_type="application/json")
