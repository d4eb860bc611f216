"""The serving certificate of the webhooks: tls.crt and tls.key of a directory, read again when they have changed.

A look at each handshake is two stats and needs no clock: a rotation (cert-manager, a Secret volume) takes effect with
the next connection. While a pair cannot be used, as between the writes of its two files, the last good one serves.
"""

import ssl
from pathlib import Path

from pyjobset.controller.log import Log
from pyjobset.errors import UsageError

CHAIN, KEY = "tls.crt", "tls.key"

log = Log(__name__)

_Stamp = tuple[tuple[int, int, int], ...]


class ServingCertificate:
    """`context` is for the server. Raises UsageError when the directory has no usable pair to begin with."""

    def __init__(self, directory: Path) -> None:
        self._files = (directory / CHAIN, directory / KEY)
        try:
            self._seen = self._stamp()
            self._current = self._load()
            self.context = self._load()
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise UsageError(
                f"--webhook-cert-dir {directory}: {_reason(error)}",
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
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.set_alpn_protocols(["http/1.1"])
        # A key with a passphrase would ask at the terminal; a password callback makes it an error.
        made.load_cert_chain(*self._files, password=lambda: b"")
        return made


def _reason(error: Exception) -> str:
    """Without what openssl says of its own source files."""
    if isinstance(error, ssl.SSLError):
        return "they cannot be used together" if error.reason == "KEY_VALUES_MISMATCH" else "a file is not PEM"
    return f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.strerror else str(error)
