"""The webhooks over TLS, asked by clients that mean no good: one connection, many reviews, and bodies sent badly."""

import asyncio
import json
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pyjobset.controller.options import Address, Webhooks
from pyjobset.controller.webhook import server
from pyjobset.localplane import certificates
from pyjobset.objects.admission import MUTATE_PATH, POD_MUTATE_PATH, POD_VALIDATE_PATH, VALIDATE_PATH
from tests.manifests import ALL_GATES, JOBSET
from tests.mutants import hostile, mutants
from tests.reviews import body
from tests.tables.test_webhook_pods import LEADER, Found
from tests.tables.test_webhook_server import trusting

GOOD = body(JOBSET)


@dataclass(frozen=True)
class Answer:
    status: int
    content: Any


class Connection:
    """One that is kept, as an API server keeps it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, *parts: bytes, pause_seconds: float = 0) -> Answer:
        for part in parts:
            self._writer.write(part)
            await self._writer.drain()
            await asyncio.sleep(pause_seconds)
        return await self.answer()

    async def post(self, path: str, content: bytes, *headers: str) -> Answer:
        return await self.send(head(path, f"Content-Length: {len(content)}", *headers) + content)

    async def answer(self) -> Answer:
        lines = (await self._reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        content = await self._reader.readexactly(length)
        is_json = any(line.startswith(b"content-type: application/json") for line in lines)
        return Answer(int(lines[0].split()[1]), json.loads(content) if is_json else content)


def head(path: str, *headers: str) -> bytes:
    return "\r\n".join(
        [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", *headers, "", ""]
    ).encode()


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


CHUNKED = head(VALIDATE_PATH, "Transfer-Encoding: chunked")

Talk = Callable[[Callable[[], Awaitable[Connection]]], Awaitable[Any]]


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pki")
    certificates.ensure(root)
    return root


@pytest.fixture
def talking(pki: Path, caplog: pytest.LogCaptureFixture) -> Callable[[Talk], Any]:
    """Runs a conversation with the webhooks; `talk` is handed what opens a connection. Nobody may log a traceback."""

    async def main(talk: Talk) -> Any:
        tls: ssl.SSLContext = trusting(pki)

        writers: list[asyncio.StreamWriter] = []

        async def connect() -> Connection:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname="127.0.0.1")
            writers.append(writer)
            return Connection(reader, writer)

        options = Webhooks(Address("127.0.0.1", 0), pki / "webhook")
        async with server.serving(options, ALL_GATES, lookup=Found([LEADER])) as port:
            try:
                return await talk(connect)
            finally:
                for writer in writers:
                    writer.transport.abort()

    def talk(talk: Talk) -> Any:
        found = asyncio.run(main(talk))
        assert [r for r in caplog.records if r.exc_info and r.levelno >= logging.WARNING] == []
        return found

    return talk


def is_well_formed(answer: Answer) -> bool:
    """A review that is answered, or a Status that says what is wrong with it."""
    if answer.status == HTTPStatus.OK:
        response = answer.content["response"]
        return response["allowed"] or response["status"]["code"] == HTTPStatus.UNPROCESSABLE_ENTITY
    return (answer.status, answer.content["kind"], bool(answer.content["message"])) == (400, "Status", True)


def test_a_connection_outlives_a_thousand_reviews(talking: Callable[[Talk], Any]) -> None:
    async def talk(connect: Callable[[], Awaitable[Connection]]) -> None:
        connection, random = await connect(), Random(0)
        for mutant in mutants(1234, 1000):
            paths = (POD_MUTATE_PATH, POD_VALIDATE_PATH) if mutant.is_pod else (MUTATE_PATH, VALIDATE_PATH)
            answer = await connection.post(random.choice(paths), mutant.content)
            assert is_well_formed(answer), answer
        assert (await connection.post(VALIDATE_PATH, GOOD)).content["response"]["allowed"]

    talking(talk)


def test_a_connection_outlives_large_and_deep_reviews(talking: Callable[[Talk], Any]) -> None:
    async def talk(connect: Callable[[], Awaitable[Connection]]) -> None:
        connection = await connect()
        for content in hostile().values():
            for path in (MUTATE_PATH, VALIDATE_PATH, POD_MUTATE_PATH, POD_VALIDATE_PATH):
                assert is_well_formed(await connection.post(path, content))
        assert (await connection.post(VALIDATE_PATH, GOOD)).content["response"]["allowed"]

    talking(talk)


HALF = len(GOOD) // 2

LENGTH = f"Content-Length: {len(GOOD)}"


def typed(*headers: str) -> tuple[bytes, bytes]:
    """A good review under a content type of the client's own."""
    return "\r\n".join([f"POST {VALIDATE_PATH} HTTP/1.1", "Host: x", LENGTH, *headers, "", ""]).encode(), GOOD


BODIES: dict[str, tuple[int, tuple[bytes, ...]]] = {
    "chunks": (200, (CHUNKED, *(chunk(GOOD[i : i + 50]) for i in range(0, len(GOOD), 50)), chunk(b""))),
    "one byte a chunk": (200, (CHUNKED + b"".join(chunk(bytes([byte])) for byte in GOOD) + chunk(b""),)),
    "another content type": (200, typed("Content-Type: text/html")),
    "no content type": (200, typed()),
    "a charset that is none": (200, typed("Content-Type: application/json; charset=x")),
    "gzip that is none": (200, typed("Content-Encoding: gzip")),
    "an encoding that is none": (200, typed("Content-Encoding: x, y")),
    "no body": (400, (head(VALIDATE_PATH, "Content-Length: 0"),)),
    "a chunk of no length": (408, (CHUNKED, b"zz\r\n")),
    "a chunk of a negative length": (408, (CHUNKED, b"-5\r\nhello\r\n")),
    "a chunk that is longer": (408, (CHUNKED, b"5\r\nhello, world\r\n")),
    "a length and chunks": (400, (head(VALIDATE_PATH, "Transfer-Encoding: chunked", "Content-Length: 5"),)),
    "two lengths": (400, (head(VALIDATE_PATH, "Content-Length: 5", "Content-Length: 6"),)),
    "a length of text": (400, (head(VALIDATE_PATH, "Content-Length: many"),)),
    "an expectation": (417, (head(VALIDATE_PATH, "Expect: a miracle", "Content-Length: 5"), b"hello")),
}


@pytest.mark.parametrize("what", BODIES)
def test_bodies_that_come_in_other_ways(
    talking: Callable[[Talk], Any], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The HTTP library drops chunks that are none: for us they never come."""
    monkeypatch.setattr(server, "READ_SECONDS_MAX", 1.0)
    status, parts = BODIES[what]

    async def talk(connect: Callable[[], Awaitable[Connection]]) -> Answer:
        return await (await connect()).send(*parts, pause_seconds=0.002)

    answer = talking(talk)
    assert answer.status == status
    if status == HTTPStatus.OK:
        assert answer.content["response"]["allowed"]
    assert b"Traceback" not in json.dumps(answer.content, default=repr).encode()


def test_slow_bodies_hold_up_nobody(talking: Callable[[Talk], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """While a hundred clients send a body byte for byte, another one is answered; they hear 408 in the end."""
    monkeypatch.setattr(server, "READ_SECONDS_MAX", 3.0)

    async def talk(connect: Callable[[], Awaitable[Connection]]) -> list[Answer]:
        async def slow() -> Answer:
            connection = await connect()
            return await connection.send(CHUNKED, chunk(b"{"), chunk(b'"'), pause_seconds=0.01)

        slow_ones = [asyncio.create_task(slow()) for _ in range(100)]
        good = await (await connect()).post(VALIDATE_PATH, GOOD)
        assert good.content["response"]["allowed"]
        assert not any(task.done() for task in slow_ones)
        return await asyncio.gather(*slow_ones)

    assert {answer.status for answer in talking(talk)} == {HTTPStatus.REQUEST_TIMEOUT}
