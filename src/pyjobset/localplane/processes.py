"""Daemons: start a program that outlives us, find it again, stop it. Used by `plane.py` for every component.

A process is ours when its pid file names it and its command line is the one we recorded; a pid that another program
got after a crash or a reboot never matches. Nothing here knows Kubernetes.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyjobset.errors import PlaneError
from pyjobset.localplane.files import write_private

LOGS_KEPT = 3
POLL_SECONDS = 0.02

# The outer shell ends at once, so the program belongs to nobody who could wait for it or hold its output open.
# The inner one writes the pid before it becomes the program: a crash in between leaves no unknown process.
_LAUNCH = """
umask 077; cd /
sh -c 'pid_file=$1; log=$2; shift 2; echo $$ >"$pid_file"; exec "$@" >>"$log" 2>&1 </dev/null' sh "$@" >/dev/null 2>&1 &
"""


@dataclass(frozen=True, slots=True)
class Daemon:
    """One program. `run` is the directory of pid files, `log` the file that gets both of its outputs."""

    name: str
    run: Path
    log: Path

    @property
    def pid_file(self) -> Path:
        return self.run / f"{self.name}.pid"

    @property
    def command_file(self) -> Path:
        return self.run / f"{self.name}.json"

    def command(self) -> list[str]:
        """The command line that was last started; empty when none was or the record is damaged."""
        try:
            recorded = json.loads(self.command_file.read_text())
        except (OSError, ValueError):
            return []
        return recorded if isinstance(recorded, list) and all(isinstance(a, str) for a in recorded) else []

    def pid(self) -> int:
        """The pid of the running program, or 0."""
        pid = _read_int(self.pid_file)
        return pid if pid > 1 and (command := self.command()) and command_line(pid) == command else 0

    def settle(self) -> None:
        """Waits for a program that was killed a moment ago: its ports are its own until the kernel is done with it."""
        pid = _read_int(self.pid_file)
        if pid > 1 and not self.pid():
            wait_until(lambda: not is_ending(pid), 5)

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Starts the program and returns its pid, or 0 when it ended at once: its log says why."""
        assert self.pid() == 0
        rotate(self.log)
        self.pid_file.unlink(missing_ok=True)
        write_private(self.command_file, json.dumps(list(command)))
        arguments = ["/bin/sh", "-c", _LAUNCH, "sh", str(self.pid_file), str(self.log), *command]
        subprocess.run(
            arguments,
            env=dict(environment),
            check=True,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if pid := self.pid():
                return pid
            if (written := _read_int(self.pid_file)) and has_ended(written):
                return 0
            time.sleep(POLL_SECONDS)
        return 0

    def tail(self, lines: int = 15) -> str:
        """The end of the log, for an error message."""
        return "\n".join(last_lines(self.log, lines))


def stop(daemons: Sequence[Daemon], *, grace_seconds: float) -> None:
    """Ends the programs that run: SIGTERM, then SIGKILL for those that outlast the grace. Returns once all are gone."""
    for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 10.0)):
        for daemon in daemons:
            if pid := daemon.pid():
                _signal(pid, number)
        wait_until(lambda: not any(d.pid() for d in daemons), seconds)
    for daemon in daemons:
        daemon.settle()
    if left := [f"{d.name} (pid {pid})" for d in daemons if (pid := d.pid())]:
        raise PlaneError(
            f"these processes do not end: {', '.join(left)}", hint="ps shows whether the kernel holds them"
        )
    for daemon in daemons:
        daemon.pid_file.unlink(missing_ok=True)


def wait_until(condition: Callable[[], bool], timeout_seconds: float) -> bool:
    """Polls the condition; False when the time is up first."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def command_line(pid: int) -> list[str]:
    """The arguments of a live process; empty when there is none, or only its unreaped remains."""
    if Path("/proc/self/stat").exists():
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            raw = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return []
        return [] if state in "ZX" else [os.fsdecode(a) for a in raw.split(b"\0")[:-1]]
    shown = subprocess.run(
        ["ps", "-ww", "-o", "stat=,args=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    state, _, arguments = shown.partition(" ")
    return [] if state.startswith("Z") else arguments.split()


def has_ended(pid: int) -> bool:
    """There is no such process, or only its remains. Not told by an empty command line: one that is just becoming
    another program has none for a moment."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return not command_line(pid)


def find(matches: Callable[[Sequence[str]], bool]) -> list[int]:
    """The pids whose command line matches. Looks where there is a /proc, else finds none."""
    numbers = [int(p.name) for p in Path("/proc").glob("[0-9]*")]
    return [pid for pid in numbers if (command := command_line(pid)) and matches(command)]


def kill(pids: Sequence[int]) -> None:
    """Ends processes that no Daemon knows."""
    for pid in pids:
        _signal(pid, signal.SIGKILL)
    wait_until(lambda: not any(command_line(pid) or is_ending(pid) for pid in pids), 10)


def is_ending(pid: int) -> bool:
    """Has the process lost its memory but not yet its open files? The last of its threads closes those."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
        return not command_line(pid) and (state not in "ZX" or threads > 1)
    except OSError:
        return False


def rotate(log: Path) -> None:
    """Makes room for a new log; the last LOGS_KEPT stay as .1, .2, …"""
    if not log.exists() or log.stat().st_size == 0:
        return
    for age in range(LOGS_KEPT, 0, -1):
        older = log.with_name(f"{log.name}.{age}")
        newer = log.with_name(f"{log.name}.{age - 1}") if age > 1 else log
        if newer.exists():
            newer.replace(older)


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a text file, read from its end."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            window = 16_384
            while True:
                file.seek(max(0, size - window))
                data = file.read(window)
                if data.count(b"\n") > count or window >= size:
                    return data.decode(errors="replace").splitlines()[-count:] if count else []
                window *= 4
    except OSError:
        return []


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _read_int(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
