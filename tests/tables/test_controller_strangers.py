"""Objects of another namespace that name a JobSet or a Job as owner: the garbage collector takes them, in time."""

import asyncio
from dataclasses import replace

from pyjobset.objects import features as gates
from pyjobset.objects import labels
from pyjobset.objects.meta import Manifest
from tests.controller_world import FAILED, OPTIONS, conditions, controller, manifest, settled, until, world
from tests.model_server import ModelServer


def owned(server: ModelServer, plural: str, owner: str, *, kind: str, name: str, **annotations: str) -> Manifest:
    api_version = "batch/v1" if kind == "Job" else "jobset.x-k8s.io/v1alpha2"
    uid = server.get(plural, owner)["metadata"]["uid"]
    reference = {"apiVersion": api_version, "kind": kind, "name": owner, "uid": uid, "controller": True}
    return {
        "name": name,
        "labels": {labels.JOBSET_NAME: "js"},
        "annotations": annotations,
        "ownerReferences": [reference],
        "finalizers": ["somebody.example/keeps"],
    }


def test_a_job_of_another_namespace_that_failed_fails_no_jobset() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server):
            await until(lambda: len(server.names("jobs")) == 2)
            await settled(server)
            metadata = owned(server, "jobsets", "js", kind="JobSet", name="js-w-0")
            server.put("jobs", {"metadata": metadata, "status": {"conditions": [FAILED]}}, namespace="elsewhere")
            before = len(server.calls)
            server.remove("jobs", "js-w-1")
            await settled(server)
            assert server.writes(before) == ["POST jobs js-w-1"]
            assert "Failed" not in conditions(server)

    world(case)


def test_a_pod_of_another_namespace_has_no_say_in_a_restart_in_place() -> None:
    options = replace(OPTIONS, features=OPTIONS.features | {gates.IN_PLACE_RESTART})

    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest(failurePolicy={"maxRestarts": 1, "restartStrategy": "InPlaceRestart"}))
        async with controller(server, options):
            await until(lambda: len(server.names("jobs")) == 2 and ("pods", "") in server.watched)
            said = {labels.IN_PLACE_RESTART_ATTEMPT: "9"}
            metadata = owned(server, "jobs", "js-w-0", kind="Job", name="p", **said)
            server.put("pods", {"metadata": metadata, "spec": {}}, namespace="elsewhere")
            server.remove("jobs", "js-w-1")
            await asyncio.sleep(60)
            assert len(server.names("jobs")) == 2
            assert "Failed" not in conditions(server)

    world(case)
