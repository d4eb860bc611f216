"""/healthz and /readyz over a real loopback socket: the answers that a kubelet sees."""

import asyncio
import socket

import pytest

from pyjobset.controller.health import serving_health
from pyjobset.controller.liveness import SILENCE_SECONDS_MAX, Liveness
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


WAITS = "waiting for caches"
ANY = Address("127.0.0.1", 0)


def healthy() -> str:
    return ""


@pytest.mark.parametrize(
    ("request_bytes", "unready", "status", "body"),
    [
        (get("/healthz"), WAITS, 200, b"ok"),
        (get("/readyz"), WAITS, 503, WAITS.encode()),
        (get("/readyz"), "", 200, b"ok"),
        (get("/readyz?verbose"), "", 200, b"ok"),
        (get("/"), "", 404, b"not found"),
        (get("/metrics"), "", 404, b"not found"),
        (b"POST /healthz HTTP/1.1\r\n\r\n", "", 405, b""),
        (b"PUT /log HTTP/1.1\r\n\r\n", "", 405, b""),
        (b"\r\n", "", 405, b""),
        (b"HEAD /healthz HTTP/1.1\r\n\r\n", "", 200, b"ok"),
    ],
)
def test_answers(request_bytes: bytes, unready: str, status: int, body: bytes) -> None:
    with serving_health(ANY, healthy, lambda: unready) as port:
        head, _, text = asyncio.run(ask(port, request_bytes)).partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert text.strip() == body


@pytest.mark.parametrize(("path", "status"), [("/alive", 200), ("/ready", 503), ("/healthz", 404), ("/readyz", 404)])
def test_the_paths_have_the_names_that_they_were_given(path: str, status: int) -> None:
    with serving_health(ANY, healthy, lambda: WAITS, "alive", "ready") as port:
        assert asyncio.run(ask(port, get(path))).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_request_line_without_end_is_dropped_and_the_next_is_answered() -> None:
    async def main(port: int) -> tuple[bytes, bytes]:
        return await ask(port, b"GET /" + b"a" * 10_000), await ask(port, get("/healthz"))

    with serving_health(ANY, healthy, healthy) as port:
        dropped, answered = asyncio.run(main(port))
    assert dropped == b""
    assert answered.startswith(b"HTTP/1.1 200 ")


def test_a_taken_port_names_the_flag() -> None:
    with (
        serving_health(ANY, healthy, healthy) as port,
        pytest.raises(UsageError, match=f"--health-probe-bind-address 127.0.0.1:{port}"),
        serving_health(Address("127.0.0.1", port), healthy, healthy),
    ):
        pass


def test_a_blocked_event_loop_is_told_while_it_is_blocked() -> None:
    """The endpoint is asked by plain sockets from the blocked thread itself: only another thread can answer."""
    clock = [0.0]
    liveness = Liveness(500, clock=lambda: clock[0])

    def status(port: int) -> tuple[bytes, bytes]:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(get("/healthz"))
            head, _, body = b"".join(iter(lambda: connection.recv(4096), b"")).partition(b"\r\n\r\n")
            return head.split()[1], body

    async def main() -> None:
        beating = asyncio.create_task(liveness.beat())
        await asyncio.sleep(0)
        with serving_health(ANY, liveness.problem, healthy) as port:
            clock[0] = SILENCE_SECONDS_MAX
            assert status(port) == (b"200", b"ok\n")
            clock[0] += 0.1
            assert status(port) == (b"500", b"the event loop is blocked\n")
            beating.cancel()
            beating = asyncio.create_task(liveness.beat())
            await asyncio.sleep(0)
            assert status(port) == (b"200", b"ok\n")
        beating.cancel()

    asyncio.run(main())
