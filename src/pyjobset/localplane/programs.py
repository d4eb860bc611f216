"""The programs of a plane, in which versions, and how they are built. Pure but for reading the files beside it.

The one go.mod says all versions. `binaries.py` finds the programs and keys the user's cache by what is here; `build.py`
builds them.
"""

import importlib.resources
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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
