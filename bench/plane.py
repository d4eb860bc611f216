"""A fresh control plane for one trial, in a directory of its own that is gone afterwards.

Bare, only etcd and the API server are left running: nothing but the controller and this bench asks them. Full, the
controller-manager, the scheduler and simulated nodes run too. Our own controller is started by `measure.py`.
"""

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyjobset.errors import PlaneError
from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import Plane

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
def fresh(*, full: bool, bin_dir: str = "") -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="jobset-bench-") as name:
        layout = NODES if full else NodeLayout(count=1, topology={})
        plane = Plane(Path(name) / "plane", PlaneOptions(controller=False, bin_dir=bin_dir, layout=layout))
        try:
            status = plane.start()
            if not full:
                _stop(plane)
            server = next(c for c in status.components if c.name == "kube-apiserver")
            yield Server(plane.kubeconfig, server.pid, Path(name), status.version)
        finally:
            plane.stop()


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
