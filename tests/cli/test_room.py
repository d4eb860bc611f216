"""How many pods fit: what is counted, what bars a node, and how many nodes would do."""

from typing import Any

import msgspec
import pytest

from pyjobset.cli.explaining.facts import Node, Pod
from pyjobset.cli.explaining.room import Need, Room, amount, places, requests, room, shape
from tests.cli import families
from tests.cli.clusters import RACK, asking, node, occupant


def need(*members: Pod, count: int = 0, key: str = "", domain: str = "") -> Need:
    shapes: dict[Any, int] = {}
    for pod in members:
        shapes[shape(pod)] = shapes.get(shape(pod), 0) + 1
    return Need(tuple(shapes.items()), count or len(members), key, domain)


def like(count: int, cpu: str = "1", **spec: Any) -> list[Pod]:
    return [asking(families.pod(f"p{n}"), cpu, **spec) for n in range(count)]


def seen(wanted: Need, *nodes: Node, occupants: tuple[Pod, ...] = ()) -> Room:
    return room(wanted, places(nodes, occupants))


REQUESTS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "containers add up": ({"containers": [{"resources": {"requests": {"cpu": "1"}}}] * 2}, {"cpu": 2000}),
    "a greedy init container": (
        {
            "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            "initContainers": [{"resources": {"requests": {"cpu": "3"}}}],
        },
        {"cpu": 3000},
    ),
    "a sidecar runs with both": (
        {
            "containers": [{"resources": {"requests": {"cpu": "2"}}}],
            "initContainers": [
                {"restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
                {"resources": {"requests": {"cpu": "1"}}},
            ],
        },
        {"cpu": 2500},
    ),
    "of the pod as a whole": (
        {
            "resources": {"requests": {"cpu": "4"}},
            "containers": [{"resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "8"}}}],
        },
        {"cpu": 4000, "nvidia.com/gpu": 8000},
    ),
    "overhead": (
        {"overhead": {"cpu": "10m"}, "containers": [{"resources": {"requests": {"cpu": "1"}}}]},
        {"cpu": 1010},
    ),
    "nothing asked": ({"containers": [{}]}, {}),
}


@pytest.mark.parametrize(("spec", "amounts"), REQUESTS.values(), ids=REQUESTS.keys())
def test_what_a_pod_asks_for(spec: dict[str, Any], amounts: dict[str, int]) -> None:
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, Pod)
    assert requests(pod) == {**amounts, "pods": 1000}


FITS: dict[str, tuple[Need, tuple[Node, ...], int]] = {
    "one a node": (need(*like(3)), (node("a"), node("b")), 2),
    "three a node": (need(*like(7, "300m")), (node("a"), node("b")), 6),
    "no more than asked for": (need(*like(2, "100m")), (node("a"),), 2),
    "by memory": (need(*like(3, "1m", requests={"memory": "10Gi"})), (node("a"), node("b")), 2),
    "by number of pods": (need(*like(5, "1m")), (node("a", pods="3"),), 3),
    "by devices": (need(*like(2, "1m", requests={"nvidia.com/gpu": "4"})), (node("a", gpu="6"), node("b")), 1),
    "a cordoned node": (need(*like(2)), (node("a"), node("b", cordoned=True)), 1),
    "a taint": (need(*like(2)), (node("a"), node("b", taint="gpu")), 1),
    "a tolerated taint": (
        need(*like(2, tolerations=[{"key": "gpu", "operator": "Exists"}])), (node("b", taint="gpu"),), 1,
    ),
    "a selector": (need(*like(2, nodeSelector={"zone": "x"})), (node("a", zone="x"), node("b", zone="y")), 1),
    "one rack only": (need(*like(3), key=RACK), (node("a", rack="r"), node("b", rack="r"), node("c", rack="s")), 2),
    "the rack it is in": (
        need(*like(2), key=RACK, domain="s"), (node("a", rack="r"), node("b", rack="r"), node("c", rack="s")), 1,
    ),
    "no rack at all": (need(*like(1), key=RACK), (node("a"),), 0),
    "no nodes": (need(*like(1)), (), 0),
    "large and small, packed": (need(*like(2, "500m"), *like(1)), (node("a"), node("b")), 3),
    "the small ones first where not all must be": (need(*like(1), *like(2, "500m"), count=2), (node("a"),), 2),
}  # fmt: skip


@pytest.mark.parametrize(("wanted", "nodes", "fit"), FITS.values(), ids=FITS.keys())
def test_how_many_fit(wanted: Need, nodes: tuple[Node, ...], fit: int) -> None:
    assert seen(wanted, *nodes).fit == fit


def test_what_others_hold_is_not_free_but_would_be() -> None:
    found = seen(need(*like(2)), node("a"), node("b"), occupants=(occupant("a", "500m"), occupant("gone", "1")))
    assert (found.fit, found.fit_empty) == (1, 2)


def test_why_nodes_do_not_count() -> None:
    nodes = (node("a"), node("b", cordoned=True), node("c", cordoned=True), node("d", taint="gpu"))
    found = seen(need(*like(1)), *nodes)
    assert (found.nodes, found.usable) == (4, 1)
    assert found.barred == (("cordoned", 2), ("with the taint gpu:NoSchedule", 1))


def test_racks_are_told_with_the_roomiest_first() -> None:
    nodes = (node("a", rack="r0"), node("b", rack="r1"), node("c", rack="r1"), node("d"))
    found = seen(need(*like(4), key=RACK), *nodes)
    assert [(d.name, d.nodes, d.fit) for d in found.domains] == [("r1", 2, 2), ("r0", 1, 1)]
    assert (found.labelled, found.fit_anywhere) == (3, 4)


SCARCE: dict[str, tuple[list[Pod], tuple[Node, ...], tuple[str, str, str]]] = {
    "cpu": (like(2), (node("a"),), ("cpu", "1", "")),
    "in thousandths": (like(2, "600m"), (node("a"),), ("cpu", "600m", "")),
    "memory": (like(2, "1m", requests={"memory": "10Gi"}), (node("a"),), ("memory", "10Gi", "")),
    "pods": (like(2, "1m"), (node("a", pods="1"),), ("pods", "1", "")),
    "too large for any": (like(1, "8"), (node("a"), node("b", cpu="2")), ("cpu", "8", "2")),
    "a device that no node has": (
        like(1, "1m", requests={"nvidia.com/gpu": "8"}), (node("a"),), ("nvidia.com/gpu", "8", "0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("members", "nodes", "told"), SCARCE.values(), ids=SCARCE.keys())
def test_what_is_short(members: list[Pod], nodes: tuple[Node, ...], told: tuple[str, str, str]) -> None:
    found = seen(need(*members), *nodes)
    assert (found.scarce, found.asks, found.largest) == told


def test_nothing_is_short_where_all_fit() -> None:
    found = seen(need(*like(1)), node("a"))
    assert (found.scarce, found.more) == ("", None)


MORE: dict[str, tuple[Need, tuple[Node, ...], tuple[int, dict[str, str], dict[str, str]]]] = {
    "like those that are there": (
        need(*like(4, "600m")), (node("a"), node("b")), (2, {"cpu": "1", "memory": "16Gi"}, {}),
    ),
    "several pods a node": (need(*like(5, "2")), (node("a", cpu="4"),), (2, {"cpu": "4", "memory": "16Gi"}, {})),
    "as large as the pod": (need(*like(2, "8")), (node("a"),), (2, {"cpu": "8"}, {})),
    "in the roomiest rack": (
        need(*like(3), key=RACK), (node("a", rack="r0"), node("b", rack="r1"), node("c", rack="r1")),
        (1, {"cpu": "1", "memory": "16Gi"}, {RACK: "r1"}),
    ),
    "with the label that pods select": (
        need(*like(1, nodeSelector={"zone": "x"})), (node("a"),), (1, {"cpu": "1", "memory": "16Gi"}, {"zone": "x"}),
    ),
    "with devices": (
        need(*like(2, "1", requests={"nvidia.com/gpu": "8"})), (node("a", gpu="8"),),
        (1, {"cpu": "1", "memory": "16Gi", "nvidia.com/gpu": "8"}, {}),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wanted", "nodes", "more"), MORE.values(), ids=MORE.keys())
def test_how_many_nodes_would_do(
    wanted: Need, nodes: tuple[Node, ...], more: tuple[int, dict[str, str], dict[str, str]]
) -> None:
    found = seen(wanted, *nodes).more
    assert found is not None
    assert (found.count, {k: v for k, v in found.resources.items() if k != "pods"}, found.labels) == more


@pytest.mark.parametrize("count", [1, 5, 12])
@pytest.mark.parametrize("cpu", ["300m", "700m", "1"])
def test_the_nodes_that_would_do_do(count: int, cpu: str) -> None:
    wanted, there = need(*like(count, cpu)), [node("a")]
    more = seen(wanted, *there).more
    added = [node(f"b{n}", cpu=more.resources["cpu"]) for n in range(more.count)] if more else []
    assert seen(wanted, *there, *added).fit == count
    assert not added or seen(wanted, *there, *added[1:]).fit < count


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (like(2), ""),
        ([*like(1), *like(1, "2")], "at least "),
        (like(2, affinity={"podAffinity": {}}), "at most "),
        ([*like(1), *like(1, "2", affinity={"podAffinity": {}})], "about "),
    ],
)
def test_how_good_the_number_is(members: list[Pod], said: str) -> None:
    assert seen(need(*members), node("a")).exactness == said


@pytest.mark.parametrize(
    ("resource", "thousandths", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 4000, "4"),
        ("memory", 16 * 1024**3 * 1000, "16Gi"),
        ("memory", 1536 * 1024**2 * 1000, "1536Mi"),
        ("memory", 1_000_000, "1000"),
        ("nvidia.com/gpu", 8000, "8"),
    ],
)
def test_amounts_as_people_write_them(resource: str, thousandths: int, text: str) -> None:
    assert amount(resource, thousandths) == text
