"""The programs of a plane: where they are, and in which versions. Finds before it builds.

First a directory that somebody names (--bin-dir, JOBSET_PLANE_BIN), then the user's cache, then `build.py`. The one
go.mod beside this file says all versions; the cache is keyed by it and by how we build.
"""

import hashlib
import importlib.resources
import os
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyjobset.errors import PlaneError
from pyjobset.localplane.files import disk_errors, locked
from pyjobset.localplane.progress import Progress


@dataclass(frozen=True, slots=True)
class Program:
    """A program and the Go package that it is built from."""

    name: str
    package: str


PROGRAMS = (
    Program("etcd", "go.etcd.io/etcd/server/v3"),
    Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    Program("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
)
KUBECTL = Program("kubectl", "k8s.io/kubernetes/cmd/kubectl")
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
    from pyjobset.localplane import build, gotool

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


def versions() -> Mapping[str, str]:
    """The versions that go.mod asks for, with their `v`."""
    text = go_file("go.mod")
    modules = {"kubernetes": "k8s.io/kubernetes", "etcd": "go.etcd.io/etcd/server/v3", "kwok": "sigs.k8s.io/kwok"}
    return {name: _required(text, module) for name, module in modules.items()}


def flags(versions: Mapping[str, str]) -> list[str]:
    """How every program is built. The stamps make the API server say its version; without them it says v0.0.0."""
    kubernetes = versions["kubernetes"]
    major, minor = kubernetes.removeprefix("v").split(".")[:2]
    stamps = {
        "k8s.io/component-base/version.gitVersion": kubernetes,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": kubernetes,
    }
    linker = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in stamps.items())])
    return ["-trimpath", "-mod=readonly", "-buildvcs=false", "-ldflags", linker]


def go_minimum() -> tuple[int, int]:
    """The oldest Go that may build this go.mod."""
    match = re.search(r"^go (\d+)\.(\d+)", go_file("go.mod"), re.MULTILINE)
    assert match
    return int(match[1]), int(match[2])


def go_file(name: str) -> str:
    """go.mod or go.sum, as they come with the package."""
    return (importlib.resources.files("pyjobset.localplane") / "gomod" / name).read_text()


def packages(programs: Sequence[Program]) -> list[str]:
    return [p.package for p in programs]


def _required(text: str, module: str) -> str:
    match = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", text, re.MULTILINE)
    assert match, f"go.mod does not require {module}"
    return match[1]
