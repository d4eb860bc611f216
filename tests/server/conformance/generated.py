"""Scripts that a seed makes: any verb on a few names of a few kinds, again and again, so that states meet.

Everything that a script does is known to the model; what it is not asked for here, a hand-written script asks.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from pyjobset.objects.meta import Manifest
from tests.server.conformance.bodies import BODIES
from tests.server.conformance.player import Script, Step, Watch, create, delete, get, list_, patch

STEPS = 20
KINDS = ("jobs", "jobsets", "podgroups", "workloads", "persistentvolumeclaims", "pods")
NAMES = ("a", "b")
COLOURS = ("red", "blue", None)
HOLDERS: Sequence[Any] = ([], ["example.com/hold"], ["example.com/hold", "example.com/more"], None)
SPECS: dict[str, Sequence[Manifest]] = {
    "jobs": (
        {"suspend": False},
        {"suspend": True},
        {"parallelism": 3, "completions": 3},
        {"parallelism": 1},
        {"completions": 2},
        {"backoffLimit": None},
        {"template": {"spec": {"nodeSelector": {"n": "1"}}}},
        {"template": {"spec": {"nodeSelector": None}}},
        {"template": {"metadata": {"annotations": {"n": "1"}}}},
    ),
    "jobsets": (
        {"suspend": True},
        {"suspend": False},
        {"ttlSecondsAfterFinished": 3},
        {"ttlSecondsAfterFinished": None},
        {"network": {"subdomain": "x"}},
        {"failurePolicy": {"maxRestarts": 1}},
        {"startupPolicy": None},
    ),
    "podgroups": (
        {"schedulingPolicy": {"gang": {"minCount": 3}}},
        {"schedulingPolicy": {"gang": {"minCount": 2}}},
        {"disruptionMode": {"single": None, "all": {}}},
        {"disruptionMode": None},
        {"workloadRef": {"templateName": "h"}},
    ),
    "workloads": ({"controllerRef": {"name": "other"}}, {"controllerRef": {"name": "js"}}),
    "pods": ({"nodeSelector": {"n": "1"}}, {"restartPolicy": "Never"}),
}
STATUSES: dict[str, Sequence[Manifest]] = {
    "jobs": (
        {"active": 1, "ready": 0, "terminating": 0},
        {"active": 0},
        {"startTime": "2026-01-01T00:00:00Z"},
        {"startTime": None},
    ),
    "jobsets": ({"restarts": 1}, {"restarts": 2, "terminalState": "Failed"}, {"terminalState": None}),
    "podgroups": ({"conditions": []}, {"conditions": None}),
    "pods": ({"phase": "Running"}, {"phase": "Succeeded"}, {"phase": "Failed"}),
}


def generated(seed: int) -> Script:
    """The same script for the same seed."""
    chance = random.Random(seed)
    plural = chance.choice(KINDS)
    others = [chance.choice(KINDS), plural, plural]
    steps = [_create(chance, plural, "a"), *(_step(chance, chance.choice(others)) for _ in range(STEPS - 1))]
    watches = (
        Watch(plural),
        Watch(plural, "colour=red", chance.randrange(STEPS)),
        Watch(plural, "colour", chance.randrange(STEPS), is_streaming_list=True),
    )
    return Script(steps, watches, tuple(dict.fromkeys((plural, *others))))


def _step(chance: random.Random, plural: str) -> Step:
    name = chance.choice(NAMES)
    make = chance.choice(CLAIM_VERBS if plural == "persistentvolumeclaims" else VERBS)
    return make(chance, plural, name)


def _create(chance: random.Random, plural: str, name: str) -> Step:
    metadata: Manifest = {}
    if colour := chance.choice(COLOURS):
        metadata["labels"] = {"colour": colour}
    if finalizers := chance.choice(HOLDERS):
        metadata["finalizers"] = finalizers
    more = {"nodeName": "node-0"} if plural == "pods" and chance.random() < 0.5 else {}
    return create(
        plural, BODIES[plural](name, metadata, **more), **({"dry_run": True} if chance.random() < 0.1 else {})
    )


def _delete(chance: random.Random, plural: str, name: str) -> Step:
    wanted: dict[str, str] = {}
    if chance.random() < 0.4:
        wanted["uid"] = chance.choice(("$uid", "$first-uid")) + f":{plural}/{name}"
    propagation = chance.choice(("Background", "Foreground"))
    if propagation == "Foreground" and chance.random() < 0.3:  # the model does not know all of the other
        wanted["version"] = chance.choice(("$version", "$first-version")) + f":{plural}/{name}"
    return delete(plural, name, propagation, **wanted)


def _read(chance: random.Random, plural: str, name: str) -> Step:
    if chance.random() < 0.5:
        return get(plural, name)
    return list_(plural, label_selector=chance.choice(("colour", "colour=red", "colour=blue")))


def _note(chance: random.Random, plural: str, name: str) -> Step:
    """Another one each time."""
    return _merge(chance, plural, name, {"annotations": {"n": str(chance.random())}}, {})


def _labels(chance: random.Random, plural: str, name: str) -> Step:
    return _merge(chance, plural, name, {"labels": {"colour": chance.choice(COLOURS)}}, {})


def _holders(chance: random.Random, plural: str, name: str) -> Step:
    return _merge(chance, plural, name, {"finalizers": chance.choice(HOLDERS)}, {})


def _spec(chance: random.Random, plural: str, name: str) -> Step:
    return _merge(chance, plural, name, {}, {"spec": chance.choice(SPECS[plural])})


def _status(chance: random.Random, plural: str, name: str) -> Step:
    if plural not in STATUSES:
        return get(plural, name)
    body = {"status": chance.choice(STATUSES[plural])}
    return _merge(chance, plural, name, {}, body, "" if chance.random() < 0.1 else "status")


def _merge(
    chance: random.Random, plural: str, name: str, metadata: Manifest, body: Manifest, subresource: str = ""
) -> Step:
    """Now and then under a precondition that may not hold."""
    metadata = dict(metadata)
    if chance.random() < 0.3:
        metadata["uid"] = chance.choice(("$uid", "$first-uid")) + f":{plural}/{name}"
    if chance.random() < 0.2:
        metadata["resourceVersion"] = chance.choice(("$version", "$first-version")) + f":{plural}/{name}"
    return patch(plural, name, {**body, **({"metadata": metadata} if metadata else {})}, subresource)


def _json(chance: random.Random, plural: str, name: str) -> Step:
    operations: list[Manifest] = []
    if chance.random() < 0.5:
        uid = chance.choice(("$uid", "$first-uid")) + f":{plural}/{name}"
        operations.append({"op": "test", "path": "/metadata/uid", "value": uid})
    path = chance.choice(("/metadata/labels/colour", "/metadata/annotations/n", "/metadata/annotations"))
    operation = chance.choice(("add", "replace", "remove", "test"))
    value: Any = {"n": "1"} if path.endswith("annotations") else "red"
    operations.append({"op": operation, "path": path} | ({} if operation == "remove" else {"value": value}))
    return patch(plural, name, operations)


Verb = Callable[[random.Random, str, str], Step]
VERBS: Sequence[Verb] = (
    *(_create, _delete, _labels, _spec, _status) * 2,
    _read,
    _holders,
    _json,
)
CLAIM_VERBS: Sequence[Verb] = (_create, _create, _delete, _read, _note, _note)
"""The model does not say which patches of a claim that change nothing make a version: here all change something."""
