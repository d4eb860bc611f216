"""Where the leader of an exclusively placed Job is: from the watch caches if they know, else from the API server.

A cache that shows the leader on a node is believed: a lookup costs nothing, and should it be stale, the reconciler
replaces a follower that went wrong. What it does not show yet is asked for, so that a follower comes the moment its
leader has a node and not a try of the Job controller later. Used by webhook.pods; a lookup never waits long.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from pyjobset.controller.observe import LEADERS, Caches
from pyjobset.controller.webhook.pods import NotYet, Placed, chosen
from pyjobset.errors import JobSetError, NotFound
from pyjobset.kube.client import Client
from pyjobset.objects import labels
from pyjobset.objects.batch import Node, Pod
from pyjobset.objects.names import is_label_value
from pyjobset.objects.placement import LEADER_INDEX
from pyjobset.objects.resources import NODES, PODS

SECONDS_MAX = 3.0
"""For one question to the API server, which waits 10 s for both of a follower's and then refuses the pod itself."""


class Leaders:
    """`caches` need not be filled, nor be there."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._client = client
        self._caches = caches

    async def leader(self, follower: Placed) -> Pod:
        with suppress(NotYet):
            return chosen(follower, self._cached(follower))
        return chosen(follower, await self._listed(follower))

    async def node(self, leader: Pod, topology: str) -> Node:
        """The leader's node, which has the label."""
        name = leader.spec.node_name
        cached = self._caches.nodes.get("", name) if self._caches.nodes is not None else None
        if cached is not None and topology in cached.metadata.labels:
            return cached
        async with _asking(f"node {name} of its leader {leader.metadata.name}"):
            node = await self._client.get(NODES, None, name)
        if topology not in node.metadata.labels:
            raise NotYet(f"node {name} of its leader {leader.metadata.name} has no label {topology}")
        return node

    def _cached(self, follower: Placed) -> Sequence[Pod]:
        cache = self._caches.pods
        if cache is None or not cache.is_synced or cache.problem is not None:
            return ()
        attempt = follower.labels.get(labels.RESTART_ATTEMPT, "")
        led = cache.by_index(LEADERS, follower.owner_uid)
        return [pod for pod in led if pod.metadata.labels.restart_attempt == attempt]

    async def _listed(self, follower: Placed) -> Sequence[Pod]:
        """Only pods of index 0: a Job may have thousands of others."""
        wanted = {key: follower.labels.get(key, "") for key in (labels.JOB_KEY, labels.RESTART_ATTEMPT)}
        wanted[labels.COMPLETION_INDEX] = LEADER_INDEX
        for key, value in wanted.items():
            if not is_label_value(value):
                raise NotYet(f"its label {key} is not the value of a label")
        selector = ",".join(f"{key}={value}" for key, value in wanted.items())
        async with _asking("its leader"):
            return await self._client.list(PODS, follower.namespace, label_selector=selector)


@asynccontextmanager
async def _asking(what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(SECONDS_MAX):
            yield
    except TimeoutError:
        raise NotYet(f"{what} cannot be looked up: no answer from the API server in {SECONDS_MAX:g} s") from None
    except NotFound:
        raise NotYet(f"{what} does not exist") from None
    except JobSetError as error:
        raise NotYet(f"{what} cannot be looked up: {error.message}") from error
