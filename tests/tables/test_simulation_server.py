"""The model API server, where it is more than conformance can ask: loud refusals, admission, watches that end."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pyjobset.errors import Unavailable
from pyjobset.kube import requests
from pyjobset.kube.client import AlreadyExists, Bookmark, Client, Expired
from pyjobset.kube.requests import Request
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import JOBS, PODS, WORKLOADS
from pyjobset.simulation import clock
from pyjobset.simulation.server import Refusal, Server
from pyjobset.simulation.store import Name
from tests.server.conformance.bodies import claim, job, pod, workload

POD, JOB = Name("pods", "ns", "a"), Name("jobs", "ns", "a")


def run(case: Callable[[Server], Awaitable[None]]) -> None:
    async def main() -> None:
        await case(Server())

    clock.run(main())


def ask(method: str, path: str, query: str = "", content_type: str = requests.JSON, body: bytes = b"") -> Request:
    return Request(method, path, query, body, content_type)


JOBS_PATH = "/apis/batch/v1/namespaces/ns/jobs"


@pytest.mark.parametrize(
    "request_",
    [
        ask("PUT", f"{JOBS_PATH}/a"),
        ask("DELETE", JOBS_PATH),
        ask("GET", f"{JOBS_PATH}/a/status"),
        ask("PATCH", f"{JOBS_PATH}/a/scale", content_type=requests.PATCH_TYPES["merge"], body=b"{}"),
        ask("POST", "/api/v1/namespaces/ns/pods/a/eviction", body=b"{}"),
        ask("GET", JOBS_PATH, "continue=x"),
        ask("GET", JOBS_PATH, "resourceVersion=1"),
        ask("POST", JOBS_PATH, "fieldValidation=Strict", body=b"{}"),
        ask("DELETE", f"{JOBS_PATH}/a", body=b'{"propagationPolicy":"Orphan"}'),
        ask("GET", JOBS_PATH, "labelSelector=a!%3Db"),
    ],
    ids=str,
)
def test_what_is_not_modelled_is_refused_loudly(request_: Request) -> None:
    async def case(server: Server) -> None:
        server.create("jobs", "ns", job("a"))
        server.create("jobs", "ns", job("b"))
        with pytest.raises(NotImplementedError):
            server.answer(request_)

    run(case)


def test_the_pages_of_a_list_are_of_one_moment_until_that_is_forgotten() -> None:
    async def case(server: Server) -> None:
        for name in "abc":
            server.create("workloads", "ns", workload(name))
        async with Client(server) as client:
            pages = client.pages(WORKLOADS, "ns", page_size=1)
            assert b'"name":"a"' in bytes(((await anext(pages)).items or ())[0])
            server.delete(Name("workloads", "ns", "b"))
            assert b'"name":"b"' in bytes(((await anext(pages)).items or ())[0])
            server.store.compact()
            with pytest.raises(Expired):
                await anext(pages)

    run(case)


def test_a_patch_of_a_claim_that_changes_nothing_is_refused_loudly() -> None:
    async def case(server: Server) -> None:
        server.create("persistentvolumeclaims", "ns", claim())
        with pytest.raises(NotImplementedError):
            server.patch(Name("persistentvolumeclaims", "ns", "a"), {"metadata": {"labels": {}}})

    run(case)


def test_a_quota_refuses_what_would_be_stored() -> None:
    async def case(server: Server) -> None:
        def admit(name: Name, obj: Manifest, _: bool) -> None:
            if name.plural == "jobs" and obj["spec"]["parallelism"] > 2:
                raise Refusal(403, "Forbidden", "exceeded quota")

        server.admit = admit
        server.create("jobs", "ns", job())
        with pytest.raises(Refusal, match="quota"):
            server.patch(JOB, {"spec": {"parallelism": 3}})
        with pytest.raises(Refusal, match="quota"):
            server.create("jobs", "ns", job("b", parallelism=3))
        assert [o["metadata"]["name"] for o in server.store.of("jobs")] == ["a"]
        assert server.store.version == 1

    run(case)


def test_a_kind_that_is_not_served_is_not_found() -> None:
    async def case(server: Server) -> None:
        server.unserved.add("workloads")
        async with Client(server) as client:
            assert not await client.serves(WORKLOADS.api_version, "workloads")
            assert await client.serves(JOBS.api_version, "jobs")
            with pytest.raises(Exception, match="could not find"):
                await client.create(WORKLOADS, "ns", workload())

    run(case)


def test_the_scheduler_binds_without_a_generation() -> None:
    async def case(server: Server) -> None:
        server.create("pods", "ns", pod())
        bound = server.bind(POD, "node-0")
        assert bound["spec"]["nodeName"] == "node-0"
        assert bound["metadata"]["generation"] == 1

    run(case)


def test_the_kubelet_ends_a_pod_that_terminates() -> None:
    async def case(server: Server) -> None:
        server.create("pods", "ns", pod(nodeName="node-0", metadata={"finalizers": ["example.com/hold"]}))
        server.delete(POD)
        server.terminated(POD)
        held = server.store.get(POD)
        assert held is not None
        version = server.store.version
        server.terminated(POD)
        assert server.store.version == version
        server.patch(POD, {"metadata": {"finalizers": None}})
        assert server.store.get(POD) is None

    run(case)


async def _next(events: Any) -> Any:
    async with asyncio.timeout(5):
        return await anext(events)


def test_watches_end_and_are_told_how_far_they_are() -> None:
    async def case(server: Server) -> None:
        async with Client(server) as client:
            server.create("pods", "ns", pod())
            events = client.watch(PODS, "ns", resource_version="0")
            assert (await _next(events)).object.metadata.name == "a"
            server.bookmark()
            assert await _next(events) == Bookmark("1")
            server.end_watches()
            with pytest.raises(Unavailable):
                await _next(events)

    run(case)


def test_a_watch_from_a_forgotten_version_is_expired() -> None:
    async def case(server: Server) -> None:
        async with Client(server) as client:
            server.create("pods", "ns", pod())
            server.store.compact()
            with pytest.raises(Expired):
                await _next(client.watch(PODS, "ns", resource_version="0"))
            events = client.watch(PODS, "ns", resource_version="1")
            server.delete(POD)
            assert (await _next(events)).type == "MODIFIED"

    run(case)


def test_the_real_client_understands_the_refusals() -> None:
    async def case(server: Server) -> None:
        async with Client(server) as client:
            made = await client.create(JOBS, "ns", job())
            with pytest.raises(AlreadyExists):
                await client.create(JOBS, "ns", job())
            assert await client.delete(JOBS, "ns", "a", uid=made.metadata.uid) is None
            assert await client.list(JOBS, "ns") == []

    run(case)
