"""The same requests, asked of the model API server and of the real one, are answered alike."""

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyjobset.kube import cluster
from pyjobset.kube.client import Client
from pyjobset.kube.requests import Request
from pyjobset.kube.requests import list_ as list_request
from pyjobset.kube.responses import Expired, Page, error_of, status_of
from pyjobset.kube.transport import HttpTransport, Transport
from pyjobset.localplane.plane import Plane
from pyjobset.objects.resources import WORKLOADS
from pyjobset.simulation import clock
from pyjobset.simulation.server import Server
from tests.server.conformance.bodies import ENDS, workload
from tests.server.conformance.compared import MASK, compared, differences
from tests.server.conformance.forgetting import forget
from tests.server.conformance.generated import generated
from tests.server.conformance.player import Player, Script, Story, create, delete
from tests.server.conformance.refusing import tell_model, tell_server
from tests.server.conformance.scripts import SCRIPTS

SEEDS = range(60)
FORGETS_SECONDS = 60
FIRST_VERSION = 100
"""Of the model: the real one too has lived before the first script."""


async def on_server(plane: Plane, scripts: Sequence[Script]) -> list[Story]:
    """Each in a namespace of its own, one after the other: versions must come in order."""
    transport = HttpTransport(cluster.load(str(plane.kubeconfig)))
    try:
        return [await _played(transport, script) for script in scripts]
    finally:
        await transport.close()


async def _played(transport: Transport, script: Script) -> Story:
    namespace = await _namespace(transport)
    await tell_server(transport, namespace, script.refuses)
    return await Player(transport, namespace, ENDS).play(script)


async def _namespace(transport: Transport) -> str:
    name = f"conformance-{secrets.token_hex(6)}"
    body = json.dumps({"metadata": {"name": name}}).encode()
    response = await transport.send(Request("POST", "/api/v1/namespaces", body=body))
    assert response.status == 201, response.body
    return name


def in_model(script: Script) -> Story:
    async def play() -> Story:
        server = Server()
        server.store.version = server.store.oldest = FIRST_VERSION
        tell_model(server, script.refuses)
        return await Player(server, "ns", ENDS).play(script)

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


def test_lists_in_pages_and_a_page_that_is_forgotten(bare_plane: Plane) -> None:
    """The pages are of one moment, whatever happens between them, until the server forgets that moment."""

    async def tell(transport: Transport, namespace: str, forgets: Callable[[], None]) -> list[Any]:
        player = Player(transport, namespace, ENDS)
        for name in "abcde":
            await player.send(create("workloads", workload(name)))
        async with Client(transport) as client:
            pages = client.pages(WORKLOADS, namespace, page_size=2)
            first = _names(await anext(pages))
            await player.send(create("workloads", workload("bb")))
            await player.send(delete("workloads", "d"))
            second = await anext(pages)
            request = list_request(WORKLOADS, namespace, limit=2, continue_token=second.metadata.continue_)
            forgets()
            async with asyncio.timeout(FORGETS_SECONDS):
                while (last := await transport.send(request)).status == 200:  # noqa: ASYNC110  # nobody is told
                    await asyncio.sleep(0.5)
        assert isinstance(error_of(request, last), Expired)
        return [first, _names(second), status_of(last.body).reason]

    async def real() -> list[Any]:
        transport = HttpTransport(cluster.load(str(bare_plane.kubeconfig)))
        return await tell(transport, await _namespace(transport), lambda: forget(bare_plane))

    async def model() -> list[Any]:
        server = Server()
        return await tell(server, "ns", server.store.compact)

    assert asyncio.run(real()) == clock.run(model()) == [["a", "b"], ["c", "d"], "Expired"]


def _names(page: Page) -> list[str]:
    return [json.loads(bytes(item))["metadata"]["name"] for item in page.items or ()]
