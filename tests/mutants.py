"""Reviews that nobody would send: valid objects spoiled field by field, reviews spoiled field by field, and bytes.

A seed gives the same reviews again. Used by the laws and the server tests of the webhooks. What should be answered is
not known here.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import yaml

from pyjobset.objects.meta import Manifest
from tests.manifests import JOBSET, edited
from tests.reviews import body, review
from tests.tables.test_rules_create import CASES as CREATIONS
from tests.tables.test_rules_scheduling import CASES as SCHEDULINGS
from tests.tables.test_rules_update import CHANGES
from tests.tables.test_webhook_pods import POD_KIND, RACK, REQUIRED, TERM, pod

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
JOBSETS: list[Manifest] = [
    document
    for file in sorted(EXAMPLES.rglob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text())
    if document and document["kind"] == "JobSet"
]
CREATED: list[Manifest] = [
    *JOBSETS,
    *(edited(JOBSET, edits) for case in (*CREATIONS, *SCHEDULINGS) for edits in (case.good, case.bad)),
]
UPDATED: list[tuple[Manifest, Manifest]] = [
    (edited(JOBSET, case.old), edited(edited(JOBSET, case.old), edits))
    for case in CHANGES
    for edits in (case.good, case.bad)
]
PODS: list[Manifest] = [
    pod(),
    pod(1),
    pod(1, nodeSelector={RACK: "r7"}),
    pod(None),
    pod(0, affinity={"podAffinity": {REQUIRED: [TERM]}, "podAntiAffinity": {REQUIRED: None}}),
    pod(2, nodeSelector={"disk": "ssd"}, priority=-7),
]

HUGE = 10**40
SCALARS = [None, True, False, -1, 0, 1, 1.0, 1.5, 2**31, -(2**63), 2**64, HUGE, 1e300, "", "a", "A b", "1", "0"]
TEXTS = ["(?=x)", r"(\pL{50}){7}", "x" * 70, "é\n", "\x85\x1b[31m", "\0", "a/b", "../..", "$(X)", "True", "2006-01-02"]
NESTED = [[], [None], ["x"], {}, {"a": None}, {"": {"b": []}}, [[{}]], {"name": "driver"}, {"all": {}, "single": {}}]
VALUES: list[Any] = [*SCALARS, *TEXTS, *NESTED]
KEYS = ["a", "A b", "", "replica", "minCount", "name", "job", "spec", "metadata", "x" * 90, "é\n", "a/b~c", "\0"]
TOKENS = [
    b"\xff",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"NaN",
    b"-Infinity",
    b"1e400",
    b"9" * 400,
    b"{",
    b"]",
    b'"',
    b"\0",
    b"\\",
]


@dataclass(frozen=True)
class Mutant:
    """What is POSTed. `is_pod` says to which pair of webhooks."""

    content: bytes
    is_pod: bool = False


def mutants(seed: int, count: int) -> Iterator[Mutant]:
    random = Random(seed)
    for _ in range(count):
        is_pod = random.random() < 0.2
        asked = copy.deepcopy(_pod(random) if is_pod else _jobset(random))
        if random.random() < 0.1:
            _spoil(random, asked)
        content = json.dumps(asked, ensure_ascii=random.random() < 0.5).encode()
        yield Mutant(_damaged(random, content) if random.random() < 0.15 else content, is_pod)


def spoiled(random: Random, manifest: Manifest, most: int = 3) -> Manifest:
    """A copy with up to so many things lost, replaced, doubled, moved or added."""
    made = copy.deepcopy(manifest)
    for _ in range(random.randint(0, most)):
        _spoil(random, made)
    return made


def _jobset(random: Random) -> Manifest:
    if random.random() < 0.7:
        return review(spoiled(random, random.choice(CREATED)))
    old, new = random.choice(UPDATED)
    old = spoiled(random, old, 1)
    new = spoiled(random, old if random.random() < 0.5 else new, 2)
    return review(new, old)


def _pod(random: Random) -> Manifest:
    return review(spoiled(random, random.choice(PODS)), kind=POD_KIND)


def _spoil(random: Random, value: Any) -> None:
    places = list(_places(value))
    if not places:
        return
    container, key = random.choice(places)
    match random.choice(["lose", "replace", "replace", "double", "add", "move"]):
        case "lose":
            del container[key]
        case "double" if isinstance(container, list):
            container.append(copy.deepcopy(container[key]))
        case "add" if isinstance(container, dict):
            container[random.choice(KEYS)] = copy.deepcopy(random.choice(VALUES))
        case "move":
            other, name = random.choice(places)
            container[key] = copy.deepcopy(other[name])
        case _:
            container[key] = copy.deepcopy(random.choice(VALUES))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a value."""
    for key, item in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def _damaged(random: Random, content: bytes) -> bytes:
    at = random.randrange(len(content))
    match random.choice(["cut", "flip", "insert", "token", "repeat"]):
        case "cut":
            return content[:at]
        case "flip":
            return content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :]
        case "insert":
            return content[:at] + random.randbytes(random.randint(1, 4)) + content[at:]
        case "token":
            return content[:at] + random.choice(TOKENS) + content[at + 1 :]
        case _:
            return content[:at] + content[max(0, at - 50) : at] + content[at:]


def hostile() -> dict[str, bytes]:
    """Reviews of a JobSet, by what is wrong with each: large, deep, or with values that no JSON has."""
    plain = body(JOBSET)
    many = {f"k{index}": "v" for index in range(100_000)}

    def with_object(field: bytes) -> bytes:
        return plain.replace(b'"object": {', b'"object": {' + field + b", ", 1)

    def with_replicas(number: bytes) -> bytes:
        return plain.replace(b'"replicas": 2', b'"replicas": ' + number, 1)

    def with_name(text: bytes) -> bytes:
        return plain.replace(b'"name": "js"', b'"name": "' + text + b'"', 1)

    def with_patterns(patterns: list[str]) -> bytes:
        rule = {"action": "FailJobSet", "name": "a", "onJobFailureMessagePatterns": patterns}
        return body(edited(JOBSET, {"spec.failurePolicy.rules": [rule]}))

    return {
        "3 MB of text": body(edited(JOBSET, {"metadata.annotations": {"a": "n" * 3_000_000}})),
        "3 MB of a name": body(edited(JOBSET, {"metadata.name": "n" * 3_000_000})),
        "3 MB of values": body(edited(JOBSET, {"spec.x": [{}] * 700_000})),
        "nested 10,000 times": with_object(b'"a": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
        "nested 900 times": with_object(b'"a": ' + b"[" * 900 + b"]" * 900),
        "100,000 labels": body(edited(JOBSET, {"metadata.labels": many})),
        "100,000 unknown fields": body(edited(JOBSET, {"spec": many})),
        "100,000 ReplicatedJobs": body(edited(JOBSET, {"spec.replicatedJobs": [{}] * 100_000})),
        "50,000 entries": body(edited(JOBSET, {"spec.scheduling.replicatedJobs": [{}] * 50_000})),
        "patterns that are large": with_patterns([rf"(\pL{{50}}){{7}}b{index}" for index in range(2000)]),
        "patterns that are too large": with_patterns([rf"(\pL{{50}}){{19}}b{index}" for index in range(2000)]),
        "100,000 patterns": with_patterns([f"exit code {index}" for index in range(100_000)]),
        "a pattern of 3 MB": with_patterns(["(" * 3_000_000]),
        "an integer of 400 digits": with_replicas(b"9" * 400),
        "an integer of 1,000,000 digits": with_replicas(b"9" * 1_000_000),
        "a number out of range": with_replicas(b"1e400"),
        "NaN": with_replicas(b"NaN"),
        "half of a surrogate pair": with_name(b"\\ud800"),
        "half of a surrogate pair in UTF-8": with_name(b"\xed\xa0\x80"),
        "no UTF-8": with_name(b"\xff\xfe"),
        "a NUL": with_name(b"\\u0000"),
        "a byte order mark": b"\xef\xbb\xbf" + plain,
        "UTF-16": plain.decode().encode("utf-16"),
        "half of it": plain[: len(plain) // 2],
        "twice": plain * 2,
    }
