"""Who we are for the API server: fixed credentials, or token and certificate files that are read again.

Made by kube.cluster; the transport asks for `current` before each request and for `renewed` after a 401. Plugins are
in kube.plugin. No message, repr or log shows a credential.
"""

from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Protocol

from pyjobset.errors import UsageError
from pyjobset.kube.kubeconfig import read_file

REREAD_SECONDS = 30.0
"""The kubelet writes a new token well before the old one ends."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate chain and its key, PEM."""

    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Credential:
    """What a request carries: an Authorization header, a client certificate, both or neither."""

    authorization: str = field(default="", repr=False)
    certificate: Certificate | None = None


class Credentials(Protocol):
    async def current(self) -> Credential:
        """A credential that is not known to be bad. Raises Unavailable if none can be had now."""
        ...

    async def renewed(self, refused: Credential) -> Credential:
        """Another one after a 401, or the same if there is no other."""
        ...


class StaticCredentials:
    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def current(self) -> Credential:
        return self._credential

    async def renewed(self, refused: Credential) -> Credential:  # noqa: ARG002
        return self._credential


class FileCredentials:
    """A token file, or certificate and key files, read again every REREAD_SECONDS and after a 401.

    A file that cannot be read later leaves the last credential in use: the server decides.
    """

    def __init__(self, *, token_file: str = "", certificate_file: str = "", key_file: str = "") -> None:
        self._token_file = token_file
        self._certificate_file = certificate_file
        self._key_file = key_file
        self._credential = self._read()
        self._read_at = monotonic()

    async def current(self) -> Credential:
        if monotonic() - self._read_at > REREAD_SECONDS:
            self._reread()
        return self._credential

    async def renewed(self, refused: Credential) -> Credential:
        if self._credential is refused:
            self._reread()
        return self._credential

    def _reread(self) -> None:
        self._read_at = monotonic()
        try:
            found = self._read()
        except UsageError:
            return
        if found != self._credential:
            self._credential = found

    def _read(self) -> Credential:
        if self._token_file:
            return Credential(bearer(read_file(Path(self._token_file), "token file"), self._token_file))
        return Credential(
            certificate=Certificate(
                read_file(Path(self._certificate_file), "client certificate"),
                read_file(Path(self._key_file), "client key"),
            )
        )


def bearer(token: bytes | str, origin: str) -> str:
    """The Authorization header of a token. Raises UsageError for one that would break the header."""
    text = (token.decode("ascii", "replace") if isinstance(token, bytes) else token).strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError(f"{origin}: the token is empty or has characters that no token has")
    return f"Bearer {text}"
