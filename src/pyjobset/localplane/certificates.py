"""Keys and certificates of one plane: two authorities of its own, what they signed, and the service account key.

etcd has an authority of its own, so that nobody who may talk to Kubernetes may talk to its database.
`ensure` makes what is missing, damaged or about to expire and leaves the rest. Files are 0600; nothing is ever fixed.
"""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pyjobset.localplane.files import make_private_directory, write_private

AUTHORITY_DAYS = 3650
LEAF_DAYS = 365
RENEW_DAYS = 30
CLUSTER, ETCD = "ca", "etcd-ca"
ADMIN_GROUP = "system:masters"

Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A certificate to have: file name, authority, subject, and the names it serves (none: a client only).

    The webhooks' pair has a directory of its own, with the names that a mounted Secret has.
    """

    file: str
    authority: str
    common_name: str
    group: str = ""
    hosts: tuple[str, ...] = ()


LOCAL = ("localhost", "127.0.0.1")
SERVICE = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
LEAVES = (
    Leaf("etcd", ETCD, "etcd", hosts=LOCAL),
    Leaf("apiserver-etcd-client", ETCD, "kube-apiserver"),
    Leaf("apiserver", CLUSTER, "kube-apiserver", hosts=(*LOCAL, *SERVICE, "10.0.0.1")),
    Leaf("components", CLUSTER, "kube-components", hosts=LOCAL),
    Leaf("admin", CLUSTER, "kubernetes-admin", ADMIN_GROUP),
    Leaf("kube-controller-manager", CLUSTER, "system:kube-controller-manager"),
    Leaf("kube-scheduler", CLUSTER, "system:kube-scheduler"),
    Leaf("kwok", CLUSTER, "kwok", ADMIN_GROUP),
    Leaf("jobset-controller", CLUSTER, "jobset-controller", ADMIN_GROUP),
    Leaf("webhook/tls", CLUSTER, "jobset-webhook", hosts=LOCAL),
)


def ensure(directory: Path, now: datetime.datetime | None = None) -> list[str]:
    """Makes every file of the plane's pki directory be there and be good. Returns the names that were made anew."""
    now = now or datetime.datetime.now(datetime.UTC)
    made = [name for name in (CLUSTER, ETCD) if _ensure_authority(directory, name, now)]
    authorities = {name: _load(directory, name) for name in (CLUSTER, ETCD)}
    for leaf in LEAVES:
        authority = authorities[leaf.authority]
        assert authority is not None
        if not _good(_load(directory, leaf.file), authority[0], now):
            _issue(directory, leaf, authority, now)
            made.append(leaf.file)
    if not _is_key(directory / "service-account.key"):
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(directory / "service-account.key", _private_pem(key))
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        write_private(directory / "service-account.pub", public)
        made.append("service-account")
    return made


def _ensure_authority(directory: Path, name: str, now: datetime.datetime) -> bool:
    pair = _load(directory, name)
    if pair and _good(pair, pair[0], now):
        return False
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"jobset local plane {name}")])
    builder = (
        _builder(subject, subject, key, now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
    )
    _store(directory, name, builder.sign(key, hashes.SHA256()), key)
    return True


def _issue(directory: Path, leaf: Leaf, authority: Pair, now: datetime.datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, leaf.group)] if leaf.group else []
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, leaf.common_name)])
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if leaf.hosts else [])]
    issuer, issuer_key = authority
    builder = (
        _builder(subject, issuer.subject, key, now, LEAF_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
    if leaf.hosts:
        names = [_general_name(h) for h in leaf.hosts]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    _store(directory, leaf.file, builder.sign(issuer_key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


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


def _good(pair: Pair | None, issuer: x509.Certificate, now: datetime.datetime) -> bool:
    if pair is None or pair[0].not_valid_after_utc < now + datetime.timedelta(days=RENEW_DAYS):
        return False
    try:
        pair[0].verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _load(directory: Path, name: str) -> Pair | None:
    """The certificate and its key; None when a file is missing or damaged, or they do not belong together."""
    try:
        certificate = x509.load_pem_x509_certificate((directory / f"{name}.crt").read_bytes())
        key = serialization.load_pem_private_key((directory / f"{name}.key").read_bytes(), None)
    except (OSError, ValueError, TypeError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        return None
    return certificate, key


def _is_key(path: Path) -> bool:
    try:
        serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError):
        return False
    return path.with_suffix(".pub").exists()


def _store(directory: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    make_private_directory((directory / name).parent)
    write_private(directory / f"{name}.key", _private_pem(key))
    write_private(directory / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # kube-controller-manager reads an EC key only in this, the older of the two formats.
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
