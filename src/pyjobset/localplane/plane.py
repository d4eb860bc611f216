"""A local control plane: real etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok nodes, our controller.

    plane = Plane(directory, options)     # directory=None: the user's own; options=None: what is stored there, or the defaults
    status = plane.start()                # builds what is missing, starts or repairs, returns when everything is ready
    plane.kubeconfig                      # Path of the administrator's kubeconfig; plane.kubectl: Path of a kubectl
    plane.run_kubectl("get", "jobsets")   # CompletedProcess[str]; never raises on a non-zero exit
    plane.add_nodes(NodeLayout(count=1))  # -> names; also plane.nodes(), plane.remove_nodes(names)
    plane.status()                        # -> PlaneStatus: running, server, version, components, nodes
    plane.stop(); plane.reset()           # end the processes; forget the state as well

The processes are daemons: they outlive the program that called `start`. Two planes in two directories do not meet.
Every failure is a PlaneError that says what, where and what to do. `progress` hears of each step (see progress.py).
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from pyjobset.localplane.options import NodeLayout, PlaneOptions


class ComponentStatus(Struct, frozen=True):
    """One process. `pid` and `port` are 0 when there is none."""

    name: str
    running: bool
    pid: int
    port: int
    log: str


class NodeStatus(Struct, frozen=True):
    """One simulated node."""

    name: str
    ready: bool
    cpu: str
    memory: str
    labels: dict[str, str]


class PlaneStatus(Struct, frozen=True):
    """`running`: all components run and the API server answers. `nodes` is None while it does not answer."""

    running: bool
    directory: str
    kubeconfig: str
    server: str
    version: str
    components: list[ComponentStatus]
    nodes: list[NodeStatus] | None = None


class Plane:
    """A control plane that lives in one directory."""

    def __init__(
        self, directory: Path | None = None, options: PlaneOptions | None = None, *, progress: object | None = None
    ) -> None:
        self.directory = directory or Path()
        self.options = options or PlaneOptions()
        self.kubeconfig = self.directory / "kubeconfig"

    @property
    def kubectl(self) -> Path:
        raise NotImplementedError

    def start(self) -> PlaneStatus:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def reset(self) -> None:
        raise NotImplementedError

    def status(self) -> PlaneStatus:
        raise NotImplementedError

    def run_kubectl(self, *arguments: str, stdin: str = "", timeout_seconds: float = 60) -> subprocess.CompletedProcess[str]:
        raise NotImplementedError

    def nodes(self) -> list[NodeStatus]:
        raise NotImplementedError

    def add_nodes(self, layout: NodeLayout) -> list[str]:
        raise NotImplementedError

    def remove_nodes(self, names: Sequence[str]) -> None:
        raise NotImplementedError
