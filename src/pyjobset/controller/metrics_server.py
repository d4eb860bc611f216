"""Serves /metrics: over HTTPS to those whom the cluster lets, or over plain HTTP to this machine. Run by the manager.

It asks metrics_access who may read and metrics_page what there is to read. Each request is answered with what is true
at that moment; nothing is written, and nothing runs between requests.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from aiohttp import web

from pyjobset.controller.certificate import OwnCertificate, ServingCertificate
from pyjobset.controller.listener import listening
from pyjobset.controller.log import Log
from pyjobset.controller.metrics_access import PATH, Access
from pyjobset.controller.metrics_page import Page, Sources
from pyjobset.controller.options import Metrics
from pyjobset.kube.client import Client

BODY_BYTES_MAX = 1024
"""Nobody needs to send one."""

log = Log(__name__)


@asynccontextmanager
async def serving(options: Metrics, sources: Sources, client: Client) -> AsyncIterator[int]:
    """Listens before it yields the port, and ends what runs after. Raises UsageError."""
    tls = None
    if options.is_secure and options.certificates is not None:
        tls = ServingCertificate(options.certificates, "metrics.certDir", options.tls).context
    elif options.is_secure:
        tls = OwnCertificate(lambda: datetime.now(UTC), options.tls).context
    access = Access(client, asyncio.get_running_loop().time) if options.is_secure else None
    async with listening(application(Page(sources), access), options.address, tls, "--metrics-bind-address") as port:
        log.info("Metrics are served", port=port, secure=options.is_secure)
        yield port


def application(page: Page, access: Access | None) -> web.Application:
    async def handle(request: web.Request) -> web.Response:
        denial = None if access is None else await access.denial(request.headers.get("Authorization", ""))
        if denial is not None:
            headers = {"WWW-Authenticate": "Bearer"} if denial.code == 401 else {}
            return web.Response(status=denial.code, text=denial.message + "\n", headers=headers)
        body, content_type = page.render(request.headers.get("Accept", ""))
        response = web.Response(body=body, headers={"Content-Type": content_type, "Cache-Control": "no-store"})
        response.enable_compression()
        return response

    made = web.Application(client_max_size=BODY_BYTES_MAX)
    made.router.add_get(PATH, handle)
    return made
