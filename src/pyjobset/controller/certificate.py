"""Serving certificates: tls.crt and tls.key of a directory, read again when they have changed; or those in memory.

A look at each handshake is two stats and needs no clock: a rotation (cert-manager, a Secret volume) takes effect with
the next connection. While a pair cannot be used, as between the writes of its two files, the last good one serves.
Used by the webhooks and by the metrics; each names the flag that its directory comes from.
"""

import os
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile

from pyjobset.controller.log import Log
from pyjobset.controller.options import Tls
from pyjobset.controller.tls import restrict
from pyjobset.errors import UsageError

CHAIN, KEY = "tls.crt", "tls.key"
SELF_SIGNED_DAYS = 3650
"""Longer than any controller runs: it makes a new one at each start."""

log = Log(__name__)

_Stamp = tuple[tuple[int, int, int], ...]


class ServingCertificate:
    """`context` is for the server. Raises UsageError when the directory has no usable pair to begin with."""

    def __init__(self, directory: Path, flag: str, tls: Tls = Tls()) -> None:  # noqa: B008 it is frozen
        self._tls = tls
        self._files = (directory / CHAIN, directory / KEY)
        try:
            self._seen = self._stamp()
            self._current = self._load()
            self.context = self._load()
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise UsageError(
                f"{flag} {directory}: {_reason(error)}",
                hint=f"it must hold {CHAIN} and {KEY}, PEM files that belong together, without a passphrase",
            ) from error
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, *_: object) -> None:
        """Called by the ssl module at each handshake, with or without a server name."""
        self._renew()
        connection.context = self._current

    def _renew(self) -> None:
        seen = self._seen
        try:
            seen = self._stamp()
            if seen == self._seen:
                return
            self._current = self._load()
            log.info("Serving certificate renewed", file=self._files[0])
        except (OSError, ValueError) as error:
            if seen != self._seen:
                log.warning("Serving certificate not renewed", file=self._files[0], problem=_reason(error))
        self._seen = seen

    def _stamp(self) -> _Stamp:
        found = (file.stat() for file in self._files)
        return tuple((status.st_ino, status.st_mtime_ns, status.st_size) for status in found)

    def _load(self) -> ssl.SSLContext:
        made = _context(self._tls)
        # A key with a passphrase would ask at the terminal; a password callback makes it an error.
        made.load_cert_chain(*self._files, password=lambda: b"")
        return made


class HeldCertificate:
    """One that is given to it, again and again: for who has it in memory. `context` is for the server."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._current: ssl.SSLContext | None = None
        self.context = _context(tls)
        self.context.sni_callback = self._choose

    def use(self, pem: bytes) -> None:
        """A certificate and its key, from the next handshake on. Raises OSError or ValueError where they are none."""
        self._current = _loaded(pem, self._tls)

    def _choose(self, connection: ssl.SSLObject, *_: object) -> int | None:
        """Called by the ssl module at each handshake, with or without a server name."""
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current
        return None


class OwnCertificate(HeldCertificate):
    """For clients that trust the address and not the certificate. It is made at the first handshake: of a controller
    that nobody asks it takes no memory. Its key is nowhere but in this process."""

    def __init__(self, now: Callable[[], datetime], tls: Tls) -> None:
        super().__init__(tls)
        self._now = now

    def _choose(self, connection: ssl.SSLObject, *arguments: object) -> int | None:
        if self._current is None:
            self.use(_self_signed(self._now()))
        return super()._choose(connection, *arguments)


def _self_signed(now: datetime) -> bytes:
    """A certificate and its key."""
    # 11 MB that a controller with certificates from elsewhere does without.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "jobset-controller")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=SELF_SIGNED_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("jobset-controller")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _loaded(pem: bytes, tls: Tls) -> ssl.SSLContext:
    made = _context(tls)
    with _readable(pem) as path:
        made.load_cert_chain(path)
    return made


@contextmanager
def _readable(content: bytes) -> Iterator[str]:
    """A path of the content for the ssl module, which reads nothing else. On Linux no disk ever sees it."""
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("certificate"), "wb", buffering=0) as file:
            file.write(content)
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name


def _context(tls: Tls) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    restrict(made, tls)
    made.set_alpn_protocols(["http/1.1"])
    return made


def _reason(error: Exception) -> str:
    """Without what openssl says of its own source files."""
    if isinstance(error, ssl.SSLError):
        return "they cannot be used together" if error.reason == "KEY_VALUES_MISMATCH" else "a file is not PEM"
    return f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.strerror else str(error)
