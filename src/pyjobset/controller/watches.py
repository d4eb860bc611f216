"""The watch caches of the controller, and which JobSets run because of a change in them. Made by the manager.

A child wakes the JobSet that its controller ownerReference names, a claim those that want one of its name. News that
needs no action in a hurry is gathered for a moment (pace), our own writes coming back among it. Pods and nodes are
watched only once a JobSet needs them, PriorityClasses once one is missing.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from pyjobset.compiler.volumes import claim_names
from pyjobset.controller.observe import LEADERS, Caches, led_jobs
from pyjobset.controller.pace import Pace, is_only_counts
from pyjobset.controller.queue import Queue
from pyjobset.controller.refusals import Refusals
from pyjobset.kube.cache import Cache
from pyjobset.kube.client import Client
from pyjobset.objects import features as gates
from pyjobset.objects import labels
from pyjobset.objects.batch import Claim, Node, Pod
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import GROUP, KIND, JobSet
from pyjobset.objects.meta import Key, controller_of
from pyjobset.objects.resources import (
    CLAIMS,
    JOBS,
    JOBSETS,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    SERVICES,
    WORKLOADS,
    Resource,
)
from pyjobset.objects.scheduling import PriorityClass
from pyjobset.reconciler.decide import needs_nodes, needs_pods

NODES_SECONDS = 1.0
"""News of nodes is gathered so long: a cluster that starts has thousands at once."""

_BY_CLAIM = "claim"
"""The index of JobSets by the claims that they want."""


class Watches:
    """`caches` fill once each of them is run."""

    def __init__(
        self,
        client: Client,
        *,
        features: Features,
        namespace: str | None,
        queue: Queue,
        pace: Pace,
        refusals: Refusals,
    ) -> None:
        self._client = client
        self._features = features
        self._namespace = namespace
        self._queue = queue
        self._pace = pace
        self._refusals = refusals
        self._loop = asyncio.get_running_loop()
        self._has_news_of_nodes = False
        self.caches = Caches(
            jobsets=Cache(
                client,
                JOBSETS,
                namespace=namespace,
                on_change=self._jobset_changed,
                indexes={_BY_CLAIM: lambda jobset: map(str, _claims_wanted(jobset))},
            ),
            jobs=self._children(JOBS, labels.JOBSET_NAME),
            services=self._children(SERVICES),
            claims=Cache(
                client,
                CLAIMS,
                namespace=namespace,
                label_selector=labels.JOBSET_NAME,
                on_change=self._claim_changed,
            ),
        )
        if gates.WORKLOAD_AWARE_SCHEDULING in features:
            self.caches.workloads = self._children(WORKLOADS, on_served=self.wake_all)
            self.caches.pod_groups = self._children(POD_GROUPS, on_served=self.wake_all)

    def add_pods(self) -> Cache[Pod]:
        """The cache of the pods of all JobSets, to be run."""
        assert self.caches.pods is None
        self.caches.pods = Cache(
            self._client,
            PODS,
            namespace=self._namespace,
            label_selector=labels.JOBSET_NAME,
            on_change=self._pod_changed,
            indexes={LEADERS: led_jobs},
        )
        return self.caches.pods

    def add_nodes(self) -> Cache[Node]:
        """The cache of the nodes, to be run."""
        assert self.caches.nodes is None
        self.caches.nodes = Cache(self._client, NODES, on_change=self._node_changed)
        return self.caches.nodes

    def add_priority_classes(self) -> Cache[PriorityClass]:
        """The cache of the PriorityClasses, to be run. All that are there are told first, so that none is missed."""
        assert self.caches.priority_classes is None
        self.caches.priority_classes = Cache(self._client, PRIORITY_CLASSES, on_change=self._class_changed)
        return self.caches.priority_classes

    def wake_all(self, which: Callable[[JobSet], bool] = lambda _: True) -> None:
        for jobset in self.caches.jobsets:
            if which(jobset):
                self._queue.add(key_of(jobset))

    def _children(
        self, resource: Resource[Any], label_selector: str = "", on_served: Callable[[], None] = lambda: None
    ) -> Cache[Any]:
        def changed(old: Any, new: Any) -> None:
            self._child_changed(resource.kind, old, new)

        return Cache(
            self._client,
            resource,
            namespace=self._namespace,
            label_selector=label_selector,
            on_change=changed,
            on_served=on_served,
        )

    def _jobset_changed(self, old: JobSet | None, new: JobSet | None) -> None:
        key = key_of(new or old)
        is_gathered = old is not None and new is not None and is_only_counts(old, new)
        if is_gathered:
            self._wake_later(key)
        else:
            self._queue.add(key)

    def _child_changed(self, kind: str, old: Any, new: Any) -> None:
        if new is None:
            for key in self._refusals.freed(kind, old.metadata.namespace, old.metadata.name):
                self._queue.add(key)
        owner = _owner(new if new is not None else old)
        before = owner if old is None or new is None else _owner(old)
        if before != owner and before is not None:
            self._wake_soon(before)
        if owner is None:
            return
        if old is None or (new is not None and before == owner and is_only_counts(old, new)):
            self._wake_later(owner)
        else:
            self._wake_soon(owner)

    def _claim_changed(self, old: Claim | None, new: Claim | None) -> None:
        """Wakes whoever wants a claim of that name: one that was kept has no owner, and one may be someone else's."""
        claim: Any = new or old
        name = Key(claim.metadata.namespace, claim.metadata.name)
        for jobset in self.caches.jobsets.by_index(_BY_CLAIM, str(name)):
            wake = self._wake_later if old is None else self._wake_soon
            wake(key_of(jobset))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod: Any = new or old
        key = Key(pod.metadata.namespace, pod.metadata.labels.jobset_name)
        jobset = self.caches.jobsets.get(key.namespace, key.name)
        if jobset is not None and needs_pods(jobset, self._features):
            self._wake_later(key)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        """Only a node that comes or gets other labels may be what somebody waits for."""
        is_same = old is not None and new is not None and old.metadata.labels == new.metadata.labels
        if new is None or is_same or self._has_news_of_nodes:
            return
        self._has_news_of_nodes = True
        self._loop.call_later(NODES_SECONDS, self._wake_for_nodes)

    def _class_changed(self, old: PriorityClass | None, new: PriorityClass | None) -> None:
        if old is None and new is not None:
            for key in self._refusals.class_came(new.metadata.name):
                self._queue.add(key)

    def _wake_for_nodes(self) -> None:
        self._has_news_of_nodes = False
        self.wake_all(needs_nodes)

    def _wake_later(self, key: Key) -> None:
        self._queue.add(key, after_seconds=self._pace.gather_seconds(key, self._loop.time()))

    def _wake_soon(self, key: Key) -> None:
        self._queue.add(key, after_seconds=self._pace.soon_seconds(key, self._loop.time()))


def key_of(jobset: JobSet | None) -> Key:
    assert jobset is not None
    return Key(jobset.metadata.namespace, jobset.metadata.name)


def _claims_wanted(jobset: JobSet) -> Iterator[Key]:
    return (Key(jobset.metadata.namespace, name) for name in claim_names(jobset))


def _owner(child: Any) -> Key | None:
    reference = controller_of(child.metadata.owner_references)
    if reference is None or reference.kind != KIND or reference.api_version.partition("/")[0] != GROUP:
        return None
    return Key(child.metadata.namespace, reference.name)
