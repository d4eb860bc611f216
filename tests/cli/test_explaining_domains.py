"""Jobs that wait for a topology domain of their own: how many there are, who has them, and when it is not that."""

from typing import Any

import msgspec
import pytest

from pyjobset.cli.explaining.explanation import explain
from pyjobset.cli.explaining.facts import Facts, Node, Pod
from pyjobset.objects import conditions as words
from tests.cli import families
from tests.cli.clusters import RACK, asking, facts, jobset, node

SAID = "0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity rules."


def leader(
    job: str = "js-w-0", *, on: str = "", priority: str = "0", of: str = "js", cpu: str = "1", **more: Any
) -> Pod:
    """The pod of index 0 as the webhook makes it, waiting where it is `on` no node."""
    labels = {
        "jobset.sigs.k8s.io/jobset-name": of,
        "jobset.sigs.k8s.io/job-key": f"key-{more.get('namespace', 'ns')}-{job}",
        **({"jobset.sigs.k8s.io/priority": priority} if priority else {}),
    }
    annotations = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK, **more.pop("annotations", {})}
    selector = more.pop("selector", {})
    made = families.pod(f"{job}-0", job=job, group="", node=on, told="" if on else SAID, labels=labels,
                        annotations=annotations, **more)  # fmt: skip
    return asking(made, cpu, nodeSelector=selector)


def racks(count: int = 3, **more: Any) -> list[Node]:
    return [node(f"n{n}", rack=f"rack-{n}", cpu="4", **more) for n in range(count)]


def seen(*things: Any, others: Any = (), **more: Any) -> Facts:
    jobs = [families.job(f"js-w-{n}", group="", active=1) for n in range(3)]
    nodes = () if any(isinstance(t, Node) for t in things) else racks()
    return facts(jobset(scheduling=None, **more), *jobs, *things, *nodes, occupants=others)


def elsewhere(on: str, job: str = "other-w-0", namespace: str = "team", of: str = "other", **more: Any) -> Pod:
    return leader(job, on=on, of=of, namespace=namespace, **more)


TAKEN = [elsewhere("n0"), elsewhere("n1", "other-w-1"), elsewhere("n2", "x-w-0", "ns", "x")]
WAITS: dict[str, tuple[Facts, str]] = {
    "all are taken": (
        seen(leader(), others=TAKEN),
        (f"1 Job waits for a rack without other such Jobs: of 3 domains of {RACK}, 3 are taken "
        "(2 by JobSet team/other, 1 by JobSet ns/x)"),
    ),
    "by itself too": (
        seen(leader("js-w-2"), leader("js-w-0", on="n0"), leader("js-w-1", on="n1"), others=[elsewhere("n2")]),
        (f"1 Job waits for a rack without other such Jobs: of 3 domains of {RACK}, 3 are taken (2 by this JobSet, "
        "1 by JobSet team/other)"),
    ),
    "several wait": (
        seen(leader(), leader("js-w-1"), others=TAKEN),
        (f"2 Jobs wait for a rack without other such Jobs: of 3 domains of {RACK}, 3 are taken "
        "(2 by JobSet team/other, 1 by JobSet ns/x)"),
    ),
    "a free one has no room": (
        seen(leader(cpu="9"), others=TAKEN[:2]),
        (f"1 Job waits for a rack without other such Jobs: of 3 domains of {RACK}, 2 are taken (2 by JobSet "
        "team/other); 1 that is free cannot hold its first pod"),
    ),
    "nodes that it may not be on are none": (
        seen(leader(), *racks(1), node("n1", rack="rack-1", taint="gpu"), others=TAKEN[:1]),
        f"1 Job waits for a rack without other such Jobs: of 1 domain of {RACK}, 1 are taken (1 by JobSet team/other)",
    ),
    "many others": (
        seen(leader(), *racks(5), others=[elsewhere(f"n{n}", f"j-{n}", of=f"o{n}") for n in range(5)]),
        (f"1 Job waits for a rack without other such Jobs: of 5 domains of {RACK}, 5 are taken (1 by JobSet team/o0, "
        "1 by JobSet team/o1, 1 by JobSet team/o2, 2 by others)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("what", "text"), WAITS.values(), ids=WAITS.keys())
def test_what_it_waits_for(what: Facts, text: str) -> None:
    found = explain(what)
    (waits,) = found.findings
    assert (waits.code, waits.text) == ("domains-taken", text)
    assert found.headline == f"JobSet ns/js waits: no rack is free for {waits.arguments['job']}"
    assert waits.evidence[0].says == SAID


NOT_SO: dict[str, tuple[Facts, str]] = {
    "a domain is free": (seen(leader(), others=TAKEN[:2]), "held-otherwise"),
    "others have another priority": (
        seen(leader(), others=[elsewhere("n0", priority="9"), *TAKEN[1:]]), "held-otherwise",
    ),
    "its own pod of before is on its way out": (
        seen(leader(), others=[leader(on="n0"), *TAKEN[1:]]), "held-otherwise",
    ),
    "others that are not placed exclusively": (
        seen(leader(), others=[elsewhere("n0", priority=""), *TAKEN[1:]]), "held-otherwise",
    ),
    "by node selector": (
        seen(leader(annotations={"alpha.jobset.sigs.k8s.io/node-selector": "true"}), others=TAKEN), "held-otherwise",
    ),
    "a follower": (seen(leader(selector={RACK: "rack-0"}), others=TAKEN), "held-otherwise"),
    "no webhook": (seen(leader(priority=""), others=TAKEN), "held-otherwise"),
    "no node has the label": (seen(leader(), node("n0", cpu="4"), others=TAKEN), "topology-label-missing"),
    "no node may take it": (seen(leader(), node("n0", rack="rack-0", taint="gpu"), others=TAKEN), "no-node-usable"),
}  # fmt: skip


@pytest.mark.parametrize(("what", "code"), NOT_SO.values(), ids=NOT_SO.keys())
def test_it_is_something_else(what: Facts, code: str) -> None:
    (found,) = explain(what).findings
    assert found.code == code


def test_what_helps_on_a_local_plane() -> None:
    (found,) = explain(seen(leader(), others=TAKEN)).findings
    assert [a.command for a in found.advice] == ["jobset nodes add --count 1 --cpu 4 --memory 16Gi --rack rack-3"]
    (found,) = explain(seen(leader(selector={"pool": "x"}), *racks(pool="x"), others=TAKEN)).findings
    assert found.advice[0].command.endswith(" --label pool=x --rack rack-3")
    (found,) = explain(seen(leader(), *racks(type="real"), others=TAKEN)).findings
    assert [a.command for a in found.advice] == [""]


def test_the_controllers_words_where_the_scheduler_has_none() -> None:
    silent = leader()
    status = msgspec.structs.replace(silent.status, conditions=())
    waits = [(words.LEADERS_SCHEDULED, "False", words.LEADER_UNSCHEDULABLE, "Job js-w-0 waits")]
    what = seen(msgspec.structs.replace(silent, status=status), others=TAKEN, conditions=waits)
    (found,) = explain(what).findings
    assert [(e.object, e.says) for e in found.evidence] == [("JobSet js", "Job js-w-0 waits")]
