"""A fresh control plane for one trial, in a directory of its own that is gone afterwards.

Bare, only etcd and the API server are left running: nothing but the controller and this bench asks them. Collecting,
the garbage collector runs too: a deleted Job is gone only after it has looked. Full, the controller-manager, the
scheduler and simulated nodes run. The controllers to measure are started by `measure.py`.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyjobset.errors import PlaneError
from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import Plane
from pyjobset.localplane.processes import command_line

Kind = Literal["bare", "collecting", "full"]
USERS = ("kube-controller-manager", "kube-scheduler", "kwok")
"""The components that a bare plane does without."""
NODES = NodeLayout(count=20, cpu="64", memory="256Gi", topology={})
STOP_SECONDS_MAX = 20.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running plane, as far as a trial needs it."""

    kubeconfig: Path
    pid: int
    """Of the API server."""
    directory: Path
    """For the controllers' logs."""
    version: str


@contextlib.contextmanager
def fresh(kind: Kind, bin_dir: str = "") -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="jobset-bench-") as name, contextlib.ExitStack() as ends:
        layout = NODES if kind == "full" else NodeLayout(count=1, topology={})
        plane = Plane(Path(name) / "plane", PlaneOptions(controller=False, bin_dir=bin_dir, layout=layout))
        ends.callback(plane.stop)
        status = plane.start()
        pids = {c.name: c.pid for c in status.components}
        if kind != "full":
            collector = [*command_line(pids["kube-controller-manager"]), "--controllers=garbage-collector-controller"]
            _stop(plane)
            if kind == "collecting":
                ends.enter_context(_running(collector, Path(name) / "collector.log"))
        yield Server(plane.kubeconfig, pids["kube-apiserver"], Path(name), status.version)


@contextlib.contextmanager
def _running(command: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.terminate()


def _stop(plane: Plane) -> None:
    for pid in _users(plane):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS_MAX
    while _users(plane):
        if time.monotonic() > deadline:
            raise PlaneError(f"{', '.join(USERS)} did not all end within {STOP_SECONDS_MAX:.0f} s")
        time.sleep(0.05)


def _users(plane: Plane) -> list[int]:
    return [c.pid for c in plane.status().components if c.name in USERS and c.running]
