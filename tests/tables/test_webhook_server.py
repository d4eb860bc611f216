"""The webhooks over real TLS on the loopback: what a client gets, whatever it sends; rotation; stop."""

import asyncio
import json
import logging
import shutil
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pyjobset.controller import listener
from pyjobset.controller.manager import Manager
from pyjobset.controller.options import Address, Options, Tls, Webhooks
from pyjobset.controller.webhook import admission, server
from pyjobset.controller.webhook.server import serving
from pyjobset.errors import UsageError
from pyjobset.kube.client import Client as ApiClient
from pyjobset.localplane import certificates
from pyjobset.localplane.ports import draw
from pyjobset.objects.admission import MUTATE_PATH, VALIDATE_PATH
from tests.manifests import ALL_GATES, JOBSET, edited
from tests.model_server import ModelServer
from tests.reviews import UID, body, patched

BAD = edited(JOBSET, {"spec.replicatedJobs[0].groupName": "G"})


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificates of two planes: `a` and `b`."""
    root = tmp_path_factory.mktemp("pki")
    for name in ("a", "b"):
        (root / name).mkdir()
        certificates.ensure(root / name)
    return root


@dataclass(frozen=True)
class Answer:
    status: int
    content: Any
    serial: int = 0
    """Of the server's certificate."""


@dataclass(frozen=True)
class Client:
    port: int
    tls: ssl.SSLContext
    name: str | None = None

    async def send(self, raw: bytes) -> Answer:
        """One connection, one request, what came back of it."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.tls, server_hostname=self.name or "127.0.0.1"
        )
        try:
            certificate = writer.get_extra_info("peercert")
            writer.write(raw)
            head, _, content = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        is_json = b"application/json" in head
        serial = int(certificate["serialNumber"], 16)
        return Answer(int(head.split()[1]), json.loads(content) if is_json else content, serial)

    async def post(self, path: str, content: bytes, *headers: str) -> Answer:
        return await self.send(request("POST", path, *headers, content=content))


def request(method: str, path: str, *headers: str, content: bytes = b"", length: int | None = None) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", "Content-Type: application/json", *headers]
    lines.append(f"Content-Length: {len(content) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode() + content


def trusting(*directories: Path) -> ssl.SSLContext:
    made = ssl.create_default_context(cadata="".join((d / "ca.crt").read_text() for d in directories))
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return made


def served(
    directory: Path,
    *authorities: Path,
    talk: Callable[[Client], Awaitable[Any]],
    tls: Tls = Tls(),  # noqa: B008
) -> Any:
    """What `talk` returns of a conversation with a server that has the certificates of that directory."""

    async def main() -> Any:
        options = Webhooks(Address("127.0.0.1", 0), directory, tls)
        async with serving(options, ALL_GATES) as port:
            return await talk(Client(port, trusting(*authorities)))

    return asyncio.run(main())


@pytest.fixture
def ask(pki: Path) -> Callable[..., Answer]:
    """`ask(path, content)` is one POST to a server of its own."""

    def ask(path: str, content: bytes, *headers: str) -> Answer:
        answer: Answer = served(
            pki / "a" / "webhook", pki / "a", talk=lambda client: client.post(path, content, *headers)
        )
        return answer

    return ask


Ask = Callable[..., Answer]


def test_a_verdict(ask: Ask) -> None:
    answer = ask(VALIDATE_PATH, body(BAD))
    assert answer.status == 200
    assert (answer.content["kind"], answer.content["response"]["uid"]) == ("AdmissionReview", UID)
    assert answer.content["response"]["allowed"] is False
    assert answer.content["response"]["status"]["code"] == 422


def test_a_patch(ask: Ask) -> None:
    answer = ask(f"{MUTATE_PATH}?timeout=10s", body(JOBSET))
    assert patched(JOBSET, answer.content["response"])["spec"]["successPolicy"] == {"operator": "All"}


@pytest.mark.parametrize(
    ("path", "content", "headers", "status"),
    [
        (VALIDATE_PATH, b"", (), 400),
        (VALIDATE_PATH, b"{", (), 400),
        (MUTATE_PATH, body(JOBSET, kind={"kind": "Pod", "version": "v1"}), (), 400),
        (VALIDATE_PATH, b"\x1f\x8b\x08\x00 no gzip", ("Content-Encoding: gzip",), 400),
        (VALIDATE_PATH, b" " * (server.BODY_BYTES_MAX + 1), (), 413),
    ],
    ids=["empty", "no JSON", "a Pod", "compressed", "too large"],
)
def test_what_is_no_review_gets_a_status(
    ask: Ask, path: str, content: bytes, headers: tuple[str, ...], status: int
) -> None:
    answer = ask(path, content, *headers)
    assert answer.status == status
    assert {k: answer.content[k] for k in ("apiVersion", "kind", "status", "code")} == {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": status,
    }
    assert answer.content["message"]


def test_a_large_review_is_judged(ask: Ask) -> None:
    """An update of the largest objects that an API server takes: 3 MiB each."""
    notes = {"metadata.annotations": {"a": "n" * 3_000_000}}
    answer = ask(VALIDATE_PATH, body(edited(JOBSET, {**notes, "spec.suspend": True}), edited(JOBSET, notes)))
    assert answer.content["response"]["allowed"] is True


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (request("GET", VALIDATE_PATH), 405),
        (request("POST", "/"), 404),
        (request("POST", "/../etc/passwd"), 404),
        (b"no HTTP at all\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nA: " + b"a" * 100_000 + b"\r\n\r\n", 400),
    ],
    ids=["GET", "another path", "dots", "no HTTP", "bad length", "large header"],
)
def test_other_requests_are_refused_and_nobody_logs_a_traceback(
    pki: Path, caplog: pytest.LogCaptureFixture, raw: bytes, status: int
) -> None:
    answer = served(pki / "a" / "webhook", pki / "a", talk=lambda client: client.send(raw))
    assert answer.status == status
    assert b"Traceback" not in answer.content
    assert [r for r in caplog.records if r.exc_info and r.levelno >= logging.WARNING] == []


def test_who_hangs_up_or_speaks_no_tls_disturbs_nobody(pki: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def talk(client: Client) -> Answer:
        for tls, raw in ((None, b"GET / HTTP/1.1\r\n\r\n"), (client.tls, request("POST", VALIDATE_PATH, length=99))):
            name = "127.0.0.1" if tls else None
            _, writer = await asyncio.open_connection("127.0.0.1", client.port, ssl=tls, server_hostname=name)
            writer.write(raw)
            await writer.drain()
            writer.transport.abort()
        return await client.post(VALIDATE_PATH, body(JOBSET))

    assert served(pki / "a" / "webhook", pki / "a", talk=talk).content["response"]["allowed"]
    assert [r for r in caplog.records if r.exc_info and r.levelno >= logging.WARNING] == []


def test_a_body_that_does_not_come_is_not_waited_for(pki: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "READ_SECONDS_MAX", 0.05)
    raw = request("POST", VALIDATE_PATH, content=b"{", length=99)
    assert served(pki / "a" / "webhook", pki / "a", talk=lambda client: client.send(raw)).status == 408


def test_a_bug_refuses_and_is_logged(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("a bug")

    monkeypatch.setattr(admission, "check", broken)
    answer = ask(VALIDATE_PATH, body(JOBSET))
    assert answer.status == 200
    response = answer.content["response"]
    assert (response["uid"], response["allowed"], response["status"]["code"]) == (UID, False, 500)
    (record,) = [r for r in caplog.records if r.exc_info]
    assert record.getMessage() == "Review failed"
    assert "a bug" in caplog.text


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_tls_1_2_is_the_oldest(pki: Path) -> None:
    async def talk(client: Client) -> Answer:
        client.tls.set_ciphers("ALL:@SECLEVEL=0")
        client.tls.maximum_version = client.tls.minimum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await client.post(VALIDATE_PATH, b"")
        client.tls.maximum_version = client.tls.minimum_version = ssl.TLSVersion.TLSv1_2
        return await client.post(VALIDATE_PATH, b"")

    assert served(pki / "a" / "webhook", pki / "a", talk=talk).status == 400


@pytest.mark.parametrize(
    "tls",
    [Tls("VersionTLS13"), Tls(cipher_suites=("TLS_AES_128_GCM_SHA256",))],
    ids=["minVersion", "suites of 1.3 only"],
)
def test_tls_1_2_is_refused_where_1_3_is_the_oldest(pki: Path, tls: Tls) -> None:
    async def talk(client: Client) -> Answer:
        client.tls.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await client.post(VALIDATE_PATH, b"")
        client.tls.maximum_version = ssl.TLSVersion.TLSv1_3
        return await client.post(VALIDATE_PATH, b"")

    assert served(pki / "a" / "webhook", pki / "a", talk=talk, tls=tls).status == 400


def test_of_tls_1_2_only_the_cipher_suites_that_were_named_are_offered(pki: Path) -> None:
    """The key of the certificate is an ECDSA one."""

    async def talk(client: Client) -> str:
        client.tls.maximum_version = ssl.TLSVersion.TLSv1_2
        _, writer = await asyncio.open_connection("127.0.0.1", client.port, ssl=client.tls)
        cipher: str = writer.get_extra_info("cipher")[0]
        writer.close()
        return cipher

    def cipher_of(*suites: str) -> Any:
        return served(pki / "a" / "webhook", pki / "a", talk=talk, tls=Tls(cipher_suites=suites))

    assert cipher_of("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256") == "ECDHE-ECDSA-AES128-GCM-SHA256"
    assert cipher_of("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305") == "ECDHE-ECDSA-CHACHA20-POLY1305"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        cipher_of("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")


# The certificate


def put(source: Path, directory: Path, *names: str) -> None:
    for name in names or ("tls.crt", "tls.key"):
        shutil.copy(source / "webhook" / name, directory / f".{name}")
        (directory / f".{name}").replace(directory / name)


@pytest.mark.parametrize("name", [None, "localhost"], ids=["without a server name", "with a server name"])
def test_a_new_certificate_serves_from_the_next_connection_on(pki: Path, tmp_path: Path, name: str | None) -> None:
    put(pki / "a", tmp_path)
    files = list(tmp_path.iterdir())

    async def talk(client: Client) -> list[int]:
        client = replace(client, name=name)
        serials = [(await client.post(VALIDATE_PATH, body(JOBSET))).serial]
        put(pki / "b", tmp_path, "tls.crt")  # half of a rotation: the old pair serves on
        serials += [(await client.post(VALIDATE_PATH, body(JOBSET))).serial for _ in range(2)]
        put(pki / "b", tmp_path, "tls.key")
        serials += [(await client.post(VALIDATE_PATH, body(JOBSET))).serial for _ in range(2)]
        for file in files:
            file.unlink()
        return [*serials, (await client.post(VALIDATE_PATH, body(JOBSET))).serial]

    old, *half, new, again, gone = served(tmp_path, pki / "a", pki / "b", talk=talk)
    assert half == [old, old]
    assert new == again == gone != old


@pytest.mark.parametrize(
    ("files", "what"),
    [
        ({}, "No such file"),
        ({"tls.crt": "a"}, "No such file"),
        ({"tls.crt": "a", "tls.key": "b"}, "cannot be used together"),
        ({"tls.crt": "a", "tls.key": ""}, "not PEM"),
    ],
)
def test_no_usable_certificate_names_the_flag(pki: Path, tmp_path: Path, files: dict[str, str], what: str) -> None:
    for name, side in files.items():
        (tmp_path / name).write_bytes((pki / side / "webhook" / name).read_bytes() if side else b"x")
    with pytest.raises(UsageError, match=f"--webhook-cert-dir .*{what}") as caught:
        served(tmp_path, pki / "a", talk=lambda client: client.post("/", b""))
    assert "tls.crt" in caught.value.hint


def test_a_taken_port_names_the_flag(pki: Path) -> None:
    async def talk(client: Client) -> None:
        with pytest.raises(UsageError, match=f"--webhook-bind-address 127.0.0.1:{client.port}"):
            async with serving(Webhooks(Address("127.0.0.1", client.port), pki / "a" / "webhook"), ALL_GATES):
                pass

    served(pki / "a" / "webhook", pki / "a", talk=talk)


def test_a_stop_ends_idle_connections_and_frees_the_port(pki: Path) -> None:
    """An API server keeps its connections open."""

    async def main() -> bytes:
        options = Webhooks(Address("127.0.0.1", 0), pki / "a" / "webhook")
        async with serving(options, ALL_GATES) as port:
            tls = trusting(pki / "a")
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname="127.0.0.1")
            content = body(JOBSET)
            head = f"POST {VALIDATE_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n"
            writer.write(head.encode() + content)
            answered = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in answered
        rest = await reader.read()
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        return rest

    async def bounded() -> bytes:
        async with asyncio.timeout(listener.SHUTDOWN_SECONDS + 20):
            return await main()

    assert b'"allowed":true' in asyncio.run(bounded())


# In the manager


def managed(
    webhooks: Webhooks, talk: Callable[[Client, Manager], Awaitable[None]], tls: ssl.SSLContext, **more: Any
) -> ModelServer:
    """A manager over a model API server, stopped at the end; `talk` once it is ready."""
    server = ModelServer()

    async def main() -> None:
        stop = asyncio.Event()
        async with ApiClient(server) as api:
            manager = Manager(api, Options(health_address=None, webhooks=webhooks, **more))
            running = asyncio.create_task(manager.run(stop))
            while not manager.is_ready and not running.done():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            if not running.done():
                await talk(Client(webhooks.address.port, tls), manager)
            stop.set()
            await running

    asyncio.run(main())
    return server


def test_a_manager_that_is_ready_serves_them_until_it_has_stopped(pki: Path) -> None:
    address = Address("127.0.0.1", draw(set()))

    async def talk(client: Client, _: Manager) -> None:
        refused = await client.post(VALIDATE_PATH, body(edited(JOBSET, {"spec.scheduling": {}})))
        (cause,) = refused.content["response"]["status"]["details"]["causes"]
        assert "[scheduling-gate]" in cause["message"], "the gates are those of the manager"

    managed(Webhooks(address, pki / "a" / "webhook"), talk, trusting(pki / "a"))
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(asyncio.open_connection(address.host, address.port))  # type: ignore[arg-type]


@pytest.mark.decision(6)
@pytest.mark.parametrize("is_on", [True, False])
def test_a_manager_tries_job_templates_where_its_options_say_so(pki: Path, is_on: bool) -> None:
    async def talk(client: Client, _: Manager) -> None:
        assert (await client.post(VALIDATE_PATH, body(JOBSET))).content["response"]["allowed"]

    address = Address("127.0.0.1", draw(set()))
    options = Webhooks(address, pki / "a" / "webhook")
    server = managed(options, talk, trusting(pki / "a"), dry_runs_job_templates=is_on)
    assert server.writes() == (["POST jobs js-driver-0", "POST jobs js-workers-0"] if is_on else [])
    assert server.names("jobs") == []


def test_a_manager_without_a_certificate_does_not_start(pki: Path, tmp_path: Path) -> None:
    async def talk(_: Client, manager: Manager) -> None:
        pytest.fail("it is ready")

    with pytest.raises(UsageError, match="--webhook-cert-dir"):
        managed(Webhooks(Address("127.0.0.1", 0), tmp_path), talk, trusting(pki / "a"))
