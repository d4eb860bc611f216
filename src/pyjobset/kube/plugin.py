"""Credential plugins: a program of the kubeconfig's user that prints a token or a certificate (`exec`).

Called by kube.credentials when a user has one. Runs it once for all waiting requests, again shortly before the
credential expires and after a 401. It gets no terminal: an interactive login is for the person to do beforehand.
"""

import asyncio
import base64
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

from pyjobset.errors import Unavailable, UsageError
from pyjobset.kube.credentials import Certificate, Credential, bearer
from pyjobset.kube.kubeconfig import Choice, Exec, data_or_file
from pyjobset.objects.meta import Struct

TIMEOUT_SECONDS = 60.0
OUTPUT_BYTES_MAX = 1024 * 1024
MARGIN = timedelta(seconds=20)
"""A credential is renewed so long before it expires."""
EXEC_INFO_EXTENSION = "client.authentication.k8s.io/exec"


class _Status(Struct, frozen=True):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""

    def __repr__(self) -> str:
        return "_Status(...)"


class _ExecCredential(Struct, frozen=True):
    api_version: str
    kind: str
    status: _Status


class PluginCredentials:
    def __init__(
        self, plugin: Exec, choice: Choice, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        if plugin.interactive_mode == "Always":
            raise UsageError(
                f"{choice.origin}: credential plugin {plugin.command!r} needs a terminal (interactiveMode Always)",
                hint="log in beforehand and use interactiveMode IfAvailable or Never",
            )
        self._plugin = plugin
        self._origin = choice.origin
        self._info = _exec_info(plugin, choice)
        self._clock = clock
        self._credential: Credential | None = None
        self._expires: datetime | None = None
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        credential = self._fresh()
        if credential is not None:
            return credential
        async with self._lock:
            return self._fresh() or await self._run()

    async def renewed(self, refused: Credential) -> Credential:
        async with self._lock:
            fresh = self._fresh()
            # Somebody else may have renewed it while we waited for the lock.
            return fresh if fresh is not None and fresh is not refused else await self._run()

    def _fresh(self) -> Credential | None:
        if self._expires is not None and self._clock() >= self._expires - MARGIN:
            return None
        return self._credential

    async def _run(self) -> Credential:
        printed = await self._output()
        where = f"credential plugin {self._plugin.command!r}"
        try:
            answer = msgspec.json.decode(printed, type=_ExecCredential)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            # The reason names fields and types, never values.
            reason = str(error) if isinstance(error, msgspec.ValidationError) else "not JSON"
            raise Unavailable(f"{where} printed no ExecCredential: {reason}") from None
        if (answer.api_version, answer.kind) != (self._plugin.api_version, "ExecCredential"):
            raise Unavailable(
                f"{where} printed {answer.kind} of {answer.api_version}, not ExecCredential of "
                f"{self._plugin.api_version}",
                hint="correct exec.apiVersion in the kubeconfig, or update the plugin",
            )
        status = answer.status
        certificate = None
        if status.client_certificate_data and status.client_key_data:
            certificate = Certificate(status.client_certificate_data.encode(), status.client_key_data.encode())
        if not status.token and certificate is None:
            raise Unavailable(f"{where} printed neither a token nor a certificate with its key")
        self._credential = Credential(bearer(status.token, where) if status.token else "", certificate)
        self._expires = _time(status.expiration_timestamp)
        return self._credential

    async def _output(self) -> bytes:
        plugin = self._plugin
        environment = {
            **os.environ,
            **{variable.name: variable.value for variable in plugin.env or ()},
            "KUBERNETES_EXEC_INFO": self._info,
        }
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *(plugin.args or ()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            raise UsageError(
                f"{self._origin}: credential plugin {plugin.command!r} cannot be started: {error.strerror}",
                hint=plugin.install_hint or "install it, or correct exec.command in the kubeconfig",
            ) from error
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                printed, complaint = await process.communicate()
        except TimeoutError as error:
            raise Unavailable(
                f"credential plugin {plugin.command!r} did not end within {TIMEOUT_SECONDS:.0f} s"
            ) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            last = complaint[-500:].decode(errors="replace").strip()
            raise Unavailable(
                f"credential plugin {plugin.command!r} ended with {process.returncode}: {last}",
                hint=plugin.install_hint or "run it by hand, or log in again",
            )
        if len(printed) > OUTPUT_BYTES_MAX:
            raise Unavailable(f"credential plugin {plugin.command!r} printed more than {OUTPUT_BYTES_MAX} bytes")
        return printed


def _exec_info(plugin: Exec, choice: Choice) -> str:
    """What KUBERNETES_EXEC_INFO tells the plugin: our version of the protocol and, where it asks, the cluster."""
    spec: dict[str, object] = {"interactive": False}
    if plugin.provide_cluster_info:
        cluster = choice.cluster
        authority = data_or_file(
            cluster.certificate_authority_data, cluster.certificate_authority, "certificate-authority", choice.origin
        )
        spec["cluster"] = {
            "server": cluster.server,
            "certificate-authority-data": base64.b64encode(authority).decode(),
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "tls-server-name": cluster.tls_server_name,
            "config": next(
                (e.get("extension") for e in cluster.extensions or () if e.get("name") == EXEC_INFO_EXTENSION), None
            ),
        }
    return msgspec.json.encode({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()


def _time(text: str) -> datetime | None:
    """A time that cannot be read counts as none: the credential is then renewed after a 401."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
