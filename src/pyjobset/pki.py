"""X.509 certificates and their keys, as values: read, compared, made. Used by the controller and by the local plane.

What others may have written is read whole, here and once: it is a Certificate, or None. Keys are drawn; time is a
parameter. No I/O, and no private key in a repr.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

E = TypeVar("E", bound=x509.ExtensionType)
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_RSA_BITS_MIN = 2048
_CURVES = ("secp256r1", "secp384r1", "secp521r1")
_HASHES = ("sha256", "sha384", "sha512")
_BROKEN = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class Period:
    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Subject:
    common_name: str
    organization: str = ""


@dataclass(frozen=True, slots=True)
class Certificate:
    """Equal to another one with the same fingerprint."""

    fingerprint: str
    period: Period = field(compare=False)
    hosts: frozenset[str] = field(compare=False)
    is_authority: bool = field(compare=False)
    """May sign others, and has signed itself."""
    is_server: bool = field(compare=False)
    parsed: x509.Certificate = field(compare=False, repr=False)

    @property
    def pem(self) -> bytes:
        return self.parsed.public_bytes(serialization.Encoding.PEM)

    def is_valid(self, now: datetime) -> bool:
        return self.period.begin <= now < self.period.end

    def is_issued_by(self, authority: "Certificate") -> bool:
        return _is_issued_by(self.parsed, authority.parsed)


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: Certificate
    key: Key = field(compare=False, repr=False)

    @property
    def key_pem(self) -> bytes:
        return pem_of(self.key)


def pem_of(key: Key) -> bytes:
    # kube-controller-manager reads an EC key only in this, the older of the two formats.
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def read_certificates(pem: bytes, most: int) -> tuple[Certificate, ...]:
    """Of the first `most` certificates those that can be read and are strong, each once."""
    parts = pem.split(_BEGIN)[1 : most + 1]
    found = (_read_certificate(_BEGIN + part.partition(_END)[0] + _END + b"\n") for part in parts)
    return tuple(dict.fromkeys(certificate for certificate in found if certificate is not None))


def read_pair(certificate: Certificate | None, key_pem: bytes) -> Pair | None:
    """None where the key cannot be read, or is not that of the certificate."""
    if certificate is None:
        return None
    try:
        key = serialization.load_pem_private_key(key_pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            return None
        return Pair(certificate, key) if key.public_key() == certificate.parsed.public_key() else None
    except _BROKEN:
        return None


def new_authority(subject: Subject, period: Period) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(subject)
    builder = (
        _builder(name, name, key, period)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
    )
    return _signed(builder, key, key)


def issue(authority: Pair, subject: Subject, period: Period, *, hosts: Iterable[str], is_client: bool) -> Pair:
    """For a server that has these hosts, if any. Hosts are DNS names and IP addresses (`can_be_host`)."""
    names = [_general_name(host) for host in hosts]
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH] * is_client + [ExtendedKeyUsageOID.SERVER_AUTH] * bool(names)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(_name(subject), authority.certificate.parsed.subject, key, period)
        .add_extension(_key_identifier(authority), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _signed(builder, key, authority.key)


def can_be_host(text: str) -> bool:
    """A certificate can be made for it."""
    try:
        return bool(text) and bool(_general_name(text))
    except ValueError:
        return False


@lru_cache(64)  # the same few are read again and again, as each webhook has them
def _read_certificate(pem: bytes) -> Certificate | None:
    try:
        parsed = x509.load_pem_x509_certificate(pem)
        return _certificate(parsed) if _is_strong(parsed) else None
    except _BROKEN:
        return None


def _is_strong(parsed: x509.Certificate) -> bool:
    """The API server, which is Go, and OpenSSL can use it."""
    key, algorithm = parsed.public_key(), parsed.signature_hash_algorithm
    if algorithm is None or algorithm.name not in _HASHES:
        return False
    if isinstance(key, rsa.RSAPublicKey):
        return key.key_size >= _RSA_BITS_MIN
    return isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES


def _certificate(parsed: x509.Certificate) -> Certificate:
    constraints, usage = _extension(parsed, x509.BasicConstraints), _extension(parsed, x509.KeyUsage)
    purposes, names = _extension(parsed, x509.ExtendedKeyUsage), _extension(parsed, x509.SubjectAlternativeName)
    hosts: list[str] = []
    if names is not None:
        hosts += names.get_values_for_type(x509.DNSName)
        hosts += map(str, names.get_values_for_type(x509.IPAddress))
    may_sign = constraints is not None and constraints.ca and (usage is None or usage.key_cert_sign)
    is_own = parsed.subject == parsed.issuer and _is_issued_by(parsed, parsed)
    return Certificate(
        fingerprint=parsed.fingerprint(hashes.SHA256()).hex(),
        period=Period(parsed.not_valid_before_utc, parsed.not_valid_after_utc),
        hosts=frozenset(hosts),
        is_authority=may_sign and is_own,
        is_server=purposes is None or ExtendedKeyUsageOID.SERVER_AUTH in purposes,
        parsed=parsed,
    )


def _is_issued_by(parsed: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        parsed.verify_directly_issued_by(authority)
    except (*_BROKEN, InvalidSignature):
        return False
    return True


def _extension(parsed: x509.Certificate, kind: type[E]) -> E | None:
    try:
        return parsed.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _builder(subject: x509.Name, issuer: x509.Name, key: Key, period: Period) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(period.begin)
        .not_valid_after(period.end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_identifier(authority: Pair) -> x509.AuthorityKeyIdentifier:
    """As the authority itself has it: there is more than one way to make one of a key."""
    own = _extension(authority.certificate.parsed, x509.SubjectKeyIdentifier)
    if own is None:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _signed(builder: x509.CertificateBuilder, key: Key, issuer_key: Key) -> Pair:
    return Pair(_certificate(builder.sign(issuer_key, hashes.SHA256())), key)


def _name(subject: Subject) -> x509.Name:
    organization = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, subject.organization)] if subject.organization else []
    return x509.Name([*organization, x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name)])


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
