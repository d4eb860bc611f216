"""A bare HTTP server in this process, for tests of the transport: it says exactly the bytes that it is told to."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from pyjobset.kube.cluster import ClusterConfig
from pyjobset.kube.transport import HttpTransport

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def http(status: int, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Peer:
    """A server that answers each request by what `handle` returns: bytes to send, or None to close the connection."""

    def __init__(self, *answers: bytes | Callable[["Peer"], Awaitable[bytes | None]] | None) -> None:
        self.answers = list(answers)
        self.received: list[bytes] = []
        self.connections = 0
        self.open: list[Streams] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open.append((reader, writer))
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next((int(h[15:]) for h in head.lower().split(b"\r\n") if h.startswith(b"content-length:")), 0)
                self.received.append(head + await reader.readexactly(length))
                answer = self.answers[min(len(self.received), len(self.answers)) - 1]
                answer = await answer(self) if callable(answer) else answer
                if answer is None:
                    return
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def close_connections(self) -> None:
        for _, writer in self.open:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for _, writer in self.open), return_exceptions=True)

    def headers(self, index: int = 0) -> dict[str, str]:
        lines = self.received[index].split(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
        return dict(line.split(": ", 1) for line in lines)


@asynccontextmanager
async def serving(peer: Peer, context: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    peer.url = f"{'https' if context else 'http'}://127.0.0.1:{port}"
    try:
        yield peer
    finally:
        server.close()
        await peer.close_connections()


@asynccontextmanager
async def connected(config: ClusterConfig) -> AsyncIterator[HttpTransport]:
    sender = HttpTransport(config)
    try:
        yield sender
    finally:
        await sender.close()
