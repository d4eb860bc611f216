"""What was made on a plane, from etcd's own history: complete, whoever was killed meanwhile.

A watch through the API server would not do: one that was killed forgets what it told. etcd forgets nothing before the
API server has it compact, which is after five minutes.
"""

import base64
import json
import re
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pyjobset.localplane.api import tls
from pyjobset.localplane.components import ETCD
from pyjobset.localplane.plane import Plane
from pyjobset.objects import labels
from tests.server.chaos.work import PREFIX
from tests.server.plane import PATIENCE_SECONDS

PLACES = ("jobs", "workloads", "podgroups", "services/specs", "persistentvolumeclaims", "jobset.x-k8s.io/jobsets")
"""Of kinds that the controller makes, and of JobSets."""
_MARKS = tuple(
    re.compile(re.escape(key.encode()) + rb"\x12[\x01-\x7f]([0-9]+)")  # protobuf: the value of a map, with its length
    for key in (labels.RESTART_ATTEMPT, labels.JOB_RESTART_ATTEMPT)
)


def creations(plane: Plane) -> Counter[tuple[str, ...]]:
    """How often each object was made: key in etcd, attempt of the JobSet, attempt of the Job."""
    made: Counter[tuple[str, ...]] = Counter()
    for event in _events(plane):
        stored = event["kv"]
        key = base64.b64decode(stored["key"]).decode().removeprefix("/registry/")
        place, _, _ = key.partition(f"/{PREFIX}")
        if event.get("type") == "DELETE" or stored["create_revision"] != stored["mod_revision"] or place not in PLACES:
            continue
        value = base64.b64decode(stored["value"])
        made[key, *(m.group(1).decode() if (m := mark.search(value)) else "" for mark in _MARKS)] += 1
    return made


def _events(plane: Plane) -> Iterator[dict[str, Any]]:
    """All until now."""
    with _ask(plane, "kv/range", {"key": _base64("/registry/")}) as answer:
        now = int(json.load(answer)["header"]["revision"])
    wanted = {"key": _base64("/registry/"), "range_end": _base64("/registry0"), "start_revision": "1"}
    with _ask(plane, "watch", {"create_request": wanted}) as lines:
        for line in lines:
            told = json.loads(line)["result"]
            assert not told.get("canceled"), told
            events = told.get("events", [])
            yield from events
            if events and int(events[-1]["kv"]["mod_revision"]) >= now:
                return


def _ask(plane: Plane, path: str, body: dict[str, Any]) -> Any:
    port = next(c.port for c in plane.status().components if c.name == ETCD)
    access = tls(plane.directory / "pki", "etcd-ca", "apiserver-etcd-client")
    request = urllib.request.Request(f"https://127.0.0.1:{port}/v3/{path}", json.dumps(body).encode(), method="POST")
    return urllib.request.urlopen(request, context=access, timeout=PATIENCE_SECONDS)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
