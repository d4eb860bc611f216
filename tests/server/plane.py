"""Fixtures for tests on real Kubernetes. One plane serves all workers of a test run; the last one out stops it.

`plane`, `kubectl`, `namespace` and `wait_for` are for almost every test. `make_plane` is for those that need a plane of
their own: other gates, no controller, a component to kill. Import them from here into a folder's conftest.py.
"""

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Protocol, TypeVar

import pytest

from pyjobset.errors import PlaneError
from pyjobset.localplane.files import locked
from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import Plane
from pyjobset.localplane.processes import command_line

T = TypeVar("T")
PLANE = pytest.StashKey[Plane]()
NO_CONTROLLER = "JOBSET_TEST_NO_CONTROLLER"
"""Set it to run the controller yourself, for example under a debugger."""
GATES = {"RestartJob": True, "JobSetActiveDeadlineSeconds": True, "InPlaceRestart": True}
"""Of the controller, beside those that are on by default on a plane."""
PATIENCE_SECONDS = 180.0
"""For all that must come to be, so that a slow machine is no fault. Where all is well nobody waits so long."""
NOT_YET = (AssertionError, LookupError, ValueError, StopIteration, OSError, PlaneError)
"""What a look at something raises that is not there, or not complete."""


class Kubectl(Protocol):
    def __call__(
        self, *arguments: str, stdin: str = "", timeout_seconds: float = 120
    ) -> CompletedProcess[str]: ...  # never raises on a non-zero exit


class MakePlane(Protocol):
    def __call__(self, *, start: bool = True, **options: Any) -> Plane: ...  # options: fields of PlaneOptions


def wait_for(condition: Callable[[], T], what: str) -> T:
    """The first true value of the condition. One of NOT_YET in it is shown when time is up."""
    began = time.monotonic()
    while True:
        try:
            if value := condition():
                return value
            seen = f"last value: {value!r}"
        except NOT_YET as error:
            seen = f"{type(error).__name__} {error}"
        passed = time.monotonic() - began
        if passed >= PATIENCE_SECONDS:
            pytest.fail(f"{what}: not after {PATIENCE_SECONDS} seconds; {seen}")
        # A look is a process: four workers that look ten times a second would keep the machine busy.
        time.sleep(min(max(0.1, passed / 10), 1.0))


@contextmanager
def shared_plane(root: Path) -> Iterator[Plane]:
    """The plane below `root`, started by the first process that enters and stopped by the last that leaves."""
    users = root / "users"
    users.mkdir(exist_ok=True)
    me = users / str(os.getpid())
    plane = Plane(root / "plane", PlaneOptions(controller=NO_CONTROLLER not in os.environ, feature_gates=GATES))
    try:
        with locked(root / "lock", lambda: None):
            me.touch()
            plane.start()
        yield plane
    finally:
        with locked(root / "lock", lambda: None):
            me.unlink(missing_ok=True)
            if not any(command_line(int(user.name)) for user in users.iterdir()):
                plane.stop()


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Plane]:
    """The shared plane: default gates and nodes, controller on. Do not kill or reconfigure it."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared-plane"
    root.mkdir(exist_ok=True)
    with shared_plane(root) as shared:
        request.config.stash[PLANE] = shared
        yield shared


@pytest.fixture
def kubectl(plane: Plane) -> Kubectl:
    """Runs the real kubectl on the shared plane."""
    return plane.run_kubectl


@pytest.fixture
def namespace(request: pytest.FixtureRequest, kubectl: Kubectl) -> Iterator[str]:
    """A fresh namespace, named after the test."""
    readable = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    name = f"{readable}-{secrets.token_hex(3)}"
    created = kubectl("create", "namespace", name)
    assert created.returncode == 0, created.stderr
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def make_plane(tmp_path: Path) -> Iterator[MakePlane]:
    """Makes planes that belong to the test alone; they are gone after it. Two nodes and no controller unless asked."""
    made: list[Plane] = []

    def make(*, start: bool = True, **options: Any) -> Plane:
        chosen = {"controller": False, "layout": NodeLayout(count=2), **options}
        plane = Plane(tmp_path / f"plane-{len(made)}", PlaneOptions(**chosen))
        made.append(plane)
        if start:
            plane.start()
        return plane

    yield make
    for plane in made:
        plane.reset()


def describe(plane: Plane, namespace: str) -> str:
    """What a person would look at first when a test on the plane has failed."""
    kinds = "jobsets,workloads,podgroups,jobs,pods"
    shown = [plane.run_kubectl("get", kinds, "-n", namespace, "-o", "wide") if namespace else None]
    shown.append(plane.run_kubectl("get", "events", "-n", namespace, "--sort-by=.lastTimestamp") if namespace else None)
    texts = [part.stdout + part.stderr for part in shown if part]
    controller = plane.log("controller")
    tail = "\n".join(controller.read_text(errors="replace").splitlines()[-30:]) if controller.exists() else ""
    return "\n".join([*texts, f"--- {controller}", tail])
