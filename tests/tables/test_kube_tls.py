"""TLS to the API server: whom we trust, how we show who we are, and what becomes of keys."""

import asyncio
import datetime
import ipaddress
import ssl
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pyjobset.errors import Unavailable, UsageError
from pyjobset.kube import tls
from pyjobset.kube.cluster import ClusterConfig
from pyjobset.kube.credentials import Certificate, Credential, StaticCredentials
from pyjobset.kube.requests import Request
from tests.http_peer import Peer, connected, http, serving

GET = Request("GET", "/livez", timeout_seconds=5)
POST = Request("POST", "/apis/batch/v1/jobs", body=b"{}", timeout_seconds=5)


class Authority:
    """A CA and certificates of it. Elliptic curves, for speed."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test CA")])
        self.pem = self._sign(self.name, self.key, ca=True)

    def certificate(self, name: str, *addresses: str) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        chain = self._sign(subject, key, ca=False, dns=name, addresses=addresses)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Certificate(chain, pem)

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        ca: bool,
        dns: str = "",
        addresses: tuple[str, ...] = (),
    ) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if dns:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(dns), *names]), critical=False)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def server_context(authority: Authority, certificate: Certificate, tmp_path: Path, *, mutual: bool) -> ssl.SSLContext:
    chain, key = tmp_path / "chain", tmp_path / "key"
    chain.write_bytes(certificate.chain)
    key.write_bytes(certificate.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority.pem.decode())
    return context


def talk(
    ca: Authority, certificate: Certificate, tmp_path: Path, *, mutual: bool = False, **config: Any
) -> tuple[Peer, Any]:
    async def main() -> tuple[Peer, Any]:
        peer = Peer(http(200, b"{}"))
        context = server_context(ca, certificate, tmp_path, mutual=mutual)
        async with serving(peer, context), connected(ClusterConfig(peer.url, **config)) as sender:
            return peer, await sender.send(GET)

    return asyncio.run(main())


def test_a_server_of_the_authority_is_trusted(authority: Authority, tmp_path: Path) -> None:
    server = authority.certificate("api", "127.0.0.1")
    assert talk(authority, server, tmp_path, authority=authority.pem)[1].status == 200


@pytest.mark.parametrize("trusted", ["another", "the system's"])
def test_a_server_of_another_authority_is_not(authority: Authority, tmp_path: Path, trusted: str) -> None:
    server = authority.certificate("api", "127.0.0.1")
    pem = Authority().pem if trusted == "another" else b""
    with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED") as raised:
        talk(authority, server, tmp_path, authority=pem)
    assert "certificate-authority" in raised.value.hint


def test_the_name_of_the_server_counts(authority: Authority, tmp_path: Path) -> None:
    server = authority.certificate("kubernetes.default.svc")
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1"):
        talk(authority, server, tmp_path, authority=authority.pem)
    _, response = talk(authority, server, tmp_path, authority=authority.pem, server_name="kubernetes.default.svc")
    assert response.status == 200


def test_verification_can_be_switched_off(authority: Authority, tmp_path: Path) -> None:
    assert talk(authority, authority.certificate("x"), tmp_path, is_verified=False)[1].status == 200


def test_a_client_certificate_is_shown(authority: Authority, tmp_path: Path) -> None:
    server, mine = authority.certificate("api", "127.0.0.1"), authority.certificate("me")
    credentials = StaticCredentials(Credential(certificate=mine))
    _, response = talk(authority, server, tmp_path, mutual=True, authority=authority.pem, credentials=credentials)
    assert response.status == 200
    with pytest.raises(Unavailable):
        talk(authority, server, tmp_path, mutual=True, authority=authority.pem)


def test_a_renewed_certificate_is_used_for_new_connections(authority: Authority, tmp_path: Path) -> None:
    one, two = (Credential(certificate=authority.certificate(name)) for name in ("one", "two"))

    class Changing(StaticCredentials):
        async def renewed(self, refused: Credential) -> Credential:
            return two if refused is one else one

    async def main() -> list[str]:
        async def name(peer: Peer) -> bytes:
            shown = peer.open[-1][1].get_extra_info("peercert")
            names.append(dict(part[0] for part in shown["subject"])["commonName"])
            return http(401 if len(names) == 1 else 200)

        names: list[str] = []
        peer = Peer(name)
        context = server_context(authority, authority.certificate("api", "127.0.0.1"), tmp_path, mutual=True)
        config = ClusterConfig("", authority=authority.pem, credentials=Changing(one))
        async with serving(peer, context), connected(replace(config, server=peer.url)) as sender:
            assert (await sender.send(POST)).status == 200
        return names

    assert asyncio.run(main()) == ["one", "two"]


def test_a_private_key_does_not_stay_on_disk(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    modes = []
    load = ssl.SSLContext.load_cert_chain

    def watched(context: ssl.SSLContext, chain: Path, key: Path, **more: Any) -> None:
        modes.extend(stat.S_IMODE(path.stat().st_mode) for path in (key.parent, key))
        load(context, chain, key, **more)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    tls.context(ClusterConfig("https://x", authority=authority.pem), authority.certificate("me"))
    assert modes == [0o700, 0o600]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("authority_pem", "chain", "words"),
    [(b"no PEM", None, "certificate-authority"), (b"\xff", None, "certificate-authority"), (None, b"no PEM", "key")],
)
def test_certificates_that_cannot_be_used(
    authority: Authority, authority_pem: bytes | None, chain: bytes | None, words: str
) -> None:
    mine = authority.certificate("me")
    config = ClusterConfig("https://x", authority=authority_pem or authority.pem, context="ctx")
    with pytest.raises(UsageError, match="context 'ctx'") as raised:
        tls.context(config, replace(mine, chain=chain or mine.chain))
    assert words in raised.value.message


def test_a_key_of_another_certificate(authority: Authority) -> None:
    one, two = authority.certificate("one"), authority.certificate("two")
    with pytest.raises(UsageError, match="cannot be used together"):
        tls.context(ClusterConfig("https://x"), Certificate(one.chain, two.key))


def test_tls_1_2_at_least(authority: Authority) -> None:
    made = tls.context(ClusterConfig("https://x", authority=authority.pem), None)
    assert made.minimum_version == ssl.TLSVersion.TLSv1_2
    assert made.verify_mode == ssl.CERT_REQUIRED
    assert made.check_hostname
