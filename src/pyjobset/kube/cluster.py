"""Which API server to talk to, and as whom: from kubeconfig files or from the pod that we run in.

`load` is called by kube.client.connect, and by programs that want to know the context and its namespace. Reads files
and the environment, connects to nothing.
"""

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from pyjobset.errors import UsageError
from pyjobset.kube import kubeconfig as files
from pyjobset.kube.credentials import Certificate, Credential, Credentials, FileCredentials, StaticCredentials, bearer
from pyjobset.kube.kubeconfig import Choice, User
from pyjobset.kube.plugin import PluginCredentials

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def own_namespace(directory: Path | None = None) -> str:
    """That of the pod that we run in; empty where this is none."""
    file = (directory or SERVICE_ACCOUNT) / "namespace"
    return file.read_text().strip() if file.exists() else ""


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    server: str
    """`https://host:port`, perhaps with a path, without a slash at the end."""
    namespace: str = "default"
    authority: bytes = b""
    """PEM of the CAs to trust; empty: those of the system."""
    is_verified: bool = True
    server_name: str = ""
    """The name to expect in the server's certificate, when it is not the host."""
    headers: tuple[tuple[str, str], ...] = ()
    """Impersonation."""
    credentials: Credentials = field(default_factory=lambda: StaticCredentials(Credential()))
    context: str = ""


def load(kubeconfig: str | None = None, context: str | None = None) -> ClusterConfig:
    """The given file; else those of $KUBECONFIG; else ~/.kube/config; else the cluster of this pod. Else UsageError."""
    if kubeconfig:
        return _from_choice(files.choose([Path(kubeconfig).expanduser()], context))
    listed = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        present = [path for path in listed if path.exists()]
        if not present:
            raise UsageError(
                f"$KUBECONFIG names no file that is there: {os.pathsep.join(map(str, listed))}",
                hint="unset KUBECONFIG, or correct it",
            )
        return _from_choice(files.choose(present, context))
    home = Path("~/.kube/config").expanduser()
    if home.exists():
        return _from_choice(files.choose([home], context))
    if context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return in_cluster()
    raise UsageError(
        f"no cluster: $KUBECONFIG is not set, {home} is not there, and this is not a pod",
        hint="set KUBECONFIG, or start a local cluster with: jobset up",
    )


def in_cluster(directory: Path | None = None, environment: Mapping[str, str] = os.environ) -> ClusterConfig:
    """The API server of the cluster that this pod runs in, as its service account (files in SERVICE_ACCOUNT)."""
    directory = directory or SERVICE_ACCOUNT
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise UsageError("this is not a pod: $KUBERNETES_SERVICE_HOST is not set")
    if ":" in host:
        host = f"[{host}]"
    return ClusterConfig(
        server=f"https://{host}:{port}",
        namespace=own_namespace(directory) or "default",
        authority=files.read_file(directory / "ca.crt", "cluster CA"),
        credentials=FileCredentials(token_file=str(directory / "token")),
        context="in-cluster",
    )


def _from_choice(choice: Choice) -> ClusterConfig:
    cluster, origin = choice.cluster, choice.origin
    parts = urlsplit(cluster.server)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise UsageError(
            f"{origin}: cluster of context {choice.context_name!r}: server is not an http or https URL",
            hint="for example https://127.0.0.1:6443",
        )
    if cluster.proxy_url:
        raise UsageError(f"{origin}: proxy-url of context {choice.context_name!r} is not supported")
    return ClusterConfig(
        server=cluster.server.rstrip("/"),
        namespace=choice.namespace,
        authority=files.data_or_file(
            cluster.certificate_authority_data, cluster.certificate_authority, "certificate-authority", origin
        ),
        is_verified=not cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        headers=_impersonation(choice.user, origin),
        credentials=_credentials(choice),
        context=choice.context_name,
    )


def _credentials(choice: Choice) -> Credentials:
    """kubectl's order: a certificate goes along with anything; of the rest a token wins, then basic, then exec."""
    user, origin = choice.user, choice.origin
    if user.auth_provider is not None:
        raise UsageError(f"{origin}: auth-provider is not supported", hint="Kubernetes removed it; use an exec plugin")
    has_certificate = bool(user.client_certificate or user.client_certificate_data)
    if has_certificate and not (user.client_key or user.client_key_data):
        raise UsageError(f"{origin}: the user has a client certificate and no client key")
    if user.exec and not (has_certificate or user.token or user.token_file or user.username):
        return PluginCredentials(user.exec, choice)
    if user.token_file and not has_certificate:
        return FileCredentials(token_file=user.token_file)
    if user.client_certificate and user.client_key and not (user.token or user.token_file or user.username):
        return FileCredentials(certificate_file=user.client_certificate, key_file=user.client_key)
    certificate = None
    if has_certificate:
        certificate = Certificate(
            files.data_or_file(user.client_certificate_data, user.client_certificate, "client-certificate", origin),
            files.data_or_file(user.client_key_data, user.client_key, "client-key", origin),
        )
    return StaticCredentials(Credential(_authorization(user, origin), certificate))


def _authorization(user: User, origin: str) -> str:
    if user.token_file:
        return bearer(files.read_file(Path(user.token_file), "token file"), user.token_file)
    if user.token:
        return bearer(user.token, origin)
    if user.username:
        return "Basic " + base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
    return ""


def _impersonation(user: User, origin: str) -> tuple[tuple[str, str], ...]:
    headers = [("Impersonate-Group", group) for group in user.as_groups or ()]
    headers += [
        (f"Impersonate-Extra-{quote(key.lower(), safe='')}", value)
        for key, values in (user.as_user_extra or {}).items()
        for value in values
    ]
    if user.as_uid:
        headers.append(("Impersonate-Uid", user.as_uid))
    if headers and not user.as_:
        raise UsageError(f"{origin}: as-groups, as-uid and as-user-extra need `as`")
    if any(not value.isprintable() for _, value in headers) or not user.as_.isprintable():
        raise UsageError(f"{origin}: an impersonated user or group has characters that a header cannot have")
    return (("Impersonate-User", user.as_), *headers) if user.as_ else ()
