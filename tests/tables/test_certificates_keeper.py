"""Replicas that keep the webhooks' certificates together, on a model API server in virtual time.

A prober does what the API server does: a TLS handshake that trusts what the webhook configurations say. It asks every
replica that is ready, all the time.
"""

import asyncio
import base64
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from pyjobset.controller.certificates.content import Content, encode, read
from pyjobset.controller.certificates.keeper import Keeper
from pyjobset.controller.certificates.plan import Terms, carry_out, decide
from pyjobset.controller.options import Certificates, Tls
from pyjobset.errors import Unavailable
from pyjobset.kube.client import Client
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.objects.admission import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from pyjobset.simulation.clock import run
from tests.builders import NOW
from tests.controller_world import settled, until
from tests.model_server import ModelServer, failure

NAMESPACE, SERVICE, SECRET = "jobset-system", "jobset-webhook-service", "jobset-webhook-server-cert"
HOST = f"{SERVICE}.{NAMESPACE}.svc"
MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
CONFIGURATIONS = {MUTATING: MUTATING_CONFIGURATION, VALIDATING: VALIDATING_CONFIGURATION}
NO_CHECK_TIME = ssl.VerifyFlags(0x200000)
"""OpenSSL's: time is virtual here, and looked at by the prober itself."""
TERMS = Terms()
SHORT = Terms(
    authority=timedelta(hours=3),
    serving=timedelta(hours=1),
    backdated=timedelta(minutes=1),
    retire=timedelta(minutes=20),
)
LONG_AGO = timedelta(days=365 * 8)


def now() -> datetime:
    return NOW + timedelta(seconds=asyncio.get_running_loop().time())


def content(*, ago: timedelta = timedelta(), after: Content | None = None) -> Content:
    """Of another installation; or what another replica makes after that one."""
    made, hosts = now() - ago, frozenset({HOST})
    plan = decide(Content(), hosts, made, TERMS, found=() if after is None else after.trusted)
    return carry_out(plan, hosts, made, TERMS)


class Server(ModelServer):
    """It has the prober look before and after each request, and its watches can be cut."""

    probe: Callable[[], None] = staticmethod(lambda: None)
    is_deaf = False

    async def send(self, request: Request) -> Response:
        self.probe()
        try:
            return await super().send(request)
        finally:
            self.probe()

    def stream(self, request: Request) -> Any:
        if self.is_deaf:
            raise Unavailable("cut")
        return super().stream(request)


def world(test: Callable[[Server], Coroutine[Any, Any, None]]) -> None:
    run(test(Server()))


def install(server: Server, *kinds: str, bundle: str = "") -> None:
    """The webhook configurations as kubectl applies them."""
    for plural in kinds or CONFIGURATIONS:
        asked = {"service": {"name": SERVICE, "namespace": NAMESPACE}} | ({"caBundle": bundle} if bundle else {})
        webhooks = [{"name": name, "clientConfig": asked} for name in ("jobset", "pod")]
        server.put(plural, {"metadata": {"name": CONFIGURATIONS[plural]}, "webhooks": webhooks}, namespace="")


def encoded_bundles(server: Server) -> list[str]:
    found = [obj for plural, name in CONFIGURATIONS.items() if (obj := server.objects.get((plural, "", name)))]
    return [w["clientConfig"].get("caBundle", "") for c in found for w in c["webhooks"]]


def bundles(server: Server) -> list[bytes]:
    return list(map(base64.b64decode, encoded_bundles(server)))


def stored(server: Server) -> Content:
    return read(server.get("secrets", SECRET, namespace=NAMESPACE).get("data", {}))


def overwrite(server: Server, data: dict[str, str]) -> None:
    server.put("secrets", {"metadata": {"name": SECRET}, "data": data}, namespace=NAMESPACE)


def handshake(bundle: bytes, keeper: Keeper) -> str:
    """The fingerprint of the certificate that a client gets which trusts that bundle. Raises ssl.SSLError."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.verify_flags |= NO_CHECK_TIME | ssl.VERIFY_X509_STRICT
    if bundle:
        client.load_verify_locations(cadata=bundle.decode())
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(down, up, server_hostname=HOST), keeper.context.wrap_bio(up, down, server_side=True)]
    for _ in range(3):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    certificate = ends[0].getpeercert()
    assert certificate
    for bound, sign in (("notBefore", 1), ("notAfter", -1)):
        assert sign * (now().timestamp() - ssl.cert_time_to_seconds(str(certificate[bound]))) >= 0, bound
    return str(certificate["serialNumber"])


@dataclass
class Replicas:
    server: Server
    keepers: list[Keeper]
    refused: list[str] = field(default_factory=list)
    served: set[str] = field(default_factory=set)
    """Serial numbers of all certificates that were seen."""
    probed: Any = None

    def are_ready(self) -> bool:
        return all(keeper.is_ready() for keeper in self.keepers)

    def ask(self) -> set[str]:
        """Every ready replica, as every webhook asks. What they serve."""
        found = set()
        for bundle in dict.fromkeys(bundles(self.server)):
            for number, keeper in enumerate(self.keepers):
                if keeper.is_ready():
                    try:
                        found.add(handshake(bundle, keeper))
                    except (ssl.SSLError, AssertionError) as error:
                        self.refused.append(f"{now():%H:%M:%S.%f} replica {number}: {error}")
        self.served |= found
        return found

    def probe(self) -> None:
        """Asks if the answer may be another one than the last time."""
        ready = [keeper.served for keeper in self.keepers if keeper.is_ready()]
        state = encoded_bundles(self.server), ready, int(now().timestamp()) // 300
        if state != self.probed:
            self.probed = state
            self.ask()

    async def go_on_probing(self, pause_seconds: float) -> None:
        while True:
            self.probe()
            await asyncio.sleep(pause_seconds)

    def are_at_rest(self) -> bool:
        """All serve what the Secret says, and everybody trusts that and nothing that is not in it."""
        secret = self.server.objects.get(("secrets", NAMESPACE, SECRET))
        if secret is None or (serving := stored(self.server).serving) is None:
            return False
        trusted = b"".join(certificate.pem for certificate in stored(self.server).trusted)
        served = [keeper.served and keeper.served.pair for keeper in self.keepers]
        return set(bundles(self.server)) == {trusted} and served == [serving] * len(served) and len(self.ask()) == 1

    async def rest(self, seconds: float = 5.0) -> None:
        deadline = now() + timedelta(seconds=seconds)
        while not self.are_at_rest():
            assert now() < deadline
            await asyncio.sleep(0.25)


@asynccontextmanager
async def replicas(
    server: Server,
    count: int = 3,
    *,
    terms: Terms = TERMS,
    pause_seconds: float = 0.05,
) -> AsyncIterator[Replicas]:
    clients = [Client(server) for _ in range(count)]
    made = [Keeper(c, Certificates(SERVICE, SECRET), NAMESPACE, Tls(), now=now, terms=terms) for c in clients]
    found = Replicas(server, made)
    server.probe = found.probe
    running = [asyncio.create_task(keeper.run()) for keeper in made]
    running.append(asyncio.create_task(found.go_on_probing(pause_seconds)))
    try:
        yield found
    finally:
        assert not [task for task in running if task.done()], "nothing ends a keeper"
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def case(
    test: Callable[[Server, Replicas], Awaitable[None]],
    *,
    prepare: Callable[[Server], None] = install,
    **more: Any,
) -> None:
    """The test, once all replicas are ready. `prepare` is what was there before them."""

    async def main(server: Server) -> None:
        prepare(server)
        async with replicas(server, **more) as found:
            await until(found.are_ready)
            await test(server, found)

    world(main)


# First start


@pytest.mark.parametrize("data", [None, {}, {"tls.crt": "AAAA"}], ids=["no Secret", "an empty one", "garbage"])
def test_replicas_that_start_together_agree_on_one_secret(data: dict[str, str] | None) -> None:
    def prepare(server: Server) -> None:
        install(server)
        if data is not None:
            overwrite(server, data)

    async def test(server: Server, found: Replicas) -> None:
        await found.rest()
        await settled(server)
        done = [str(call) for call in server.calls if call.method != "GET" and call.status < 400]
        assert done == [
            f"{'POST' if data is None else 'PATCH'} secrets {SECRET}",
            *(f"PATCH {plural} {name}" for plural, name in CONFIGURATIONS.items()),
        ]
        assert len(found.served) == 1
        assert found.refused == []
        quiet = len(server.calls)
        await asyncio.sleep(24 * 3600)
        assert len(server.calls) == quiet, "a good Secret costs no request"

    case(test, prepare=prepare, pause_seconds=600)


@pytest.mark.parametrize("forbidden", CONFIGURATIONS)
def test_nobody_is_ready_before_it_is_trusted(forbidden: str) -> None:
    async def main(server: Server) -> None:
        install(server)
        server.before = lambda request, plural: (
            failure(403, "Forbidden", "no") if (request.method, plural) == ("PATCH", forbidden) else None
        )
        async with replicas(server, 1) as found:
            (keeper,) = found.keepers
            with pytest.raises(ssl.SSLError):
                handshake(b"", keeper)
            await until(lambda: ("secrets", NAMESPACE, SECRET) in server.objects)
            await asyncio.sleep(30)
            assert not keeper.is_ready()
            assert sorted(map(bool, bundles(server))) == [False, False, True, True], "the other one trusts it"
            server.before = lambda _request, _plural: None
            await until(keeper.is_ready, 70)
            assert found.refused == []

    world(main)


def test_a_configuration_that_is_not_there_is_not_waited_for() -> None:
    async def test(server: Server, found: Replicas) -> None:
        install(server, VALIDATING)
        await until(lambda: bundles(server)[-1] != b"", 5)

    case(test, prepare=lambda server: install(server, MUTATING), count=1, pause_seconds=1e6)


def test_an_address_that_is_asked_gets_into_the_certificate() -> None:
    async def test(server: Server, found: Replicas) -> None:
        await found.rest()
        before = stored(server)
        asked = server.get(MUTATING, MUTATING_CONFIGURATION, namespace="")["webhooks"]
        asked = [asked[0], {"name": "u", "clientConfig": {"url": "https://127.0.0.1:9443/x"}}]
        server.change(MUTATING, MUTATING_CONFIGURATION, {"webhooks": asked}, namespace="")
        await found.rest()
        after = stored(server)
        assert after.serving is not None
        assert after.serving.certificate.hosts == {HOST, "127.0.0.1"}
        assert after.trusted == before.trusted

    case(test)


# Rotation


def test_certificates_and_authorities_are_renewed_and_nobody_is_refused() -> None:
    async def test(server: Server, found: Replicas) -> None:
        authorities = set()
        for _ in range(12 * 60):
            authorities |= set(stored(server).trusted[:1])
            await asyncio.sleep(60)
        assert found.refused == []
        # A certificate an hour, used for two thirds of it; an authority three hours.
        assert len(found.served) >= 12 * 3 / 2
        assert len(authorities) >= 12 / 3 * 3 / 2
        assert len(stored(server).trusted) <= 2
        writes = [call for call in server.calls if call.method != "GET"]
        assert len(writes) <= 3 * 3 * (len(found.served) + 3 * len(authorities)), "all three try, once each"

    case(test, terms=SHORT, pause_seconds=2)


def test_a_replica_that_starts_in_the_middle_waits_until_it_is_trusted() -> None:
    async def test(server: Server, found: Replicas) -> None:
        await found.rest()
        for _ in range(20):
            await asyncio.sleep(1)
            overwrite(server, encode(content()))
            async with replicas(server, 2) as others:
                await until(others.are_ready, 5)
                await asyncio.sleep(1)
                assert others.refused == []

    case(test)


# Damage


async def deleted(server: Server) -> None:
    server.remove("secrets", SECRET, namespace=NAMESPACE)


async def replaced(server: Server) -> None:
    overwrite(server, encode(content()))


async def replaced_by_old(server: Server) -> None:
    overwrite(server, encode(content(ago=LONG_AGO)))


async def replaced_by_expired(server: Server) -> None:
    overwrite(server, encode(content(ago=LONG_AGO * 2)))


async def replaced_by_future(server: Server) -> None:
    overwrite(server, encode(content(ago=-timedelta(days=1))))


async def emptied(server: Server) -> None:
    overwrite(server, {})


async def without_key(server: Server) -> None:
    overwrite(server, encode(stored(server)) | {"tls.key": ""})


async def with_garbage(server: Server) -> None:
    overwrite(server, {"ca.crt": "Z2FyYmFnZQ==", "ca.key": "!!!", "tls.crt": "//8=", "tls.key": "AA=="})


async def with_another_authority(server: Server) -> None:
    other = encode(content())
    overwrite(server, encode(stored(server)) | {"ca.crt": other["ca.crt"], "ca.key": other["ca.key"]})


async def with_another_certificate(server: Server) -> None:
    overwrite(server, encode(stored(server)) | {"tls.crt": encode(content())["tls.crt"]})


DAMAGES = [
    deleted,
    replaced,
    replaced_by_old,
    replaced_by_expired,
    replaced_by_future,
    emptied,
    without_key,
    with_garbage,
    with_another_authority,
    with_another_certificate,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_any_damage_to_the_secret_heals_and_nobody_is_refused(
    damage: Callable[[Server], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    async def test(server: Server, found: Replicas) -> None:
        await found.rest()
        before, keys = stored(server), [stored(server)]
        for _ in range(2):
            await damage(server)
            await asyncio.sleep(2)
            healed = stored(server)
            assert healed.serving is not None
            assert healed.issuer == healed.trusted[0], "the Secret is good after 2 s"
            await found.rest(TERMS.settle.total_seconds() + 2)
            keys.append(healed)
        assert found.refused == []
        assert found.are_ready()
        await asyncio.sleep(TERMS.retire.total_seconds() + 60)
        await found.rest(60)
        assert len(stored(server).trusted) == 1, "what was trusted before is not for ever"
        assert found.refused == []
        for seen in keys:
            secrets = [seen.authority.key_pem, seen.serving.key_pem] if seen.authority and seen.serving else []
            lines = [line.decode() for pem in secrets for line in pem.splitlines() if not line.startswith(b"-")]
            assert not [line for line in lines if line in caplog.text]
        assert before != stored(server)

    with caplog.at_level(logging.DEBUG):
        case(test, pause_seconds=0.25)
    assert "Certificates of the webhooks renewed" in caplog.text


@pytest.mark.parametrize("bundle", ["", "!!!", "Z2FyYmFnZQ=="])
def test_configurations_that_were_applied_again_trust_us_again(bundle: str) -> None:
    async def test(server: Server, found: Replicas) -> None:
        await found.rest()
        before = stored(server)
        for _ in range(5):
            for plural, name in CONFIGURATIONS.items():
                server.remove(plural, name, namespace="")
                install(server, plural, bundle=bundle)
            await asyncio.sleep(0.5)
            assert len(set(bundles(server))) == 1
            assert found.are_at_rest()
        assert stored(server) == before
        assert found.are_ready()

    case(test, pause_seconds=1e6)


# Others, lags, refusals


def test_a_watch_that_lags_undoes_nothing() -> None:
    """The news that the configurations trust a new authority comes before that of the Secret that has it."""

    async def test(server: Server, found: Replicas) -> None:
        await found.rest()
        server.silent.add("secrets")
        new = content(after=stored(server))
        overwrite(server, encode(new))
        both = base64.b64encode(b"".join(c.pem for c in new.trusted)).decode()
        since = len(server.calls)
        install(server, bundle=both)
        await settled(server)
        assert server.writes(since) == []

    case(test, pause_seconds=1e6)


def test_two_programs_that_do_not_agree_are_no_storm() -> None:
    async def test(server: Server, found: Replicas) -> None:
        async def undo() -> None:
            while True:
                await asyncio.sleep(0.05)
                if any(bundles(server)):
                    install(server)

        undoing = asyncio.create_task(undo())
        since = len(server.calls)
        await asyncio.sleep(600)
        assert 30 < len(server.calls) - since < 500
        undoing.cancel()
        await found.rest(130)

    case(test, pause_seconds=1e6)


def test_what_keeps_it_waiting_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main(server: Server) -> None:
        install(server)
        forbidden = failure(403, "Forbidden", "secrets is forbidden")
        server.before = lambda request, plural: forbidden if plural == "secrets" and request.method == "POST" else None
        async with replicas(server, 1, pause_seconds=1e6) as found:
            await asyncio.sleep(600)
            assert len(server.statuses(403)) < 20
            assert len([r for r in caplog.records if "not kept" in r.getMessage()]) == 1
            server.before = lambda _request, _plural: None
            await until(found.are_ready, 70)

    world(main)


def test_a_replica_that_sees_the_secret_no_more_is_not_ready_before_its_certificate_is_not_trusted() -> None:
    async def main(server: Server) -> None:
        install(server)
        async with replicas(server, 1, pause_seconds=30) as found:
            await until(found.are_ready)
            server.is_deaf = True
            server.drop_watches()
            await asyncio.sleep(600)
            assert found.are_ready()
            server.change("secrets", SECRET, {"data": encode(content())}, namespace=NAMESPACE)
            await asyncio.sleep(TERMS.retire.total_seconds() / 2)
            assert not found.are_ready()
            server.is_deaf = False
            await until(found.are_ready, 60)
            await found.rest(60)
            assert found.refused == []

    world(main)
