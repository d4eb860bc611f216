"""The life of a local plane: it survives what a laptop does to it, and leaves nothing behind."""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from pyjobset.controller.options import LeaderElection
from pyjobset.errors import PlaneError
from pyjobset.localplane import programs
from pyjobset.localplane.components import API_SERVER, CONTROLLER, ETCD, KWOK, NAMES
from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import ComponentStatus, Plane
from pyjobset.localplane.processes import command_line
from tests.server.plane import PATIENCE_SECONDS, MakePlane, wait_for

JOBSET = [sys.executable, "-m", "pyjobset.cli.main"]
COMPONENTS = [n for n in NAMES if n != CONTROLLER]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A plane that the tests of this module may hurt. Each leaves it able to start."""
    plane = Plane(tmp_path_factory.mktemp("own"), PlaneOptions(controller=False, layout=NodeLayout(count=2)))
    yield plane
    plane.reset()


@pytest.fixture
def running(own: Plane) -> Plane:
    own.start()
    return own


def component(plane: Plane, name: str) -> ComponentStatus:
    return next(c for c in plane.status().components if c.name == name)


def pids(plane: Plane) -> dict[str, int]:
    return {c.name: c.pid for c in plane.status().components if c.running}


def kill(plane: Plane, name: str) -> None:
    os.kill(component(plane, name).pid, signal.SIGKILL)
    wait_for(lambda: not component(plane, name).running, f"{name} to be gone")


def jobset(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*JOBSET, *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)


def works(plane: Plane) -> None:
    """A pod runs and ends: everything from etcd to kwok has done its part."""
    name = f"probe-{time.monotonic_ns()}"
    made = plane.run_kubectl("run", name, "--image=i", "--restart=Never", "--command", "--", "sleep", "100ms")
    assert made.returncode == 0, made.stderr
    done = plane.run_kubectl("wait", f"pod/{name}", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=100s")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", COMPONENTS)
def test_up_repairs_a_killed_component_and_leaves_the_others(name: str, running: Plane) -> None:
    before = pids(running)
    assert running.run_kubectl("create", "configmap", f"kept-{name}").returncode == 0
    kill(running, name)
    assert not running.status().running
    running.start()
    after = pids(running)
    assert {n for n in COMPONENTS if after[n] != before[n]} == {name}
    assert running.run_kubectl("get", "configmap", f"kept-{name}").returncode == 0
    works(running)


def test_up_repairs_a_plane_of_which_everything_was_killed(running: Plane) -> None:
    """As after a crash of the machine: all pid files are stale."""
    assert running.run_kubectl("create", "configmap", "survivor").returncode == 0
    for name in COMPONENTS:
        kill(running, name)
    running.start()
    assert running.run_kubectl("get", "configmap", "survivor").returncode == 0
    works(running)


def test_up_again_changes_nothing(running: Plane) -> None:
    running.remove_nodes(["node-1"])
    before = pids(running)
    status = running.start()
    assert pids(running) == before
    assert [n.name for n in status.nodes or ()] == ["node-0"]
    running.add_nodes(NodeLayout(count=1))


def test_a_pid_that_another_program_has_now_is_not_believed(running: Plane) -> None:
    running.stop()
    (running.directory / "run" / "etcd.pid").write_text(f"{os.getpid()}\n")
    assert not component(running, ETCD).running
    running.start()
    assert component(running, ETCD).pid != os.getpid()


def test_down_leaves_no_process_and_up_brings_everything_back(running: Plane) -> None:
    before, ports = pids(running), {c.name: c.port for c in running.status().components}
    assert running.run_kubectl("create", "configmap", "over-night").returncode == 0
    assert running.stop() == COMPONENTS
    assert not [pid for pid in before.values() if command_line(pid)]
    assert running.stop() == []
    running.start()
    assert {c.name: c.port for c in running.status().components} == ports
    assert running.run_kubectl("get", "configmap", "over-night").returncode == 0


def test_a_port_that_somebody_took_meanwhile_is_left_to_them(running: Plane) -> None:
    taken = component(running, API_SERVER).port
    running.stop()
    with closing(socket.create_server(("127.0.0.1", taken))):
        running.start()
        assert component(running, API_SERVER).port != taken
        works(running)


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(make_plane: MakePlane) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        plane = make_plane(start=False, port=port)
        with pytest.raises(PlaneError, match=f"port {port} on 127.0.0.1: another program listens there") as caught:
            plane.start()
    assert "--port" in caught.value.hint
    assert pids(plane) == {}


def test_another_plane_beside_it(running: Plane, make_plane: MakePlane) -> None:
    other = make_plane(port=0)
    assert running.run_kubectl("create", "configmap", "mine").returncode == 0
    assert other.run_kubectl("get", "configmap", "mine").returncode == 1
    other.stop()
    works(running)


def test_nobody_without_a_certificate_gets_in(running: Plane) -> None:
    """etcd refuses the handshake, also with the certificate of a Kubernetes administrator; the API server says 401."""
    pki = running.directory / "pki"

    def ask(name: str, path: str, *certificate: str) -> subprocess.CompletedProcess[str]:
        url = f"https://127.0.0.1:{component(running, name).port}{path}"
        authority = pki / ("etcd-ca.crt" if name == ETCD else "ca.crt")
        asked = ["curl", "--silent", "--show-error", "--cacert", str(authority), "--write-out", "%{http_code}", url]
        return subprocess.run([*asked, *certificate], capture_output=True, text=True, check=False)

    admin = ("--cert", str(pki / "admin.crt"), "--key", str(pki / "admin.key"))
    own_client = ("--cert", str(pki / "apiserver-etcd-client.crt"), "--key", str(pki / "apiserver-etcd-client.key"))
    assert ask(ETCD, "/health").returncode != 0
    assert ask(ETCD, "/health", *admin).returncode != 0
    assert ask(ETCD, "/health", *own_client).stdout.endswith("200")
    assert ask(API_SERVER, "/version").stdout.endswith("401")
    assert ask(API_SERVER, "/api/v1/secrets").stdout.endswith("401")
    assert ask(API_SERVER, "/api/v1/secrets", *admin).stdout.endswith("200")


def test_the_controller_has_the_rights_of_an_installation(running: Plane) -> None:
    config = f"--kubeconfig={running.directory / 'kubeconfigs' / CONTROLLER}"

    def may(*asked: str) -> str:
        return running.run_kubectl("auth", "can-i", *asked, "--all-namespaces", config).stdout.strip()

    yes = (("create", "jobs"), ("patch", "jobsets", "--subresource=status"), ("delete", "podgroups"))
    no = (("create", "pods"), ("get", "secrets"), ("update", "jobsets"), ("patch", "nodes"), ("*", "*"))
    wait_for(lambda: [may(*asked) for asked in yes] == ["yes"] * len(yes), "the API server knows its rights")
    assert [may(*asked) for asked in no] == ["no"] * len(no)


def test_a_second_controller_elects_with_the_rights_of_the_first(running: Plane, tmp_path: Path) -> None:
    """As a person would run one on the plane, with what the plane's own has."""
    config, log = running.directory / "kubeconfigs" / CONTROLLER, tmp_path / "log"
    addresses = [f"--{what}-bind-address=0" for what in ("metrics", "health-probe")]
    command = [sys.executable, "-m", "pyjobset", "controller", "--leader-elect", "--kubeconfig", config, *addresses]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stderr=output)
    try:

        def leads() -> str:
            assert process.poll() is None, log.read_text()
            return str(lease(running)["spec"].get("holderIdentity", ""))

        assert wait_for(leads, "it leads")
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
    assert not lease(running)["spec"].get("holderIdentity"), "it gave it back"


def lease(running: Plane) -> Any:
    found = running.run_kubectl("get", "lease", LeaderElection().name, "-n", "jobset-system", "-o", "json")
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_everything_listens_on_the_loopback_address_only(running: Plane) -> None:
    expected = {c.port for c in running.status().components} - {0}
    listening: set[tuple[str, int]] = set()
    for table in ("tcp", "tcp6"):
        inodes = {link for pid in pids(running).values() for link in open_files(pid)}
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                address, port = fields[1].split(":")
                listening.add((address, int(port, 16)))
    assert {address for address, _ in listening} == {"0100007F"}
    assert expected <= {port for _, port in listening}


def open_files(pid: int) -> Iterator[str]:
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            yield str(handle.readlink())


def modes(directory: Path) -> Iterator[tuple[str, int]]:
    """All but kubectl's memory of which resources there are. That lies below a private directory, too."""
    for folder, folders, files in os.walk(directory):
        if "kubectl-cache" in folders:
            folders.remove("kubectl-cache")
        for path in (Path(folder), *(Path(folder) / name for name in files)):
            with suppress(FileNotFoundError):  # etcd renames its files
                yield str(path.relative_to(directory)), stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_private(running: Plane) -> None:
    found = dict(modes(running.directory))
    assert {"kubeconfig", "pki/ca.key", "etcd"} <= found.keys()
    assert {name: oct(mode) for name, mode in found.items() if mode & 0o077} == {}


def test_the_last_words_of_a_component_are_in_the_error(make_plane: MakePlane) -> None:
    plane = make_plane(start=False, kubernetes_feature_gates={"NoSuchGate": True})
    with pytest.raises(PlaneError, match="kube-apiserver ended while it started") as caught:
        plane.start()
    assert "NoSuchGate" in caught.value.message
    assert str(plane.log("apiserver")) in caught.value.message
    assert "gates" in caught.value.hint
    without_flags = Plane(plane.directory)
    assert without_flags.options == PlaneOptions()


def test_gates_that_need_workloads_are_off_without_them(make_plane: MakePlane) -> None:
    plane = make_plane(kubernetes_feature_gates={"GenericWorkload": False})
    assert plane.status().running
    kinds = plane.run_kubectl("api-resources", "-o", "name").stdout.split()
    assert "jobs.batch" in kinds
    assert not [k for k in kinds if k.startswith(("workloads.", "podgroups."))]


def test_other_gates_restart_what_they_concern(make_plane: MakePlane) -> None:
    plane = make_plane()
    before = pids(plane)
    assert plane.run_kubectl("create", "configmap", "kept").returncode == 0
    changed = PlaneOptions(
        controller=False, layout=NodeLayout(count=2), kubernetes_feature_gates={"CompositePodGroup": True}
    )
    again = Plane(plane.directory, changed)
    again.start()
    assert {n for n, pid in pids(again).items() if before[n] == pid} == {ETCD, KWOK}
    kinds = again.run_kubectl("api-resources", "-o", "name").stdout.split()
    assert "compositepodgroups.scheduling.k8s.io" in kinds
    assert again.run_kubectl("get", "configmap", "kept").returncode == 0


def test_reset_forgets_the_plane_and_nothing_else(make_plane: MakePlane) -> None:
    plane = make_plane()
    (plane.directory / "notes.txt").write_text("mine")
    before = pids(plane)
    plane.reset()
    assert not [pid for pid in before.values() if command_line(pid)]
    assert [p.name for p in plane.directory.iterdir()] == ["notes.txt"]


def test_a_plane_whose_directory_was_removed_is_ended_by_the_next(make_plane: MakePlane) -> None:
    plane = make_plane()
    before = pids(plane)
    shutil.rmtree(plane.directory)
    assert plane.start().running
    assert not [pid for pid in before.values() if command_line(pid)]
    works(plane)


def test_two_ups_at_once_make_one_plane(make_plane: MakePlane) -> None:
    plane = make_plane(start=False)
    runs: list[subprocess.CompletedProcess[str]] = []
    command = ("up", "--no-controller", "--nodes", "1", "--dir", str(plane.directory))
    threads = [threading.Thread(target=lambda: runs.append(jobset(*command))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r.returncode for r in runs] == [0, 0], [r.stderr for r in runs]
    assert sum("Another jobset is starting" in r.stderr for r in runs) == 1
    assert sum("Starting etcd" in r.stderr for r in runs) == 1
    assert set(pids(plane)) == set(COMPONENTS)


def test_the_command_line_from_up_to_reset(tmp_path: Path) -> None:
    """`up` returns although its daemons live on: they hold none of its outputs."""
    directory = tmp_path / "with space" / "plane"
    place = ("--dir", str(directory))
    try:
        started = jobset("up", "--no-controller", "--nodes", "2", "--cpu", "2", "--topology", "rack=2", *place)
        assert started.returncode == 0, started.stderr
        assert "The local plane runs: Kubernetes v1.37.2" in started.stdout
        status = json.loads(jobset("status", "-o", "json", *place).stdout)
        assert status["running"] is True
        assert status["kubeconfig"] == jobset("kubeconfig", *place).stdout.strip() == str(directory / "kubeconfig")
        assert [(c["name"], c["running"]) for c in status["components"]] == [(n, True) for n in COMPONENTS]
        assert all(Path(c["log"]).exists() and c["pid"] > 1 for c in status["components"])
        assert [n["cpu"] for n in status["nodes"]] == ["2", "2"]
        racks = [n["labels"]["topology.kubernetes.io/rack"] for n in status["nodes"]]
        assert racks == ["rack-0", "rack-1"]

        added = jobset("nodes", "add", "--count", "2", "--cpu", "8", "--rack", "rack-1", *place)
        assert added.returncode == 0, added.stderr
        listed = json.loads(jobset("nodes", "list", "-o", "json", *place).stdout)
        assert [(n["name"], n["cpu"], n["ready"]) for n in listed][2:] == [("node-2", "8", True), ("node-3", "8", True)]
        assert jobset("nodes", "remove", "node-2", *place).returncode == 0
        missing = jobset("nodes", "remove", "node-2", *place)
        assert (missing.returncode, missing.stderr.splitlines()[0]) == (2, "error: there is no node node-2")

        assert "Serving securely" in jobset("logs", "scheduler", *place).stdout
        refused = jobset("reset", *place)
        assert (refused.returncode, directory.exists()) == (2, True)
        assert jobset("down", *place).stdout == f"Stopped {', '.join(COMPONENTS)}\n"
        assert json.loads(jobset("status", "-o", "json", *place).stdout)["running"] is False
        assert "the local plane does not answer" in jobset("nodes", "list", *place).stderr
        assert jobset("reset", "--yes", *place).returncode == 0
        assert not directory.exists()
    finally:
        jobset("reset", "--yes", *place)


def test_a_full_disk_is_called_so(tmp_path: Path) -> None:
    """Needs the right to mount a small file system; where there is none, the table of error texts has to do."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], check=False)
    if mounted.returncode:
        pytest.skip("may not mount")
    try:
        with pytest.raises(PlaneError, match="the disk is full"):
            Plane(small / "plane", PlaneOptions(controller=False)).start()
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=False)


def test_one_program_is_built_with_the_real_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds the smallest program when Go and what it compiled before are there; a first build takes minutes."""
    from pyjobset.localplane import build
    from pyjobset.localplane.progress import Counter, Progress

    go = shutil.which("go")
    if not go:
        pytest.skip("no Go")
    small = next(p for p in programs.PROGRAMS if p.name == "kwok")
    seen: list[Counter] = []

    def counted(missing: list[str]) -> Counter:
        seen.append(Counter(missing))
        if seen[0].total > 50:
            pytest.skip(f"{seen[0].total} packages to compile")
        return seen[0]

    monkeypatch.setattr(build, "Counter", counted)
    build.build(Path(go), [small], tmp_path, Progress())
    assert seen[0].done == seen[0].total > 0
    assert os.access(tmp_path / "kwok", os.X_OK)
    assert [p.name for p in tmp_path.iterdir()] == ["kwok"]
