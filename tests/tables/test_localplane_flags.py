"""Flags of `jobset up` and `jobset nodes add` as what they ask of a plane. Nothing is started."""

import json
from pathlib import Path
from typing import Any

import pytest

from pyjobset.cli.main import main
from pyjobset.cli.plane import summary
from pyjobset.localplane import state
from pyjobset.localplane.contents import NodeStatus
from pyjobset.localplane.options import TOPOLOGY_KEYS, NodeLayout, PlaneOptions
from pyjobset.localplane.plane import ComponentStatus, Plane, PlaneStatus
from pyjobset.localplane.state import State

RACK, SLICE = TOPOLOGY_KEYS["rack"], TOPOLOGY_KEYS["slice"]
STORED = PlaneOptions(
    layout=NodeLayout(count=3, cpu="2"), kubernetes_feature_gates={"A": False}, controller=False, port=7000
)


class Asked:
    def __init__(self) -> None:
        self.options: PlaneOptions | None = None
        self.layouts: list[NodeLayout] = []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Asked:
    """A plane that only remembers what it was asked for."""
    seen = Asked()

    def start(self: Plane) -> None:
        seen.options = self.options

    def nodes(self: Plane, layout: NodeLayout) -> list[str]:
        seen.layouts.append(layout)
        return ["node-7"]

    monkeypatch.setattr(Plane, "start", start)
    monkeypatch.setattr(Plane, "ensure_nodes", nodes)
    monkeypatch.setattr(Plane, "add_nodes", nodes)
    monkeypatch.setenv("JOBSET_PLANE_DIR", str(tmp_path))
    return seen


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", PlaneOptions()),
        (
            "--nodes 16 --cpu 8 --memory 64Gi --label a=b --label c=d --resource nvidia.com/gpu=8 --topology rack=8",
            PlaneOptions(
                layout=NodeLayout(
                    count=16,
                    cpu="8",
                    memory="64Gi",
                    labels={"a": "b", "c": "d"},
                    resources={"nvidia.com/gpu": "8"},
                    topology={RACK: 8},
                )
            ),
        ),
        ("--nodes 0 --topology none", PlaneOptions(layout=NodeLayout(count=0, topology={}))),
        (
            (
                "--kubernetes-feature-gates A=true,B=false --kubernetes-runtime-config api/alpha=true"
                " --feature-gates ElasticJobSet=false"
            ),
            PlaneOptions(
                kubernetes_feature_gates={"A": True, "B": False},
                kubernetes_runtime_config={"api/alpha": "true"},
                feature_gates={"ElasticJobSet": False},
            ),
        ),
        (
            "--no-controller --port 6443 --fsync --bin-dir /opt/k8s",
            PlaneOptions(controller=False, port=6443, fsync=True, bin_dir="/opt/k8s"),
        ),
    ],
    ids=["none", "nodes", "no-nodes", "gates", "others"],
)
def test_up(flags: str, expected: PlaneOptions, asked: Asked) -> None:
    assert main(["up", *flags.split()]) == 0
    assert asked.options == expected
    assert asked.layouts == []


@pytest.mark.parametrize(
    ("flags", "changes", "layout"),
    [
        ([], {}, None),
        (["--port", "0"], {"port": 0}, None),
        (["--kubernetes-feature-gates", ""], {"kubernetes_feature_gates": {}}, None),
        (["--controller"], {"controller": True}, None),
        (["--nodes", "5"], {"layout": NodeLayout(count=5, cpu="2")}, NodeLayout(count=5, cpu="2")),
    ],
    ids=["none", "port", "gates", "controller", "nodes"],
)
def test_up_changes_only_what_is_asked_of_a_plane_that_is_there(
    flags: list[str], changes: dict[str, Any], layout: NodeLayout | None, asked: Asked, tmp_path: Path
) -> None:
    state.save(tmp_path, State(options=STORED, prepared=True))
    assert main(["up", *flags]) == 0
    expected = {f: getattr(STORED, f) for f in STORED.__struct_fields__} | changes
    assert asked.options == PlaneOptions(**expected)
    assert asked.layouts == ([layout] if layout else [])


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", NodeLayout(count=1, topology={})),
        (
            "--count 2 --cpu 8 --memory 1Gi --rack r1 --slice s1 --label a=b",
            NodeLayout(count=2, cpu="8", memory="1Gi", topology={}, labels={RACK: "r1", SLICE: "s1", "a": "b"}),
        ),
    ],
)
def test_nodes_add(flags: str, expected: NodeLayout, asked: Asked) -> None:
    assert main(["nodes", "add", *flags.split()]) == 0
    assert asked.layouts == [expected]


@pytest.mark.parametrize(
    "arguments",
    [
        "up --cpu much",
        "up --nodes -1",
        "up --topology rack",
        "up --label =x",
        "up --feature-gates NoSuchGate=true",
        "up --kubernetes-feature-gates A",
        "up --port 65536",
        "nodes add --rack a/b",
        "nodes add --count 0",
        "nodes",
        "logs nosuch",
    ],
)
def test_wrong_usage(arguments: str, asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments.split()) == 2
    assert asked.options is None
    assert asked.layouts == []


def component(name: str, pid: int) -> ComponentStatus:
    return ComponentStatus(name, bool(pid), pid, 1000 if pid else 0, f"/p/logs/{name}.log")


@pytest.mark.parametrize(
    ("pids", "running", "first"),
    [
        ((10, 11), True, "The local plane runs: Kubernetes v1 at https://x"),
        ((10, 0), False, "The local plane is damaged"),
        ((10, 11), False, "The local plane is damaged"),
        ((0, 0), False, "The local plane is stopped"),
    ],
)
def test_summary(pids: tuple[int, int], running: bool, first: str) -> None:
    nodes = [NodeStatus("n", ready, "1", "1Gi", {}) for ready in (True, False)] if running else None
    parts = [component(name, pid) for name, pid in zip(("etcd", "kwok"), pids, strict=True)]
    text = summary(PlaneStatus(running, "/p", "/p/k 1", "/bin/kubectl", "https://x", "v1", parts, nodes)).splitlines()
    assert text[0] == first
    assert ("nodes        1 of 2 ready" in text) == running
    row = next(line.split() for line in text if line.startswith("kwok"))
    assert row[1:3] == (["running", str(pids[1])] if pids[1] else ["stopped", "-"])
    assert text[-1] == ("export KUBECONFIG='/p/k 1'" if running else "jobset up starts it")
    assert not any(line.startswith("metrics") for line in text)


def test_a_summary_says_where_the_metrics_are() -> None:
    found = PlaneStatus(False, "/p", "/p/k", "/bin/kubectl", "https://x", "v1", [], None, "http://127.0.0.1:1/metrics")
    assert "metrics      http://127.0.0.1:1/metrics" in summary(found).splitlines()


def test_a_summary_lists_the_gates_that_were_given() -> None:
    gates = {"feature_gates": {"RestartJob": True}, "kubernetes_feature_gates": {"B": False, "A": True}}
    found = PlaneStatus(False, "/p", "/p/k", "/bin/kubectl", "https://x", "v1", [], **gates)
    assert "gates        RestartJob=true; of Kubernetes: A=true,B=false" in summary(found).splitlines()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("", ""),
        ("--feature-gates RestartJob=true", ""),
        ("--feature-gates InPlaceRestart=true", "gates: InPlaceRestart on; RestartJob no longer\n"),
        ("--feature-gates RestartJob=false", "gates: RestartJob off\n"),
        ("--kubernetes-feature-gates B=true", "Kubernetes' gates: B on; A=false no longer\n"),
    ],
)
def test_gates_that_come_and_go_are_said(
    flags: str, said: str, asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gates = PlaneOptions(feature_gates={"RestartJob": True}, kubernetes_feature_gates={"A": False})
    state.save(tmp_path, State(options=gates))
    assert main(["up", *flags.split()]) == 0
    assert asked.options is not None
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("is_named", [False, True])
def test_what_is_left_after_an_interrupt(
    is_named: bool, asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(self: Plane) -> None:
        asked.options = self.options
        raise KeyboardInterrupt

    monkeypatch.setattr(Plane, "start", start)
    flag = f" --dir {tmp_path}" if is_named else ""
    assert main(["up", *flag.split()]) == 130
    assert asked.options is not None
    said = capsys.readouterr()
    assert said.err == f"interrupted: `jobset up{flag}` goes on, `jobset down{flag}` stops the rest\n"
    assert said.out == ""


def test_the_status_has_the_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state.save(tmp_path, State(options=PlaneOptions(feature_gates={"RestartJob": True})))
    assert main(["status", "--dir", str(tmp_path), "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["feature_gates"], found["kubernetes_feature_gates"]) == ({"RestartJob": True}, {})


def test_a_plane_of_an_older_version_has_no_metrics_until_it_is_started_again() -> None:
    assert Plane._metrics({"jobset-controller": 1}) == ""
    assert Plane._metrics({"jobset-controller": 1, "jobset-metrics": 2}) == "http://127.0.0.1:2/metrics"
