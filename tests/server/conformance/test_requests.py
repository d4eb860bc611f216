"""The same requests, asked of the model API server and of the real one, are answered alike."""

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence

from pyjobset.kube import cluster
from pyjobset.kube.requests import Request
from pyjobset.kube.transport import HttpTransport, Transport
from pyjobset.localplane.plane import Plane
from pyjobset.simulation import clock
from pyjobset.simulation.server import Server
from tests.server.conformance.bodies import ENDS
from tests.server.conformance.compared import MASK, compared, differences
from tests.server.conformance.generated import generated
from tests.server.conformance.player import Player, Script, Story
from tests.server.conformance.scripts import SCRIPTS

SEEDS = range(60)


async def on_server(plane: Plane, scripts: Sequence[Script]) -> list[Story]:
    """Each in a namespace of its own, one after the other: versions must come in order."""
    transport = HttpTransport(cluster.load(str(plane.kubeconfig)))
    try:
        return [await Player(transport, await _namespace(transport), ENDS).play(script) for script in scripts]
    finally:
        await transport.close()


async def _namespace(transport: Transport) -> str:
    name = f"conformance-{secrets.token_hex(6)}"
    body = json.dumps({"metadata": {"name": name}}).encode()
    response = await transport.send(Request("POST", "/api/v1/namespaces", body=body))
    assert response.status == 201, response.body
    return name


def in_model(script: Script) -> Story:
    async def play() -> Story:
        return await Player(Server(), "ns", ENDS).play(script)

    return clock.run(play())


def disagreements(plane: Plane, scripts: Mapping[str, Script], masked: set[str]) -> list[str]:
    stories = asyncio.run(on_server(plane, list(scripts.values())))
    found: list[str] = []
    for (name, script), real in zip(scripts.items(), stories, strict=True):
        unlike = differences(compared(real, masked), compared(in_model(script), set()))
        found += [f"{name}: {text}" for text in unlike]
    return found


def test_every_behaviour_that_the_model_claims(bare_plane: Plane) -> None:
    masked: set[str] = set()
    found = disagreements(bare_plane, SCRIPTS, masked)
    assert not found, "\n".join(found)
    assert masked == set(MASK), f"these hide nothing, take them out: {set(MASK) - masked}"


def test_any_requests_in_any_order(bare_plane: Plane) -> None:
    found = disagreements(bare_plane, {f"seed {seed}": generated(seed) for seed in SEEDS}, set())
    assert not found, "\n".join(found)
