"""/healthz and /readyz for the kubelet, over plain HTTP, from a thread of its own. Started by the manager.

The thread answers also while the event loop of the controller does not turn; what it answers is asked of callables,
which must be safe to call from it. Says a reason when it is not well, holds no secrets, reads no more than the request
line.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread

from pyjobset.controller.options import Address
from pyjobset.errors import UsageError

REQUEST_SECONDS_MAX = 5.0
REQUEST_LINE_BYTES_MAX = 4096

Probe = Callable[[], str]
"""Empty when all is well, else the reason."""


@contextmanager
def serving_health(
    address: Address, alive: Probe, ready: Probe, liveness: str = "healthz", readiness: str = "readyz"
) -> Iterator[int]:
    """Listens before it yields the port. Raises UsageError if the address cannot be had."""
    paths = {f"/{liveness}".encode(): (alive, 500, "Internal Server Error")}
    paths[f"/{readiness}".encode()] = (ready, 503, "Service Unavailable")

    def answer(line: bytes) -> tuple[int, str, str]:
        method, _, rest = line.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return 405, "Method Not Allowed", ""
        if path not in paths:
            return 404, "Not Found", "not found\n"
        probe, code, name = paths[path]
        reason = probe()
        return (code, name, f"{reason}\n") if reason else (200, "OK", "ok\n")

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                status, name, text = answer(await reader.readline())
                body = text.encode()
                head = f"HTTP/1.1 {status} {name}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
                writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
                await writer.drain()
        except (TimeoutError, ValueError, OSError):
            pass  # too slow, too long, or gone: nothing is owed to this client
        finally:
            writer.close()

    started: Future[tuple[int, Callable[[], object]]] = Future()

    async def serve() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            server = await asyncio.start_server(
                handle, address.host or None, address.port, limit=REQUEST_LINE_BYTES_MAX
            )
        except OSError as error:
            started.set_exception(error)
            return
        port = server.sockets[0].getsockname()[1]
        started.set_result((port, lambda: loop.call_soon_threadsafe(stop.set)))
        await stop.wait()
        server.close()

    thread = Thread(target=lambda: asyncio.run(serve()), name="health", daemon=True)
    thread.start()
    try:
        port, stop = started.result()
    except OSError as error:
        raise UsageError(
            f"--health-probe-bind-address {address}: {error.strerror or error}",
            hint="choose a free port, or 0 for none",
        ) from error
    try:
        yield port
    finally:
        stop()
        thread.join()
