"""Builds the Observation of one JobSet from the watch caches. Called by a reconcile; reads memory, never the server.

Children are those of its namespace whose controller ownerReference has its uid; labels and names decide nothing here.
Claims, which may outlive a JobSet, are found by name: the reconciler judges whose they are. The caches show our own
writes at once (write-through), so an observation is never older than what this process did.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyjobset.compiler.volumes import claim_names
from pyjobset.controller.budget import attempt_of
from pyjobset.kube.cache import Cache
from pyjobset.objects import names
from pyjobset.objects.batch import Claim, Job, Node, Pod, Service
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Struct, controller_of
from pyjobset.objects.placement import LEADER_INDEX
from pyjobset.objects.resources import Resource
from pyjobset.objects.scheduling import PodGroup, PriorityClass, Workload
from pyjobset.reconciler.observation import Observation, Refusal

LEADERS = "leaders"
"""The index of the pods by the uid of the Job that they lead (exclusive placement)."""


@dataclass(slots=True)
class Caches:
    """One watch cache a kind. The scheduling kinds are there when their gate is on, pods, nodes and priority classes
    once a JobSet needs them."""

    jobsets: Cache[JobSet]
    jobs: Cache[Job]
    services: Cache[Service]
    claims: Cache[Claim]
    """Those with a JobSet's label."""
    workloads: Cache[Workload] | None = None
    pod_groups: Cache[PodGroup] | None = None
    pods: Cache[Pod] | None = None
    nodes: Cache[Node] | None = None
    priority_classes: Cache[PriorityClass] | None = None
    unwatched_claims: dict[Hashable, Claim] = field(default_factory=dict)
    """Claims in use that have no such label, for one attempt of a JobSet. No news of them comes: forgotten at times."""

    def of(self, resource: Resource[Struct]) -> Cache[Any] | None:
        return {cache.resource.plural: cache for cache in self.all()}.get(resource.plural)

    def all(self) -> tuple[Cache[Any], ...]:
        some = (self.workloads, self.pod_groups, self.pods, self.nodes, self.priority_classes)
        caches = (self.jobsets, self.jobs, self.services, self.claims, *some)
        return tuple(cache for cache in caches if cache is not None)

    def claims_of(self, jobset: JobSet) -> Iterator[Claim]:
        """Those that have the names of its volumeClaimPolicies, whoever's they are."""
        for name in claim_names(jobset):
            claim = self.claims.get(jobset.metadata.namespace, name)
            claim = claim or self.unwatched_claims.get((attempt_of(jobset), name))
            if claim is not None:
                yield claim

    def found_claim(self, jobset: JobSet, claim: Claim) -> None:
        """The JobSet uses a claim that the server has and the watch may not show."""
        if not claim.metadata.labels.jobset_name:
            self.unwatched_claims[attempt_of(jobset), claim.metadata.name] = claim

    @property
    def has_scheduling_api(self) -> bool:
        return all(cache is not None and not cache.is_unserved for cache in (self.workloads, self.pod_groups))


def observe(
    caches: Caches,
    jobset: JobSet,
    *,
    now: datetime,
    features: Features,
    refusals: tuple[Refusal, ...] = (),
    with_pods: bool = False,
    with_nodes: bool = False,
    defers_suspended: bool = False,
    accepts: Mapping[str, str] | None = None,
) -> Observation:
    owner = jobset.metadata.namespace, jobset.metadata.uid
    jobs = tuple(caches.jobs.by_owner(*owner))
    services = caches.services.by_owner(*owner)
    pods = _pods(caches.pods, jobs) if with_pods else ()
    return Observation(
        jobset=jobset,
        now=now,
        jobs=jobs,
        service=next((s for s in services if s.metadata.name == names.subdomain(jobset)), None),
        workloads=tuple(caches.workloads.by_owner(*owner)) if caches.workloads is not None else (),
        pod_groups=tuple(caches.pod_groups.by_owner(*owner)) if caches.pod_groups is not None else (),
        pods=pods,
        claims=tuple(caches.claims_of(jobset)),
        nodes=_nodes(caches.nodes, pods or ()) if with_nodes else (),
        refusals=refusals,
        features=features,
        has_scheduling_api=caches.has_scheduling_api,
        defers_suspended=defers_suspended,
        accepts=accepts or {},
    )


def _pods(cache: Cache[Pod] | None, jobs: tuple[Job, ...]) -> tuple[Pod, ...] | None:
    if cache is None or not cache.is_synced:
        return None
    return tuple(pod for job in jobs for pod in cache.by_owner(job.metadata.namespace, job.metadata.uid))


def _nodes(cache: Cache[Node] | None, pods: Iterable[Pod]) -> tuple[Node, ...]:
    """Those on which the pods are, as far as they are known."""
    if cache is None:
        return ()
    names_of_nodes = dict.fromkeys(pod.spec.node_name for pod in pods if pod.spec.node_name)
    return tuple(node for name in names_of_nodes if (node := cache.get("", name)) is not None)


def led_jobs(pod: Pod) -> tuple[str, ...]:
    """For the index LEADERS."""
    owner = controller_of(pod.metadata.owner_references)
    if owner is None or pod.metadata.annotations.completion_index != LEADER_INDEX:
        return ()
    return (owner.uid,)
