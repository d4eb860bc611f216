"""Restarts in place in the running controller: a suspension, with watches of Jobs and of pods that lag."""

import pytest

from pyjobset.controller.options import Options
from pyjobset.objects import features as gates
from pyjobset.objects import labels
from pyjobset.objects.meta import Manifest
from tests.builders import replicated_job
from tests.controller_world import controller, manifest, settled, until, world
from tests.model_server import Call, ModelServer

OPTIONS = Options(health_address=None, features=gates.resolve({gates.IN_PLACE_RESTART: True}))
STOPPED = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-11-30T12:00:00Z"}


def put_pod(server: ModelServer, name: str, attempt: int) -> None:
    job = server.get("jobs", "js-w-0")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "js-w-0", "controller": True}
    metadata = {
        "name": name,
        "labels": {labels.JOBSET_NAME: "js"},
        "annotations": {labels.IN_PLACE_RESTART_ATTEMPT: str(attempt)},
        "ownerReferences": [owner | {"uid": job["metadata"]["uid"]}],
    }
    server.put("pods", {"metadata": metadata, "spec": {}, "status": {"phase": "Running"}})


def attempts(server: ModelServer) -> tuple[object, object]:
    status: Manifest = server.get("jobsets", "js").get("status", {})
    return status.get("previousInPlaceRestartAttempt"), status.get("currentInPlaceRestartAttempt")


def put_back(call: Call) -> bool:
    """The attempt is taken from the status."""
    return (call.plural, call.method) == ("jobsets", "PATCH") and call.body.get("status", {}).get(
        "currentInPlaceRestartAttempt", 0
    ) is None


def resumes(call: Call) -> bool:
    return call.plural == "jobs" and isinstance(call.body, list)


def resume(server: ModelServer) -> None:
    server.change("jobsets", "js", {"spec": {"suspend": False}, "metadata": {"generation": 3}})


def is_suspended(server: ModelServer) -> bool:
    return bool(server.get("jobs", "js-w-0")["spec"].get("suspend"))


@pytest.mark.parametrize("is_quick", [False, True], ids=["resumed later", "resumed at once"])
def test_a_suspension_is_no_restart_and_costs_nothing_once_it_is_noted(is_quick: bool) -> None:
    async def case(server: ModelServer) -> None:
        policy = {"maxRestarts": 0, "restartStrategy": "InPlaceRestart"}
        server.put("jobsets", manifest("js", replicated_job("w"), failurePolicy=policy))
        async with controller(server, OPTIONS):
            await until(lambda: server.names("jobs"))
            server.change("jobs", "js-w-0", {"status": {"active": 1, "startTime": "2026-11-30T11:00:00Z"}})
            put_pod(server, "old", 0)
            await until(lambda: attempts(server) == (None, 0))
            server.change("jobsets", "js", {"spec": {"suspend": True}, "metadata": {"generation": 2}})
            await until(lambda: is_suspended(server))
            stopped = {"active": 0, "terminating": 1, "startTime": None, "conditions": [STOPPED]}
            server.change("jobs", "js-w-0", {"status": stopped})
            await settled(server)
            assert attempts(server) == (None, 0), "the watch of pods shows one that stays"
            if is_quick:
                resume(server)
                await settled(server)
                assert is_suspended(server), "and nothing is resumed beside it"
            server.remove("pods", "old")
            await until(lambda: attempts(server) == (None, None))
            if not is_quick:
                resume(server)
            await until(lambda: not is_suspended(server))
            order = [str(call) for call in server.calls if put_back(call) or resumes(call)]
            assert order == ["PATCH jobsets js status", "PATCH jobs js-w-0"], "noted first: agents read it once"
            server.change("jobs", "js-w-0", {"status": {"active": 1, "terminating": 0, "conditions": []}})
            put_pod(server, "new", 0)
            await until(lambda: attempts(server) == (None, 0))
            assert "Failed" not in [c["type"] for c in server.get("jobsets", "js")["status"].get("conditions", [])]
            await settled(server)
            before = len(server.calls)
            server.change("pods", "new", {"status": {"phase": "Running", "conditions": []}})
            await settled(server)
            assert server.writes(before) == []

    world(case)
