"""How many pods the nodes have room for, counted simply: a second opinion to what the scheduler wrote. Pure.

It counts cpu, memory, pods and extended resources, and knows cordons, taints, nodeSelector and one topology key. It
knows no affinity, volume, port, device claim or preemption: `Room.exactness` says how good the number is. `waits` asks.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

from pyjobset.cli.explaining.facts import Container, Node, Pod, Quantities, Taint, Toleration
from pyjobset.rules.quantity import quantity

Amounts = dict[str, int]
"""By resource, in thousandths."""
NODES_MAX = 10_000
_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_UNITS = (("Gi", 1024**3), ("Mi", 1024**2), ("Ki", 1024))


@dataclass(frozen=True, slots=True)
class Shape:
    """All that decides on which nodes a pod fits. Pods of one Job have one shape."""

    requests: tuple[tuple[str, int], ...]
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    is_counted: bool = True
    """It asks for nothing that is not counted here."""


@dataclass(frozen=True, slots=True)
class Need:
    """`count` of these pods must be placed now, on nodes with the same value of `key`; the value, where it is given."""

    shapes: tuple[tuple[Shape, int], ...]
    count: int
    key: str = ""
    domain: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    node: Node
    whole: Amounts
    """All that pods may have there."""
    free: Amounts
    alone: Amounts
    """What would be free without the pods of others."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes with the same value of the topology key. The cluster as a whole where there is none."""

    name: str
    nodes: int
    fit: int


@dataclass(frozen=True, slots=True)
class MoreNodes:
    """Nodes that would do: how many, and what each must have."""

    count: int
    resources: Mapping[str, str]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Room:
    nodes: int
    labelled: int
    """Nodes that have the topology key; all where there is none."""
    usable: int
    """Labelled nodes that the pods may be on at all."""
    barred: tuple[tuple[str, int], ...]
    """Why the others are not, with how many."""
    domains: tuple[Domain, ...]
    """The roomiest first; never empty, but its number may be 0."""
    fit_empty: int
    """How many would fit if nothing else ran there."""
    fit_anywhere: int
    """How many would fit without the topology key."""
    exactness: str
    """Empty, or `at least`, `at most`, `about`, with a space."""
    scarce: str = ""
    asks: str = ""
    """How much of the scarce resource one pod asks for."""
    largest: str = ""
    """The most that any node has of it, where that is less than one pod asks for."""
    more: MoreNodes | None = None

    @property
    def fit(self) -> int:
        return self.domains[0].fit


def shape(pod: Pod) -> Shape:
    spec = pod.spec
    uncounted = (
        spec.affinity,
        spec.topology_spread_constraints,
        spec.resource_claims,
        any(v.persistent_volume_claim or v.ephemeral for v in spec.volumes),
        any(port.host_port for c in spec.containers for port in c.ports),
    )
    return Shape(
        requests=tuple(sorted(requests(pod).items())),
        selector=tuple(sorted(spec.node_selector.items())),
        tolerations=spec.tolerations,
        is_counted=not any(uncounted),
    )


def requests(pod: Pod) -> Amounts:
    """What the scheduler reserves for it: its containers together, or its greediest init container (KEP-753, -2837)."""
    spec = pod.spec
    main = Counter[str]()
    for container in spec.containers:
        main.update(_requests(container))
    sidecars = Counter[str]()
    peak: Amounts = {}
    for container in spec.init_containers:
        own = _requests(container)
        if container.restart_policy == "Always":
            sidecars.update(own)
            own = {}
        for name in {*own, *sidecars}:
            peak[name] = max(peak.get(name, 0), own.get(name, 0) + sidecars[name])
    total = {name: max(main[name] + sidecars[name], peak.get(name, 0)) for name in {*main, *sidecars, *peak}}
    total |= _amounts(spec.resources.requests) if spec.resources else {}
    for name, value in _amounts(spec.overhead).items():
        total[name] = total.get(name, 0) + value
    return {name: value for name, value in total.items() if value > 0} | {"pods": 1000}


def places(nodes: Iterable[Node], occupants: Iterable[Pod], own: frozenset[str] = frozenset()) -> list[Place]:
    """The nodes with what is free on them. `own` are the uids of the JobSet's pods."""
    used: Mapping[str, Counter[str]] = defaultdict(Counter)
    kept: Mapping[str, Counter[str]] = defaultdict(Counter)
    for pod in occupants:
        asked = requests(pod)
        used[pod.spec.node_name].update(asked)
        if pod.metadata.uid in own:
            kept[pod.spec.node_name].update(asked)
    found = []
    for node in nodes:
        whole, name = _amounts(node.status.allocatable), node.metadata.name
        found.append(Place(node, whole, _without(whole, used.get(name)), _without(whole, kept.get(name))))
    return found


def _without(whole: Amounts, taken: Counter[str] | None) -> Amounts:
    return {name: value - taken[name] for name, value in whole.items()} if taken else whole


def room(need: Need, all_places: Sequence[Place]) -> Room:
    labelled = [p for p in all_places if not need.key or need.key in p.node.metadata.labels]
    inside = [p for p in labelled if need.domain in ("", p.node.metadata.labels.get(need.key))]
    usable = [p for p in inside if _may_hold(p, need)]
    bars = Counter(_bar(p.node, need.shapes[0][0]) for p in inside if not _may_hold(p, need))
    by_domain: dict[str, list[Place]] = {}
    for place in usable:
        by_domain.setdefault(place.node.metadata.labels.get(need.key, ""), []).append(place)
    fits = {name: _fill(need, members) for name, members in by_domain.items()}
    domains = sorted(
        (Domain(name, len(by_domain[name]), sum(placed.values())) for name, placed in fits.items()),
        key=lambda d: (-d.fit, d.name),
    ) or [Domain(need.domain, 0, 0)]
    best = domains[0]
    members = by_domain.get(best.name, [])
    found = Room(
        nodes=len(all_places),
        labelled=len(labelled),
        usable=len(usable),
        barred=tuple(sorted(bars.items(), key=lambda item: (-item[1], item[0]))),
        domains=tuple(domains),
        fit_empty=max((_count(need, [replace(p, free=p.alone) for p in m]) for m in by_domain.values()), default=0),
        fit_anywhere=_count(need, all_places),
        exactness=_exactness(need),
    )
    if best.fit >= need.count:
        return found
    left = _left(need, fits.get(best.name, Counter()))
    found = _with_scarcity(found, next(iter(left)), members)
    return replace(found, more=_more(need, left, usable or list(all_places), best.name if need.key else ""))


def _exactness(need: Need) -> str:
    is_low = len(need.shapes) > 1
    is_high = not all(s.is_counted for s, _ in need.shapes)
    return ("about " if is_low else "at most ") if is_high else "at least " if is_low else ""


def _requests(container: Container) -> Amounts:
    return _amounts(container.resources.requests)


def _amounts(quantities: Quantities) -> Amounts:
    return {name: _thousandths(text) for name, text in quantities.items()}


@lru_cache(maxsize=4096)
def _thousandths(text: str) -> int:
    value = quantity(text)
    return ceil(value * 1000) if value is not None else 0


def amount(resource: str, thousandths: int) -> str:
    """As people write it: 1500m, 4, 16Gi."""
    if resource == "cpu" and thousandths % 1000:
        return f"{thousandths}m"
    value = ceil(thousandths / 1000)
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        unit, size = next(((unit, size) for unit, size in _UNITS if value and value % size == 0), ("", 1))
        return f"{value // size}{unit}"
    return str(value)


def _bar(node: Node, of: Shape) -> str:
    """Why no pod of the shape may be on the node, or nothing."""
    if node.spec.unschedulable and not _tolerated(_CORDON, of.tolerations):
        return "cordoned"
    for key, value in of.selector:
        if node.metadata.labels.get(key) != value:
            return f"without the label {key}={value}"
    for taint in node.spec.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not _tolerated(taint, of.tolerations):
            return f"with the taint {taint.key}{'=' * bool(taint.value)}{taint.value}:{taint.effect}"
    return ""


def _may_hold(place: Place, need: Need) -> bool:
    return any(not _bar(place.node, s) for s, _ in need.shapes)


def _tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(
        t.effect in ("", taint.effect)
        and (
            (t.operator == "Exists" and t.key in ("", taint.key))
            or (t.operator in ("", "Equal") and (t.key, t.value) == (taint.key, taint.value))
        )
        for t in tolerations
    )


def _fits(asked: Iterable[tuple[str, int]], free: Mapping[str, int]) -> int:
    return max(0, min(free.get(name, 0) // value for name, value in asked))


def _ordered(need: Need) -> list[tuple[Shape, int]]:
    """Large pods first, which packs better; small ones first where not all must be placed."""
    sizes = [(dict(s.requests).get("cpu", 0), s.requests) for s, _ in need.shapes]
    order = sorted(range(len(sizes)), key=sizes.__getitem__, reverse=need.count == sum(n for _, n in need.shapes))
    return [need.shapes[i] for i in order]


def _fill(need: Need, members: Iterable[Place]) -> Counter[Shape]:
    """First fit: how many of each shape are placed, at most those that must be. Exact where all pods are alike."""
    free = [(p.node, dict(p.free)) for p in members]
    placed = Counter[Shape]()
    room_for = need.count
    for each, count in _ordered(need):
        for node, left in free:
            wanted = min(count - placed[each], room_for)
            if wanted <= 0:
                break
            if _bar(node, each) or not (here := min(wanted, _fits(each.requests, left))):
                continue
            placed[each] += here
            room_for -= here
            for name, value in each.requests:
                left[name] -= value * here
    return placed


def _count(need: Need, members: Iterable[Place]) -> int:
    return sum(_fill(need, members).values())


def _left(need: Need, placed: Mapping[Shape, int]) -> dict[Shape, int]:
    """Those that must be placed and are not."""
    missing = need.count - sum(placed.values())
    left: dict[Shape, int] = {}
    for each, count in _ordered(need):
        if (take := min(missing, count - placed.get(each, 0))) > 0:
            left[each] = take
            missing -= take
    return left


def _with_scarcity(found: Room, lacking: Shape, members: Sequence[Place]) -> Room:
    """The resource that keeps the pod from most nodes, and whether any node is large enough at all."""
    may = [p for p in members if not _bar(p.node, lacking)]
    asked = dict(lacking.requests)
    if not may:
        return found
    for name, value in asked.items():
        if all(p.whole.get(name, 0) < value for p in may):
            most = amount(name, max(p.whole.get(name, 0) for p in may))
            return replace(found, scarce=name, asks=amount(name, value), largest=most)
    scarce = min(asked, key=lambda name: (sum(max(0, p.free.get(name, 0)) // asked[name] for p in may), name == "pods"))
    return replace(found, scarce=scarce, asks=amount(scarce, asked[scarce]))


def _more(need: Need, left: Mapping[Shape, int], like: Sequence[Place], domain: str) -> MoreNodes:
    """Like the most usual node that one pod fits on when it is empty, or else as large as the largest pod."""
    asked: Amounts = {}
    labels = {need.key: domain} if domain else {}
    for each in left:
        labels |= dict(each.selector)
        for name, value in each.requests:
            asked[name] = max(asked.get(name, 0), value)
    sizes = Counter(tuple(sorted(p.whole.items())) for p in like if _fits(asked.items(), p.whole))
    whole = dict(sizes.most_common(1)[0][0]) if sizes else asked | {"pods": 110_000}
    count, rest = 0, dict(left)
    while any(rest.values()) and count < NODES_MAX:
        count += 1
        free = dict(whole)
        for each in rest:
            here = min(rest[each], _fits(each.requests, free))
            rest[each] -= here
            for name, value in each.requests:
                free[name] -= value * here
    used = {name: amount(name, value) for name, value in whole.items() if name in asked or name in ("cpu", "memory")}
    return MoreNodes(count, used, labels)
