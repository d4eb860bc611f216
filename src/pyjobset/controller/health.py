"""/healthz and /readyz for the kubelet, over plain HTTP. Started by the manager.

Healthy as long as the event loop answers; ready as soon as the caches are synced. Says nothing else, holds no secrets,
reads no more than the request line.
"""

import asyncio
from collections.abc import Callable

from pyjobset.controller.options import Address
from pyjobset.errors import UsageError

REQUEST_SECONDS_MAX = 5.0
REQUEST_LINE_BYTES_MAX = 4096


async def serve_health(
    address: Address, is_ready: Callable[[], bool], liveness: str = "healthz", readiness: str = "readyz"
) -> asyncio.Server:
    """A listening server; close it with `close`. Raises UsageError if the address cannot be had."""
    alive, ready = f"/{liveness}".encode(), f"/{readiness}".encode()

    def answer(line: bytes) -> tuple[int, str]:
        method, _, rest = line.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return 405, "Method Not Allowed"
        if path == alive or (path == ready and is_ready()):
            return 200, "OK"
        return (503, "Service Unavailable") if path == ready else (404, "Not Found")

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                status, reason = answer(await reader.readline())
                body = b"" if status == 405 else f"{reason.lower()}\n".encode()
                head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
                writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
                await writer.drain()
        except (TimeoutError, ValueError, OSError):
            pass  # too slow, too long, or gone: nothing is owed to this client
        finally:
            writer.close()

    try:
        return await asyncio.start_server(handle, address.host or None, address.port, limit=REQUEST_LINE_BYTES_MAX)
    except OSError as error:
        raise UsageError(
            f"--health-probe-bind-address {address}: {error.strerror or error}",
            hint="choose a free port, or 0 for none",
        ) from error
