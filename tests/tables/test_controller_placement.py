"""Exclusive placement in the running controller: what it watches, what wakes it, and what it writes of pods."""

from pyjobset.controller.watches import NODES_SECONDS
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.objects import labels
from pyjobset.objects.meta import Manifest
from tests.controller_world import conditions, controller, manifest, settled, until, world
from tests.model_server import ModelServer, failure

RACK = "topology.kubernetes.io/rack"


def exclusive() -> Manifest:
    made = manifest()
    made["metadata"]["annotations"] = {labels.EXCLUSIVE_TOPOLOGY: RACK}
    return made


def put_pod(server: ModelServer, name: str, index: int, node: str = "") -> None:
    job = server.get("jobs", "js-w-0")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "js-w-0", "controller": True}
    metadata = {
        "name": name,
        "labels": {labels.JOBSET_NAME: "js"},
        "annotations": {labels.EXCLUSIVE_TOPOLOGY: RACK, labels.COMPLETION_INDEX: str(index)},
        "ownerReferences": [owner | {"uid": job["metadata"]["uid"]}],
    }
    server.put("pods", {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": "Running"}})


def put_node(server: ModelServer, **found: str) -> None:
    server.put("nodes", {"metadata": {"name": "n", "labels": {"x/y": "z", **found}}}, namespace="")


async def misplaced(server: ModelServer) -> None:
    """A leader on a node, and a follower that nobody told where to go."""
    await until(lambda: "js-w-0" in server.names("jobs"))
    put_pod(server, "leader", 0, "n")
    put_pod(server, "follower", 1)


def writes_of_pods(server: ModelServer) -> list[str]:
    return [text for text in server.writes() if " pods " in text]


REPAIR = ["PATCH pods follower status", "DELETE pods follower"]


def test_a_node_that_comes_later_wakes_the_jobset() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", exclusive())
        async with controller(server):
            await misplaced(server)
            await settled(server)
            assert writes_of_pods(server) == []
            put_node(server)
            await until(lambda: server.get("jobsets", "js").get("status", {}).get("conditions"))
            (condition,) = server.get("jobsets", "js")["status"]["conditions"]
            assert (condition["type"], condition["status"]) == ("ExclusivePlacementDegraded", "True")
            assert writes_of_pods(server) == []
            put_node(server, **{RACK: "r1"})
            await until(lambda: "follower" not in server.names("pods"))
            assert writes_of_pods(server) == REPAIR
            await until(lambda: server.get("jobsets", "js")["status"]["conditions"][0]["status"] == "False")
            (patch,) = (call for call in server.calls if call.plural == "pods" and call.method == "PATCH")
            assert (patch.body["apiVersion"], patch.body["kind"]) == ("v1", "Pod")
            assert patch.body["metadata"].keys() == {"name", "uid"}
            before = len(server.calls)
            await settled(server)
            put_node(server, **{RACK: "r1", "other": "label"})
            await settled(server, 2 * NODES_SECONDS)
            assert server.writes(before) == []

    world(case)


def test_a_lost_race_about_a_pod_is_decided_again() -> None:
    """The pod is read again and stays known, although not the JobSet but its Job owns it."""

    async def case(server: ModelServer) -> None:
        faults = [failure(409, "Conflict", "somebody else wrote it")]

        def lose(request: Request, plural: str) -> Response | None:
            return faults.pop() if faults and (plural, request.method) == ("pods", "PATCH") else None

        server.before = lose
        server.put("jobsets", exclusive())
        put_node(server, **{RACK: "r1"})
        async with controller(server):
            await misplaced(server)
            await until(lambda: "follower" not in server.names("pods"))
            assert writes_of_pods(server) == [REPAIR[0], *REPAIR]

    world(case)


def test_nodes_are_watched_for_who_needs_them() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server):
            await until(lambda: "js-w-0" in server.names("jobs"))
            await settled(server)
            assert not {"nodes", "pods"} & {plural for plural, _ in server.watched}
            server.put("jobsets", exclusive())
            await until(lambda: {("nodes", ""), ("pods", "")} <= server.watched)

    world(case)


def test_patches_of_pods_hold_up_nothing() -> None:
    """A right that lacks for pods is told, and the other Job is made all the same."""

    async def case(server: ModelServer) -> None:
        def forbid(request: Request, plural: str) -> Response | None:
            is_write = (plural, request.method) == ("pods", "PATCH")
            return failure(403, "Forbidden", "pods/status is forbidden") if is_write else None

        server.before = forbid
        server.put("jobsets", exclusive())
        put_node(server, **{RACK: "r1"})
        async with controller(server):
            await misplaced(server)
            await until(lambda: "Blocked" in conditions(server))
            assert "Pod follower was refused" in conditions(server)["Blocked"]["message"]
            server.remove("jobs", "js-w-1")
            await until(lambda: "js-w-1" in server.names("jobs"))

    world(case)
