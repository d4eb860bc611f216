"""Certificates of a plane: who signs what, what is made anew and what is left alone."""

import datetime
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pyjobset.localplane import certificates
from pyjobset.localplane.certificates import LEAVES, Leaf, ensure

NOW = datetime.datetime(2026, 9, 1, tzinfo=datetime.UTC)
EVERYTHING = ["ca", "etcd-ca", *(leaf.file for leaf in LEAVES), "service-account"]


def load(directory: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((directory / f"{name}.crt").read_bytes())


@pytest.fixture
def pki(tmp_path: Path) -> Path:
    assert ensure(tmp_path, NOW) == EVERYTHING
    return tmp_path


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.file)
def test_every_certificate_is_what_its_row_says(leaf: Leaf, pki: Path) -> None:
    made = load(pki, leaf.file)
    made.verify_directly_issued_by(load(pki, leaf.authority))
    subject = {a.oid: a.value for a in made.subject}
    assert subject[NameOID.COMMON_NAME] == leaf.common_name
    assert subject.get(NameOID.ORGANIZATION_NAME, "") == leaf.group
    usages = set(made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    assert (ExtendedKeyUsageOID.SERVER_AUTH in usages) == bool(leaf.hosts)
    assert made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False


def test_a_certificate_of_one_authority_is_none_of_the_other(pki: Path) -> None:
    with pytest.raises(ValueError, match="does not match"):
        load(pki, "admin").verify_directly_issued_by(load(pki, "etcd-ca"))


def test_our_controller_is_not_the_administrator(pki: Path) -> None:
    """Nor of any group: it may do what its roles say."""
    names = [load(pki, n).subject.rfc4514_string() for n in ("admin", "jobset-controller")]
    assert "O=system:masters" in names[0]
    assert names[1] == "CN=jobset-controller"


def test_no_two_planes_share_a_key(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for side in ("a", "b"):
        ensure(tmp_path / side, NOW)
    keys = [p.read_bytes() for side in ("a", "b") for p in (tmp_path / side).glob("*.key")]
    assert len(set(keys)) == len(keys)


def test_keys_are_private(pki: Path) -> None:
    assert {stat.S_IMODE(p.stat().st_mode) for p in pki.rglob("*.*")} == {0o600}


def test_what_is_good_is_left_alone(pki: Path) -> None:
    before = {p: p.read_bytes() for p in pki.rglob("*.*")}
    assert ensure(pki, NOW + datetime.timedelta(days=100)) == []
    assert {p: p.read_bytes() for p in pki.rglob("*.*")} == before


def damage_certificate(pki: Path) -> None:
    (pki / "admin.crt").write_bytes((pki / "admin.crt").read_bytes()[:100])


def damage_key(pki: Path) -> None:
    (pki / "admin.key").write_text("")


def swap_key(pki: Path) -> None:
    (pki / "admin.key").write_bytes((pki / "kwok.key").read_bytes())


def remove_authority(pki: Path) -> None:
    (pki / "etcd-ca.key").unlink()


def remove_service_account(pki: Path) -> None:
    (pki / "service-account.pub").unlink()


@pytest.mark.parametrize(
    ("harm", "renewed"),
    [
        (damage_certificate, ["admin"]),
        (damage_key, ["admin"]),
        (swap_key, ["admin"]),
        (remove_authority, ["etcd-ca", "etcd", "apiserver-etcd-client"]),
        (remove_service_account, ["service-account"]),
    ],
)
def test_what_is_damaged_is_made_anew(harm: object, renewed: list[str], pki: Path) -> None:
    assert callable(harm)
    harm(pki)
    assert ensure(pki, NOW) == renewed
    assert ensure(pki, NOW) == []


def test_certificates_are_renewed_before_they_expire(pki: Path) -> None:
    leaves = [leaf.file for leaf in LEAVES]
    last_good_day = certificates.LEAF_DAYS - certificates.RENEW_DAYS
    assert ensure(pki, NOW + datetime.timedelta(days=last_good_day)) == []
    assert ensure(pki, NOW + datetime.timedelta(days=last_good_day, seconds=1)) == leaves
