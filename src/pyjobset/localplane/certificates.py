"""Keys and certificates of one plane: two authorities of its own, what they signed, and the service account key.

etcd has an authority of its own, so that nobody who may talk to Kubernetes may talk to its database.
`ensure` makes what is missing, damaged or about to expire and leaves the rest. Files are 0600; nothing is ever fixed.
"""

import datetime
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pyjobset import pki
from pyjobset.localplane.components import CONTROLLER
from pyjobset.localplane.files import make_private_directory, write_private
from pyjobset.pki import Certificate, Pair, Period, Subject

AUTHORITY_DAYS = 3650
LEAF_DAYS = 365
RENEW_DAYS = 30
CLUSTER, ETCD = "ca", "etcd-ca"
ADMIN_GROUP = "system:masters"


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
    Leaf(CONTROLLER, CLUSTER, CONTROLLER),
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
        if not _good(_load(directory, leaf.file), authority.certificate, now):
            _issue(directory, leaf, authority, now)
            made.append(leaf.file)
    if not _is_key(directory / "service-account.key"):
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(directory / "service-account.key", pki.pem_of(key))
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        write_private(directory / "service-account.pub", public)
        made.append("service-account")
    return made


def _ensure_authority(directory: Path, name: str, now: datetime.datetime) -> bool:
    pair = _load(directory, name)
    if pair and _good(pair, pair.certificate, now):
        return False
    subject = Subject(f"jobset local plane {name}")
    _store(directory, name, pki.new_authority(subject, _period(now, AUTHORITY_DAYS)))
    return True


def _issue(directory: Path, leaf: Leaf, authority: Pair, now: datetime.datetime) -> None:
    subject = Subject(leaf.common_name, leaf.group)
    made = pki.issue(authority, subject, _period(now, LEAF_DAYS), hosts=leaf.hosts, is_client=True)
    _store(directory, leaf.file, made)


def _period(now: datetime.datetime, days: int) -> Period:
    return Period(now - datetime.timedelta(hours=1), now + datetime.timedelta(days=days))


def _good(pair: Pair | None, issuer: Certificate, now: datetime.datetime) -> bool:
    if pair is None or pair.certificate.period.end < now + datetime.timedelta(days=RENEW_DAYS):
        return False
    return pair.certificate.is_issued_by(issuer)


def _load(directory: Path, name: str) -> Pair | None:
    """The certificate and its key; None when a file is missing or damaged, or they do not belong together."""
    try:
        chain, key = ((directory / f"{name}.{end}").read_bytes() for end in ("crt", "key"))
    except OSError:
        return None
    certificate, *_ = (*pki.read_certificates(chain, most=1), None)
    return pki.read_pair(certificate, key)


def _is_key(path: Path) -> bool:
    try:
        serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError):
        return False
    return path.with_suffix(".pub").exists()


def _store(directory: Path, name: str, pair: Pair) -> None:
    make_private_directory((directory / name).parent)
    write_private(directory / f"{name}.key", pair.key_pem)
    write_private(directory / f"{name}.crt", pair.certificate.pem)
