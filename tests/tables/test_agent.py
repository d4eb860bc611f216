"""The in-place restart agent: its environment, what it does next, its life beside a JobSet, its worker, its probe."""

import asyncio
import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pyjobset.agent.agent import Agent
from pyjobset.agent.probe import Probe
from pyjobset.agent.program import main
from pyjobset.agent.protocol import Move, WatchedJobSet, attempt_to_join, next_move
from pyjobset.agent.settings import Settings, settings
from pyjobset.agent.worker import Worker
from pyjobset.errors import OutcomeUnknown, Unavailable, UsageError
from pyjobset.kube.client import Client
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.objects import labels
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.clock import run
from tests.http_peer import Peer, serving
from tests.watch_server import failure

NAMED = {"JOBSET_NAME": "js", "POD_NAME": "js-w-0-0-abcde"}


# The environment


def test_only_the_names_are_needed() -> None:
    assert settings(NAMED) == Settings("js", "js-w-0-0-abcde", "", "bash", "/barrier-is-down", 8081, 1)


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"WORKER_COMMAND": "python train.py"}, "worker_command", "python train.py"),
        ({"WORKER_COMMAND": ""}, "worker_command", ""),
        ({"SHELL": "/bin/sh"}, "shell", "/bin/sh"),
        ({"SHELL": ""}, "shell", "bash"),
        ({"STARTUP_PROBE_PATH": "/ready"}, "probe_path", "/ready"),
        ({"STARTUP_PROBE_PORT": "1"}, "probe_port", 1),
        ({"STARTUP_PROBE_PORT": "65535"}, "probe_port", 65535),
        ({"STARTUP_PROBE_PORT": "", "WORKER_COMMAND": "x"}, "probe_port", 8081),
        ({"IN_PLACE_RESTART_EXIT_CODE": "255", "WORKER_COMMAND": "x"}, "restart_exit_code", 255),
    ],
)
def test_settings(given: Mapping[str, str], field: str, value: object) -> None:
    assert getattr(settings(NAMED | given), field) == value


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"JOBSET_NAME": ""}, ["JOBSET_NAME is not set", "jobset.sigs.k8s.io/jobset-name"]),
        ({"POD_NAME": ""}, ["POD_NAME is not set", "metadata.name"]),
        ({"JOBSET_NAME": "a,metadata.namespace=b"}, ["JOBSET_NAME='a,metadata.namespace=b'"]),
        ({"POD_NAME": "../secrets/a"}, ["POD_NAME='../secrets/a'"]),
        ({"WORKER_COMMAND": "x", "STARTUP_PROBE_PATH": "/p"}, ["STARTUP_PROBE_PATH='/p'", "WORKER_COMMAND"]),
        ({"WORKER_COMMAND": "x", "STARTUP_PROBE_PORT": "1"}, ["STARTUP_PROBE_PORT='1'", "WORKER_COMMAND"]),
        ({"STARTUP_PROBE_PATH": "ready"}, ["STARTUP_PROBE_PATH='ready'", "begins with /"]),
        ({"STARTUP_PROBE_PATH": "/a b"}, ["STARTUP_PROBE_PATH='/a b'"]),
        ({"STARTUP_PROBE_PATH": "/a?b"}, ["STARTUP_PROBE_PATH='/a?b'"]),
        ({"STARTUP_PROBE_PORT": "http"}, ["STARTUP_PROBE_PORT='http'", "1 to 65535"]),
        ({"STARTUP_PROBE_PORT": "0"}, ["STARTUP_PROBE_PORT='0'"]),
        ({"STARTUP_PROBE_PORT": "65536"}, ["STARTUP_PROBE_PORT='65536'"]),
        ({"STARTUP_PROBE_PORT": "9" * 5000}, ["STARTUP_PROBE_PORT"]),
        ({"IN_PLACE_RESTART_EXIT_CODE": "0"}, ["IN_PLACE_RESTART_EXIT_CODE='0'", "1 to 255"]),
        ({"IN_PLACE_RESTART_EXIT_CODE": "-1"}, ["IN_PLACE_RESTART_EXIT_CODE='-1'"]),
    ],
)
def test_a_wrong_variable_is_one_clear_line_and_exit_code_2(
    given: Mapping[str, str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], NAMED | given) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in ["jobset-in-place-restart-agent: ", *words]), line


def test_all_wrong_variables_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        settings({"STARTUP_PROBE_PORT": "x"})
    assert [line.partition(" ")[0].partition("=")[0] for line in caught.value.message.splitlines()] == [
        "JOBSET_NAME",
        "POD_NAME",
        "STARTUP_PROBE_PORT",
    ]


@pytest.mark.parametrize("arguments", [["--namespace"], ["--namespace="], ["--verbose"], ["x"]])
def test_a_wrong_flag_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments, NAMED) == 2
    assert arguments[0].rstrip("=") in capsys.readouterr().err


def test_outside_of_a_pod_it_says_which_flag_helps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A kubeconfig that happens to be there, in the worker's image, is not the pod's cluster."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "any"))
    assert main([], NAMED) == 2
    assert "--kubeconfig" in capsys.readouterr().err


# What it does next


def jobset(
    current: int | None = None, previous: int | None = None, strategy: str = "InPlaceRestart", **metadata: Any
) -> Manifest:
    attempts = {"currentInPlaceRestartAttempt": current, "previousInPlaceRestartAttempt": previous}
    return {
        "metadata": {"namespace": "ns", "name": "js", "uid": "u1", **metadata},
        "spec": {"failurePolicy": {"restartStrategy": strategy}, "replicatedJobs": [{"name": "w", "template": {}}]},
        "status": {key: value for key, value in attempts.items() if value is not None},
    }


DISABLED = {"annotations": {labels.DISABLE_IN_PLACE_RESTART: ""}}


@pytest.mark.parametrize(
    ("seen", "attempt", "move"),
    [
        (jobset(), None, Move.JOIN),
        (jobset(5, 4), None, Move.JOIN),
        (jobset(), 0, Move.WAIT),
        (jobset(0), 0, Move.LIFT),
        (jobset(5, 4), 6, Move.WAIT),
        (jobset(5, 5), 6, Move.WAIT),
        (jobset(6, 5), 6, Move.LIFT),
        (jobset(5, 5), 5, Move.RESTART),
        (jobset(5, 5), 4, Move.RESTART),
        (jobset(7, 6), 6, Move.RESTART),
        (jobset(0, 0), 0, Move.RESTART),
        (jobset(5, 5, **DISABLED), 5, Move.LIFT),
        (jobset(5, 5, "Recreate"), 5, Move.LIFT),
        (jobset(**DISABLED), None, Move.LIFT),
        ({"metadata": {"name": "js"}}, None, Move.LIFT),
    ],
)
def test_moves(seen: Manifest, attempt: int | None, move: Move) -> None:
    assert next_move(msgspec.convert(seen, WatchedJobSet), attempt) is move


@pytest.mark.parametrize(("current", "attempt"), [(None, 0), (0, 1), (7, 8)])
def test_a_pod_joins_the_attempt_after_the_current_one(current: int | None, attempt: int) -> None:
    assert attempt_to_join(msgspec.convert(jobset(current), WatchedJobSet)) == attempt


# Its life


class Cluster:
    """An API server with one JobSet, behind the Transport protocol. `answers` are those of the next patches."""

    def __init__(self, seen: Manifest | None) -> None:
        self.seen = seen
        self.version = 1
        self.answers: list[Response | Exception] = []
        self.patches: list[Request] = []
        self.watches: list[str] = []
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.is_lifted = False

    # The Transport protocol

    async def send(self, request: Request) -> Response:
        assert request.method == "PATCH"
        self.patches.append(request)
        answer = self.answers.pop(0) if self.answers else Response(200, b'{"metadata": {"name": "p"}}')
        if isinstance(answer, Exception):
            raise answer
        return answer

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        self.watches.append(request.target)
        if self.seen is not None:
            self.lines.put_nowait(self._line("ADDED", self.seen))
        end = {"k8s.io/initial-events-end": "true"}
        self.lines.put_nowait(self._line("BOOKMARK", {"metadata": {"annotations": end}}))

        async def lines() -> AsyncIterator[bytes]:
            while True:
                yield await self.lines.get()

        yield lines()

    async def close(self) -> None:
        pass

    # The Barrier protocol

    def lift(self) -> None:
        self.is_lifted = True

    # What happens

    def tell(self, seen: Manifest, type_: str = "MODIFIED") -> None:
        self.lines.put_nowait(self._line(type_, seen))

    @property
    def attempts(self) -> list[str]:
        bodies = [json.loads(request.body) for request in self.patches]
        return [body["metadata"]["annotations"][labels.IN_PLACE_RESTART_ATTEMPT] for body in bodies]

    def _line(self, type_: str, seen: Manifest) -> bytes:
        self.version += 1
        metadata = {**seen["metadata"], "resourceVersion": str(self.version)}
        return json.dumps({"type": type_, "object": {**seen, "metadata": metadata}}).encode()


def life(seen: Manifest | None, case: Callable[[Cluster, asyncio.Task[None]], Awaitable[None]]) -> None:
    """Runs an agent in virtual time beside the case, then stops it."""

    async def both() -> None:
        cluster = Cluster(seen)
        async with Client(cluster) as client:
            agent = Agent(client, namespace="ns", jobset="js", pod="p", barrier=cluster)
            running = asyncio.create_task(agent.run())
            await asyncio.sleep(1)
            await case(cluster, running)
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    run(both())


def test_it_joins_waits_lifts_and_restarts() -> None:
    async def case(cluster: Cluster, agent: asyncio.Task[None]) -> None:
        (patch,) = cluster.patches
        assert patch.target.partition("?")[0] == "/api/v1/namespaces/ns/pods/p"
        assert patch.content_type == "application/apply-patch+yaml"
        assert "fieldManager=jobset-in-place-restart-agent" in patch.query
        assert (cluster.attempts, cluster.is_lifted) == (["3"], False)
        cluster.tell(jobset(2, 2))
        await asyncio.sleep(1)
        assert not cluster.is_lifted
        cluster.tell(jobset(3, 2))
        await asyncio.sleep(1)
        assert cluster.is_lifted
        assert not agent.done()
        cluster.tell(jobset(3, 3))
        await asyncio.sleep(1)
        assert agent.done()
        assert cluster.attempts == ["3"]

    life(jobset(2, 1), case)


def test_it_watches_exactly_one_jobset() -> None:
    async def case(cluster: Cluster, _: asyncio.Task[None]) -> None:
        (watch,) = cluster.watches
        assert watch.startswith("/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets?")
        assert "fieldSelector=metadata.name%3Djs" in watch

    life(jobset(), case)


@pytest.mark.parametrize("seen", [jobset(strategy="Recreate"), jobset(3, 2, **DISABLED)])
def test_a_bypass_lifts_at_once_and_says_nothing(seen: Manifest) -> None:
    async def case(cluster: Cluster, agent: asyncio.Task[None]) -> None:
        assert cluster.is_lifted
        assert cluster.patches == []
        assert not agent.done()

    life(seen, case)


def test_a_bypass_that_is_set_later_lifts_and_one_that_is_taken_away_joins() -> None:
    async def case(cluster: Cluster, agent: asyncio.Task[None]) -> None:
        assert not cluster.is_lifted
        cluster.tell(jobset(5, 9, **DISABLED))
        await asyncio.sleep(1)
        assert cluster.is_lifted
        assert not agent.done()
        cluster.tell(jobset(5, 9))
        await asyncio.sleep(1)
        assert agent.done()

    life(jobset(2, 1), case)

    async def taken_away(cluster: Cluster, _: asyncio.Task[None]) -> None:
        cluster.tell(jobset(2, 1))
        await asyncio.sleep(1)
        assert cluster.attempts == ["3"]

    life(jobset(2, 1, **DISABLED), taken_away)


REFUSED = failure(403, "Forbidden", "pods is forbidden")


@pytest.mark.parametrize(
    "answers",
    [[Unavailable("down")] * 6, [OutcomeUnknown("reset")], [REFUSED] * 9, [failure(500, "InternalError")] * 3],
)
def test_a_server_that_does_not_answer_or_refuses_is_waited_out(answers: list[Response | Exception]) -> None:
    async def case(cluster: Cluster, agent: asyncio.Task[None]) -> None:
        await asyncio.sleep(300)
        assert cluster.attempts[-1] == "0"
        assert len(cluster.patches) == len(answers) + 1
        cluster.tell(jobset(0))
        await asyncio.sleep(1)
        assert cluster.is_lifted

    def begin(seen: Manifest) -> None:
        async def first(cluster: Cluster, agent: asyncio.Task[None]) -> None:
            cluster.answers = list(answers)
            cluster.tell(seen, "ADDED")
            await case(cluster, agent)

        life(None, first)

    begin(jobset())


def test_what_it_says_after_an_outage_is_the_attempt_that_is_right_then() -> None:
    async def case(cluster: Cluster, _: asyncio.Task[None]) -> None:
        cluster.answers = [REFUSED] * 100
        cluster.tell(jobset(2), "ADDED")
        await asyncio.sleep(60)
        cluster.answers = []
        cluster.tell(jobset(7, 6))
        await asyncio.sleep(60)
        assert cluster.attempts[-1] == "8"

    life(None, case)


def test_without_its_jobset_it_waits_and_when_it_goes_it_goes_on() -> None:
    async def case(cluster: Cluster, agent: asyncio.Task[None]) -> None:
        await asyncio.sleep(600)
        assert cluster.patches == []
        cluster.tell(jobset(), "ADDED")
        await asyncio.sleep(1)
        cluster.tell(jobset(0))
        await asyncio.sleep(1)
        assert cluster.is_lifted
        cluster.tell(jobset(0), "DELETED")
        cluster.tell(jobset(9, 9, uid="u2"), "ADDED")  # somebody made another one of that name
        await asyncio.sleep(600)
        assert not agent.done()
        assert cluster.attempts == ["0"]

    life(None, case)


# The worker


async def worker_of(command: str, shell: str = "sh") -> Worker:
    worker = Worker(shell, command)
    worker.lift()
    worker.lift()  # once is enough
    return worker


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
        ("command-that-is-not-there", 127),
        ('test "$GREETING" = "a b"', 0),
        ("yes | head -n 1 > /dev/null", 0),
    ],
)
def test_the_exit_code_is_the_workers(command: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREETING", "a b")

    async def case() -> int:
        worker = await worker_of(command)
        return await asyncio.wait_for(worker.exit_code, 20)

    assert asyncio.run(case()) == code


def test_signals_that_python_ignores_are_not_ignored_by_the_worker() -> None:
    async def case() -> int:
        worker = await worker_of("kill -PIPE $$; exit 0")
        return await asyncio.wait_for(worker.exit_code, 20)

    assert asyncio.run(case()) == 128 + signal.SIGPIPE


def test_a_worker_that_is_started_twice_runs_once(tmp_path: Path) -> None:
    async def case() -> None:
        worker = await worker_of(f"echo x >> {tmp_path / 'runs'}")
        await asyncio.wait_for(worker.exit_code, 20)

    asyncio.run(case())
    assert (tmp_path / "runs").read_text() == "x\n"


def test_a_signal_reaches_all_of_the_worker(tmp_path: Path) -> None:
    script = (
        f"(trap 'echo child >> {tmp_path}/ends; exit' TERM; echo >> {tmp_path}/up; while :; do sleep 0.05; done) &\n"
    )
    script += f"trap 'echo parent >> {tmp_path}/ends; wait; exit 5' TERM; echo >> {tmp_path}/up; wait"

    async def case() -> int:
        worker = await worker_of(script)
        while not (tmp_path / "up").exists() or len((tmp_path / "up").read_text()) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        worker.send(signal.SIGTERM)
        return await asyncio.wait_for(worker.exit_code, 20)

    assert asyncio.run(case()) == 5
    assert sorted((tmp_path / "ends").read_text().split()) == ["child", "parent"]


def test_nothing_of_the_worker_outlives_the_agent(tmp_path: Path) -> None:
    async def case() -> int:
        worker = await worker_of(f"sleep 1000 & echo $! > {tmp_path}/pid; mv {tmp_path}/pid {tmp_path}/child; wait")
        while not (tmp_path / "child").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        assert worker.is_running
        worker.close()
        async with asyncio.timeout(20):
            while not _is_gone(int((tmp_path / "child").read_text())):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            return await worker.exit_code

    assert asyncio.run(case()) == 128 + signal.SIGKILL


@pytest.mark.parametrize("pid", [1, 2])
def test_as_process_1_it_buries_orphans_and_elsewhere_it_leaves_them_to_others(
    pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    subreaper = 36  # PR_SET_CHILD_SUBREAPER: orphans of our children become ours, as they do for process 1
    system = ctypes.CDLL(None)
    monkeypatch.setattr(os, "getpid", lambda: pid)

    async def case() -> int:
        worker = await worker_of("(exit 0 & sleep 0.1 & sleep 0.3) ; (sleep 0.1 &) ; sleep 0.5")
        return await asyncio.wait_for(worker.exit_code, 20)

    system.prctl(subreaper, 1, 0, 0, 0)
    try:
        assert asyncio.run(case()) == 0
        if pid == 1:
            with pytest.raises(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
        else:
            assert os.waitpid(-1, os.WNOHANG)[0] > 1
    finally:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        system.prctl(subreaper, 0, 0, 0, 0)


def _is_gone(pid: int) -> bool:
    """Dead, be it that nobody has buried it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_shell_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match="SHELL='/none/sh': No such file or directory: set SHELL"):
        asyncio.run(worker_of("exit 0", "/none/sh"))


# The probe


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def ask(port: int, line: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{line}\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer.partition("\r\n")[0]


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        ("GET /barrier-is-down HTTP/1.1", "503 Service Unavailable", "200 OK"),
        ("HEAD /barrier-is-down HTTP/1.1", "503 Service Unavailable", "200 OK"),
        ("GET /barrier-is-down?x HTTP/1.1", "503 Service Unavailable", "200 OK"),
        ("GET / HTTP/1.1", "404 Not Found", "404 Not Found"),
        ("GET /barrier-is-down/x HTTP/1.1", "404 Not Found", "404 Not Found"),
        ("POST /barrier-is-down HTTP/1.1", "405 Method Not Allowed", "405 Method Not Allowed"),
        ("", "405 Method Not Allowed", "405 Method Not Allowed"),
    ],
)
def test_the_probe(line: str, before: str, after: str) -> None:
    async def case() -> tuple[str, str]:
        port = free_port()
        probe = Probe("/barrier-is-down", port)
        await probe.start()
        first = await ask(port, line)
        probe.lift()
        probe.lift()
        second = await ask(port, line)
        probe.close()
        return first, second

    assert asyncio.run(case()) == (f"HTTP/1.1 {before}", f"HTTP/1.1 {after}")


def test_a_line_without_end_is_cut_off() -> None:
    async def case() -> str:
        port = free_port()
        probe = Probe("/", port)
        await probe.start()
        try:
            return await ask(port, "GET /" + "a" * 100_000)
        except ConnectionError:
            return ""
        finally:
            probe.close()

    assert asyncio.run(case()) == ""


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"STARTUP_PROBE_PORT={port}: .*: choose a port"):
            asyncio.run(Probe("/", port).start())


# The program


async def ran(tmp_path: Path, worker: str, *, stop: bool = False, **environment: str) -> tuple[int, str]:
    """The exit code and log of the program beside a JobSet that does not hold it back. `stop`: it gets a SIGTERM when
    the worker has made a file `up`."""
    watched = jobset(strategy="Recreate", resourceVersion="7")
    end = {"metadata": {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}}
    events = [{"type": "ADDED", "object": watched}, {"type": "BOOKMARK", "object": end}]
    stream = b"HTTP/1.1 200 OK\r\n\r\n" + b"".join(json.dumps(event).encode() + b"\n" for event in events)
    async with serving(Peer(stream)) as peer:
        config = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": peer.url}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "namespace": "ns"}}],
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        program = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "pyjobset.agent.main", "--kubeconfig", "kubeconfig"),
            cwd=tmp_path,
            env={**os.environ, **NAMED, "WORKER_COMMAND": worker, "SHELL": "/bin/sh", **environment},
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            while stop and not (tmp_path / "up").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            if stop:
                program.terminate()
            _, log = await program.communicate()
    assert program.returncode is not None
    return program.returncode, log.decode()


def test_the_program_ends_as_its_worker_does(tmp_path: Path) -> None:
    code, log = asyncio.run(ran(tmp_path, "exit 9"))
    assert (code, "the barrier is down" in log, "Traceback" in log) == (9, True, False), log


def test_a_signal_leaves_the_worker_the_time_that_it_needs(tmp_path: Path) -> None:
    worker = "trap 'sleep 0.3; echo bye > bye; exit 0' TERM; echo > up; while :; do sleep 0.02; done"
    code, log = asyncio.run(ran(tmp_path, worker, stop=True))
    assert (code, (tmp_path / "bye").exists()) == (128 + signal.SIGTERM, True), log


def test_a_shell_that_the_image_lacks_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    code, log = asyncio.run(ran(tmp_path, "exit 0", SHELL="/none/sh"))
    assert code == 2
    assert log.splitlines()[-1].startswith("jobset-in-place-restart-agent: SHELL='/none/sh': No such file"), log
    assert "Traceback" not in log
