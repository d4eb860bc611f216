"""Which cluster a command talks to, and the one JobSet that it is about. Used by `tree`, `explain` and `demo`.

The kubeconfig is --kubeconfig, else $KUBECONFIG, else ~/.kube/config, as in kubectl; where none of these is there, the
local plane's. `fetch` reads a JobSet and its children once, `follow` again at every change. Nothing here writes.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Container, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

from pyjobset.cli.view import Family
from pyjobset.errors import NotFound, Refused, Unavailable
from pyjobset.objects import labels
from pyjobset.objects.batch import Job, Pod
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Struct, controller_of
from pyjobset.objects.resources import JOBS, JOBSETS, POD_GROUPS, PODS, WORKLOADS, Resource
from pyjobset.objects.scheduling import PodGroup, Workload

if TYPE_CHECKING:
    from pyjobset.kube.client import Client

T = TypeVar("T", bound=Struct)
Owned = TypeVar("Owned", Workload, PodGroup, Job, Pod)

HOME_CONFIG = Path("~/.kube/config")
NOT_FOUND = 404
"""Of an object, or of a resource that the cluster does not serve."""
SETTLE_SECONDS = 0.1
"""Changes come in bursts: one picture for all that arrive within this time."""
READ_SECONDS = 15.0
"""For all that one answer to a person needs."""
_NAME_LENGTH_MAX = 63
_RIGHT = re.compile(
    r'cannot (?P<verb>[a-z]+) resource "(?P<resource>[a-z./]+)" in API group "(?P<group>[a-z0-9.-]*)"'
    r'(?: in the namespace "(?P<namespace>[a-z0-9-]+)")?'
)
"""The API server's words for a right that is missing."""
LOOK_AGAIN_SECONDS = 5.0
"""Without any change: time itself is news where nothing happens to a new JobSet."""


def open_client(kubeconfig: str | None, context: str | None) -> "Client":
    from pyjobset.kube.client import connect

    return connect(kubeconfig=kubeconfig or _plane_kubeconfig(), context=context)


def _plane_kubeconfig() -> str | None:
    """That of the running local plane, where the person has no other."""
    if os.environ.get("KUBECONFIG") or HOME_CONFIG.expanduser().exists():
        return None
    from pyjobset.localplane.plane import Plane

    plane = Plane()
    return str(plane.kubeconfig) if plane.kubeconfig.exists() and plane.status().running else None


def plane_of(kubeconfig: str | None) -> Path | None:
    """The directory of the local plane whose kubeconfig is used, running or not. None: another cluster."""
    from pyjobset.localplane.state import STATE, default_directory

    named = kubeconfig or os.environ.get("KUBECONFIG") or ""
    default = default_directory() if not HOME_CONFIG.expanduser().exists() else None
    directory = Path(named).expanduser().absolute().parent if named else default
    return directory if directory is not None and (directory / STATE).exists() else None


def plane_flag(directory: Path) -> str:
    """What a command needs to mean that plane: empty for the default one."""
    from pyjobset.localplane.state import default_directory

    return "" if directory == default_directory().expanduser().absolute() else str(directory)


@contextmanager
def hinting(kubeconfig: str | None) -> Iterator[None]:
    """Says what to do about a cluster that does not answer, and about a right that is missing."""
    try:
        yield
    except Unavailable as error:
        if not error.hint or plane_of(kubeconfig) is not None:
            error.hint = _hint(kubeconfig)
        raise
    except Refused as error:
        if right := _RIGHT.search(error.message):
            verb, resource, group, place = right["verb"], right["resource"], right["group"], right["namespace"]
            where = f"-n {place}" if place else "--all-namespaces"
            asked = f"{verb} {resource}{'.' * bool(group)}{group} {where}"
            error.hint = f"ask an administrator for that right; kubectl auth can-i {asked} checks it"
        raise


@asynccontextmanager
async def bounded() -> AsyncGenerator[None, None]:
    """For reads of a person who waits. An API server that lost its etcd answers each read after half a minute only."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            yield
    except TimeoutError as error:
        raise Unavailable(f"the API server did not answer in {READ_SECONDS:g} seconds") from error


def _hint(kubeconfig: str | None) -> str:
    directory = plane_of(kubeconfig)
    if directory is None:
        return "kubectl get --raw '/readyz?verbose' says what is wrong with it"
    flag = f" --dir {quote(named)}" if (named := plane_flag(directory)) else ""
    return f"jobset status{flag} shows what runs; jobset up{flag} starts or repairs it"


async def fetch(client: "Client", namespace: str, name: str, *, pods: Resource[Pod] = PODS) -> Family:
    """The JobSet and its children, pods with as much as `pods` reads. Raises NotFound with the nearest names."""
    try:
        jobset = await client.get(JOBSETS, namespace, name)
    except Refused as error:
        if error.code != NOT_FOUND:
            raise
        raise await _not_found(client, namespace, name) from error
    selector = f"{labels.JOBSET_NAME}={name}"
    workloads, groups, jobs, all_pods = await asyncio.gather(
        _list(client, WORKLOADS, namespace, selector),
        _list(client, POD_GROUPS, namespace, selector),
        _list(client, JOBS, namespace, selector),
        _list(client, pods, namespace, selector),
    )
    return _family(jobset, workloads, groups, jobs, all_pods)


async def follow(client: "Client", namespace: str, name: str) -> AsyncGenerator[Family, None]:
    """The family now and after every change, until the JobSet is gone or the caller has seen enough."""
    from pyjobset.kube.cache import Cache

    async with bounded():
        family = await fetch(client, namespace, name)
    yield family  # what a person should know has been said before the caches retry for ever
    changed = asyncio.Event()

    def cache(resource: Resource[T], selector: str = f"{labels.JOBSET_NAME}={name}") -> Cache[T]:
        return Cache(
            client, resource, namespace=namespace, label_selector=selector, on_change=lambda _old, _new: changed.set()
        )

    jobsets = cache(JOBSETS, selector="")
    workloads, groups, jobs, pods = cache(WORKLOADS), cache(POD_GROUPS), cache(JOBS), cache(PODS)
    caches = (jobsets, workloads, groups, jobs, pods)
    tasks = [asyncio.create_task(c.run()) for c in caches]
    try:
        await asyncio.gather(*(c.wait_synced() for c in caches))
        while (jobset := jobsets.get(namespace, name)) is not None:
            yield _family(jobset, list(workloads), list(groups), list(jobs), list(pods))
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), LOOK_AGAIN_SECONDS)
                await asyncio.sleep(SETTLE_SECONDS)
            changed.clear()
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def _list(client: "Client", resource: Resource[T], namespace: str, selector: str) -> list[T]:
    try:
        return await client.list(resource, namespace, label_selector=selector)
    except Refused as error:
        if error.code != NOT_FOUND:
            raise
        return []  # the cluster does not serve scheduling.k8s.io


def _family(
    jobset: JobSet, workloads: list[Workload], groups: list[PodGroup], jobs: list[Job], pods: list[Pod]
) -> Family:
    """The children that this JobSet controls: an older one of the same name may have left some."""
    mine = _controlled(jobs, {jobset.metadata.uid})
    return Family(
        jobset,
        _controlled(workloads, {jobset.metadata.uid}),
        _controlled(groups, {jobset.metadata.uid}),
        mine,
        _controlled(pods, {job.metadata.uid for job in mine}),
        age_seconds(jobset, datetime.now(UTC)),
    )


def age_seconds(jobset: JobSet, now: datetime) -> float:
    """Not below 0: the clocks of this machine and of the cluster differ."""
    created = jobset.metadata.creation_timestamp
    return max(0.0, (now - datetime.fromisoformat(created)).total_seconds()) if created else 0.0


def _controlled(items: Iterable[Owned], uids: Container[str]) -> tuple[Owned, ...]:
    return tuple(i for i in items if (owner := controller_of(i.metadata.owner_references)) and owner.uid in uids)


async def _not_found(client: "Client", namespace: str, name: str) -> Refused:
    if not await client.serves(JOBSETS.api_version, JOBSETS.plural):
        return not_installed()
    everywhere = await _visible(client, namespace)
    if everywhere is None:
        return NotFound(f"JobSet {namespace}/{name} not found", code=NOT_FOUND, reason="NotFound")
    here = [j.metadata.name for j in everywhere if j.metadata.namespace == namespace]
    others = sorted({j.metadata.namespace for j in everywhere if j.metadata.name == name})
    near = get_close_matches(name.lower()[:_NAME_LENGTH_MAX], here, n=3, cutoff=0.4)
    if others:
        hint = f"there is one in namespace {others[0]}: -n {others[0]}"
    elif near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        hint = (
            f"namespace {namespace} has {', '.join(sorted(here)[:10])}" if here else f"namespace {namespace} has none"
        )
    return NotFound(f"JobSet {namespace}/{name} not found", code=NOT_FOUND, reason="NotFound", hint=hint)


async def _visible(client: "Client", namespace: str) -> list[JobSet] | None:
    """The JobSets that the person may list: of all namespaces, else of this one. None: not even these."""
    for where in (None, namespace):
        with suppress(Refused):
            return await client.list(JOBSETS, where)
    return None


def not_installed() -> Refused:
    return Refused(
        f"the cluster has no {JOBSETS}: JobSet is not installed",
        code=NOT_FOUND,
        reason="NotFound",
        hint="install it (kubectl apply --server-side -k deploy/default), or choose another cluster with --context",
    )
