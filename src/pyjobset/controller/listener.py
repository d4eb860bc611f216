"""How a part of the controller listens for HTTP: the webhooks and the metrics. The HTTP library's server, set up once.

HTTP/1.1 only, no access log, no decompression. A request that is no HTTP is answered with 400 and not logged. Decides
nothing of what is answered.
"""

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http import HttpProcessingError

from pyjobset.controller.options import Address
from pyjobset.errors import UsageError

LINGER_SECONDS = 1.0
"""For the rest of a body that was refused, so that its sender still hears why."""
SHUTDOWN_SECONDS = 2.0
"""For requests that are being answered; each takes milliseconds."""


@asynccontextmanager
async def listening(
    application: web.Application, address: Address, tls: ssl.SSLContext | None, flag: str
) -> AsyncIterator[int]:
    """Listens before it yields the port, and ends what runs after. Raises UsageError, which names the flag."""
    # Without decompression: none of our clients compresses what it sends, and a bomb stays as small as it came.
    runner = web.AppRunner(
        application,
        access_log=None,
        logger=_http_log(),
        auto_decompress=False,
        lingering_time=LINGER_SECONDS,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, address.host or None, address.port, ssl_context=tls)
        try:
            await site.start()
        except OSError as error:
            raise UsageError(
                f"{flag} {address}: {error.strerror or error}", hint="choose a free port, or 0 for none"
            ) from error
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _http_log() -> logging.Logger:
    """The library logs a traceback for every request that is no HTTP. That one was answered with 400 will do."""
    made = logging.getLogger(f"{__name__}.http")
    made.filters[:] = [lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))]
    return made
