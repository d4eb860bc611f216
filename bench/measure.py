"""Processes: start a controller, wait until it is ready, read what it used, stop it. Linux only, by /proc.

Used by `trial.py` for our controller and any other. It knows no JobSet; figures are taken, never judged.
"""

import contextlib
import http.client
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyjobset.errors import PlaneError, UsageError

READY_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 20.0
POLL_SECONDS = 0.005
FOREIGN_ARGUMENTS = (
    "--kubeconfig={kubeconfig} --health-probe-bind-address={health} --metrics-bind-address=0 --leader-elect=false"
)
"""What a controller of the usual kind takes."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used since its start."""

    cpu_seconds: float
    rss_peak_mib: float

    @classmethod
    def of(cls, pid: int) -> "Usage":
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])  # utime, stime
        return cls(ticks / os.sysconf("SC_CLK_TCK"), rss_peak_kib(Path(f"/proc/{pid}/status").read_text()) / 1024)


def rss_peak_kib(status: str) -> int:
    """VmHWM of a /proc/PID/status."""
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1])


@dataclass(frozen=True, slots=True)
class Program:
    """A controller to measure. `{kubeconfig}`, `{health}` (host:port) and `{run}` in the command are filled in."""

    name: str
    command: Sequence[str]

    def arguments(self, kubeconfig: Path, health: str, run: str) -> list[str]:
        values = {"{kubeconfig}": str(kubeconfig), "{health}": health, "{run}": run}
        return [_filled(part, values) for part in self.command]


def ours(*, arguments: str = "", profile: Path | None = None) -> Program:
    """Our controller, as `jobset controller` runs it. `profile`: where cProfile writes what took its time."""
    program = ["-m", "bench.profiled", str(profile)] if profile else ["-m", "pyjobset"]
    gates = "JobSetWorkloadAwareSchedulingAPI=true"
    flags = ["--kubeconfig={kubeconfig}", "--health-probe-bind-address={health}", f"--feature-gates={gates}"]
    flags.append("--metrics-bind-address=0")  # as the other controller is measured
    command = [sys.executable, *program, "controller", *flags, "--zap-log-level=warning"]
    return Program("pyjobset", [*command, *shlex.split(arguments)])


def foreign(binary: Path, arguments: str = FOREIGN_ARGUMENTS) -> Program:
    if not os.access(binary, os.X_OK) or binary.is_dir():
        raise UsageError(f"--controller-binary {binary}: not a program", hint="give the path of an executable file")
    return Program(binary.name, [str(binary.absolute()), *shlex.split(arguments)])


@dataclass(frozen=True, slots=True)
class Running:
    """A controller that is ready. `ready_seconds` and `start` are what it took until then."""

    pid: int
    ready_seconds: float
    start: Usage

    def usage(self) -> Usage:
        return Usage.of(self.pid)


@contextlib.contextmanager
def compiled_python() -> Iterator[None]:
    """Lets Python keep its compiled modules while the block runs: a start is measured as those see it who have started
    the program before. Some workplaces switch that off."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="jobset-bench-") as directory:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = directory
        try:
            subprocess.run([sys.executable, "-c", "import pyjobset.controller.manager"], check=True)
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


@contextlib.contextmanager
def running(program: Program, kubeconfig: Path, log: Path) -> Iterator[Running]:
    """Runs the controller until the block ends. `{run}` is the name of its log. Raises PlaneError, with the end of the
    log, if it is never ready."""
    health = f"127.0.0.1:{_free_port()}"
    arguments = program.arguments(kubeconfig, health, log.stem)
    started = time.perf_counter()
    with log.open("wb") as output, subprocess.Popen(arguments, stdout=output, stderr=output) as process:
        try:
            _wait_ready(process, program, health, log)
            seconds = time.perf_counter() - started
            yield Running(process.pid, seconds, Usage.of(process.pid))
        finally:
            _stop(process)


@dataclass(frozen=True, slots=True)
class Command:
    """One run of a program from its start to its end."""

    seconds: float
    cpu_seconds: float


def cold(command: Sequence[str], times: int) -> list[Command]:
    """Several runs after a first that does not count. Output goes nowhere."""

    def run() -> Command:
        before, started = os.times(), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds, after = time.perf_counter() - started, os.times()
        user, system = after.children_user - before.children_user, after.children_system - before.children_system
        return Command(seconds, user + system)

    return [run() for _ in range(times + 1)][1:]


def _wait_ready(process: subprocess.Popen[bytes], program: Program, health: str, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not _answers(health):
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            what = f"ended with {process.returncode}" if ended else f"was not ready after {READY_SECONDS_MAX:.0f} s"
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise PlaneError(f"{program.name} {what}. The end of its log:\n{tail}")
        time.sleep(POLL_SECONDS)


def _answers(health: str) -> bool:
    connection = http.client.HTTPConnection(health, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text
