"""Jobs of exclusive placement that wait for a topology domain of their own: how many there are, and who has them. Pure.

A leader keeps off every domain with a leader of its priority, in any namespace (objects.placement). Called by `waits`,
which goes on with free room where a domain is free that has some.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from pyjobset.cli.explaining.commands import nodes_command
from pyjobset.cli.explaining.facts import Facts, Pod
from pyjobset.cli.explaining.reasons import Evidence, Finding, advice, finding
from pyjobset.cli.explaining.room import Domain, MoreNodes, Need, Place, amount, room, shape
from pyjobset.objects import conditions as words
from pyjobset.objects.meta import controller_of
from pyjobset.reconciler.conditions import find

NAMED_MAX = 3


def domains_wait(facts: Facts, waiting: Sequence[Pod], places: Sequence[Place]) -> Finding | None:
    """None where no leader waits, or a domain is free for it and has room."""
    leaders = [pod for pod in waiting if _leads(pod)]
    if not leaders:
        return None
    first = leaders[0]
    key = _topology(first)
    found = room(Need(((shape(first), 1),), 1, key), places)
    domains = [domain for domain in found.domains if domain.nodes]
    taken = _taken(facts, first, places)
    free = [domain for domain in domains if domain.name not in taken]
    if not domains or any(domain.fit for domain in free):
        return None
    owner = controller_of(first.metadata.owner_references)
    alike = [pod for pod in leaders if _topology(pod) == key]
    return finding(
        "domains-taken",
        f"Job {owner.name}" if owner is not None else f"Pod {first.metadata.name}",
        _evidence(facts, first),
        [advice("free-domain", _more(facts, first, domains, places), key=key)],
        job=owner.name if owner is not None else first.metadata.name,
        jobs=len(alike),
        key=key,
        label=key.rpartition("/")[2],
        domains=len(domains),
        taken=len(domains) - len(free),
        free=len(free),
        holders=_holders(facts, [taken[domain.name] for domain in domains if domain.name in taken]),
        rest=_no_room(len(free)),
    )


def _no_room(free: int) -> str:
    return f"; {free} that {'is' if free == 1 else 'are'} free cannot hold its first pod" if free else ""


def _topology(pod: Pod) -> str:
    annotations = pod.metadata.annotations
    return (annotations.exclusive_topology or "") if annotations.node_selector is None else ""


def _leads(pod: Pod) -> bool:
    """The webhook gave it a priority to keep others off by, and no domain to follow into."""
    return bool(pod.metadata.labels.priority and _topology(pod)) and _topology(pod) not in pod.spec.node_selector


def _taken(facts: Facts, leader: Pod, places: Sequence[Place]) -> Mapping[str, str]:
    """By domain, the JobSet whose leader is there."""
    key, mine = _topology(leader), leader.metadata.labels
    domain_of = {place.node.metadata.name: place.node.metadata.labels.get(key) for place in places}
    taken: dict[str, str] = {}
    for pod in facts.occupants or ():
        labels, domain = pod.metadata.labels, domain_of.get(pod.spec.node_name)
        if domain is not None and labels.priority == mine.priority and labels.job_key not in ("", mine.job_key):
            taken[domain] = f"{pod.metadata.namespace}/{labels.jobset_name}"
    return taken


def _holders(facts: Facts, jobsets: Sequence[str]) -> str:
    """Who has how many, most first."""
    own = f"{facts.jobset.metadata.namespace}/{facts.jobset.metadata.name}"
    counts = Counter(jobsets).most_common()
    shown = [f"{count} by {'this JobSet' if name == own else f'JobSet {name}'}" for name, count in counts[:NAMED_MAX]]
    rest = sum(count for _, count in counts[NAMED_MAX:])
    return ", ".join([*shown, *([f"{rest} by others"] if rest else [])]) or "none"


def _evidence(facts: Facts, leader: Pod) -> list[Evidence]:
    told = [Evidence(f"Pod {leader.metadata.name}", f"condition {c.type}", c.message)
            for c in leader.status.conditions if c.type == "PodScheduled" and c.status == "False"]  # fmt: skip
    found = find(facts.jobset.status.conditions, words.LEADERS_SCHEDULED)
    if found is not None and found.status == "False" and not told:
        told.append(Evidence(f"JobSet {facts.jobset.metadata.name}", f"condition {found.type}", found.message))
    return told


def _more(facts: Facts, leader: Pod, domains: Sequence[Domain], places: Sequence[Place]) -> str:
    """A domain as large as most are, of nodes as large as most are, that the leader selects."""
    key = _topology(leader)
    names = {place.node.metadata.labels.get(key, "") for place in places}
    stem = key.rpartition("/")[2]
    name = next(name for n in range(len(names) + 1) if (name := f"{stem}-{n}") not in names)
    sizes = Counter(
        tuple((resource, amount(resource, place.whole.get(resource, 0))) for resource in ("cpu", "memory"))
        for place in places
        if key in place.node.metadata.labels
    )
    count = Counter(domain.nodes for domain in domains).most_common(1)[0][0]
    return nodes_command(
        facts, MoreNodes(count, dict(sizes.most_common(1)[0][0]), {**leader.spec.node_selector, key: name})
    )
