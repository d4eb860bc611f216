"""Where the programs of a plane are. Finds before it builds.

First a directory that somebody names (--bin-dir, JOBSET_PLANE_BIN), then the user's cache, then `build.py`. The cache
is keyed by the versions and by how we build, which `programs.py` says.
"""

import hashlib
import os
import platform
import shutil
from pathlib import Path

from pyjobset.errors import PlaneError
from pyjobset.localplane import build, gotool
from pyjobset.localplane.files import disk_errors, locked
from pyjobset.localplane.programs import KUBECTL, PROGRAMS, Program, flags, go_file, go_minimum, versions
from pyjobset.localplane.progress import Progress

BIN_VARIABLE = "JOBSET_PLANE_BIN"


def ensure(bin_dir: str, progress: Progress) -> Path:
    """A directory that holds every program. Builds what is missing, unless the directory was named by somebody."""
    if named := bin_dir or os.environ.get(BIN_VARIABLE, ""):
        directory = Path(named).expanduser().absolute()
        if lacking := missing(directory):
            names = ", ".join(p.name for p in lacking)
            raise PlaneError(
                f"{directory} lacks {names}",
                hint=f"leave out --bin-dir and {BIN_VARIABLE} to have them built, or put them there",
            )
        return directory
    directory = cache() / cache_key()
    if missing(directory):
        _build(directory, progress)
    return directory


def _build(directory: Path, progress: Progress) -> None:
    with disk_errors(directory):
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    with locked(directory / ".lock", lambda: progress.step("another build is running; waiting for it")):
        lacking = missing(directory)  # the other build may have made them
        if lacking:
            go = gotool.find(go_minimum(), cache(), progress)
            build.build(go, lacking, directory, progress)


def missing(directory: Path) -> list[Program]:
    """What the directory lacks. kubectl is wanted only when there is none on the PATH."""
    wanted = [*PROGRAMS, *([] if shutil.which("kubectl") else [KUBECTL])]
    return [p for p in wanted if not os.access(directory / p.name, os.X_OK) or (directory / p.name).is_dir()]


def kubectl(directory: Path) -> Path:
    """The kubectl to use: the person's own, else ours."""
    return Path(shutil.which("kubectl") or directory / KUBECTL.name)


def cache() -> Path:
    """The user's cache directory for pyjobset."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return root / "jobset"


def cache_key() -> str:
    """The versions for people, a hash of all that decides about the build for certainty."""
    system = (platform.system().lower(), platform.machine().lower())
    digest = hashlib.sha256("\0".join([go_file("go.mod"), go_file("go.sum"), *flags(versions()), *system]).encode())
    found = versions()
    names = (("kubernetes", found["kubernetes"]), ("etcd", found["etcd"]), ("kwok", found["kwok"]))
    return "-".join([*(f"{n}{v.removeprefix('v')}" for n, v in names), digest.hexdigest()[:12]])
