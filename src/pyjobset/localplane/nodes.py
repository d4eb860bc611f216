"""Simulated nodes as Kubernetes objects: which names, which rack, which slice. Pure.

`plane.py` creates what comes out of here; kwok makes the nodes Ready and runs their pods.
"""

from collections.abc import Iterable, Mapping

from pyjobset.localplane.options import NodeLayout

PREFIX = "node-"
DECLARED_FEATURES = ("RestartAllContainersOnContainerExits",)
"""What kubelets of this version declare and pods may need: the scheduler places such pods nowhere else (KEP-5328)."""


def free_names(taken: Iterable[str], count: int) -> list[str]:
    """The first `count` names node-0, node-1, … that are not taken."""
    used = set(taken)
    names: list[str] = []
    index = 0
    while len(names) < count:
        if (name := f"{PREFIX}{index}") not in used:
            names.append(name)
        index += 1
    return names


def domain(index: int, count: int, domains: int) -> int:
    """The domain of node `index` of `count`: equal blocks of neighbours, so that 2 zones hold 2 of 4 racks each."""
    return index * domains // count


def topology_labels(layout: NodeLayout, index: int) -> dict[str, str]:
    """For every topology key its domain's name, for example `rack-0`."""
    return {
        key: f"{_short(key)}-{domain(index, layout.count, min(domains, layout.count))}"
        for key, domains in layout.topology.items()
    }


def manifest(name: str, layout: NodeLayout, index: int) -> dict[str, object]:
    """The Node object of place `index` in the layout. Its status is honoured by the API server at creation only."""
    resources: Mapping[str, str] = {
        "cpu": layout.cpu,
        "memory": layout.memory,
        "pods": str(layout.pods),
        **layout.resources,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "type": "kwok",
                **topology_labels(layout, index),
                **layout.labels,
            },
        },
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "declaredFeatures": list(DECLARED_FEATURES),
        },
    }


def _short(key: str) -> str:
    return key.rpartition("/")[2].rpartition("-")[2]
