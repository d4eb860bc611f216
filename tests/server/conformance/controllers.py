"""Scenes for the controllers of the cluster: what the world looks like when it has come to rest after each move.

The model plays a scene in virtual time and says what it comes to; the real cluster has to come to the same. In between
the two may go different ways, but the conditions of a Job must appear in the same order.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from pyjobset.kube.transport import Transport
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.collector import Collector
from pyjobset.simulation.jobs import ENDED, INDEX, JobController
from pyjobset.simulation.kubelet import FOREVER, Fate, Kubelet
from pyjobset.simulation.scheduler import Scheduler
from pyjobset.simulation.server import Server
from tests.server.conformance.player import Player, Step, list_

SEEN = ("jobs", "pods", "podgroups", "workloads", "persistentvolumeclaims")
COUNTS = ("active", "ready", "succeeded", "failed", "terminating", "completedIndexes")
REST_SECONDS = 60.0
MANY = 100
Sight = Mapping[str, Any]
"""Of each object that there is, what the controllers made of it."""


@dataclass(frozen=True)
class Move:
    """The requests, and in the model's time how long nothing is asked after them."""

    steps: Sequence[Step]
    rest_seconds: float = REST_SECONDS


@dataclass(frozen=True)
class Scene:
    """`slots`: pods that have room; fewer than MANY have each a node of the scene. `terminate_seconds`: how long a
    deleted pod takes to go, where it matters."""

    moves: Sequence[Move]
    slots: int = MANY
    terminate_seconds: float = 0.3


@dataclass
class Course:
    sights: list[Sight] = field(default_factory=list)
    """After each move."""
    conditions: list[Any] = field(default_factory=list)
    """Of Jobs, each time they changed."""


def scene(*moves: Step | Sequence[Step] | Move, **more: Any) -> Scene:
    def move(given: Step | Sequence[Step] | Move) -> Move:
        if isinstance(given, Move):
            return given
        return Move((given,) if isinstance(given, Step) else given)

    return Scene([move(each) for each in moves], **more)


async def ask(player: Player, step: Step) -> None:
    """`#0` is the pod of that index that is neither over nor on its way out, `~0` the one that is on its way out."""
    if step.name.startswith(("#", "~")):
        is_going = step.name.startswith("~")
        pods = [p for p in await player.all("pods") if p["metadata"]["annotations"][INDEX] == step.name[1:]]
        found = (
            p
            for p in pods
            if ("deletionTimestamp" in p["metadata"]) is is_going
            and (is_going or _essence("pods", p)["phase"] not in ENDED)
        )
        step = replace(step, name=next(found)["metadata"]["name"])
    answer = await player.ask(step)
    assert answer["code"] < 400, answer


async def look(player: Player) -> Sight:
    """Everything that a scene is about, without what differs from one run to the next."""
    seen: dict[str, Any] = {}
    for plural in SEEN:
        for obj in await player.all(plural):
            name = (obj["metadata"].get("annotations") or {}).get(INDEX) or obj["metadata"]["name"]
            seen.setdefault(f"{plural} {name}", []).append(_essence(plural, obj))
    return {name: sorted(found, key=str) for name, found in seen.items()}


def _essence(plural: str, obj: Manifest) -> Manifest:
    metadata, status = obj["metadata"], obj.get("status") or {}
    found: Manifest = {
        "is terminating": "deletionTimestamp" in metadata,
        "finalizers": [each for each in metadata.get("finalizers") or () if each != "batch.kubernetes.io/job-tracking"],
    }
    if plural == "pods":
        return found | {"phase": status.get("phase"), "has a node": bool(obj["spec"].get("nodeName"))}
    found["conditions"] = [_condition(each) for each in status.get("conditions") or ()]
    if plural == "jobs":
        found |= {count: status.get(count) or 0 for count in COUNTS}
        found |= {what: what in status for what in ("startTime", "completionTime")}
    return found


def _condition(condition: Manifest) -> tuple[str, ...]:
    # what the scheduler has to say of nodes is its own
    message = "" if condition["type"].startswith("PodGroup") else condition.get("message", "")
    return (condition["type"], condition["status"], condition.get("reason", ""), message)


def fate(pod: Manifest) -> Fate:
    """As the stages of the local plane read a command: `sleep infinity`, `sleep 1`, `sh -c "sleep 1; exit 3"`."""
    command = pod["spec"]["containers"][0]["command"]
    if command == ["sleep", "infinity"]:
        return FOREVER
    return Fate(1.0, "Failed" if command[0] == "sh" else "Succeeded")


async def in_model(scene: Scene) -> Course:
    server, course = Server(), Course()
    kubelet = Kubelet(server, fate, terminate_seconds=scene.terminate_seconds)
    workers = [Collector(server), JobController(server), Scheduler(server, slots=scene.slots), kubelet]
    for worker in workers:
        worker.start()
    player = Player(server, "ns", {})
    for move in scene.moves:
        for step in move.steps:
            await ask(player, step)
        await asyncio.sleep(move.rest_seconds)
        course.sights.append(await look(player))
    for worker in workers:
        worker.stop()
    objects = [change.object for change in server.store.history if change.name.plural == "jobs"]
    course.conditions = _conditions(objects)
    return course


async def on_cluster(transport: Transport, namespace: str, scene: Scene, wanted: Course, *, seconds: float) -> Course:
    """Each sight is the first one that is as wanted, or the last one before the time was up."""
    course, player = Course(), Player(transport, namespace, {})
    version = msgspec.json.decode((await player.send(list_("jobs"))).body)["metadata"]["resourceVersion"]
    told: list[Manifest] = []
    watching = asyncio.create_task(player.follow("jobs", version, told))
    for move, sight in zip(scene.moves, wanted.sights, strict=True):
        for step in move.steps:
            await ask(player, step)
        end = asyncio.get_running_loop().time() + seconds
        while (seen := await look(player)) != sight and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        course.sights.append(seen)
        if seen != sight:
            break
    async with asyncio.timeout(seconds):
        while not await _is_told(player, told):  # noqa: ASYNC110 - of the server's doing
            await asyncio.sleep(0.05)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    course.conditions = _conditions(told)
    return course


async def _is_told(player: Player, told: Sequence[Manifest]) -> bool:
    """Has the watch told what there is? It may be behind."""
    versions = {each["metadata"]["resourceVersion"] for each in told}
    return all(job["metadata"]["resourceVersion"] in versions for job in await player.all("jobs"))


def _conditions(objects: Sequence[Manifest]) -> list[Any]:
    """Each step of each Job once; whose turn it is when is the machine's. Types of one write stand in any order."""
    found: dict[str, list[Any]] = {}
    for obj in objects:
        steps = found.setdefault(obj["metadata"]["name"], [])
        now = sorted(_condition(each) for each in obj["status"].get("conditions") or ())
        if not steps or steps[-1] != now:
            steps.append(now)
    return sorted(found.items())
