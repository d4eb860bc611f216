"""Fields that a cluster gate drops, and what becomes of them when the gate comes back: the whole controller."""

import asyncio
from typing import Any

import pytest

from pyjobset.controller.gates_probe import PROBE_SECONDS, TICK_SECONDS, TRUST_SECONDS
from pyjobset.errors import Unavailable
from pyjobset.kube.requests import Request
from pyjobset.objects.meta import Manifest
from tests.controller_world import GANG, QUOTA, conditions, controller, events, manifest, settled, until, world
from tests.model_server import Fault, ModelServer

FIELD = "schedulingConstraints"
TOPOLOGY = {**GANG, FIELD: {"topology": [{"key": "rack"}]}}
UNSCHEDULABLE = {
    "conditions": [{"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}]
}


def degraded(server: ModelServer, name: str = "js") -> Manifest:
    return conditions(server, name).get("SchedulingDegraded", {})


def asked(server: ModelServer) -> list[float]:
    """When it was asked."""
    metadata = ((c, (c.body or {}).get("metadata") or {}) for c in server.calls if c.method == "POST")
    return [c.at for c, m in metadata if "generateName" in m and c.plural == "podgroups"]


def has_field(server: ModelServer) -> bool:
    groups = [server.get("podgroups", n)["spec"] for n in server.names("podgroups")]
    templates = [t for n in server.names("workloads") for t in server.get("workloads", n)["spec"]["podGroupTemplates"]]
    return bool(groups and templates) and all(FIELD in spec for spec in (*groups, *templates))


def count_pods(server: ModelServer, number: int, *, node: str = "") -> None:
    """The two Jobs of the JobSet have that many pods, on a node or waiting for one."""
    for name in server.names("jobs"):
        job = server.change("jobs", name, {"status": {"active": number, "ready": number if node else 0}})
        for index in range(2):
            if index >= number:
                server.remove("pods", f"{name}-{index}")
                continue
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
            template = job["spec"]["template"]
            pod = {
                "metadata": {
                    "name": f"{name}-{index}",
                    "labels": template["metadata"]["labels"],
                    "ownerReferences": [owner | {"controller": True}],
                },
                "spec": {"schedulingGroup": template["spec"].get("schedulingGroup")}
                | ({"nodeName": node} if node else {}),
                "status": {"phase": "Running" if node else "Pending"},
            }
            server.put("pods", pod)


def test_nobody_degraded_costs_no_request() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest(scheduling=TOPOLOGY))
        async with controller(server):
            await asyncio.sleep(10 * PROBE_SECONDS)
        assert has_field(server)
        assert asked(server) == []

    world(case)


def test_one_question_a_minute_for_all_that_are_degraded() -> None:
    async def case(server: ModelServer) -> None:
        server.drops.add(FIELD)
        for number in range(20):
            server.put("jobsets", manifest(f"js{number}", scheduling=TOPOLOGY))
        async with controller(server):
            await settled(server)
            server.calls.clear()
            await asyncio.sleep(10 * PROBE_SECONDS)
            assert 9 <= len(asked(server)) <= 11
            assert len(server.calls) == len(asked(server)), "nothing else was asked or written"
            assert len(server.names("podgroups")) == 20, "a question stores nothing"

    world(case)


def test_without_pods_the_objects_are_made_anew_when_the_gate_is_back() -> None:
    async def case(server: ModelServer) -> None:
        server.drops.add(FIELD)
        server.put("jobsets", manifest(scheduling=TOPOLOGY))
        async with controller(server):
            await until(lambda: degraded(server).get("reason") == "FieldsDropped")
            server.drops.clear()
            await until(lambda: has_field(server), 2 * PROBE_SECONDS)
            await settled(server)
            assert degraded(server)["status"] == "False"
            assert events(server) == ["FieldsDropped", "Restored"]
            questions = len(asked(server))
            await asyncio.sleep(5 * PROBE_SECONDS)
            assert len(asked(server)) == questions

    world(case)


def test_running_pods_keep_their_group_and_the_jobset_says_what_comes() -> None:
    async def case(server: ModelServer) -> None:
        server.drops.add(FIELD)
        server.put("jobsets", manifest(scheduling=TOPOLOGY))
        async with controller(server):
            await until(lambda: len(server.names("jobs")) == 2)
            count_pods(server, 2, node="n")
            await settled(server)
            uids = [server.get("podgroups", n)["metadata"]["uid"] for n in server.names("podgroups")]
            server.drops.clear()
            await until(lambda: "keeps them now" in degraded(server)["message"], 2 * PROBE_SECONDS)
            assert "suspend and resume" in degraded(server)["message"]
            await asyncio.sleep(3 * TRUST_SECONDS)
            assert [server.get("podgroups", n)["metadata"]["uid"] for n in server.names("podgroups")] == uids
            assert degraded(server)["status"] == "True"
            count_pods(server, 0)
            await settled(server)
            assert has_field(server)
            assert degraded(server)["status"] == "False"

    world(case)


def test_a_gang_that_waits_is_made_again_with_its_group() -> None:
    async def case(server: ModelServer) -> None:
        server.drops.add(FIELD)
        server.put("jobsets", manifest(scheduling=TOPOLOGY))
        async with controller(server):
            await until(lambda: len(server.names("jobs")) == 2)
            count_pods(server, 2)
            server.change("podgroups", server.names("podgroups")[0], {"status": UNSCHEDULABLE})
            await settled(server)
            server.drops.clear()
            await until(lambda: all(j["spec"].get("suspend") for j in jobs_of(server)), 2 * PROBE_SECONDS)
            count_pods(server, 0)
            await until(lambda: has_field(server), 10)
            await settled(server)
            assert not any(j["spec"].get("suspend") for j in jobs_of(server))
            assert degraded(server)["status"] == "False"

    world(case)


def jobs_of(server: ModelServer) -> list[Manifest]:
    return [server.get("jobs", name) for name in server.names("jobs")]


def test_the_end_of_a_loss_of_the_server_is_followed_by_a_question() -> None:
    async def case(server: ModelServer) -> None:
        server.drops.add(FIELD)
        server.put("jobsets", manifest(scheduling=TOPOLOGY))
        is_down = False
        server.before = lambda _request, _plural: Unavailable("connection refused") if is_down else None
        async with controller(server) as manager:
            await until(lambda: len(asked(server)) == 1)
            await settled(server)
            is_down = True
            manager.caches.pod_groups.problem = Unavailable("connection refused")  # type: ignore[union-attr]
            await asyncio.sleep(2 * TICK_SECONDS)
            is_down = False
            server.drops.clear()
            await until(lambda: has_field(server), PROBE_SECONDS / 4)

    world(case)


@pytest.mark.parametrize("kind", ["always", "in turn"])
def test_a_server_that_says_yes_and_drops_all_the_same_costs_one_replacement_each_time(kind: str) -> None:
    """Two API servers with different gates: the questions meet one that keeps the field, the creates another."""

    async def case(server: ModelServer) -> None:
        turns = 0

        def choose(request: Request, plural: str) -> Fault:
            nonlocal turns
            is_question = "dryRun" in request.query
            turns += is_question
            keeps = is_question and (kind == "always" or turns % 2 == 0)
            server.drops = set() if keeps else {FIELD}
            return None

        server.before = choose
        server.put("jobsets", manifest(scheduling=TOPOLOGY))
        async with controller(server):
            await settled(server)
            server.calls.clear()
            await asyncio.sleep(10 * TRUST_SECONDS)
            deletes = [c for c in server.calls if c.method == "DELETE"]
            assert 2 <= len([c for c in deletes if c.plural == "podgroups"]) <= 11
            assert {c.plural for c in deletes} == {"podgroups", "workloads"}
            assert degraded(server)["status"] == "True"
            assert len(server.names("jobs")) == 2

    world(case)


@pytest.mark.parametrize("fault", [QUOTA, Unavailable("down")])
def test_no_answer_changes_nothing(fault: Any) -> None:
    async def case(server: ModelServer) -> None:
        server.drops.add(FIELD)
        server.before = lambda request, _plural: fault if "dryRun" in request.query else None
        server.put("jobsets", manifest(scheduling=TOPOLOGY))
        async with controller(server) as manager:
            await settled(server)
            stored = server.get("jobsets", "js")
            await asyncio.sleep(5 * PROBE_SECONDS)
            assert asked(server)
            assert server.get("jobsets", "js") == stored
            assert manager.reconciler.counters.errors == 0

    world(case)


def test_jobs_without_their_group_are_made_again_after_suspend_and_resume() -> None:
    async def case(server: ModelServer) -> None:
        server.drops.add("schedulingGroup")
        server.put("jobsets", manifest(scheduling=GANG))
        async with controller(server):
            await until(lambda: "suspend and resume" not in degraded(server).get("message", "suspend and resume"))
            server.drops.clear()
            await until(lambda: "suspend and resume" in degraded(server)["message"], 2 * PROBE_SECONDS)
            assert len(server.names("jobs")) == 2
            count_pods(server, 2, node="n")
            server.change("jobsets", "js", {"spec": {"suspend": True}})
            await settled(server)
            server.change("jobsets", "js", {"spec": {"suspend": False}})
            await settled(server)
            assert all(j["spec"]["template"]["spec"].get("schedulingGroup") for j in jobs_of(server))
            assert degraded(server)["status"] == "False"

    world(case)
