"""The webhooks over HTTPS: reads a review, asks webhook.admission, writes the answer. Run by the manager.

Bodies and waits are bounded. A request that is no review gets a 4xx with a Status; a bug refuses what was asked, and
its traceback is in the log. TLS 1.2 at least, HTTP/1.1 only; clients need no certificate, as nothing secret is told.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus

from aiohttp import web
from aiohttp.http import HttpProcessingError

from pyjobset.controller.log import Log
from pyjobset.controller.options import Webhooks
from pyjobset.controller.webhook import admission, denial
from pyjobset.controller.webhook.certificate import ServingCertificate
from pyjobset.controller.webhook.review import MalformedReview, Request, Response, Status, decode, encode, encode_status
from pyjobset.errors import UsageError
from pyjobset.objects.admission import MUTATE_PATH, VALIDATE_PATH
from pyjobset.objects.features import Features

BODY_BYTES_MAX = 8 * 1024 * 1024
"""A review of an update has two objects; the API server takes none above 3 MiB."""
READ_SECONDS_MAX = 10.0
LINGER_SECONDS = 1.0
"""For the rest of a body that was refused, so that its sender still hears why."""
SHUTDOWN_SECONDS = 2.0
"""For reviews that are being answered; each takes milliseconds."""

log = Log(__name__)

Judge = Callable[[Request], Response]


@asynccontextmanager
async def serving(options: Webhooks, features: Features) -> AsyncIterator[int]:
    """Listens before it yields the port, and ends what runs after. Raises UsageError."""
    certificate = ServingCertificate(options.certificates)
    # Without decompression: no API server compresses a review, and a bomb stays as small as it came.
    runner = web.AppRunner(
        application(features),
        access_log=None,
        logger=_http_log(),
        auto_decompress=False,
        lingering_time=LINGER_SECONDS,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    await runner.setup()
    try:
        address = options.address
        site = web.TCPSite(runner, address.host or None, address.port, ssl_context=certificate.context)
        try:
            await site.start()
        except OSError as error:
            raise UsageError(
                f"--webhook-bind-address {address}: {error.strerror or error}", hint="choose a free port"
            ) from error
        port: int = runner.addresses[0][1]
        log.info("Webhooks are served", port=port)
        yield port
    finally:
        await runner.cleanup()


def application(features: Features) -> web.Application:
    made = web.Application(client_max_size=BODY_BYTES_MAX)
    made.router.add_post(MUTATE_PATH, _handler(admission.mutate))
    made.router.add_post(VALIDATE_PATH, _handler(partial(admission.validate, features=features)))
    return made


def _handler(judge: Judge) -> Callable[[web.Request], Awaitable[web.Response]]:
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
        return answer(body, judge)

    return handle


def answer(body: bytes, judge: Judge) -> web.Response:
    """One review. Never raises."""
    try:
        asked = decode(body)
    except MalformedReview as error:
        return _refused(HTTPStatus.BAD_REQUEST, str(error))
    try:
        response = judge(asked)
    except MalformedReview as error:
        return _refused(HTTPStatus.BAD_REQUEST, str(error))
    except Exception as error:
        log.bug("Review failed", error, operation=asked.operation, jobset=f"{asked.namespace}/{asked.name}")
        response = denial.failed(asked.uid)
    return web.Response(body=encode(response), content_type="application/json")


def _http_log() -> logging.Logger:
    """aiohttp logs a traceback for every request that is no HTTP. That one was answered with 400 will do."""
    made = logging.getLogger(f"{__name__}.http")
    made.filters[:] = [lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))]
    return made


def _refused(code: HTTPStatus, message: str) -> web.Response:
    status = Status(message, code.phrase.replace(" ", ""), code)
    return web.Response(status=code, body=encode_status(status), content_type="application/json")
