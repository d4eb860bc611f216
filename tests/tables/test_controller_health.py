"""/healthz and /readyz over a real loopback socket: the answers that a kubelet sees."""

import asyncio

import pytest

from pyjobset.controller.health import serve_health
from pyjobset.controller.options import Address
from pyjobset.errors import UsageError


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("request_bytes", "is_ready", "status"),
    [
        (get("/healthz"), False, 200),
        (get("/readyz"), False, 503),
        (get("/readyz"), True, 200),
        (get("/readyz?verbose"), True, 200),
        (get("/"), True, 404),
        (get("/metrics"), True, 404),
        (b"POST /healthz HTTP/1.1\r\n\r\n", True, 405),
        (b"\r\n", True, 405),
        (b"HEAD /healthz HTTP/1.1\r\n\r\n", True, 200),
    ],
)
def test_answers(request_bytes: bytes, is_ready: bool, status: int) -> None:
    async def main() -> bytes:
        server = await serve_health(Address("127.0.0.1", 0), lambda: is_ready)
        async with server:
            return await ask(server.sockets[0].getsockname()[1], request_bytes)

    assert asyncio.run(main()).startswith(f"HTTP/1.1 {status} ".encode())


@pytest.mark.parametrize(("path", "status"), [("/alive", 200), ("/ready", 503), ("/healthz", 404), ("/readyz", 404)])
def test_the_paths_have_the_names_that_they_were_given(path: str, status: int) -> None:
    async def main() -> bytes:
        server = await serve_health(Address("127.0.0.1", 0), lambda: False, "alive", "ready")
        async with server:
            return await ask(server.sockets[0].getsockname()[1], get(path))

    assert asyncio.run(main()).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_request_line_without_end_is_dropped_and_the_next_is_answered() -> None:
    async def main() -> tuple[bytes, bytes]:
        server = await serve_health(Address("127.0.0.1", 0), lambda: True)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await ask(port, b"GET /" + b"a" * 10_000), await ask(port, get("/healthz"))

    dropped, answered = asyncio.run(main())
    assert dropped == b""
    assert answered.startswith(b"HTTP/1.1 200 ")


def test_a_taken_port_names_the_flag() -> None:
    async def main() -> None:
        server = await serve_health(Address("127.0.0.1", 0), lambda: True)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(UsageError, match=f"--health-probe-bind-address 127.0.0.1:{port}"):
                await serve_health(Address("127.0.0.1", port), lambda: True)

    asyncio.run(main())
