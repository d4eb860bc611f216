"""What must not hide a JobSet: a lost label, a dead admission webhook, pods that may not be listed."""

import asyncio

import pytest

from pyjobset.objects.labels import JOBSET_NAME
from tests.builders import plain, replicated_job
from tests.controller_world import GANG, conditions, controller, events, manifest, settled, world
from tests.model_server import ModelServer, failure

WEBHOOK = 'Internal error occurred: failed calling webhook "x": connection refused'


def test_a_job_that_lost_its_label_gets_it_back() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
            before = len(server.calls)
            job = plain(server.get("jobs", "js-w-0"))
            bare = plain(job)
            del bare["metadata"]["labels"][JOBSET_NAME]
            server.objects["jobs", "ns", "js-w-0"] = bare
            await asyncio.sleep(60)
            assert server.get("jobs", "js-w-0")["metadata"]["labels"][JOBSET_NAME] == "js"
            assert server.get("jobs", "js-w-0")["metadata"]["uid"] == job["metadata"]["uid"]
            assert len(server.calls) - before < 10

    world(case)


@pytest.mark.parametrize("plural", ["jobs", "services"])
def test_a_dead_webhook_is_told_and_what_runs_is_counted(plural: str) -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest("js", replicated_job("w", replicas=2, pods=2)))
        server.before = lambda request, kind: (
            failure(500, "InternalError", WEBHOOK)
            if kind == plural and request.method == "POST" and b"js-w-0" not in request.body
            else None
        )
        async with controller(server):
            await asyncio.sleep(20)
            if plural == "jobs":
                server.change("jobs", "js-w-0", {"status": {"active": 2, "ready": 2}})
            await asyncio.sleep(300)
            assert "failed calling webhook" in conditions(server)["Blocked"]["message"]
            assert len([e for e in events(server) if "Failed" in str(e)]) == 1
            if plural == "jobs":
                assert server.get("jobsets", "js")["status"]["replicatedJobsStatus"][0]["ready"] == 1
            server.before = lambda *_: None
            await asyncio.sleep(300)
            assert len(server.names("jobs")) == 2
            assert conditions(server)["Blocked"]["status"] == "False"

    world(case)


def test_a_gang_runs_where_pods_may_not_be_listed() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest(scheduling=GANG))
        forbidden = failure(403, "Forbidden", "pods is forbidden")
        server.before = lambda _, plural: forbidden if plural == "pods" else None
        async with controller(server):
            await asyncio.sleep(60)
            assert len(server.names("jobs")) == 2
            assert len(server.names("podgroups")) == 1

    world(case)
