"""The transport against a server in this process: what goes over the wire, and what every failure is said to mean."""

import asyncio
import gc
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import aiohttp.http_writer
import pytest

from pyjobset.errors import JobSetError, NotLeading, OutcomeUnknown, Refused, Unavailable
from pyjobset.kube import transport
from pyjobset.kube.cluster import ClusterConfig
from pyjobset.kube.credentials import Credential, StaticCredentials
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Expired
from pyjobset.kube.transport import HttpTransport
from tests.http_peer import Peer, connected, http, serving

GET = Request("GET", "/apis/batch/v1/namespaces/ns/jobs/a%2Fb", "x=%2F", subject="jobs.batch ns/a", timeout_seconds=5)
POST = Request("POST", "/apis/batch/v1/jobs", body=b'{"a": 1}', subject="jobs.batch ns/a", timeout_seconds=5)
WATCH = Request("GET", "/api/v1/pods", "watch=true", subject="watch of pods", timeout_seconds=5)
TOKEN = "s3cr3t-token"


def exchange(peer: Peer, act: Callable[[HttpTransport], Awaitable[Any]], **config: Any) -> Any:
    async def main() -> Any:
        async with serving(peer), connected(ClusterConfig(peer.url, **config)) as sender:
            return await act(sender)

    return asyncio.run(main())


def bearer(token: str) -> StaticCredentials:
    return StaticCredentials(Credential(f"Bearer {token}"))


def send(*requests: Request) -> Callable[[HttpTransport], Awaitable[Any]]:
    async def act(sender: HttpTransport) -> Any:
        for request in requests[:-1]:
            await sender.send(request)
        return await sender.send(requests[-1])

    return act


async def lines(sender: HttpTransport) -> list[bytes]:
    async with sender.stream(WATCH) as stream:
        return [line async for line in stream]


# What goes over the wire


def test_a_request_and_its_answer() -> None:
    peer = Peer(http(201, b'{"b": 2}', "Retry-After: 3"))
    response = exchange(peer, send(POST), credentials=bearer(TOKEN), headers=(("Impersonate-User", "me"),))
    assert (response.status, response.body, response.headers.get("retry-after")) == (201, b'{"b": 2}', "3")
    assert peer.received[0].startswith(b"POST /apis/batch/v1/jobs HTTP/1.1\r\n")
    assert peer.received[0].endswith(b'\r\n\r\n{"a": 1}')
    headers = peer.headers()
    del headers["Host"]
    assert headers == {
        "Accept": "application/json",
        "Authorization": f"Bearer {TOKEN}",
        "Content-Length": "8",
        "Content-Type": "application/json",
        "Impersonate-User": "me",
        "User-Agent": transport.USER_AGENT,
    }


def test_paths_and_queries_are_sent_as_they_were_encoded() -> None:
    peer = Peer(http(200))
    exchange(peer, send(GET))
    assert peer.received[0].startswith(b"GET /apis/batch/v1/namespaces/ns/jobs/a%2Fb?x=%2F HTTP/1.1\r\n")
    assert "Content-Type" not in peer.headers()


def test_a_server_below_a_path() -> None:
    async def main() -> Peer:
        async with serving(Peer(http(200))) as peer:
            async with connected(ClusterConfig(peer.url + "/k8s/clusters/c-1")) as sender:
                await sender.send(POST)
            return peer

    assert asyncio.run(main()).received[0].startswith(b"POST /k8s/clusters/c-1/apis/batch/v1/jobs HTTP")


def test_a_redirect_is_not_followed() -> None:
    peer = Peer(http(302, b"", "Location: /elsewhere"))
    assert exchange(peer, send(GET)).status == 302
    assert len(peer.received) == 1


def test_a_proxy_of_the_environment_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert exchange(Peer(http(200)), send(GET)).status == 200


def test_one_connection_serves_one_request_after_the_other() -> None:
    peer = Peer(http(200, b"{}"))
    exchange(peer, send(*[POST, GET] * 10))
    assert (peer.connections, len(peer.received)) == (1, 20)


def test_a_hundred_requests_are_under_way_at_once() -> None:
    async def main() -> None:
        all_here = asyncio.Barrier(100)

        async def answer(_: Peer) -> bytes:
            await all_here.wait()
            return http(200)

        async with serving(Peer(answer)) as peer, connected(ClusterConfig(peer.url)) as sender:
            await asyncio.gather(*(sender.send(POST) for _ in range(100)))

    asyncio.run(main())


# Failures, and whether the request can have been executed


@pytest.mark.parametrize("request_", [GET, POST, WATCH])
def test_a_server_that_is_not_there(request_: Request) -> None:
    async def main() -> None:
        async with serving(Peer()) as gone:
            pass
        async with connected(ClusterConfig(gone.url)) as sender:
            with pytest.raises(Unavailable) as raised:
                await (lines(sender) if request_ is WATCH else sender.send(request_))
            assert raised.value.message == f"{request_}: {gone.url}: cannot connect: Connection refused"
            assert "running" in raised.value.hint

    asyncio.run(main())


def test_a_socket_that_is_forgotten_closes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop closes the descriptor of a connection that is reset at its start and does not tell the socket. Its number
    is that of another connection by the time that the socket is collected."""
    made: list[int] = []

    class Watched(transport._Socket):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self.fileno())

    monkeypatch.setattr(transport, "_Socket", Watched)
    exchange(Peer(http(200)), send(GET))
    assert len(made) == 1
    forgotten = Watched()
    other = os.open(os.devnull, os.O_RDONLY)
    os.dup2(other, made[-1])  # closes it first
    del forgotten
    gc.collect()
    for number in (other, made[-1]):
        os.close(number)  # raises where it is closed


def test_a_name_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    async def main() -> None:
        async with connected(ClusterConfig("https://no-such-host.invalid:6443")) as sender:
            with pytest.raises(
                Unavailable, match=r"no-such-host\.invalid:6443: cannot connect: Name or service not known$"
            ):
                await sender.send(POST)

    asyncio.run(main())


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="closed without an answer"),
        pytest.param(b"HTTP/1.1 201 X\r\nContent-Length: 99\r\n\r\n{", id="closed in the middle of the body"),
        pytest.param(b"HTTP/1.1 201 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", id="closed in a chunk"),
        pytest.param(b"HTTP/1.1 20", id="closed in the middle of the head"),
        pytest.param(b"SSH-2.0-OpenSSH_9.9\r\n\r\n", id="not HTTP"),
        pytest.param(b"HTTP/1.1 200 X\r\n" + b"X: y\r\n" * 99999, id="headers without end"),
    ],
)
@pytest.mark.parametrize(("request_", "error"), [(POST, OutcomeUnknown), (GET, Unavailable)])
def test_a_connection_that_breaks_after_the_request(
    answer: bytes | None, request_: Request, error: type[JobSetError]
) -> None:
    async def then_close(peer: Peer) -> bytes | None:
        writer = peer.open[-1][1]
        if answer:
            writer.write(answer)
            await writer.drain()
        return None

    peer = Peer(then_close)
    with pytest.raises(JobSetError) as raised:
        exchange(peer, send(request_), credentials=bearer(TOKEN))
    assert type(raised.value) is error
    assert str(request_) in raised.value.message
    assert TOKEN not in raised.value.message
    assert len(raised.value.message) < 1000


@pytest.mark.parametrize(("request_", "error"), [(POST, OutcomeUnknown), (GET, Unavailable)])
@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 201 X\r\nContent-Length: 99\r\n\r\n{"])
def test_an_answer_that_does_not_come(request_: Request, error: type[JobSetError], sent: bytes) -> None:
    async def hang(peer: Peer) -> bytes | None:
        peer.open[-1][1].write(sent)
        await asyncio.Event().wait()
        return None

    async def act(sender: HttpTransport) -> None:
        with pytest.raises(JobSetError) as raised:
            await sender.send(replace(request_, timeout_seconds=0.05))
        assert type(raised.value) is error

    exchange(Peer(hang), act)


def test_an_idle_connection_that_the_server_closed_is_not_used_again() -> None:
    async def act(sender: HttpTransport) -> None:
        await sender.send(POST)
        await peer.close_connections()
        await asyncio.sleep(0)
        assert (await sender.send(POST)).status == 200

    peer = Peer(http(200))
    exchange(peer, act)
    assert peer.connections == 2


def test_a_request_of_which_not_all_could_be_written_was_not_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")

    async def act(sender: HttpTransport) -> None:
        monkeypatch.setattr(aiohttp.http_writer.StreamWriter, "_writelines", refuse)
        with pytest.raises(Unavailable):
            await sender.send(POST)

    exchange(Peer(http(200)), act)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(http(200, b"x" * 101), id="by its length"),
        pytest.param(
            b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + b"x" * 101 + b"\r\n0\r\n\r\n", id="chunked"
        ),
        pytest.param(b"HTTP/1.1 200 X\r\nConnection: close\r\n\r\n" + b"x" * 101, id="until it closes"),
    ],
)
def test_an_answer_that_is_too_long(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    monkeypatch.setattr(transport, "BODY_BYTES_MAX", 100)
    with pytest.raises(Unavailable, match="longer than 100 bytes"):
        exchange(Peer(answer), send(GET))
    with pytest.raises(OutcomeUnknown, match="longer than 100 bytes"):
        exchange(Peer(answer), send(POST))


# Credentials


class Renewing:
    """Hands out tokens in turn, a new one after each 401, until there is no other."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = [Credential(f"Bearer {token}") for token in tokens]
        self.at = 0

    async def current(self) -> Credential:
        return self.tokens[self.at]

    async def renewed(self, refused: Credential) -> Credential:
        assert refused is self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return self.tokens[self.at]


@pytest.mark.parametrize(
    ("tokens", "answers", "status", "sent"),
    [
        pytest.param(["old", "new"], [401, 200], 200, ["old", "new"], id="renewed"),
        pytest.param(["old", "new", "newest"], [401, 401], 401, ["old", "new"], id="renewed once"),
        pytest.param(["old"], [401], 401, ["old"], id="no other"),
        pytest.param(["old", "new"], [403], 403, ["old"], id="403 is not about who we are"),
    ],
)
def test_a_401_renews_the_credentials_once(tokens: list[str], answers: list[int], status: int, sent: list[str]) -> None:
    peer = Peer(*map(http, answers))
    assert exchange(peer, send(POST), credentials=Renewing(*tokens)).status == status
    assert [peer.headers(index)["Authorization"] for index in range(len(peer.received))] == [
        f"Bearer {t}" for t in sent
    ]


def test_a_watch_renews_them_too() -> None:
    peer = Peer(http(401), http(200, b"one\n"))
    assert exchange(peer, lines, credentials=Renewing("old", "new")) == [b"one"]
    assert peer.headers(1)["Authorization"] == "Bearer new"


# Watches


def test_lines_arrive_as_they_come_wherever_they_are_cut() -> None:
    async def main() -> None:
        proceed = asyncio.Event()

        async def answer(peer: Peer) -> None:
            writer = peer.open[-1][1]
            writer.write(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n6\r\none\ntw\r\n")
            await proceed.wait()
            writer.write(b"8\r\no\nthree\n\r\n4\r\ncut \r\n0\r\n\r\n")
            await writer.drain()

        async with (
            serving(Peer(answer)) as peer,
            connected(ClusterConfig(peer.url)) as sender,
            sender.stream(WATCH) as stream,
        ):
            assert await anext(stream) == b"one"
            proceed.set()
            assert [line async for line in stream] == [b"two", b"three"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (http(410, b'{"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}'), Expired),
        (http(404, b"404 page not found"), Refused),
        (http(403), Refused),
        (http(503), Unavailable),
        (None, Unavailable),
    ],
)
def test_a_watch_that_is_refused(answer: bytes | None, error: type[JobSetError]) -> None:
    with pytest.raises(JobSetError, match="GET watch of pods") as raised:
        exchange(Peer(answer), lines)
    assert type(raised.value) is error


def test_a_watch_that_breaks() -> None:
    async def answer(peer: Peer) -> None:
        writer = peer.open[-1][1]
        writer.write(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
        await writer.drain()

    seen = []

    async def act(sender: HttpTransport) -> None:
        async with sender.stream(WATCH) as stream:
            async for line in stream:
                seen.append(line)  # noqa: PERF401

    with pytest.raises(Unavailable, match="GET watch of pods"):
        exchange(Peer(answer), act)
    assert seen == [b"one"]


def test_a_watch_that_falls_silent() -> None:
    async def answer(peer: Peer) -> None:
        peer.open[-1][1].write(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
        await asyncio.Event().wait()

    async def act(sender: HttpTransport) -> None:
        async with sender.stream(replace(WATCH, timeout_seconds=0.05)) as stream:
            assert await anext(stream) == b"one"
            with pytest.raises(Unavailable):
                await anext(stream)

    exchange(Peer(answer), act)


def test_a_watch_that_is_left_is_closed() -> None:
    async def main() -> None:
        is_over = asyncio.Event()

        async def answer(peer: Peer) -> None:
            reader, writer = peer.open[-1]
            writer.write(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
            await reader.read()  # until we close
            is_over.set()

        async with serving(Peer(answer)) as peer, connected(ClusterConfig(peer.url)) as sender:
            async with sender.stream(WATCH) as stream:
                await anext(stream)
            await asyncio.wait_for(is_over.wait(), 5)

    asyncio.run(main())


def test_closing_twice_and_closing_unused() -> None:
    async def main() -> None:
        sender = HttpTransport(ClusterConfig("http://127.0.0.1:1"))
        await sender.close()
        await sender.close()

    asyncio.run(main())


def test_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        exchange(Peer(http(200)), send(POST), credentials=bearer(TOKEN))
    assert TOKEN not in caplog.text


# A permit that is asked at the last moment


@pytest.mark.parametrize(
    ("before", "answers", "permits", "received"),
    [
        pytest.param([], [200], 0, ["GET"], id="a new connection"),
        pytest.param([GET], [200], 0, ["GET", "GET"], id="a connection that is used again"),
        pytest.param([], [401, 200], 1, ["POST", "GET"], id="a repetition with new credentials"),
    ],
)
def test_the_permit_is_asked_when_the_connection_is_there(
    before: list[Request], answers: list[int], permits: int, received: list[str]
) -> None:
    """What was allowed when the request set out may not be any more when it has its connection."""
    left = permits

    def permit() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise NotLeading("too late")

    async def act(sender: HttpTransport) -> None:
        for request in before:
            await sender.send(request)
        token = transport.PERMIT.set(permit)
        with pytest.raises(NotLeading):
            await sender.send(POST)
        transport.PERMIT.reset(token)
        assert (await sender.send(GET)).status == 200

    peer = Peer(*map(http, answers))
    exchange(peer, act, credentials=Renewing("old", "new"))
    assert [request.split(b" ")[0].decode() for request in peer.received] == received
    assert peer.connections == 1, "the connection is given back"
