"""Builds the Observation of one JobSet from the watch caches. Called by a reconcile; reads memory, never the server.

Children are those whose controller ownerReference has the JobSet's uid; labels and names decide nothing here. The
caches show our own writes at once (write-through), so an observation is never older than what this process did.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyjobset.kube.cache import Cache
from pyjobset.objects import names
from pyjobset.objects.batch import Job, Pod, Service
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Struct
from pyjobset.objects.resources import Resource
from pyjobset.objects.scheduling import PodGroup, Workload
from pyjobset.reconciler.observation import Observation, Refusal


@dataclass(slots=True)
class Caches:
    """One watch cache a kind. The scheduling kinds are there when their gate is on, pods once a JobSet needs them."""

    jobsets: Cache[JobSet]
    jobs: Cache[Job]
    services: Cache[Service]
    workloads: Cache[Workload] | None = None
    pod_groups: Cache[PodGroup] | None = None
    pods: Cache[Pod] | None = None

    def of(self, resource: Resource[Struct]) -> Cache[Any] | None:
        return {cache.resource.plural: cache for cache in self.all()}.get(resource.plural)

    def all(self) -> tuple[Cache[Any], ...]:
        caches = (self.jobsets, self.jobs, self.services, self.workloads, self.pod_groups, self.pods)
        return tuple(cache for cache in caches if cache is not None)

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
    defers_suspended: bool = False,
    accepts: Mapping[str, str] | None = None,
) -> Observation:
    uid = jobset.metadata.uid
    jobs = tuple(caches.jobs.by_owner(uid))
    services = caches.services.by_owner(uid)
    return Observation(
        jobset=jobset,
        now=now,
        jobs=jobs,
        service=next((s for s in services if s.metadata.name == names.subdomain(jobset)), None),
        workloads=tuple(caches.workloads.by_owner(uid)) if caches.workloads is not None else (),
        pod_groups=tuple(caches.pod_groups.by_owner(uid)) if caches.pod_groups is not None else (),
        pods=_pods(caches.pods, jobs) if with_pods else (),
        refusals=refusals,
        features=features,
        has_scheduling_api=caches.has_scheduling_api,
        defers_suspended=defers_suspended,
        accepts=accepts or {},
    )


def _pods(cache: Cache[Pod] | None, jobs: tuple[Job, ...]) -> tuple[Pod, ...] | None:
    if cache is None or not cache.is_synced:
        return None
    return tuple(pod for job in jobs for pod in cache.by_owner(job.metadata.uid))
