"""The startup probe of the agent as a sidecar: 503 while the barrier is up, 200 once it is down. Used by agent.program.

The kubelet starts the worker's container only when it gets the 200. Says nothing else, reads no more than the request
line, and costs nothing when the worker runs.
"""

import asyncio

from pyjobset.agent.settings import PROBE_PORT
from pyjobset.errors import UsageError

REQUEST_SECONDS_MAX = 5.0
REQUEST_LINE_BYTES_MAX = 4096


class Probe:
    """A barrier whose `lift` changes the answer. Listens on all addresses of the pod once it is started."""

    def __init__(self, path: str, port: int) -> None:
        self._path = path.encode()
        self._port = port
        self._is_lifted = False
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Raises UsageError if the port cannot be had."""
        try:
            self._server = await asyncio.start_server(self._handle, None, self._port, limit=REQUEST_LINE_BYTES_MAX)
        except OSError as error:
            raise UsageError(
                f"{PROBE_PORT}={self._port}: {error.strerror or error}: choose a port that no container of the pod uses"
            ) from error

    def lift(self) -> None:
        self._is_lifted = True

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                status = self._status(await reader.readline())
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                await writer.drain()
        except (TimeoutError, ValueError, OSError):
            pass  # too slow, too long, or gone: nothing is owed to this client
        finally:
            writer.close()

    def _status(self, line: bytes) -> str:
        method, _, rest = line.partition(b" ")
        if method not in (b"GET", b"HEAD"):
            return "405 Method Not Allowed"
        if rest.partition(b" ")[0].partition(b"?")[0] != self._path:
            return "404 Not Found"
        return "200 OK" if self._is_lifted else "503 Service Unavailable"
