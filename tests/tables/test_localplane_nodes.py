"""Where simulated nodes stand, and what they are called."""

import pytest

from pyjobset.localplane import nodes
from pyjobset.localplane.options import NodeLayout

RACK, SLICE = "topology.kubernetes.io/rack", "cloud.google.com/gke-tpu-slice"


@pytest.mark.parametrize(
    ("count", "domains", "expected"),
    [
        (8, 4, [0, 0, 1, 1, 2, 2, 3, 3]),
        (8, 2, [0, 0, 0, 0, 1, 1, 1, 1]),
        (5, 2, [0, 0, 0, 1, 1]),
        (7, 3, [0, 0, 0, 1, 1, 2, 2]),
        (3, 3, [0, 1, 2]),
        (4, 1, [0, 0, 0, 0]),
    ],
)
def test_domains_are_blocks_of_neighbours(count: int, domains: int, expected: list[int]) -> None:
    assert [nodes.domain(i, count, domains) for i in range(count)] == expected


def test_more_domains_than_nodes_gives_each_node_its_own() -> None:
    layout = NodeLayout(count=2, topology={RACK: 4})
    assert [nodes.topology_labels(layout, i)[RACK] for i in range(2)] == ["rack-0", "rack-1"]


def test_the_default_layout_has_racks_within_slices() -> None:
    layout = NodeLayout()
    placed = [nodes.topology_labels(layout, i) for i in range(layout.count)]
    racks_of = {s: {p[RACK] for p in placed if p[SLICE] == s} for s in {p[SLICE] for p in placed}}
    assert racks_of == {"slice-0": {"rack-0", "rack-1"}, "slice-1": {"rack-2", "rack-3"}}


@pytest.mark.parametrize(
    ("taken", "count", "expected"),
    [
        ([], 2, ["node-0", "node-1"]),
        (["node-0", "node-2", "other"], 3, ["node-1", "node-3", "node-4"]),
        (["node-00"], 1, ["node-0"]),
        (["node-0"], 0, []),
    ],
)
def test_free_names(taken: list[str], count: int, expected: list[str]) -> None:
    assert nodes.free_names(taken, count) == expected


def test_manifest() -> None:
    layout = NodeLayout(
        count=2,
        cpu="8",
        memory="32Gi",
        pods=10,
        labels={"pool": "gpu", RACK: "mine"},
        topology={RACK: 2},
        resources={"nvidia.com/gpu": "4"},
    )
    resources = {"cpu": "8", "memory": "32Gi", "pods": "10", "nvidia.com/gpu": "4"}
    assert nodes.manifest("node-1", layout, 1) == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "node-1",
            "labels": {
                "kubernetes.io/hostname": "node-1",
                "kubernetes.io/os": "linux",
                "type": "kwok",
                RACK: "mine",
                "pool": "gpu",
            },
        },
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "declaredFeatures": ["RestartAllContainersOnContainerExits"],
        },
    }
