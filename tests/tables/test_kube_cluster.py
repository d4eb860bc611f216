"""Which cluster and user come out of kubeconfig files, the environment and a pod; what is said when none does."""

import asyncio
import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pyjobset.errors import UsageError
from pyjobset.kube import cluster, credentials
from pyjobset.kube.cluster import ClusterConfig
from pyjobset.kube.credentials import Certificate, Credential, FileCredentials

SECRET = "s3cr3t-s3cr3t"
PEM = "-----BEGIN CERTIFICATE-----\n"

Write = Callable[..., Path]


def config(
    name: str = "c", *, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A kubeconfig with one context, cluster and user, all of that name."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443"} | (cluster or {})}],
        "users": [{"name": name, "user": {} if user is None else user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    } | more


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: Any, name: str = "config") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return write


def load(path: Path, context: str | None = None) -> ClusterConfig:
    return cluster.load(str(path), context)


def credential(found: ClusterConfig) -> Credential:
    return asyncio.run(found.credentials.current())


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# Which file


def test_the_given_file_wins(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write(config("other"), "other")))
    assert load(write(config("given"))).server == "https://given:6443"


def test_then_the_variable_then_the_home_directory_then_the_pod(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(cluster, "SERVICE_ACCOUNT", tmp_path / "account")
    write("token", "account/token")
    write(PEM, "account/ca.crt")
    assert cluster.load().server == "https://10.0.0.1:443"
    write(config("home"), "home/.kube/config")
    assert cluster.load().server == "https://home:6443"
    monkeypatch.setenv("KUBECONFIG", str(write(config("variable"), "variable")))
    assert cluster.load().server == "https://variable:6443"


def test_several_files_are_merged_and_the_first_that_says_something_wins(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(
        {"contexts": [{"name": "x", "context": {"cluster": "b", "user": "b", "namespace": "from-first"}}]}, "1"
    )
    second = write(config("b", user={"token": "second"}, **{"current-context": "x"}), "2")
    third = config("b", user={"token": "third"}, cluster={"server": "https://third"})
    third["contexts"].append({"name": "only-third", "context": {"cluster": "b", "user": "b"}})
    files = [str(first), "/does/not/exist", "", str(second), str(write(third, "3"))]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(files))
    found = cluster.load()
    assert (found.context, found.namespace, found.server) == ("x", "from-first", "https://b:6443")
    assert credential(found).authorization == "Bearer second"
    assert cluster.load(context="only-third").context == "only-third"


def test_the_wanted_context(write: Write) -> None:
    both = config("a")
    other = config("b")
    for key in ("clusters", "users", "contexts"):
        both[key] += other[key]
    assert load(write(both)).server == "https://a:6443"
    assert load(write(both), "b").server == "https://b:6443"


@pytest.mark.parametrize(
    ("content", "context", "words", "hint"),
    [
        pytest.param("a: [", None, "is not YAML at line 2", "right file", id="not YAML"),
        pytest.param("- a", None, "malformed: Expected `object`", "is it the right file?", id="a list"),
        pytest.param("clusters: 5", None, "malformed: Expected `array | null`", "right file?", id="wrong type"),
        pytest.param({"clusters": [{"cluster": {}}]}, None, "missing required field `name`", "", id="no name"),
        pytest.param("\x00\x01", None, "is not YAML", "", id="binary"),
        pytest.param("[" * 9999, None, "is not YAML", "", id="nested without end"),
        pytest.param("", None, "no current-context is set", "it has no contexts at all", id="empty"),
        pytest.param(config(**{"current-context": ""}), None, "no current-context is set", "it has c", id="no current"),
        pytest.param(config(), "d", "there is no context 'd'", "it has c", id="no such context"),
        pytest.param(config(clusters=None), None, "names cluster 'c', which is not there", "", id="no such cluster"),
        pytest.param(config(users=[]), None, "names user 'c', which is not there", "", id="no such user"),
        pytest.param(config(cluster={"server": ""}), None, "server is not an http or https", "6443", id="no server"),
        pytest.param(config(cluster={"server": "ftp://x"}), None, "server is not an http", "", id="not http"),
        pytest.param(config(cluster={"server": f"https://u:{SECRET}@x"}), None, "server is not", "", id="userinfo"),
        pytest.param(config(cluster={"proxy-url": "http://p"}), None, "proxy-url", "", id="proxy"),
        pytest.param(
            config(cluster={"certificate-authority": "gone.crt"}), None, "gone.crt cannot be read: No", "", id="CA"
        ),
        pytest.param(
            config(cluster={"certificate-authority-data": "%%%"}), None, "certificate-authority-data is not base64", "",
            id="CA data",
        ),
        pytest.param(config(user={"client-key-data": SECRET, "client-certificate-data": SECRET + "="}), None,
            "data is not base64", "", id="key data"),
        pytest.param(config(user={"tokenFile": "gone"}), None, "token file", "", id="no token file"),
        pytest.param(config(user={"token": f"{SECRET}\r\nX: y"}), None, "the token is empty or has", "", id="token"),
        pytest.param(config(user={"client-certificate": "x.crt"}), None, "no client key", "", id="no key"),
        pytest.param(config(user={"auth-provider": {"name": "gcp"}}), None, "auth-provider", "exec", id="provider"),
        pytest.param(config(user={"as-groups": ["g"]}), None, "need `as`", "", id="groups alone"),
        pytest.param(config(user={"as": "a\r\nb"}), None, "impersonated user", "", id="header in a user"),
        pytest.param(
            config(user={"exec": {"command": "x", "apiVersion": "v", "interactiveMode": "Always"}}), None,
            "needs a terminal", "log in beforehand", id="interactive",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_path_and_without_its_secrets(
    write: Write, content: Any, context: str | None, words: str, hint: str
) -> None:
    path = write(content)
    with pytest.raises(UsageError) as raised:
        load(path, context)
    assert words in raised.value.message
    assert str(path.parent) in raised.value.message
    assert hint in raised.value.hint
    assert SECRET not in str(raised.value) + repr(raised.value.__cause__) + repr(raised.value.__context__)


@pytest.mark.parametrize("mode", ["absent", "unreadable", "directory"])
def test_a_file_that_cannot_be_read(write: Write, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config"
    if mode == "directory":
        path.mkdir()
    elif mode == "unreadable":
        write(config())

        def refuse(*_: Any, **__: Any) -> Any:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)  # as root, modes mean nothing
    with pytest.raises(UsageError, match="cannot be read") as raised:
        load(path)
    assert str(path) in raised.value.message


def test_no_cluster_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no cluster") as raised:
        cluster.load()
    assert "jobset up" in raised.value.hint
    monkeypatch.setenv("KUBECONFIG", "/gone/a:/gone/b")
    with pytest.raises(UsageError, match="/gone/a:/gone/b"):
        cluster.load()


# Which user


@pytest.mark.parametrize(
    ("user", "authorization", "certificate"),
    [
        ({}, "", None),
        ({"token": SECRET}, f"Bearer {SECRET}", None),
        ({"tokenFile": "token"}, "Bearer from-file", None),
        ({"tokenFile": "token", "token": SECRET}, "Bearer from-file", None),
        ({"username": "me", "password": "pä"}, "Basic " + b64("me:pä"), None),
        ({"token": SECRET, "username": "me"}, f"Bearer {SECRET}", None),
        (
            {"client-certificate-data": b64("chain"), "client-key-data": b64("key")},
            "",
            Certificate(b"chain", b"key"),
        ),
        ({"client-certificate": "my.crt", "client-key": "my.key"}, "", Certificate(b"file chain", b"file key")),
        (
            {"client-certificate": "my.crt", "client-key": "my.key", "client-certificate-data": b64("x"), "token": "t"},
            "Bearer t",
            Certificate(b"x", b"file key"),
        ),
        (
            {"client-certificate": "my.crt", "client-key": "my.key", "tokenFile": "token"},
            "Bearer from-file",
            Certificate(b"file chain", b"file key"),
        ),
    ],
)
def test_credentials(write: Write, user: dict[str, Any], authorization: str, certificate: Certificate | None) -> None:
    write("from-file\n", "token")
    write("file chain", "my.crt")
    write("file key", "my.key")
    found = credential(load(write(config(user=user))))
    assert (found.authorization, found.certificate) == (authorization, certificate)


def test_a_context_without_a_user_is_anonymous(write: Write) -> None:
    found = load(write(config(contexts=[{"name": "c", "context": {"cluster": "c"}}])))
    assert credential(found) == Credential()


def test_impersonation(write: Write) -> None:
    user = {"as": "system:serviceaccount:a:b", "as-uid": "7", "as-groups": ["g", "h"], "as-user-extra": {"A/b": ["c"]}}
    assert load(write(config(user=user))).headers == (
        ("Impersonate-User", "system:serviceaccount:a:b"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Group", "h"),
        ("Impersonate-Extra-a%2Fb", "c"),
        ("Impersonate-Uid", "7"),
    )


def test_what_a_cluster_says(write: Write) -> None:
    write("authority", "pki/ca.crt")
    cluster_ = {
        "server": "https://rancher/k8s/clusters/c-1/",
        "certificate-authority": "pki/ca.crt",
        "tls-server-name": "kubernetes",
    }
    found = load(write(config(cluster=cluster_)))
    assert (found.server, found.authority, found.server_name, found.is_verified) == (
        "https://rancher/k8s/clusters/c-1",
        b"authority",
        "kubernetes",
        True,
    )
    data = {"certificate-authority": "pki/ca.crt", "certificate-authority-data": b64("data")}
    assert load(write(config(cluster=data))).authority == b"data"
    assert load(write(config(cluster={"insecure-skip-tls-verify": True}))).is_verified is False


def test_a_relative_path_is_relative_to_its_file_wherever_we_are(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("here", "sub/token")
    write(config(user={"tokenFile": "token"}), "sub/config")
    monkeypatch.chdir(tmp_path)
    found = cluster.load("sub/config")
    monkeypatch.chdir("/")
    assert credential(found).authorization == "Bearer here"


def test_no_secret_in_any_repr(write: Write) -> None:
    for user in ({"token": SECRET}, {"username": "u", "password": SECRET}):
        found = load(write(config(user=user)))
        assert SECRET not in repr(found) + repr(credential(found))
        assert b64(f"u:{SECRET}") not in repr(found) + repr(credential(found))
    assert SECRET not in repr(Certificate(SECRET.encode(), SECRET.encode()))


# Files that change


def test_a_token_file_is_read_again_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(credentials, "monotonic", lambda: now)
    path = tmp_path / "token"
    path.write_text("one")
    found = FileCredentials(token_file=str(path))
    path.write_text("two")

    async def main() -> list[str]:
        nonlocal now
        seen = [(await found.current()).authorization]
        now += credentials.REREAD_SECONDS + 1
        seen.append((await found.current()).authorization)
        path.unlink()
        now += credentials.REREAD_SECONDS + 1
        seen.append((await found.current()).authorization)
        return seen

    assert asyncio.run(main()) == ["Bearer one", "Bearer two", "Bearer two"]


def test_a_token_file_is_read_again_at_once_after_a_401(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    found = FileCredentials(token_file=str(path))

    async def main() -> None:
        first = await found.current()
        assert await found.renewed(first) is first, "nothing new: asking again is of no use"
        path.write_text("two")
        second = await found.renewed(first)
        assert second.authorization == "Bearer two"
        path.write_text("three")
        assert await found.renewed(first) is second, "somebody else has renewed it meanwhile"

    asyncio.run(main())


def test_certificate_files_are_read_again(tmp_path: Path) -> None:
    chain, key = tmp_path / "c", tmp_path / "k"
    chain.write_text("chain")
    key.write_text("key")
    found = FileCredentials(certificate_file=str(chain), key_file=str(key))

    async def main() -> Credential:
        key.write_text("new key")
        return await found.renewed(await found.current())

    assert asyncio.run(main()).certificate == Certificate(b"chain", b"new key")


# In a pod


@pytest.mark.parametrize(
    ("environment", "server"),
    [
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}, "https://10.0.0.1:6443"),
        ({"KUBERNETES_SERVICE_HOST": "fd00::1"}, "https://[fd00::1]:443"),
    ],
)
def test_a_pod(write: Write, tmp_path: Path, environment: dict[str, str], server: str) -> None:
    write("token\n", "token")
    write(PEM, "ca.crt")
    found = cluster.in_cluster(tmp_path, environment)
    assert (found.server, found.authority, found.namespace) == (server, PEM.encode(), "default")
    assert credential(found).authorization == "Bearer token"
    write("mine\n", "namespace")
    assert cluster.in_cluster(tmp_path, environment).namespace == "mine"


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_a_pod_without_its_files(write: Write, tmp_path: Path, missing: str) -> None:
    for name in {"token", "ca.crt"} - {missing}:
        write("x", name)
    with pytest.raises(UsageError, match=missing):
        cluster.in_cluster(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})


def test_not_a_pod(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a pod"):
        cluster.in_cluster(tmp_path, {})


def test_json_is_yaml(write: Write) -> None:
    assert load(write(json.dumps(config()))).server == "https://c:6443"
