"""Where the leader of an exclusively placed Job is: from the watch caches if they know, else from the API server.

A cache that shows the leader on a node is believed: a lookup costs nothing, and should it be stale, the reconciler
replaces a follower that went wrong. What it does not show yet is asked for, so that a follower comes the moment its
leader has a node and not a try of the Job controller later. That no leader will come is believed of its own pod, which
has succeeded, or of the Job. Used by webhook.pods; a lookup never waits long.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from pyjobset.controller.observe import LEADERS, Caches
from pyjobset.controller.webhook.pods import NotYet, Placed, chosen
from pyjobset.errors import JobSetError, NotFound
from pyjobset.kube.cache import Cache
from pyjobset.kube.client import Client
from pyjobset.objects import labels
from pyjobset.objects.batch import Node, Pod
from pyjobset.objects.meta import ObjectMeta, Struct, controller_of
from pyjobset.objects.names import is_dns_subdomain, is_label_value
from pyjobset.objects.placement import LEADER_INDEX, has_finished_leader, leaders
from pyjobset.objects.resources import JOBS, NODES, PODS, Resource

SECONDS_MAX = 3.0
"""For one question to the API server, which waits 10 s for all of a follower's and then refuses the pod itself."""


class _Indexes(Struct, frozen=True):
    """Lists of ranges such as `0,2-5`. Of thousands of Jobs they are not for a cache."""

    completed_indexes: str | None = None
    failed_indexes: str | None = None


class _Job(Struct, frozen=True):
    metadata: ObjectMeta
    status: _Indexes = _Indexes()


_JOB = Resource(JOBS.api_version, JOBS.plural, JOBS.kind, _Job)


class Leaders:
    """`caches` need not be filled, nor be there."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._client = client
        self._caches = caches

    async def leader(self, follower: Placed) -> Pod | None:
        cached = self._cached(follower)
        with suppress(NotYet):
            return chosen(follower, cached)
        sibling = self._placed_sibling(follower)
        if _has_led(cached) or (sibling is not None and await self._is_over(follower)):
            return sibling
        listed = await self._listed(follower)
        has_led = not leaders(listed) and _has_led(_of_its_job(listed, follower))
        if has_led or (sibling is None and not leaders(listed) and await self._is_over(follower)):  # asked once
            return sibling
        return chosen(follower, listed)

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

    def _pods(self) -> Cache[Pod] | None:
        """The cache, where it may be believed."""
        cache = self._caches.pods
        return None if cache is None or not cache.is_synced or cache.problem is not None else cache

    def _cached(self, follower: Placed) -> Sequence[Pod]:
        cache = self._pods()
        led = () if cache is None else cache.by_index(LEADERS, follower.owner_uid)
        return [p for p in led if p.metadata.namespace == follower.namespace and _is_of_attempt(p, follower)]

    def _placed_sibling(self, follower: Placed) -> Pod | None:
        """A live pod of its Job that has a node. It keeps other Jobs out of its domain, as a leader does."""
        cache = self._pods()
        siblings = () if cache is None else cache.by_owner(follower.namespace, follower.owner_uid)
        return next((p for p in siblings if p.is_live and p.spec.node_name and _is_of_attempt(p, follower)), None)

    async def _is_over(self, follower: Placed) -> bool:
        """Index 0 has succeeded, or failed for good (backoffLimitPerIndex)."""
        if not is_dns_subdomain(follower.job):
            return False
        async with _asking(f"its Job {follower.job}"):
            job = await self._client.get(_JOB, follower.namespace, follower.job)
        over = (job.status.completed_indexes or "", job.status.failed_indexes or "")
        return job.metadata.uid == follower.owner_uid and any(_first(indexes) == LEADER_INDEX for indexes in over)

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


def _is_of_attempt(pod: Pod, follower: Placed) -> bool:
    return pod.metadata.labels.restart_attempt == follower.labels.get(labels.RESTART_ATTEMPT, "")


def _of_its_job(pods: Iterable[Pod], follower: Placed) -> list[Pod]:
    """A Job that restarts alone has the labels of the one before it."""
    owned = ((pod, controller_of(pod.metadata.owner_references)) for pod in pods)
    return [pod for pod, owner in owned if owner is not None and owner.uid == follower.owner_uid]


def _has_led(pods: Sequence[Pod]) -> bool:
    return has_finished_leader(pods) and not leaders(pods)


def _first(indexes: str) -> str:
    return indexes.partition(",")[0].partition("-")[0]


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
