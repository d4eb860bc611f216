"""Many gangs at once: each gets its objects, each of them once."""

import json
from collections import Counter

from pyjobset.objects import names
from tests.server.plane import wait_for
from tests.server.scheduling.lab import Lab
from tests.server.test_controller import GANG, manifest

JOBSETS = 200
JOBS = 4
CHILDREN = {"workloads": JOBSETS, "podgroups": JOBSETS, "jobs": JOBSETS * JOBS}


def created(lab: Lab, kind: str, since: int, number: int) -> Counter[str]:
    made = Counter(c.name for c in lab.changes(kind, since) if c.type == "ADDED")
    assert len(made) == number, len(made)
    return made


def test_two_hundred_gangs_at_once_get_every_object_once(lab: Lab) -> None:
    """The Jobs are nobody's, so that no pods come: it is the objects that are counted here."""
    shape = lab.job("w", replicas=JOBS, managedBy="lab.example.com/nobody")
    jobsets = [manifest(f"js-{number}", shape, scheduling=GANG) for number in range(JOBSETS)]
    since = lab.version()
    lab.run("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": jobsets}))

    def are_there() -> bool:
        counts = {kind: len(lab.list_names(kind)) for kind in CHILDREN}
        assert counts == CHILDREN
        return True

    wait_for(are_there, "all children")
    workloads = {names.workload_name(lab.namespace, f"js-{number}") for number in range(JOBSETS)}
    assert set(lab.list_names("workloads")) == workloads
    assert set(lab.list_names("jobs")) == {
        f"js-{number}-w-{index}" for number in range(JOBSETS) for index in range(JOBS)
    }
    for kind, count in CHILDREN.items():
        made = wait_for(lambda k=kind, n=count: created(lab, k, since, n), f"each of the {kind} is told")
        assert {name: times for name, times in made.items() if times > 1} == {}, f"{kind} that were made again"

    lab.run("delete", "jobsets", "--all", "--wait=false")
    wait_for(lambda: not any(lab.list_names(kind) for kind in ("jobsets", *CHILDREN)), "the end of all")
