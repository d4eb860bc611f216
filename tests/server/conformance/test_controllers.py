"""The model's controllers and those of the real cluster bring the same scenes to the same rest."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence

import pytest

from pyjobset.kube import cluster
from pyjobset.kube.transport import HttpTransport
from pyjobset.localplane.nodes import manifest as node_manifest
from pyjobset.localplane.options import NodeLayout
from pyjobset.localplane.plane import Plane
from pyjobset.simulation import clock
from tests.server.conformance.controllers import MANY, Course, Scene, in_model, on_cluster
from tests.server.conformance.scenes import SCENES, SLOT
from tests.server.plane import PATIENCE_SECONDS, Kubectl, wait_for

SECONDS_MAX = PATIENCE_SECONDS
"""An unschedulable gang is tried again after up to 10 s times the root of its pods, a failed pod after 10 s."""


@pytest.fixture
def rooms(kubectl: Kubectl, namespace: str) -> Iterator[Mapping[str, str]]:
    """A namespace for each scene, with nodes of its own for those that count them."""
    found = {name: f"{namespace}-{n}" for n, name in enumerate(SCENES)}
    objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": room}} for room in found.values()]
    for name, scene in SCENES.items():
        if scene.slots == MANY:
            continue
        layout = NodeLayout(count=scene.slots, cpu="1", topology={}, labels={SLOT: found[name]})
        taint = {"key": SLOT, "value": found[name], "effect": "NoSchedule"}
        for number in range(scene.slots):
            node = node_manifest(f"{found[name]}-{number}", layout, 0)
            objects.append({**node, "spec": {"taints": [taint]}})
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    made = kubectl("create", "-f", "-", stdin=json.dumps(listed))
    assert made.returncode == 0, made.stderr
    wait_for(lambda: _are_ready(kubectl), "the nodes take pods")
    yield found
    for room in found.values():
        kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false", "-n", room)
    kubectl("delete", "node", "-l", SLOT, "--wait=false")
    kubectl("delete", "namespace", *found.values(), "--wait=false")


def _are_ready(kubectl: Kubectl) -> bool:
    nodes = json.loads(kubectl("get", "nodes", "-l", SLOT, "-o", "json").stdout)["items"]
    return all([taint["key"] for taint in node["spec"]["taints"]] == [SLOT] for node in nodes)


async def _play(plane: Plane, rooms: Mapping[str, str], wanted: Mapping[str, Course]) -> Sequence[Course]:
    transport = HttpTransport(cluster.load(str(plane.kubeconfig)))
    try:
        playing = (
            on_cluster(transport, rooms[name], scene, wanted[name], seconds=SECONDS_MAX)
            for name, scene in SCENES.items()
        )
        return await asyncio.gather(*playing)
    finally:
        await transport.close()


def differences(name: str, scene: Scene, real: Course, model: Course) -> Iterator[str]:
    for number, (seen, wanted) in enumerate(zip(real.sights, model.sights, strict=False)):
        for what in dict.fromkeys((*seen, *wanted)):
            if seen.get(what) != wanted.get(what):
                yield f"{name}, move {number}: {what}\n  real  {seen.get(what)}\n  model {wanted.get(what)}"
    if len(real.sights) == len(scene.moves) and real.conditions != model.conditions:
        yield f"{name}: conditions\n  real  {real.conditions}\n  model {model.conditions}"


def test_controllers_bring_the_same_scenes_to_the_same_rest(plane: Plane, rooms: Mapping[str, str]) -> None:
    models = {name: clock.run(in_model(scene)) for name, scene in SCENES.items()}
    reals = dict(zip(SCENES, asyncio.run(_play(plane, rooms, models)), strict=True))
    found = [text for name, scene in SCENES.items() for text in differences(name, scene, reals[name], models[name])]
    assert not found, "\n".join(found)
