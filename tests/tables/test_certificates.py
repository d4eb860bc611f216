"""Certificates that the controller makes itself: what is done with any Secret, who is trusted when, what heals."""

import base64
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from pyjobset import pki
from pyjobset.controller.certificates import trust
from pyjobset.controller.certificates.content import AUTHORITIES_MAX, Content, encode, read
from pyjobset.controller.certificates.plan import Served, Terms, carry_out, choose, decide
from pyjobset.objects.certificates import ClientConfig, Secret, ServiceReference, Webhook, WebhookConfiguration
from pyjobset.objects.meta import ObjectMeta
from pyjobset.pki import Certificate, Pair
from tests.builders import NOW

TERMS = Terms()
HOST = "jobset-webhook-service.jobset-system.svc"
HOSTS = frozenset({HOST})
DAY, YEAR = timedelta(days=1), timedelta(days=365)


def made(now: datetime = NOW, hosts: frozenset[str] = HOSTS, terms: Terms = TERMS) -> Content:
    """A content that was made then."""
    return carry_out(decide(Content(), hosts, now, terms), hosts, now, terms)


def follow(content: Content, now: datetime, found: tuple[Certificate, ...] = (), hosts: frozenset[str] = HOSTS) -> Any:
    """The plan for a content, and the content after it."""
    plan = decide(content, hosts, now, TERMS, found=found)
    return plan, carry_out(plan, hosts, now, TERMS) if plan.changes else content


# Certificates as values


def test_what_is_made() -> None:
    content = made()
    assert content.serving is not None
    certificate = content.serving.certificate
    assert certificate.hosts == HOSTS
    assert certificate.is_server
    assert not certificate.is_authority
    authority = content.trusted[0]
    assert authority.parsed.subject.rfc4514_string() == "CN=jobset-ca,O=jobset"
    assert authority.is_authority
    assert certificate.is_issued_by(authority)
    assert not authority.is_issued_by(certificate)


def test_no_private_key_in_any_repr() -> None:
    content = made()
    assert content.authority is not None
    secret = Secret(ObjectMeta(name="s", namespace="ns"), encode(content))
    shown = repr((content, secret, Served(content.authority, content.trusted[0])))
    assert "PrivateKey" not in shown
    assert all(value not in shown for value in secret.data.values())


def pem_of(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def self_signed(key: Any, algorithm: Any = None, *extensions: x509.ExtensionType) -> bytes:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + YEAR)
    for extension in extensions or (x509.BasicConstraints(ca=True, path_length=None),):
        builder = builder.add_extension(extension, critical=True)
    return pem_of(builder.sign(key, algorithm))


@pytest.mark.parametrize(
    ("pem", "is_read"),
    [
        (self_signed(ec.generate_private_key(ec.SECP384R1()), hashes.SHA256()), True),
        (self_signed(rsa.generate_private_key(65537, 2048), hashes.SHA256()), True),
        (self_signed(rsa.generate_private_key(65537, 1024), hashes.SHA256()), False),
        (self_signed(ec.generate_private_key(ec.SECP256K1()), hashes.SHA256()), False),
        (self_signed(ed25519.Ed25519PrivateKey.generate()), False),
        (b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", False),
        (b"-----BEGIN CERTIFICATE-----", False),
        (b"\xff\x00", False),
        (b"", False),
    ],
    ids=["p384", "rsa", "short-rsa", "other-curve", "ed25519", "empty", "cut", "bytes", "nothing"],
)
def test_only_what_go_and_openssl_can_use_is_read(pem: bytes, is_read: bool) -> None:
    assert len(pki.read_certificates(pem, 8)) == is_read


def test_no_damage_to_a_certificate_is_more_than_unreadable() -> None:
    content = made()
    data = encode(content)
    der = content.trusted[0].parsed.public_bytes(serialization.Encoding.DER)
    for place in range(len(der)):
        for flip in (0x01, 0xFF):
            damaged = bytearray(der)
            damaged[place] ^= flip
            body = base64.encodebytes(bytes(damaged))
            pem = b"-----BEGIN CERTIFICATE-----\n" + body + b"-----END CERTIFICATE-----\n"
            with suppress(Warning):  # what the library warns of is an error in tests, and a line of the log elsewhere
                seen = read(data | {"ca.crt": base64.b64encode(pem).decode()})
                follow(seen, NOW)


# The Secret


@dataclass(frozen=True)
class Case:
    name: str
    change: Callable[[Content], Content]
    authority: bool = True
    """It is kept."""
    serving: bool = True
    later: timedelta = timedelta()
    hosts: frozenset[str] = HOSTS

    def __str__(self) -> str:
        return self.name


def edited(**values: str) -> Callable[[Content], Content]:
    return lambda content: read(encode(content) | values)


def of_another(*names: str) -> Callable[[Content], Content]:
    """These keys of the Secret are those of another one."""
    other = encode(made())
    return edited(**{name: other[name] for name in names})


def at_another_time(delta: timedelta) -> Callable[[Content], Content]:
    return lambda _: made(NOW + delta)


CASES = [
    Case("good", lambda content: content),
    Case("read again", edited()),
    Case("empty", lambda _: Content(), authority=False, serving=False),
    Case("garbage", lambda _: read({"ca.crt": "!", "ca.key": "AAAA", "tls.crt": "=", "x": "y"}), False, False),
    Case("no serving key", edited(**{"tls.key": ""}), serving=False),
    Case("no serving certificate", edited(**{"tls.crt": ""}), serving=False),
    Case("another serving certificate", of_another("tls.crt"), serving=False),
    Case("another's serving pair", of_another("tls.crt", "tls.key"), serving=False),
    Case("no authority", edited(**{"ca.crt": ""}), authority=False, serving=False),
    Case("no key of the authority", edited(**{"ca.key": ""}), authority=False, serving=False),
    Case("another authority", of_another("ca.crt", "ca.key"), serving=False),
    Case("all of another", of_another("ca.crt", "ca.key", "tls.crt", "tls.key")),
    Case("before two thirds of the certificate", lambda c: c, later=YEAR * 2 / 3 - DAY),
    Case("after two thirds of the certificate", lambda c: c, serving=False, later=YEAR * 2 / 3 + DAY),
    Case("expired", lambda c: c, serving=False, later=YEAR + DAY),
    Case("before two thirds of the authority", lambda c: c, serving=False, later=YEAR * 20 / 3 - DAY),
    Case("after two thirds of the authority", lambda c: c, False, False, later=YEAR * 20 / 3 + DAY),
    Case("all expired", lambda c: c, False, False, later=YEAR * 11),
    Case("a clock half an hour ahead", at_another_time(timedelta(minutes=30))),
    Case("from the future", at_another_time(timedelta(hours=2)), False, False),
    Case("made by a clock that is behind", at_another_time(-DAY)),
    Case("another host", lambda c: c, serving=False, hosts=HOSTS | {"127.0.0.1"}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_good_is_kept_and_the_rest_is_made_anew(case: Case) -> None:
    now = NOW + case.later
    before = case.change(made())
    plan, after = follow(before, now, hosts=case.hosts)
    assert (plan.authority is not None, plan.serving is not None) == (case.authority, case.serving)
    assert plan.changes == (not (case.authority and case.serving))
    if case.authority:
        assert after.authority == before.authority
    if case.serving:
        assert after.serving == before.serving
    # It is good now, it is there as it was written, and deciding again decides nothing.
    stored = read(encode(after))
    again = decide(stored, case.hosts, now, TERMS)
    assert stored == after
    assert not again.changes
    assert now < again.look_at <= now + TERMS.serving
    assert stored.serving is not None
    assert stored.serving.certificate.is_valid(now)
    assert stored.issuer == stored.trusted[0]
    assert case.hosts <= stored.serving.certificate.hosts


def test_what_is_made_is_valid_for_clocks_that_are_behind() -> None:
    content = made()
    for certificate in (content.trusted[0], served(content).pair.certificate):
        assert certificate.is_valid(NOW - timedelta(minutes=59))
        assert not certificate.is_valid(NOW - timedelta(minutes=61))


def test_what_is_due_is_looked_at_when_it_is_due() -> None:
    content = made()
    due = decide(content, HOSTS, NOW, TERMS).look_at
    assert not decide(content, HOSTS, due - timedelta(seconds=1), TERMS).changes
    assert decide(content, HOSTS, due, TERMS).changes


def test_an_old_authority_is_trusted_until_nobody_can_serve_by_it() -> None:
    old = made(NOW - YEAR * 8)
    plan, new = follow(old, NOW)
    assert plan.others == old.trusted
    assert new.trusted == (new.trusted[0], *old.trusted)
    assert new.issuer == new.trusted[0] != old.trusted[0]
    retired = NOW + TERMS.retire
    assert decide(new, HOSTS, NOW, TERMS).look_at == retired
    assert follow(new, retired - timedelta(seconds=1))[1] == new
    plan, last = follow(new, retired)
    assert last.trusted == new.trusted[:1]
    assert last.serving == new.serving
    assert not follow(last, retired)[0].changes


def test_whom_the_configurations_trust_is_trusted_on_when_the_secret_is_lost() -> None:
    served, foreign = made().trusted[0], made().trusted[0]
    _, new = follow(Content(), NOW, (served, foreign))
    assert new.trusted[1:] == (served, foreign)
    assert follow(new, NOW + TERMS.retire)[1].trusted == new.trusted[:1]


def test_the_authority_by_which_a_replica_serves_is_trusted_on() -> None:
    current, other = made(), made()
    before, replacing = current.trusted[0], other.trusted[0]
    assert not decide(current, HOSTS, NOW, TERMS, served=before).changes
    plan = decide(other, HOSTS, NOW, TERMS, served=before)
    assert (plan.authority, plan.others) == (None, (before, replacing))
    assert not decide(carry_out(plan, HOSTS, NOW, TERMS), HOSTS, NOW, TERMS, served=before).changes
    long_after = NOW + YEAR * 11
    assert not decide(made(long_after), HOSTS, long_after, TERMS, served=before).changes


def test_expired_authorities_and_too_many_are_left_out() -> None:
    old = made(NOW - YEAR * 11).trusted[0]
    many = tuple(made().trusted[0] for _ in range(AUTHORITIES_MAX + 2))
    _, new = follow(Content(), NOW, (old, *many))
    assert new.trusted[1:] == many[: AUTHORITIES_MAX - 1]


def test_what_the_original_controller_left_is_kept() -> None:
    key, name = rsa.generate_private_key(65537, 2048), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    ca = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW - timedelta(hours=1), NOW + YEAR * 10)
    ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    ca = ca.add_extension(x509.SubjectKeyIdentifier(b"0123"), critical=False)
    authority = Pair(*pki.read_certificates(pem_of(ca.sign(key, hashes.SHA256())), 1), key)
    leaf = rsa.generate_private_key(65537, 2048)
    builder = x509.CertificateBuilder(name, name, leaf.public_key(), 2, NOW - timedelta(hours=1), NOW + YEAR * 10)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
    raw = {
        "ca.crt": authority.certificate.pem,
        "ca.key": authority.key_pem,
        "tls.crt": pem_of(builder.sign(key, hashes.SHA256())),
        "tls.key": pki.pem_of(leaf),
    }
    content = read({name: base64.b64encode(value).decode() for name, value in raw.items()})
    plan, _ = follow(content, NOW)
    assert not plan.changes
    # It signs for us when its certificate is due, and the authority is named as it names itself.
    plan, after = follow(content, NOW, hosts=HOSTS | {"127.0.0.1"})
    assert (plan.authority, plan.serving) == (authority, None)
    identifier = after.serving.certificate.parsed.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
    assert identifier.value.key_identifier == b"0123"


# Trust


def configuration(*webhooks: Webhook) -> WebhookConfiguration:
    return WebhookConfiguration(ObjectMeta(name="c", resource_version="7"), webhooks)


def trusting(*authorities: Certificate, garbage: str = "") -> ClientConfig:
    pem = b"".join(certificate.pem for certificate in authorities)
    return ClientConfig(ca_bundle=garbage or base64.b64encode(pem).decode())


def test_only_what_differs_is_injected() -> None:
    first, second = made().trusted[0], made().trusted[0]
    wanted = (first, second)
    bundles = [
        trusting(second, first),
        trusting(first),
        trusting(),
        trusting(garbage="!!"),
        trusting(first, second, made().trusted[0]),
    ]
    patch = trust.injection(configuration(*(Webhook("w", bundle) for bundle in bundles)), wanted)
    assert patch[0] == {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
    assert [change["path"] for change in patch[1:]] == [f"/webhooks/{n}/clientConfig/caBundle" for n in (1, 2, 3, 4)]
    assert {base64.b64decode(change["value"]) for change in patch[1:]} == {first.pem + second.pem}
    assert trust.injection(configuration(Webhook("w", bundles[0])), wanted) == []
    assert trust.injection(configuration(), wanted) == []


def test_who_is_trusted() -> None:
    first, second = made().trusted[0], made().trusted[0]
    both, one = Webhook("w", trusting(first, second)), Webhook("w", trusting(first))
    found = [configuration(both, one), configuration(both)]
    assert trust.trusts(found, first)
    assert not trust.trusts(found, second)
    assert trust.trusts([], second)
    assert trust.authorities(found) == (first, second)


@pytest.mark.parametrize(
    ("asked", "hosts"),
    [
        (ClientConfig(service=ServiceReference("s", "ns")), {"s.ns.svc"}),
        (ClientConfig(url="https://127.0.0.1:9443/x"), {"127.0.0.1"}),
        (ClientConfig(url="https://[::1]:9443/x"), {"::1"}),
        (ClientConfig(url="https://hooks.example.com/x"), {"hooks.example.com"}),
        (ClientConfig(url="https://[bad/x"), set()),
        (ClientConfig(url="https://ünï.example.com/x"), set()),
        (ClientConfig(url=""), set()),
        (ClientConfig(), set()),
    ],
    ids=str,
)
def test_a_certificate_is_for_the_hosts_that_are_asked(asked: ClientConfig, hosts: set[str]) -> None:
    assert trust.hosts([configuration(Webhook("w", asked))]) == hosts


# What a replica serves


@pytest.mark.parametrize(
    ("is_current_trusted", "since", "is_taken"),
    [
        (True, None, False),
        (True, NOW, False),
        (True, NOW - TERMS.settle + timedelta(seconds=1), False),
        (True, NOW - TERMS.settle, True),
        (False, None, True),
    ],
)
def test_what_is_offered_is_taken_once_it_is_trusted(
    is_current_trusted: bool, since: datetime | None, is_taken: bool
) -> None:
    current, offered = served(made()), made()
    chosen = choose(
        current,
        offered,
        is_current_trusted=is_current_trusted,
        offered_trusted_since=since,
        now=NOW,
        terms=TERMS,
    )
    assert chosen == (served(offered) if is_taken else current)


def served(content: Content) -> Served:
    assert content.serving is not None
    assert content.issuer is not None
    return Served(content.serving, content.issuer)


def chosen(current: Content | None, offered: Content, now: datetime = NOW) -> Served | None:
    before = None if current is None else served(current)
    return choose(before, offered, is_current_trusted=True, offered_trusted_since=None, now=now, terms=TERMS)


def test_the_first_certificate_and_one_of_the_same_authority_are_taken_at_once() -> None:
    content = made()
    _, renewed = follow(content, NOW, hosts=HOSTS | {"::1"})
    assert chosen(None, content) == served(content)
    assert chosen(content, renewed) == served(renewed) != served(content)


def test_what_cannot_be_served_is_not_taken() -> None:
    content = made()
    for offered in (Content(), made(NOW + DAY), made(NOW - YEAR * 2), read(encode(content) | {"ca.crt": ""})):
        assert chosen(content, offered) == served(content)
        assert chosen(None, offered) is None


def test_an_expired_certificate_gives_way_to_any() -> None:
    later = NOW + YEAR * 2
    offered = made(later)
    assert chosen(made(), offered, later) == served(offered)
