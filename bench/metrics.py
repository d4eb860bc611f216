"""The requests that the API server counted, by verb, resource and answer, from its own /metrics page.

Read before and after a trial by `trial.py`; the difference is what the trial cost. Pure but for nothing: text in,
counts out.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

OURS = frozenset({"jobsets", "jobs", "services", "pods", "workloads", "podgroups", "events", "persistentvolumeclaims"})
"""What a JobSet controller deals in. The API server also counts its own requests, for leases and the like."""
READS = frozenset({"GET", "LIST", "WATCH"})

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Call(NamedTuple):
    verb: str
    resource: str
    subresource: str
    code: str

    def __str__(self) -> str:
        place = "/".join(part for part in (self.resource, self.subresource) if part)
        return f"{self.verb} {place} {self.code}"


Calls = Counter[Call]


def parse(text: str) -> Calls:
    """`apiserver_request_total`, of all groups and versions, for the resources that we deal in."""
    calls: Calls = Counter()
    for labels, value in _samples(text, "apiserver_request_total"):
        call = Call(labels["verb"], labels["resource"], labels["subresource"], labels["code"])
        if call.resource in OURS:
            calls[call] += int(float(value))
    return calls


def total(calls: Calls, *verbs: str, subresource: str | None = None, code: str | None = None) -> int:
    """The calls with one of the verbs; without any, all calls."""
    return sum(
        count
        for call, count in calls.items()
        if (not verbs or call.verb in verbs) and subresource in (None, call.subresource) and code in (None, call.code)
    )


def _samples(text: str, name: str) -> Iterator[tuple[dict[str, str], str]]:
    start = name + "{"
    for line in text.splitlines():
        if line.startswith(start):
            labels, _, value = line.removeprefix(start).rpartition("} ")
            yield dict(_LABEL.findall(labels)), value
