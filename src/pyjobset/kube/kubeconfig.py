"""kubeconfig files: read, merged as kubectl merges them, and reduced to one context. Called by kube.credentials.

Of several files the first that names a cluster, user or context wins; relative paths are relative to their file.
Every fault is a UsageError with the file's path; values of credentials never appear in one.
"""

import base64
import binascii
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from pyjobset.errors import UsageError

FILE_BYTES_MAX = 16 * 1024 * 1024


class _Kebab(msgspec.Struct, frozen=True, rename="kebab"):
    """Unknown fields are ignored, as kubectl does."""


class Cluster(_Kebab, frozen=True):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[dict[str, Any]] | None = None


class ExecVariable(msgspec.Struct, frozen=True):
    name: str
    value: str


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """The credential plugin of a user (client.authentication.k8s.io)."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class User(_Kebab, frozen=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: Any = None
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None

    def __repr__(self) -> str:
        return "User(...)"  # never a credential in a message or a traceback


class Context(_Kebab, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Kebab, frozen=True):
    name: str
    cluster: Cluster | None = None


class _NamedUser(_Kebab, frozen=True):
    name: str
    user: User | None = None


class _NamedContext(_Kebab, frozen=True):
    name: str
    context: Context | None = None


class _File(_Kebab, frozen=True):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """One context, resolved. `origin` names the files, for messages."""

    origin: str
    context_name: str
    namespace: str
    cluster: Cluster
    user: User


def choose(paths: Iterable[Path], context: str | None) -> Choice:
    """The wanted, or the current, context of the merged files. Raises UsageError."""
    clusters: dict[str, Cluster] = {}
    users: dict[str, User] = {}
    contexts: dict[str, Context] = {}
    current = ""
    origins: list[str] = []
    for path in paths:
        path = path.absolute()
        file = _read(path)
        origins.append(str(path))
        for named_cluster in file.clusters or ():
            clusters.setdefault(named_cluster.name, _located_cluster(named_cluster.cluster or Cluster(), path.parent))
        for named_user in file.users or ():
            users.setdefault(named_user.name, _located_user(named_user.user or User(), path.parent))
        for named_context in file.contexts or ():
            contexts.setdefault(named_context.name, named_context.context or Context())
        current = current or file.current_context or ""
    origin = os.pathsep.join(origins)
    known = "it has " + (", ".join(sorted(contexts)) or "none")
    wanted = context or current
    if not wanted:
        hint = f"name a context: {known}" if contexts else "it has no contexts at all: is it the right file?"
        raise UsageError(f"{origin}: no current-context is set", hint=hint)
    if wanted not in contexts:
        raise UsageError(f"{origin}: there is no context {wanted!r}", hint=known)
    chosen = contexts[wanted]
    if chosen.cluster not in clusters:
        raise UsageError(f"{origin}: context {wanted!r} names cluster {chosen.cluster!r}, which is not there")
    if chosen.user and chosen.user not in users:
        raise UsageError(f"{origin}: context {wanted!r} names user {chosen.user!r}, which is not there")
    return Choice(
        origin, wanted, chosen.namespace or "default", clusters[chosen.cluster], users.get(chosen.user, User())
    )


def data_or_file(data: str, path: str, what: str, origin: str) -> bytes:
    """Base64 data when there is some, else the file's content, else nothing. Raises UsageError."""
    if data:
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except (binascii.Error, ValueError):
            # The error shows no data: it may be a key.
            raise UsageError(f"{origin}: {what}-data is not base64") from None
    return read_file(Path(path), what) if path else b""


def read_file(path: Path, what: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(
            f"{what} {path} cannot be read: {error.strerror}", hint="check the path and its mode"
        ) from error
    if len(content) > FILE_BYTES_MAX:
        raise UsageError(f"{what} {path} is larger than {FILE_BYTES_MAX} bytes")
    return content


def _read(path: Path) -> _File:
    content = read_file(path, "kubeconfig")
    import yaml  # a program in a pod reads no kubeconfig, and the agent starts in every pod

    try:
        loaded = yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        # Not the error's own text: it quotes lines, and one may hold a token.
        raise UsageError(f"kubeconfig {path} is not YAML{where}", hint="is it the right file?") from None
    try:
        return msgspec.convert(loaded if loaded is not None else {}, _File)
    except msgspec.ValidationError as error:
        raise UsageError(f"kubeconfig {path} is malformed: {error}", hint="is it the right file?") from None


def _located_cluster(cluster: Cluster, base: Path) -> Cluster:
    return msgspec.structs.replace(cluster, certificate_authority=_located(cluster.certificate_authority, base))


def _located_user(user: User, base: Path) -> User:
    plugin = user.exec
    if plugin and "/" in plugin.command:
        plugin = msgspec.structs.replace(plugin, command=_located(plugin.command, base))
    return msgspec.structs.replace(
        user,
        client_certificate=_located(user.client_certificate, base),
        client_key=_located(user.client_key, base),
        token_file=_located(user.token_file, base),
        exec=plugin,
    )


def _located(path: str, base: Path) -> str:
    return str(base / path) if path else ""
