"""One write each: what the server's answer means, and what the caches show afterwards, while the watches lag behind."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from pyjobset.controller.observe import Caches
from pyjobset.controller.writes import Writer, status_patch
from pyjobset.errors import ForeignObject, OutcomeUnknown, Raced, Refused, Unavailable
from pyjobset.kube.cache import Cache
from pyjobset.kube.client import Client
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSetStatus
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import CLAIMS, JOBS, JOBSETS, SERVICES
from pyjobset.reconciler.decision import Create, Delete, JsonPatch, Patch
from pyjobset.simulation.clock import run
from tests.model_server import ModelServer, failure

OWNER = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "js", "uid": "js-uid", "controller": True}
JOB: Manifest = {
    "metadata": {"name": "j", "ownerReferences": [OWNER], "labels": {"jobset.sigs.k8s.io/jobset-name": "js"}},
    "spec": {"template": {"spec": {}}},
}


class World:
    def __init__(self, server: ModelServer, caches: Caches, writer: Writer) -> None:
        self.server = server
        self.caches = caches
        self.writer = writer

    @property
    def job(self) -> Job | None:
        """As the cache shows it."""
        return self.caches.jobs.get("ns", "j")

    def stored(self) -> Manifest:
        return self.server.get("jobs", "j")


@asynccontextmanager
async def world_of(server: ModelServer) -> AsyncIterator[World]:
    """Caches that have seen what is on the server now, and hear nothing more."""
    server.put("jobsets", {"metadata": {"name": "js", "uid": "js-uid"}})
    async with Client(server) as client:
        caches = Caches(*(Cache(client, resource) for resource in (JOBSETS, JOBS, SERVICES, CLAIMS)))
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(cache.run()) for cache in caches.all()]
            for cache in caches.all():
                await cache.wait_synced()
            server.silent |= {"jobsets", "jobs", "services"}
            jobset = caches.jobsets.get("ns", "js")
            assert jobset is not None
            yield World(server, caches, Writer(client, caches, jobset))
            for task in running:
                task.cancel()


def case(test: Callable[[World], Awaitable[None]], *, job: Manifest | None = None) -> None:
    async def main() -> None:
        server = ModelServer()
        if job is not None:
            server.put("jobs", job)
        async with world_of(server) as world:
            await test(world)

    run(main())


CREATE = Create(JOBS, "j", JOB)


def test_what_was_created_is_shown_at_once() -> None:
    async def test(world: World) -> None:
        await world.writer.perform(CREATE)
        assert world.job is not None
        assert world.job.metadata.uid == world.stored()["metadata"]["uid"]

    case(test)


def test_a_child_that_is_there_already_is_taken_over_without_a_change() -> None:
    async def test(world: World) -> None:
        stored = world.server.put("jobs", JOB)
        await world.writer.perform(CREATE)
        assert world.job is not None
        assert world.stored() == stored

    case(test)


@pytest.mark.decision(12)
@pytest.mark.parametrize(
    ("owners", "told"),
    [
        ([], "nobody"),
        ([OWNER | {"controller": False}], "nobody"),
        ([OWNER | {"uid": "an-older-js"}], "JobSet/js"),
        ([OWNER | {"kind": "CronJob", "name": "c", "uid": "c"}], "CronJob/c"),
    ],
)
def test_the_object_of_someone_else_is_told_and_not_shown(owners: list[Manifest], told: str) -> None:
    async def test(world: World) -> None:
        stored = world.server.put("jobs", {**JOB, "metadata": {**JOB["metadata"], "ownerReferences": owners}})
        with pytest.raises(ForeignObject) as caught:
            await world.writer.perform(CREATE)
        assert (caught.value.kind, caught.value.name, caught.value.owner) == ("Job", "j", told)
        assert world.job is None
        assert world.stored() == stored

    case(test)


def test_after_a_lost_answer_the_server_is_asked() -> None:
    async def test(world: World) -> None:
        world.server.after = lambda request, _: OutcomeUnknown("no answer") if request.method == "POST" else None
        with pytest.raises(OutcomeUnknown):
            await world.writer.perform(CREATE)
        assert world.job is not None

    case(test)


def test_after_a_lost_request_the_server_is_asked_too() -> None:
    async def test(world: World) -> None:
        world.server.before = lambda request, _: OutcomeUnknown("no answer") if request.method == "POST" else None
        with pytest.raises(OutcomeUnknown):
            await world.writer.perform(CREATE)
        assert world.job is None

    case(test)


def test_a_foreign_object_found_after_a_lost_answer_is_not_shown() -> None:
    async def test(world: World) -> None:
        world.server.put("jobs", {"metadata": {**JOB["metadata"], "ownerReferences": []}})
        world.server.before = lambda request, _: OutcomeUnknown("no answer") if request.method == "POST" else None
        with pytest.raises(OutcomeUnknown):
            await world.writer.perform(CREATE)
        assert world.job is None

    case(test)


def seen(world: World) -> Job:
    assert world.job is not None
    return world.job


def patch(uid: str, *, resource_version: str | None = None) -> Patch:
    return Patch(JOBS, "j", uid, {"spec": {"suspend": True}}, resource_version=resource_version)


def json_patch(uid: str) -> JsonPatch:
    return JsonPatch(JOBS, "j", uid, ({"op": "replace", "path": "/spec/suspend", "value": True},))


SPEC = {"spec": {"suspend": False}}


@pytest.mark.parametrize("make", [patch, json_patch])
def test_a_patch_is_shown_at_once(make: Callable[[str], Patch | JsonPatch]) -> None:
    async def test(world: World) -> None:
        await world.writer.perform(make(seen(world).metadata.uid))
        assert seen(world).spec.suspend is True
        assert world.stored()["spec"]["suspend"] is True

    case(test, job=JOB | SPEC)


@pytest.mark.parametrize("make", [patch, json_patch])
def test_a_patch_never_hits_another_object_of_the_name(make: Callable[[str], Patch | JsonPatch]) -> None:
    async def test(world: World) -> None:
        old = seen(world).metadata.uid
        world.server.remove("jobs", "j")
        world.server.put("jobs", JOB | SPEC)
        with pytest.raises(Raced):
            await world.writer.perform(make(old))
        assert world.stored()["spec"]["suspend"] is False
        assert seen(world).metadata.uid == world.stored()["metadata"]["uid"] != old

    case(test, job=JOB | SPEC)


def test_a_patch_of_what_is_gone_is_a_race_and_hides_it() -> None:
    async def test(world: World) -> None:
        uid = seen(world).metadata.uid
        world.server.remove("jobs", "j")
        with pytest.raises(Raced):
            await world.writer.perform(patch(uid))
        assert world.job is None

    case(test, job=JOB | SPEC)


def test_a_patch_with_a_version_fails_after_any_other_change() -> None:
    async def test(world: World) -> None:
        before = seen(world).metadata
        world.server.change("jobs", "j", {"metadata": {"labels": {"a": "b"}}})
        with pytest.raises(Raced):
            await world.writer.perform(patch(before.uid, resource_version=before.resource_version))
        assert world.stored()["spec"]["suspend"] is False
        assert seen(world).metadata.resource_version == world.stored()["metadata"]["resourceVersion"]

    case(test, job=JOB | SPEC)


INVALID = failure(422, "Invalid", "spec.template: field is immutable", "j")


def test_a_refused_patch_of_the_very_object_that_was_seen_is_a_refusal() -> None:
    async def test(world: World) -> None:
        world.server.before = lambda request, _: INVALID if request.method == "PATCH" else None
        with pytest.raises(Refused, match="immutable"):
            await world.writer.perform(patch(seen(world).metadata.uid))

    case(test, job=JOB | SPEC)


def test_a_refused_patch_of_an_object_that_has_changed_since_is_a_race() -> None:
    async def test(world: World) -> None:
        world.server.change("jobs", "j", {"spec": {"parallelism": 3}})
        world.server.before = lambda request, _: INVALID if request.method == "PATCH" else None
        with pytest.raises(Raced):
            await world.writer.perform(patch(seen(world).metadata.uid))
        assert seen(world).spec.parallelism == 3

    case(test, job=JOB | SPEC)


def test_a_refused_patch_of_an_object_that_is_gone_is_a_race_and_hides_it() -> None:
    async def test(world: World) -> None:
        uid = seen(world).metadata.uid
        world.server.remove("jobs", "j")
        world.server.before = lambda request, _: INVALID if request.method == "PATCH" else None
        with pytest.raises(Raced, match="Job j is gone"):
            await world.writer.perform(patch(uid))
        assert world.job is None

    case(test, job=JOB | SPEC)


def test_what_the_watch_tells_while_a_patch_is_judged_is_a_change_as_well() -> None:
    async def test(world: World) -> None:
        def told(request: Request, _: str) -> Response | None:
            if request.method != "PATCH":
                return None
            world.server.change("jobs", "j", {"spec": {"parallelism": 3}})
            world.caches.jobs.wrote(msgspec.convert(world.stored(), Job))
            return INVALID

        world.server.before = told
        with pytest.raises(Raced, match="changed since it was observed"):
            await world.writer.perform(patch(seen(world).metadata.uid))

    case(test, job=JOB | SPEC)


def test_a_creation_that_is_refused_is_not_looked_at() -> None:
    async def test(world: World) -> None:
        world.server.before = lambda request, _: INVALID if request.method == "POST" else None
        with pytest.raises(Refused, match="immutable"):
            await world.writer.perform(CREATE)
        assert [call.method for call in world.server.calls][-1] == "POST"

    case(test)


@pytest.mark.parametrize(("is_changed", "error"), [(False, Refused), (True, Raced)])
def test_a_status_that_is_refused_for_a_jobset_that_has_changed_since_is_a_race(
    is_changed: bool, error: type[Exception]
) -> None:
    async def test(world: World) -> None:
        if is_changed:
            world.server.change("jobsets", "js", {"spec": {"suspend": True}})
        world.server.before = lambda request, _: INVALID if request.method == "PATCH" else None
        with pytest.raises(error):
            await world.writer.write_status(JobSetStatus(restarts=1))

    case(test)


@pytest.mark.parametrize("propagation", ["Foreground", "Background"])
def test_a_deleted_object_is_shown_as_the_server_answered(propagation: Any) -> None:
    async def test(world: World) -> None:
        await world.writer.perform(Delete(JOBS, "j", seen(world).metadata.uid, propagation))
        if propagation == "Background":
            assert world.job is None
        else:
            assert seen(world).metadata.deletion_timestamp is not None

    case(test, job=JOB)


def test_a_delete_never_hits_another_object_of_the_name() -> None:
    async def test(world: World) -> None:
        old = seen(world).metadata.uid
        world.server.remove("jobs", "j")
        world.server.put("jobs", JOB)
        with pytest.raises(Raced):
            await world.writer.perform(Delete(JOBS, "j", old, "Background"))
        assert seen(world).metadata.uid == world.stored()["metadata"]["uid"] != old

    case(test, job=JOB)


def test_a_delete_of_what_is_gone_is_a_race_and_hides_it() -> None:
    async def test(world: World) -> None:
        uid = seen(world).metadata.uid
        world.server.remove("jobs", "j")
        with pytest.raises(Raced):
            await world.writer.perform(Delete(JOBS, "j", uid, "Foreground"))
        assert world.job is None

    case(test, job=JOB)


def test_a_race_that_cannot_be_looked_at_is_the_servers_absence() -> None:
    async def test(world: World) -> None:
        world.server.remove("jobs", "j")
        world.server.before = lambda request, _: Unavailable("down") if request.method == "GET" else None
        with pytest.raises(Unavailable):
            await world.writer.perform(patch(seen(world).metadata.uid))

    case(test, job=JOB | SPEC)


def test_the_status_is_stored_once_and_shown() -> None:
    async def test(world: World) -> None:
        wanted = JobSetStatus(restarts=1)
        assert await world.writer.write_status(wanted)
        jobset = world.caches.jobsets.get("ns", "js")
        assert jobset is not None
        assert jobset.status == wanted

    case(test)


def test_an_unchanged_status_is_no_request() -> None:
    async def test(world: World) -> None:
        assert not await world.writer.write_status(JobSetStatus())
        assert world.server.writes() == []

    case(test)


@pytest.mark.decision(17)
def test_a_status_of_an_older_observation_is_not_stored() -> None:
    async def test(world: World) -> None:
        world.server.change("jobsets", "js", {"spec": {"suspend": True}})
        with pytest.raises(Raced):
            await world.writer.write_status(JobSetStatus(restarts=1))
        assert world.server.get("jobsets", "js")["status"] == {}
        jobset = world.caches.jobsets.get("ns", "js")
        assert jobset is not None
        assert jobset.spec.suspend is True

    case(test)


def test_the_status_of_a_jobset_that_is_gone_is_a_race_and_hides_it() -> None:
    async def test(world: World) -> None:
        world.server.remove("jobsets", "js")
        with pytest.raises(Raced):
            await world.writer.write_status(JobSetStatus(restarts=1))
        assert world.caches.jobsets.get("ns", "js") is None

    case(test)


def status(**fields: Any) -> JobSetStatus:
    return msgspec.convert(fields, JobSetStatus)


@pytest.mark.parametrize(
    ("stored", "wanted", "expected"),
    [
        (status(), status(), {}),
        (status(), status(terminalState="Failed"), {"terminalState": "Failed", "restarts": 0}),
        (status(terminalState="Failed", restarts=2), status(restarts=2), {"terminalState": None, "restarts": 2}),
        (status(startTime="2026-11-30T12:00:00Z"), status(), {"startTime": None, "restarts": 0}),
        (status(restarts=2, restartsCountTowardsMax=1), status(), {"restarts": 0, "restartsCountTowardsMax": 0}),
        (status(executionAttempts=1), status(executionAttempts=0), {"executionAttempts": 0, "restarts": 0}),
        (status(conditions=[{"type": "A", "status": "True"}]), status(), {"conditions": None, "restarts": 0}),
    ],
)
def test_only_what_changed_is_patched(stored: JobSetStatus, wanted: JobSetStatus, expected: Manifest) -> None:
    assert status_patch(stored, wanted) == expected


def test_a_changed_list_is_sent_whole() -> None:
    stored = status(replicatedJobsStatus=[{"name": "a"}, {"name": "b"}])
    wanted = status(replicatedJobsStatus=[{"name": "a"}, {"name": "b", "ready": 1}])
    sent = msgspec.json.decode(msgspec.json.encode(status_patch(stored, wanted)))
    assert sent["replicatedJobsStatus"] == [
        {"name": name, "ready": ready, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
        for name, ready in (("a", 0), ("b", 1))
    ]
