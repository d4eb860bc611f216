"""Credential plugins: when they run, what they are told, what of their output counts. The process is a stand-in."""

import asyncio
import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pyjobset.errors import JobSetError, Unavailable, UsageError
from pyjobset.kube import plugin
from pyjobset.kube.credentials import Certificate
from pyjobset.kube.kubeconfig import Choice, Cluster, Exec, ExecVariable, User
from pyjobset.kube.plugin import PluginCredentials
from pyjobset.simulation.clock import run

V1 = "client.authentication.k8s.io/v1"
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SECRET = "s3cr3t-s3cr3t"


class Program:
    """Stands in for asyncio.create_subprocess_exec: each start prints the next output."""

    def __init__(self, *outputs: Any, code: int = 0, complaint: bytes = b"", hangs: bool = False) -> None:
        self.outputs = [out if isinstance(out, bytes) else json.dumps(out).encode() for out in outputs]
        self.code = code
        self.complaint = complaint
        self.hangs = hangs
        self.starts: list[tuple[tuple[str, ...], dict[str, str]]] = []
        self.returncode: int | None = None
        self.is_killed = False

    async def __call__(self, *command: str, env: dict[str, str], **_: Any) -> "Program":
        self.starts.append((command, env))
        self.returncode = None
        return self

    async def communicate(self) -> tuple[bytes, bytes]:
        await asyncio.sleep(3600 if self.hangs else 0.5)
        self.returncode = self.code
        return self.outputs[min(len(self.starts), len(self.outputs)) - 1], self.complaint

    def kill(self) -> None:
        self.is_killed = True

    async def wait(self) -> int:
        self.returncode = -9
        return -9


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Callable[[Program], Program]:
    def start(program: Program) -> Program:
        monkeypatch.setattr(plugin.asyncio, "create_subprocess_exec", program)
        return program

    return start


def printed(token: str = "", expires: datetime | None = None, **more: str) -> dict[str, Any]:
    status = {"token": token, **more} if token else dict(more)
    if expires is not None:
        status["expirationTimestamp"] = expires.isoformat()
    return {"apiVersion": V1, "kind": "ExecCredential", "status": status}


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def credentials(clock: Clock | None = None, cluster: Cluster | None = None, **options: Any) -> PluginCredentials:
    choice = Choice("/home/me/.kube/config", "c", "ns", cluster or Cluster(server="https://c"), User())
    return PluginCredentials(Exec(command="login", api_version=V1, **options), choice, clock=clock or Clock())


def test_one_run_serves_all_who_wait(start: Callable[[Program], Program]) -> None:
    program = start(Program(printed("one"), printed("two")))

    async def main() -> set[str]:
        found = credentials()
        together = await asyncio.gather(*(found.current() for _ in range(20)))
        return {credential.authorization for credential in [*together, await found.current()]}

    assert run(main()) == {"Bearer one"}
    assert len(program.starts) == 1


@pytest.mark.parametrize(
    ("age", "runs"),
    [
        pytest.param(timedelta(minutes=9), 1, id="still good"),
        pytest.param(timedelta(minutes=10) - plugin.MARGIN, 2, id="about to expire"),
        pytest.param(timedelta(hours=1), 2, id="expired"),
    ],
)
def test_a_credential_is_renewed_before_it_expires(
    start: Callable[[Program], Program], age: timedelta, runs: int
) -> None:
    program = start(Program(printed("one", NOW + timedelta(minutes=10)), printed("two")))
    clock = Clock()

    async def main() -> None:
        found = credentials(clock)
        await found.current()
        clock.now += age
        await found.current()

    run(main())
    assert len(program.starts) == runs


def test_a_401_renews_once_for_all_who_got_one(start: Callable[[Program], Program]) -> None:
    program = start(Program(printed("one"), printed("two")))

    async def main() -> set[str]:
        found = credentials()
        refused = await found.current()
        renewed = await asyncio.gather(*(found.renewed(refused) for _ in range(20)))
        return {credential.authorization for credential in renewed}

    assert run(main()) == {"Bearer two"}
    assert len(program.starts) == 2


def test_a_certificate(start: Callable[[Program], Program]) -> None:
    start(Program(printed(clientCertificateData="chain", clientKeyData="key")))
    found = run(credentials().current())
    assert (found.authorization, found.certificate) == ("", Certificate(b"chain", b"key"))


def test_what_the_plugin_is_told(start: Callable[[Program], Program], tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text("CA")
    program = start(Program(printed("t")))
    cluster = Cluster(
        server="https://c",
        certificate_authority=str(authority),
        extensions=[{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
    )
    options = {"args": ["-a", "b c"], "env": [ExecVariable("MODE", "x")], "provide_cluster_info": True}
    run(credentials(cluster=cluster, **options).current())
    ((command, environment),) = program.starts
    assert command == ("login", "-a", "b c")
    assert environment["MODE"] == "x"
    assert "PATH" in environment
    told = json.loads(environment["KUBERNETES_EXEC_INFO"])
    assert (told["apiVersion"], told["kind"], told["spec"]["interactive"]) == (V1, "ExecCredential", False)
    assert told["spec"]["cluster"]["server"] == "https://c"
    assert base64.b64decode(told["spec"]["cluster"]["certificate-authority-data"]) == b"CA"
    assert told["spec"]["cluster"]["config"] == {"audience": "x"}


def test_the_cluster_is_told_only_to_who_asks(start: Callable[[Program], Program]) -> None:
    program = start(Program(printed("t")))
    run(credentials().current())
    assert "cluster" not in json.loads(program.starts[0][1]["KUBERNETES_EXEC_INFO"])["spec"]


@pytest.mark.parametrize(
    ("program", "error", "words"),
    [
        (Program(printed(SECRET), code=3, complaint=b"please log in"), Unavailable, "ended with 3: please log in"),
        (Program(SECRET.encode()), Unavailable, "no ExecCredential: not JSON"),
        (Program({"kind": SECRET}), Unavailable, "no ExecCredential: Object missing required field"),
        (Program(printed() | {"apiVersion": "v2"}), Unavailable, "ExecCredential of v2, not ExecCredential of"),
        (Program(printed()), Unavailable, "neither a token nor a certificate"),
        (Program(printed(clientCertificateData=SECRET)), Unavailable, "neither a token nor a certificate"),
        (Program(printed(SECRET + "\nX")), UsageError, "the token is empty or has"),
        (Program(b" " * (plugin.OUTPUT_BYTES_MAX + 1)), Unavailable, "printed more than"),
        (Program(b"", hangs=True), Unavailable, "did not end within 60 s"),
    ],
)
def test_a_plugin_that_fails(
    start: Callable[[Program], Program], program: Program, error: type[JobSetError], words: str
) -> None:
    start(program)
    with pytest.raises(JobSetError) as raised:
        run(credentials().current())
    assert type(raised.value) is error
    assert words in raised.value.message
    assert "'login'" in raised.value.message
    assert SECRET not in str(raised.value) + repr(raised.value.__cause__)
    assert program.is_killed == program.hangs


def test_a_plugin_that_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(plugin.asyncio, "create_subprocess_exec", refuse)
    with pytest.raises(UsageError, match="'login' cannot be started: No such file") as raised:
        run(credentials(install_hint="get it from example.com").current())
    assert "/home/me/.kube/config" in raised.value.message
    assert raised.value.hint == "get it from example.com"


def test_a_plugin_that_failed_is_run_again(start: Callable[[Program], Program]) -> None:
    program = start(Program(b"oops", printed("t")))

    async def main() -> str:
        found = credentials()
        with pytest.raises(Unavailable):
            await found.current()
        return (await found.current()).authorization

    assert run(main()) == "Bearer t"
    assert len(program.starts) == 2
