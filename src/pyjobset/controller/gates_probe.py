"""Asks the API server which fields it keeps, while a JobSet is degraded by dropped ones. Run by the manager.

A gate of Kubernetes shows nowhere: only a create tells, so one is asked for with dryRun=All, for the whole controller
about once a minute, and more often while the watches come back from a loss of the API server. Nobody degraded, no
request. What came back is `accepts`; what to do about it is decided by the reconciler. It never stores an object.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime

from pyjobset.controller.log import Log
from pyjobset.controller.observe import Caches
from pyjobset.errors import JobSetError, Unavailable
from pyjobset.kube.client import Client
from pyjobset.objects import conditions as words
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import JOBS, POD_GROUPS
from pyjobset.objects.scheduling import PodGroup
from pyjobset.reconciler.conditions import find

PROBE_SECONDS = 60.0
LOOK_SECONDS = 30.0
"""How often it is looked, in memory, whether somebody is degraded."""
TICK_SECONDS = 5.0
"""The same while somebody is: the watches may come back from a loss of the API server."""
TRUST_SECONDS = 600.0
"""A yes makes the objects that are older than it be replaced. A later yes counts as news only after this long: two API
servers with different gates cost a replacement each time."""

_NAME = {"generateName": "jobset-gates-"}
_POD_GROUP: Manifest = {
    "apiVersion": POD_GROUPS.api_version,
    "kind": POD_GROUPS.kind,
    "metadata": _NAME,
    "spec": {
        "schedulingPolicy": {"gang": {"minCount": 1}},
        "schedulingConstraints": {"topology": [{"key": "kubernetes.io/hostname"}]},
        "resourceClaims": [{"name": "asked", "resourceClaimName": "asked"}],
    },
}
_POD: Manifest = {
    "restartPolicy": "Never",
    "schedulingGroup": {"podGroupName": "asked"},
    "containers": [{"name": "asked", "image": "asked"}],
}
_JOB: Manifest = {
    "apiVersion": JOBS.api_version,
    "kind": JOBS.kind,
    "metadata": _NAME,
    "spec": {"suspend": True, "template": {"spec": _POD}},
}

log = Log(__name__)


class GatesProbe:
    """`accepts`: the fields that the API server keeps now, and since when, by its own clock."""

    def __init__(self, client: Client, caches: Caches, wake: Callable[[Callable[[JobSet], bool]], None]) -> None:
        self.accepts: Mapping[str, str] = {}
        self._client = client
        self._caches = caches
        self._wake = wake
        self._since: dict[str, str] = {}
        """Also of fields that are dropped again: they may flap."""
        self._turn = 0

    async def run(self) -> None:
        """Asks until cancelled."""
        loop = asyncio.get_running_loop()
        asked, degraded = -PROBE_SECONDS, list[JobSet]()
        while True:
            await asyncio.sleep(TICK_SECONDS if degraded else LOOK_SECONDS)
            degraded = [jobset for jobset in self._caches.jobsets if _is_degraded(jobset)]
            is_due = loop.time() - asked >= PROBE_SECONDS or self._is_reconnecting()
            if degraded and is_due:
                asked = loop.time()
                self._turn += 1  # a quota or a webhook of one namespace must not keep the answer from the others
                await self._ask(degraded[self._turn % len(degraded)])

    def _is_reconnecting(self) -> bool:
        """A gate changes when the API server starts anew, and the watches break then."""
        cache = self._caches.pod_groups
        return cache is not None and isinstance(cache.problem, Unavailable)

    async def _ask(self, jobset: JobSet) -> None:
        namespace = jobset.metadata.namespace
        jobs = self._caches.jobs.by_owner(namespace, jobset.metadata.uid)
        try:
            group = await self._client.create(POD_GROUPS, namespace, _POD_GROUP, dry_run=True)
            kept = _kept_of_group(group)
            if any(job.pod_group is None for job in jobs):
                kept |= _kept_of_job(await self._client.create(JOBS, namespace, _JOB, dry_run=True))
        except JobSetError as error:
            log.debug("The cluster does not say which fields it keeps", namespace=namespace, error=error.message)
            return
        self._learn(kept, group.metadata.creation_timestamp or "")

    def _learn(self, kept: frozenset[str], now: str) -> None:
        for field in kept:
            if field not in self._since or _seconds(self._since[field], now) >= TRUST_SECONDS:
                self._since[field] = now
        accepts = {field: self._since[field] for field in kept}
        if accepts != self.accepts:
            log.info("The cluster keeps fields of spec.scheduling", fields=",".join(sorted(kept)) or "none")
            self.accepts = accepts
            self._wake(_is_degraded)


def _is_degraded(jobset: JobSet) -> bool:
    """It runs, and the cluster dropped something of it."""
    if jobset.spec.suspend or jobset.status.terminal_state:
        return False
    found = find(jobset.status.conditions, words.SCHEDULING_DEGRADED)
    return found is not None and (found.status, found.reason) == ("True", words.FIELDS_DROPPED)


def _kept_of_group(stored: PodGroup) -> frozenset[str]:
    kept = {"schedulingConstraints": stored.spec.scheduling_constraints, "resourceClaims": stored.spec.resource_claims}
    return frozenset(field for field, value in kept.items() if value)


def _kept_of_job(stored: Job) -> frozenset[str]:
    return frozenset({"schedulingGroup"} if stored.pod_group else ())


def _seconds(since: str, now: str) -> float:
    return (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds() if now and since else 0.0
