"""A local control plane: real etcd, API server, controller-manager and scheduler, kwok nodes, our controller.

    plane = Plane(directory, options)     # directory=None: the user's own; options=None: those stored there or defaults
    status = plane.start()                # builds what is missing, starts or repairs; returns when everything is ready
    plane.kubeconfig                      # Path of the administrator's kubeconfig
    plane.run_kubectl("get", "jobsets")   # CompletedProcess[str]; never raises on a non-zero exit
    plane.add_nodes(NodeLayout(count=1))  # -> names; also plane.nodes(), plane.remove_nodes(names)
    plane.status()                        # -> PlaneStatus: running, server, version, components, nodes
    plane.stop(); plane.reset()           # end the processes; forget the state as well

The processes are daemons: they outlive the program that called `start`. Two planes in two directories do not meet.
Every failure is a PlaneError that says what, where and what to do. `progress` hears of each step (see progress.py).
"""

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from pyjobset.errors import PlaneError, UsageError
from pyjobset.localplane import binaries, contents, kubeconfig, ports, programs, stages, state, webhooks
from pyjobset.localplane.api import TIMEOUT_SECONDS, ApiServer, tls
from pyjobset.localplane.components import (
    API_SERVER,
    CONTROLLER,
    CONTROLLER_MANAGER,
    ETCD,
    KWOK,
    METRICS,
    MORE_PORTS,
    NAMES,
    PORTS,
    SCHEDULER,
    WEBHOOK,
    Component,
    Places,
    components,
    scheduler_configuration,
)
from pyjobset.localplane.contents import NodeStatus
from pyjobset.localplane.files import locked, write_private
from pyjobset.localplane.nodes import free_names
from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.progress import Progress
from pyjobset.localplane.supervise import PortTaken, Supervisor

_ATTEMPTS = 3
_STATUS_SECONDS = 5


class ComponentStatus(Struct, frozen=True):
    """One process. `pid` and `port` are 0 when there is none."""

    name: str
    running: bool
    pid: int
    port: int
    log: str


class PlaneStatus(Struct, frozen=True):
    """`running`: all components run and the API server answers. `nodes` is None while it does not answer. `metrics` is
    where those of our controller are read, empty without one. The gates are those that were given."""

    running: bool
    directory: str
    kubeconfig: str
    kubectl: str
    server: str
    version: str
    components: list[ComponentStatus]
    nodes: list[NodeStatus] | None = None
    metrics: str = ""
    feature_gates: dict[str, bool] = {}
    kubernetes_feature_gates: dict[str, bool] = {}


class Plane:
    """A control plane that lives in one directory."""

    def __init__(
        self, directory: Path | None = None, options: PlaneOptions | None = None, *, progress: Progress | None = None
    ) -> None:
        self.directory = (directory or state.default_directory()).expanduser().absolute()
        self.kubeconfig = self.directory / "kubeconfig"
        self._progress = progress or Progress()
        self._options = options
        self._places = Places(self.directory, Path())
        self._supervisor = Supervisor(self._places)

    @property
    def options(self) -> PlaneOptions:
        """The options given, else those of the plane that is there, else the defaults."""
        return self._options or self._state().options

    @property
    def exists(self) -> bool:
        """Has a plane ever been started in this directory?"""
        return (self.directory / state.STATE).exists()

    def start(self) -> PlaneStatus:
        """Brings the plane up, or repairs what is down. Nodes are made the first time only."""
        state.prepare(self.directory)
        with self._lock():
            options = self.options
            self._places = Places(self.directory, binaries.ensure(options.bin_dir, self._progress))
            if not self.exists:
                self._supervisor.end_strays()
            renewed = set(NAMES) if self._certificates() else set()
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    self._bring_up(options, renewed)
                    break
                except PortTaken as taken:
                    if attempt == _ATTEMPTS or (options.port and taken.component == API_SERVER):
                        raise self._port_error(taken.component) from taken
        return self.status()

    def stop(self) -> list[str]:
        """Ends what runs and returns its names. Nothing to do is fine."""
        if not self.directory.exists():
            return []
        with self._lock():
            running = self._supervisor.running()
            self._supervisor.stop(running)
        return [name for name in NAMES if name in running]

    def reset(self) -> None:
        """Stops the plane and removes all that it wrote. Other files in the directory stay."""
        if self.directory.exists():
            self.stop()
            state.forget(self.directory)

    def status(self) -> PlaneStatus:
        """What runs now. Asks the processes and the API server, not the memory of the last start."""
        known = self._state()
        with_controller = known.options.controller
        shown = [self._component_status(n, known.ports) for n in NAMES if n != CONTROLLER or with_controller]
        found = None
        if {ETCD, API_SERVER} <= {c.name for c in shown if c.running}:
            with contextlib.suppress(PlaneError), self._api(known.ports, timeout_seconds=_STATUS_SECONDS) as server:
                found = contents.list_nodes(server)
        return PlaneStatus(
            running=found is not None and all(c.running for c in shown),
            directory=str(self.directory),
            kubeconfig=str(self.kubeconfig),
            kubectl=str(self.kubectl),
            server=self._server(known.ports) if known.ports else "",
            version=known.version,
            components=shown,
            nodes=found,
            metrics=self._metrics(known.ports) if CONTROLLER in {c.name for c in shown if c.running} else "",
            feature_gates=known.options.feature_gates,
            kubernetes_feature_gates=known.options.kubernetes_feature_gates,
        )

    def log(self, component: str) -> Path:
        """The log file of a component. `apiserver`, `scheduler` and other clear endings of names will do."""
        matches = [n for n in NAMES if component in (n, n.removeprefix("kube-"), n.removeprefix("jobset-"))]
        if not matches:
            raise UsageError(f"no component is called {component!r}", hint=f"choose one of {', '.join(NAMES)}")
        return self._supervisor.daemons[matches[0]].log

    @property
    def kubectl(self) -> Path:
        """A kubectl: the person's own, else the one that was built with the plane."""
        options = self.options
        named = options.bin_dir or os.environ.get(binaries.BIN_VARIABLE, "")
        return binaries.kubectl(Path(named) if named else binaries.cache() / binaries.cache_key())

    def run_kubectl(
        self, *arguments: str, stdin: str = "", timeout_seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs kubectl as the plane's administrator. Its discovery cache is the plane's own: ports are used again."""
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        environment["KUBECACHEDIR"] = str(self.directory / "kubectl-cache")
        command = [str(self.kubectl), *arguments]
        try:
            return subprocess.run(
                command,
                env=environment,
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout_seconds,
            )
        except subprocess.TimeoutExpired as error:
            shown = " ".join(arguments)
            raise PlaneError(f"kubectl {shown} did not end in {timeout_seconds} seconds") from error

    def nodes(self) -> list[NodeStatus]:
        """All nodes of the running plane, node-2 before node-10."""
        with self._api() as server:
            return contents.list_nodes(server)

    def add_nodes(self, layout: NodeLayout) -> list[str]:
        """Creates `layout.count` more nodes, waits until they take pods, and returns their names."""
        with self._api() as server:
            names = free_names([n.name for n in contents.list_nodes(server)], layout.count)
            contents.create_nodes(server, names, layout)
            contents.wait_for_nodes(server)
        return names

    def ensure_nodes(self, layout: NodeLayout) -> list[str]:
        """Makes node-0 to node-(count - 1) be there, and returns the names of those that were not."""
        with self._api() as server:
            created = contents.create_nodes(server, free_names((), layout.count), layout)
            contents.wait_for_nodes(server)
        return created

    def remove_nodes(self, names: Sequence[str]) -> None:
        """Deletes nodes. Their pods are lost, as on a machine that died."""
        with self._api() as server:
            contents.delete_nodes(server, names)

    def _bring_up(self, options: PlaneOptions, renewed: set[str]) -> None:
        """One attempt: ports, files and then the components, each as soon as what it needs is ready."""
        known = self._state()
        wanted_ports = {**known.ports, **({API_SERVER: options.port} if options.port else {})}
        running = self._supervisor.settled()
        held = running | {port for port, owner in MORE_PORTS.items() if owner in running}
        if options.port and known.ports.get(API_SERVER) != options.port and not ports.is_free(options.port):
            raise self._port_error(API_SERVER, options.port)
        known = msgspec.structs.replace(known, ports=ports.assign(PORTS, wanted_ports, held))
        if options.port and known.ports[API_SERVER] != options.port:
            raise self._port_error(API_SERVER, options.port)
        state.save(self.directory, known)
        wanted = {c.name: c for c in components(options, known.ports, self._places)}
        self._supervisor.stop_outdated(list(wanted.values()), renewed | self._write_files(known.ports))
        renewed.clear()

        for name in (ETCD, API_SERVER):
            if self._supervisor.start(wanted[name]):
                self._progress.step(f"Starting {name}")
            self._supervisor.wait([wanted[name]], say=self._progress.step)
        with self._api(known.ports) as server:
            self._bring_up_users(server, options, wanted, prepared=known.prepared)
            if options.controller:
                webhooks.register(server, known.ports[WEBHOOK], (self._places.pki / "ca.crt").read_bytes())
            else:
                webhooks.unregister(server)
            version = server.get("/version")["gitVersion"]
        # Options are remembered once they have worked.
        state.save(self.directory, state.State(options, known.ports, version, prepared=True))

    def _bring_up_users(
        self, server: ApiServer, options: PlaneOptions, wanted: Mapping[str, Component], *, prepared: bool
    ) -> None:
        """Everything that needs the API server."""
        fresh_kwok = not self._supervisor.daemons[KWOK].pid()
        if fresh_kwok:
            contents.forget_leases(server)
        users = [wanted[n] for n in (CONTROLLER_MANAGER, SCHEDULER, KWOK)]
        started = [c.name for c in users if self._supervisor.start(c)]
        if not (contents.install_crd(server) and contents.install_rights(server)) and options.controller:
            raise PlaneError(
                "this installation of pyjobset lacks files of pyjobset/deploy: the CRD or a role",
                hint="install pyjobset again, or start the plane with --no-controller",
            )
        if not prepared:
            contents.create_nodes(server, free_names((), options.layout.count), options.layout)
        if CONTROLLER in wanted:
            users.append(wanted[CONTROLLER])
            started += [CONTROLLER] if self._supervisor.start(wanted[CONTROLLER]) else []
        if started:
            self._progress.step(f"Starting {', '.join(started)}")
        self._supervisor.wait(users, lambda: not fresh_kwok or contents.is_settled(server), say=self._progress.step)

    def _certificates(self) -> list[str]:
        from pyjobset.localplane import certificates

        return certificates.ensure(self._places.pki)

    def _write_files(self, known_ports: Mapping[str, int]) -> set[str]:
        """Kubeconfigs and configuration files. Returns the components whose file changed."""
        texts = {self.kubeconfig: ("", self._kubeconfig("admin", known_ports))}
        for identity in (CONTROLLER_MANAGER, SCHEDULER, KWOK, CONTROLLER):
            texts[self._places.kubeconfig(identity)] = (identity, self._kubeconfig(identity, known_ports))
        scheduler = json.dumps(scheduler_configuration(self._places), indent=2)
        texts[self._places.scheduler_configuration] = (SCHEDULER, scheduler)
        texts[self._places.stages] = (KWOK, stages.text(programs.versions()["kubernetes"]))
        changed = {p: reader for p, (reader, text) in texts.items() if not p.exists() or p.read_text() != text}
        for path in changed:
            write_private(path, texts[path][1])
        return set(changed.values()) - {""}

    def _kubeconfig(self, identity: str, known_ports: Mapping[str, int]) -> str:
        pki = self._places.pki
        files = [(pki / name).read_bytes() for name in ("ca.crt", f"{identity}.crt", f"{identity}.key")]
        return json.dumps(kubeconfig.kubeconfig(self._server(known_ports), *files), indent=2) + "\n"

    def _component_status(self, name: str, known_ports: Mapping[str, int]) -> ComponentStatus:
        daemon = self._supervisor.daemons[name]
        pid = daemon.pid()
        return ComponentStatus(name, bool(pid), pid, known_ports.get(name, 0), str(daemon.log))

    def _api(self, known_ports: Mapping[str, int] | None = None, timeout_seconds: float = TIMEOUT_SECONDS) -> ApiServer:
        known_ports = known_ports or self._state().ports
        if not known_ports:
            raise PlaneError(f"there is no local plane in {self.directory}", hint="jobset up starts one")
        return ApiServer(known_ports[API_SERVER], tls(self._places.pki, "ca", "admin"), timeout_seconds)

    def _state(self) -> state.State:
        return state.load(self.directory) or state.State()

    def _lock(self) -> contextlib.AbstractContextManager[None]:
        return locked(
            self.directory / ".lock",
            lambda: self._progress.step(
                f"Another jobset is starting or stopping the plane in {self.directory}; waiting"
            ),
        )

    @staticmethod
    def _server(known_ports: Mapping[str, int]) -> str:
        return f"https://127.0.0.1:{known_ports[API_SERVER]}"

    @staticmethod
    def _metrics(known_ports: Mapping[str, int]) -> str:
        """Empty for a plane that was started by a version without them."""
        return f"http://127.0.0.1:{known_ports[METRICS]}/metrics" if METRICS in known_ports else ""

    @staticmethod
    def _port_error(component: str, port: int = 0) -> PlaneError:
        shown = f"port {port} on 127.0.0.1" if port else "its port on 127.0.0.1"
        return PlaneError(
            f"{component} cannot have {shown}: another program listens there",
            hint="end that program, or choose another port with --port (0 is any free one)",
        )
