"""Builds the programs with Go, one after the other, each put in place only when it is whole.

Go keeps what it compiled, so a build that was interrupted goes on where it was. Called by `binaries.py` under a lock.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pyjobset.errors import PlaneError
from pyjobset.localplane.files import disk_errors
from pyjobset.localplane.programs import Program, flags, go_file, packages, versions
from pyjobset.localplane.progress import Counter, Progress, clock

COMPILED_BYTES = 2_000_000
"""Room that one compiled package takes in Go's cache, on the average and with some reserve."""
PROGRAM_BYTES = 150_000_000


def build(go: Path, programs: Sequence[Program], directory: Path, progress: Progress) -> None:
    """Builds the programs into the directory."""
    source = directory / "source"
    with disk_errors(source):
        source.mkdir(exist_ok=True)
        for name in ("go.mod", "go.sum"):
            (source / name).write_text(go_file(name))
    began = time.monotonic()
    names = ", ".join(p.name for p in programs)
    progress.step(f"Building {names} with {go} into {directory}. The first time takes minutes; Ctrl-C loses nothing.")
    runner = _Go(go, source)
    try:
        counter = Counter(_missing_packages(runner, programs, progress, began))
        _check_room(runner, directory, counter.total, len(programs))
        for index, program in enumerate(programs, 1):
            what = f"{program.name} ({index} of {len(programs)})"
            _build_one(runner, program, directory, counter, lambda w=what: _tell(progress, w, counter, began))  # type: ignore[misc]
    finally:
        progress.close()
    shutil.rmtree(source, ignore_errors=True)
    progress.step(f"Built {names} in {clock(time.monotonic() - began)}")


def _tell(progress: Progress, what: str, counter: Counter, began: float) -> None:
    progress.build(what, counter.done, counter.total, time.monotonic() - began)


def _missing_packages(go: "_Go", programs: Sequence[Program], progress: Progress, began: float) -> Sequence[str]:
    """What Go would have to compile now. Fetches the modules that are not there."""
    listed: list[str] = []
    downloads = 0

    def heard(line: str) -> None:
        nonlocal downloads
        if line.startswith("go: downloading"):
            downloads += 1
            progress.build("downloading modules", downloads, 0, time.monotonic() - began)

    progress.build("looking at what is there", 0, 0, 0.0)
    template = "{{if .Stale}}{{.ImportPath}}{{end}}"
    go.run(["list", "-deps", "-trimpath", "-mod=readonly", "-f", template, *packages(programs)], listed, heard)
    return [line for line in listed if line]


def _build_one(go: "_Go", program: Program, directory: Path, counter: Counter, tell: Callable[[], None]) -> None:
    partial = directory / f".{program.name}.{os.getpid()}"

    def heard(line: str) -> None:
        counter.compiled(line)
        tell()

    tell()
    try:
        arguments = ["build", "-v", *flags(versions()), "-o", str(partial), program.package]
        go.run(arguments, [], heard)
        with disk_errors(directory):
            partial.replace(directory / program.name)
    finally:
        partial.unlink(missing_ok=True)
    counter.compiled(program.package)
    tell()


def _check_room(go: "_Go", directory: Path, packages: int, programs: int) -> None:
    """Fails before the work when the disk cannot hold its result."""
    cache = Path(go.ask("env", "GOCACHE"))
    needs = {cache: packages * COMPILED_BYTES, directory: programs * PROGRAM_BYTES}
    for place, need in needs.items():
        there = next(p for p in (place, *place.parents) if p.exists())
        free = shutil.disk_usage(there).free
        if free < need:
            raise PlaneError(
                f"{place} needs {need / 1e9:.1f} GB free for the build and has {free / 1e9:.1f} GB",
                hint="free some space, or set XDG_CACHE_HOME and GOCACHE to directories on a larger disk",
            )


class _Go:
    """Runs go with an environment that makes every build the same."""

    def __init__(self, program: Path, source: Path) -> None:
        self._program = program
        self._source = source
        # GOFLAGS is set, not emptied: empty would bring back what `go env -w` stored.
        self._environment = {
            **{k: v for k, v in os.environ.items() if k not in ("GOROOT", "GOOS", "GOARCH", "GOWORK")},
            "CGO_ENABLED": "0",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
            "GOFLAGS": "-mod=readonly",
        }

    def ask(self, *arguments: str) -> str:
        answer: list[str] = []
        self.run(arguments, answer, lambda _: None)
        return "\n".join(answer)

    def run(self, arguments: Sequence[str], output: list[str], heard: Callable[[str], None]) -> None:
        """Runs go; lines of stdout are collected, lines of stderr are heard as they come."""
        errors: list[str] = []
        command = [str(self._program), *arguments]
        # stdout goes to a file, so that reading stderr line by line cannot block.
        with (self._source / "stdout").open("w+") as collected:
            with subprocess.Popen(
                command,
                cwd=self._source,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=collected,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            ) as process:
                assert process.stderr is not None
                try:
                    for line in process.stderr:
                        errors = [*errors[-40:], line.rstrip()]
                        heard(line.rstrip())
                except BaseException:
                    process.send_signal(signal.SIGINT)  # go then ends its compilers too
                    raise
            collected.seek(0)
            output.extend(collected.read().splitlines())
        if process.returncode != 0:
            raise failure(errors, process.returncode)


def failure(errors: Sequence[str], code: int) -> PlaneError:
    """What go's last words mean for the person."""
    said = "\n".join(dict.fromkeys(line for line in errors if not line.startswith("go: downloading")))
    shown = "\n".join(said.splitlines()[-8:]) or f"it ended with {code}"
    low = said.lower()
    if "no space left" in low or "disk quota exceeded" in low:
        return PlaneError(f"the disk is full: Go could not go on:\n{shown}", hint="free some space and try again")
    if any(
        s in low for s in ("no such host", "connection refused", "i/o timeout", "network is unreachable", "dial tcp")
    ):
        return PlaneError(
            f"Go modules could not be downloaded:\n{shown}",
            hint="connect to a network (or set GOPROXY) for the first build, or name ready programs with --bin-dir",
        )
    if "signal: killed" in low or "cannot allocate memory" in low:
        return PlaneError(f"Go ran out of memory:\n{shown}", hint="end some programs; the build needs about 4 GB")
    return PlaneError(
        f"Go could not build the local plane:\n{shown}", hint="run jobset up again: finished parts are kept"
    )
