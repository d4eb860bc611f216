"""Sends one action to the API server and shows the answer in the caches. Called by apply.

It knows what each answer means for the action: a name that a child of this JobSet has is done, one that another object
has is a ForeignObject, never touched; a failed precondition is a race, after which the object is read again. It never
repeats a write: the next observation decides again.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, assert_never, cast

from pyjobset.controller.observe import Caches
from pyjobset.errors import ForeignObject, NotFound, OutcomeUnknown, Raced, Refused
from pyjobset.kube.client import AlreadyExists, Client
from pyjobset.objects import labels
from pyjobset.objects.batch import Claim
from pyjobset.objects.jobset import JobSet, JobSetStatus
from pyjobset.objects.meta import Manifest, Struct, controller_of
from pyjobset.objects.resources import CLAIMS, JOBS, JOBSETS, PODS, Resource
from pyjobset.reconciler.claims import obstacle
from pyjobset.reconciler.decision import Action, Create, Delete, JsonPatch, Patch
from pyjobset.reconciler.observation import OWN_VERDICT

UNPROCESSABLE = 422
"""The object would be invalid with the change. That a precondition failed the client tells (kube.responses)."""


class Writer:
    """The writes of one run, for one JobSet."""

    def __init__(self, client: Client, caches: Caches, jobset: JobSet, *, is_new: bool = False) -> None:
        """`is_new`: nothing was created for this JobSet yet, as far as its status and this process know."""
        self._client = client
        self._caches = caches
        self._jobset = jobset
        self._is_new = is_new and jobset.status == JobSetStatus()
        self._namespace = jobset.metadata.namespace

    async def perform(self, action: Action) -> None:
        """Raises the error that the action met; a race has been looked at by then, so that observing again helps."""
        async with self._looking_at_races(action.resource, action.name, _uid(action)):
            match action:
                case Create():
                    self._wrote(action.resource, await self._create(action))
                case Patch() | JsonPatch():
                    self._wrote(action.resource, await self._patch(action))
                case Delete():
                    await self._delete(action)
                case _:
                    assert_never(action)

    @property
    def is_outdated(self) -> bool:
        """The watch has told of another spec than the one that was observed, or that the JobSet goes."""
        metadata = self._jobset.metadata
        seen = self._caches.jobsets.get(self._namespace, metadata.name)
        was = metadata.uid, metadata.generation, metadata.deletion_timestamp
        return seen is None or (seen.metadata.uid, seen.metadata.generation, seen.metadata.deletion_timestamp) != was

    async def confirm(self) -> None:
        """Raises Raced unless the JobSet still is what was observed. Asked before anything is made, or a Job resumed,
        for one that has lived already: where its watch lags, children that are gone may have gone with it, or with an
        attempt that is over, and would run again; a queue may have taken it back and sent it elsewhere."""
        metadata = self._jobset.metadata
        if self._is_new:
            return
        async with self._looking_at_races(JOBSETS, metadata.name, metadata.uid):
            stored = await self._client.get(JOBSETS, self._namespace, metadata.name)
        if stored.metadata.resource_version != metadata.resource_version:
            self._caches.jobsets.wrote(stored)
            raise Raced(f"JobSet {metadata.name} changed since it was observed")

    async def write_status(self, status: JobSetStatus) -> bool:
        """Stores what changed, if nobody wrote the JobSet since it was observed. False: nothing changed."""
        patch = status_patch(self._jobset.status, status)
        if not patch:
            return False
        metadata = self._jobset.metadata
        body = {"metadata": {"resourceVersion": metadata.resource_version}, "status": patch}
        async with self._looking_at_races(JOBSETS, metadata.name, metadata.uid):
            stored = await self._client.patch(
                JOBSETS, self._namespace, metadata.name, body, kind="merge", subresource="status"
            )
        self._caches.jobsets.wrote(stored)
        return True

    @asynccontextmanager
    async def _looking_at_races(self, resource: Resource[Struct], name: str, uid: str) -> AsyncIterator[None]:
        """Where the answer tells that the object is gone or another, or may be, it is read again. So is one that the
        server calls invalid with our change: of an object that has changed since that is a race, of the very one that
        was seen a refusal."""
        seen = self._shown(resource, name)
        try:
            yield
        except (Raced, Refused, OutcomeUnknown) as error:
            is_invalid = isinstance(error, Refused) and error.code == UNPROCESSABLE and bool(uid)
            if isinstance(error, Refused) and not (is_invalid or isinstance(error, NotFound)):
                raise
            stored = await self._read_again(resource, name, uid)
            if isinstance(error, NotFound) or (is_invalid and stored is None):
                raise Raced(f"{resource.kind} {name} is gone") from error
            if is_invalid and _version(stored) != _version(seen):
                raise Raced(f"{resource.kind} {name} changed since it was observed") from error
            raise

    async def _create(self, action: Create) -> Struct:
        try:
            return await self._client.create(action.resource, self._namespace, action.body)
        except AlreadyExists as error:
            taken: Any = await self._client.get(action.resource, self._namespace, action.name)
            if action.resource is CLAIMS:
                return self._used(action, taken)
            if self._is_ours(taken):
                return await self._adopted(action, taken)
            owner = controller_of(taken.metadata.owner_references)
            raise _foreign(action, self._namespace, f"{owner.kind}/{owner.name}" if owner else "nobody") from error

    async def _adopted(self, action: Create, taken: Any) -> Struct:
        """A child that is there already. A Job without its label is not in our watch: it gets the label back."""
        if action.resource is JOBS and not taken.metadata.labels.jobset_name:
            metadata = {"uid": taken.metadata.uid, "labels": {labels.JOBSET_NAME: self._jobset.metadata.name}}
            return await self._client.patch(
                action.resource, self._namespace, action.name, {"metadata": metadata}, kind="merge"
            )
        return cast("Struct", taken)

    def _used(self, action: Create, taken: Claim) -> Claim:
        """A claim that the watch does not show, for want of the label. It is used as it is, or not at all."""
        assert isinstance(action.body, dict)
        found = obstacle(self._jobset, action.body, taken)
        if found is None:
            self._caches.found_claim(self._jobset, taken)
            return taken
        if found.owner:
            raise _foreign(action, self._namespace, found.owner)
        raise Refused(found.message, code=OWN_VERDICT, reason="ClaimNotUsable")

    async def _patch(self, action: Patch | JsonPatch) -> Struct:
        if isinstance(action, JsonPatch):
            test = {"op": "test", "path": "/metadata/uid", "value": action.uid}
            return await self._client.patch(
                action.resource, self._namespace, action.name, (test, *action.operations), kind="json"
            )
        return await self._client.patch(
            action.resource,
            self._namespace,
            action.name,
            _with_preconditions(action),
            kind="apply" if action.is_apply else "merge",
            subresource=action.subresource,
            force=action.is_apply,
        )

    async def _delete(self, action: Delete) -> None:
        gone = await self._client.delete(
            action.resource,
            self._namespace,
            action.name,
            uid=action.uid,
            resource_version=action.resource_version,
            propagation=action.propagation,
        )
        if gone is not None:
            self._wrote(action.resource, gone)
        else:
            self._deleted(action.resource, action.name, action.uid)

    async def _read_again(self, resource: Resource[Struct], name: str, uid: str) -> Struct | None:
        """Shows the object as it is now. One of someone else is not for our caches, which may never see it go."""
        try:
            stored: Any = await self._client.get(resource, self._namespace, name)
        except NotFound:
            self._deleted(resource, name, uid)
            return None
        is_same_pod = resource is PODS and stored.metadata.uid == uid  # a pod belongs to its Job
        if resource is JOBSETS or is_same_pod or self._is_ours(stored):
            self._wrote(resource, stored)
        else:
            self._deleted(resource, name, uid)
        return cast("Struct", stored)

    def _shown(self, resource: Resource[Struct], name: str) -> Struct | None:
        cache = self._caches.of(resource)
        return None if cache is None else cache.get(self._namespace, name)

    def _is_ours(self, child: Any) -> bool:
        owner = controller_of(child.metadata.owner_references)
        return owner is not None and owner.uid == self._jobset.metadata.uid

    def _wrote(self, resource: Resource[Struct], stored: Struct) -> None:
        cache = self._caches.of(resource)
        if cache is not None:
            cache.wrote(stored)

    def _deleted(self, resource: Resource[Struct], name: str, uid: str) -> None:
        cache = self._caches.of(resource)
        if cache is not None and uid:
            cache.deleted(self._namespace, name, uid)


def status_patch(stored: JobSetStatus, wanted: JobSetStatus) -> Manifest:
    """A merge patch with the changed fields only; null clears one. `restarts` always goes along: people print it."""
    patch: Manifest = {}
    for name, wire in zip(JobSetStatus.__struct_fields__, JobSetStatus.__struct_encode_fields__, strict=True):
        value = getattr(wanted, name)
        if value != getattr(stored, name):
            patch[wire] = value if value not in (None, (), "") else None
    if patch:
        patch["restarts"] = wanted.restarts
    return patch


def _version(obj: Any) -> tuple[str, str] | None:
    return None if obj is None else (obj.metadata.uid, obj.metadata.resource_version)


def _uid(action: Action) -> str:
    return "" if isinstance(action, Create) else action.uid


def _with_preconditions(action: Patch) -> Manifest:
    metadata: Manifest = dict(action.patch.get("metadata") or {})
    metadata["uid"] = action.uid
    if action.resource_version is not None:
        metadata["resourceVersion"] = action.resource_version
    if not action.is_apply:
        return {**action.patch, "metadata": metadata}
    head = {"apiVersion": action.resource.api_version, "kind": action.resource.kind}
    return {**head, **action.patch, "metadata": {"name": action.name, **metadata}}


def _foreign(action: Create, namespace: str, owner: str) -> ForeignObject:
    kind = action.resource.kind
    whose = "nobody" if owner == "nobody" else owner
    return ForeignObject(
        f"{kind} {namespace}/{action.name} exists and is controlled by {whose}",
        kind=kind,
        namespace=namespace,
        name=action.name,
        owner=owner,
        hint=f"delete or rename that {kind}, or rename the JobSet",
    )
