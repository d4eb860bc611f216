"""The command line of every component of a plane. Pure: options, ports and paths in, arguments out.

Everything binds to 127.0.0.1 and proves itself with the plane's own certificates. Paths are absolute: a command line
belongs to one plane only, which is how a running process is recognised.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from pyjobset.localplane.options import PlaneOptions

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KWOK = "kwok"
CONTROLLER = "jobset-controller"
NAMES = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER, KWOK, CONTROLLER)
"""In the order of starting. Stopping goes the other way round: etcd must outlive the API server."""

MORE_PORTS = {"etcd-peer": ETCD, "jobset-webhook": CONTROLLER, "jobset-metrics": CONTROLLER}
"""Ports of components that have several, and whose they are."""
ETCD_PEER, WEBHOOK, METRICS = MORE_PORTS
PORTS = (ETCD, ETCD_PEER, API_SERVER, CONTROLLER_MANAGER, SCHEDULER, CONTROLLER, WEBHOOK, METRICS)

SERVICE_RANGE = "10.0.0.0/24"
POD_RANGE = "10.128.0.0/9"
NO_ADDRESS = "192.0.2.1"  # reserved for documentation: nothing is advertised, and a laptop may have no network
LEASE_SECONDS = 40


@dataclass(frozen=True, slots=True)
class Component:
    """One process to run. `ready_path` is asked over HTTP(S) at `port`; empty for kwok, which serves nothing."""

    name: str
    command: tuple[str, ...]
    port: int
    ready_path: str


@dataclass(frozen=True, slots=True)
class Places:
    """Where a plane has its things: all below one directory, except the programs."""

    directory: Path
    binaries: Path

    @property
    def pki(self) -> Path:
        return self.directory / "pki"

    @property
    def stages(self) -> Path:
        return self.directory / "stages.yaml"

    @property
    def scheduler_configuration(self) -> Path:
        return self.directory / "scheduler.json"

    def kubeconfig(self, identity: str) -> Path:
        return self.directory / "kubeconfigs" / identity


def components(options: PlaneOptions, ports: dict[str, int], places: Places) -> list[Component]:
    """All components of the plane in starting order."""
    commands = {
        ETCD: (_etcd(options, ports, places), "/health"),
        API_SERVER: (_api_server(options, ports, places), "/readyz"),
        CONTROLLER_MANAGER: (_controller_manager(options, ports, places), "/healthz"),
        SCHEDULER: (_scheduler(options, ports, places), "/readyz"),
        KWOK: (_kwok(places), ""),
    }
    if options.controller:
        commands[CONTROLLER] = (_controller(options, ports, places), "/readyz")
    return [Component(name, tuple(command), ports.get(name, 0), ready) for name, (command, ready) in commands.items()]


def scheduler_configuration(places: Places) -> dict[str, object]:
    """An unschedulable gang is retried every second instead of up to ten: a laptop has few of them."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(places.kubeconfig(SCHEDULER)), "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
    }


def _etcd(options: PlaneOptions, ports: dict[str, int], places: Places) -> list[str]:
    client, peer = f"https://127.0.0.1:{ports[ETCD]}", f"https://127.0.0.1:{ports[ETCD_PEER]}"
    certificate, key, authority = (str(places.pki / f) for f in ("etcd.crt", "etcd.key", "etcd-ca.crt"))
    return [
        str(places.binaries / ETCD),
        "--name=plane",
        f"--data-dir={places.directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=plane={peer}",
        f"--cert-file={certificate}",
        f"--key-file={key}",
        f"--trusted-ca-file={authority}",
        "--client-cert-auth",
        f"--peer-cert-file={certificate}",
        f"--peer-key-file={key}",
        f"--peer-trusted-ca-file={authority}",
        "--peer-client-cert-auth",
        "--log-level=warn",
        *([] if options.fsync else ["--unsafe-no-fsync"]),
    ]


def _api_server(options: PlaneOptions, ports: dict[str, int], places: Places) -> list[str]:
    pki = places.pki
    return [
        str(places.binaries / API_SERVER),
        "--bind-address=127.0.0.1",
        f"--secure-port={ports[API_SERVER]}",
        f"--advertise-address={NO_ADDRESS}",
        "--endpoint-reconciler-type=none",
        f"--etcd-servers=https://127.0.0.1:{ports[ETCD]}",
        f"--etcd-cafile={pki / 'etcd-ca.crt'}",
        f"--etcd-certfile={pki / 'apiserver-etcd-client.crt'}",
        f"--etcd-keyfile={pki / 'apiserver-etcd-client.key'}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'service-account.pub'}",
        f"--service-account-signing-key-file={pki / 'service-account.key'}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--disable-admission-plugins=ServiceAccount",  # simulated pods use no token
        "--allow-privileged=true",
        f"--feature-gates={_gates(options.cluster_gates())}",
        f"--runtime-config={','.join(f'{k}={v}' for k, v in sorted(options.runtime_config().items()))}",
    ]


def _controller_manager(options: PlaneOptions, ports: dict[str, int], places: Places) -> list[str]:
    return [
        str(places.binaries / CONTROLLER_MANAGER),
        *_served(CONTROLLER_MANAGER, ports, places),
        f"--kubeconfig={places.kubeconfig(CONTROLLER_MANAGER)}",
        f"--root-ca-file={places.pki / 'ca.crt'}",
        f"--service-account-private-key-file={places.pki / 'service-account.key'}",
        "--use-service-account-credentials=true",  # its own identity may not do what its controllers may
        "--leader-elect=false",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--concurrent-job-syncs=20",
        f"--feature-gates={_gates(options.cluster_gates())}",
    ]


def _scheduler(options: PlaneOptions, ports: dict[str, int], places: Places) -> list[str]:
    return [
        str(places.binaries / SCHEDULER),
        *_served(SCHEDULER, ports, places),
        f"--config={places.scheduler_configuration}",
        f"--feature-gates={_gates(options.cluster_gates())}",
    ]


def _served(name: str, ports: dict[str, int], places: Places) -> list[str]:
    """Health and metrics of a component: over TLS, metrics only for those whom the API server lets."""
    kubeconfig = places.kubeconfig(name)
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={ports[name]}",
        f"--tls-cert-file={places.pki / 'components.crt'}",
        f"--tls-private-key-file={places.pki / 'components.key'}",
        f"--client-ca-file={places.pki / 'ca.crt'}",
        "--requestheader-client-ca-file=",
        f"--authentication-kubeconfig={kubeconfig}",
        "--authentication-skip-lookup=true",
        f"--authorization-kubeconfig={kubeconfig}",
    ]


def _kwok(places: Places) -> list[str]:
    return [
        str(places.binaries / KWOK),
        f"--kubeconfig={places.kubeconfig(KWOK)}",
        f"--config={places.stages}",
        "--manage-all-nodes",
        f"--node-lease-duration-seconds={LEASE_SECONDS}",
        f"--cidr={POD_RANGE}",
        "-v=WARN",
    ]


def _controller(options: PlaneOptions, ports: dict[str, int], places: Places) -> list[str]:
    return [
        sys.executable,
        "-m",
        "pyjobset.cli.main",
        "controller",
        f"--kubeconfig={places.kubeconfig(CONTROLLER)}",
        f"--feature-gates={_gates(options.controller_gates())}",
        f"--health-probe-bind-address=127.0.0.1:{ports[CONTROLLER]}",
        f"--webhook-bind-address=127.0.0.1:{ports[WEBHOOK]}",
        f"--webhook-cert-dir={places.pki / 'webhook'}",
        f"--metrics-bind-address=127.0.0.1:{ports[METRICS]}",
        "--metrics-secure=false",  # for curl and a browser: it tells the names of JobSets, to this machine only
    ]


def _gates(gates: dict[str, bool]) -> str:
    return ",".join(f"{name}={str(on).lower()}" for name, on in sorted(gates.items()))
