"""What the Secret of the webhooks holds: the authorities to trust, the one that signs, and the serving certificate.

`read` takes any data and `encode` is its inverse. Keys of the Secret are those of the original controller, so what it
left is read, and the other way round; `ca.crt` may have several authorities here, the one that signs first. Pure.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass

from pyjobset import pki
from pyjobset.pki import Certificate, Pair

AUTHORITIES_MAX = 8
"""That we trust at the same time. Two are there after a renewal, more after somebody's experiments."""
AUTHORITIES, AUTHORITY_KEY, SERVING, SERVING_KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"


@dataclass(frozen=True, slots=True)
class Content:
    """What could be read. Nothing of it need belong together, be valid, or be of ours."""

    trusted: tuple[Certificate, ...] = ()
    authority: Pair | None = None
    """The one of `trusted` that can sign."""
    serving: Pair | None = None
    issuer: Certificate | None = None
    """The one of `trusted` that signed the serving certificate."""


def content(trusted: tuple[Certificate, ...], authority: Pair | None, serving: Pair | None) -> Content:
    """With the issuer looked for."""
    issuer = None if serving is None else next((c for c in trusted if serving.certificate.is_issued_by(c)), None)
    return Content(trusted, authority, serving, issuer)


def read(data: Mapping[str, str]) -> Content:
    raw = {name: _decoded(data.get(name, "")) for name in (AUTHORITIES, AUTHORITY_KEY, SERVING, SERVING_KEY)}
    found = pki.read_certificates(raw[AUTHORITIES], AUTHORITIES_MAX)
    trusted = tuple(certificate for certificate in found if certificate.is_authority)
    pairs = (pki.read_pair(certificate, raw[AUTHORITY_KEY]) for certificate in trusted)
    authority = next((pair for pair in pairs if pair is not None), None)
    leaf, *_ = (*pki.read_certificates(raw[SERVING], 1), None)
    return content(trusted, authority, pki.read_pair(leaf, raw[SERVING_KEY]))


def encode(content: Content) -> dict[str, str]:
    assert content.authority is not None
    assert content.serving is not None
    raw = {
        AUTHORITIES: b"".join(certificate.pem for certificate in content.trusted),
        AUTHORITY_KEY: content.authority.key_pem,
        SERVING: content.serving.certificate.pem,
        SERVING_KEY: content.serving.key_pem,
    }
    return {name: b64encode(value).decode() for name, value in raw.items()}


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
