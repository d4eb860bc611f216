"""The whole controller on the real client and caches: what it asks of the server, and the lives that it leads."""

import asyncio
from dataclasses import replace

from pyjobset.controller import reconcile
from pyjobset.controller.apply import PARALLEL
from pyjobset.controller.manager import RESYNC_SECONDS
from pyjobset.kube.requests import Request
from pyjobset.objects.labels import JOBSET_NAME, RESTART_ATTEMPT
from pyjobset.reconciler.decision import Decision
from pyjobset.reconciler.observation import Observation
from tests.builders import replicated_job
from tests.controller_world import (
    FAILED,
    GANG,
    OPTIONS,
    conditions,
    controller,
    events,
    finish_jobs,
    jobs,
    manifest,
    settled,
    until,
    world,
)
from tests.model_server import ModelServer

# What is asked of the server


def test_one_post_an_object_in_order_and_then_silence() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest(scheduling=GANG))
        async with controller(server):
            await settled(server)
            posts = [call.plural for call in server.calls if call.method == "POST"]
            assert posts == ["workloads", "podgroups", "services", "jobs", "jobs"]
            assert server.statuses(409) == []
            before = len(server.calls)
            await asyncio.sleep(2.5 * RESYNC_SECONDS)
            assert server.calls[before:] == []

    world(case)


def test_a_quiet_jobset_is_looked_at_now_and_then() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server) as manager:
            await settled(server)
            runs = manager.reconciler.counters.runs
            await asyncio.sleep(2.5 * RESYNC_SECONDS)
            assert manager.reconciler.counters.runs - runs == 2

    world(case)


def test_a_restarted_controller_asks_nothing_of_a_quiet_cluster() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest(scheduling=GANG))
        async with controller(server):
            await settled(server)
        before = len(server.calls)
        async with controller(server):
            await settled(server)
        assert server.writes(before) == []

    world(case)


def test_many_jobs_are_created_at_a_time_and_never_twice() -> None:
    async def case(server: ModelServer) -> None:
        most = running = 0

        def count(request: Request, plural: str) -> None:
            nonlocal most, running
            running += request.method == "POST" and plural == "jobs"
            most = max(most, running)

        server.before = lambda request, plural: count(request, plural)
        server.put("jobsets", manifest("js", replicated_job("w", replicas=200)))
        async with controller(server):
            await settled(server)
        posts = [call for call in server.calls if (call.method, call.plural) == ("POST", "jobs")]
        assert len({call.name for call in posts}) == len(posts) == 200
        by_moment: dict[float, int] = {}
        for call in posts:
            by_moment[call.at] = by_moment.get(call.at, 0) + 1
        assert max(by_moment.values()) == PARALLEL

    world(case)


def test_counts_that_change_one_after_the_other_are_one_status_write() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest("js", replicated_job("w", replicas=20)))
        async with controller(server):
            await settled(server)
            before = len(server.calls)
            for name in server.names("jobs"):
                server.change("jobs", name, {"status": {"active": 1, "ready": 1}})
                await asyncio.sleep(0.2)
            await asyncio.sleep(0.5)
            assert server.writes(before) == ["PATCH jobsets js status"]
        (status,) = server.get("jobsets", "js")["status"]["replicatedJobsStatus"]
        assert (status["ready"], status["active"]) == (20, 20)

    world(case)


def test_counts_that_stay_partial_are_stored_in_the_end() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
            server.change("jobs", "js-w-0", {"status": {"active": 2, "ready": 2}})
            await settled(server, 10)
        (status,) = server.get("jobsets", "js")["status"]["replicatedJobsStatus"]
        assert (status["ready"], status["active"]) == (1, 1)

    world(case)


def test_a_condition_does_not_wait_for_counts() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
            finish_jobs(server)
            await asyncio.sleep(0.1)
            assert server.get("jobsets", "js")["status"]["terminalState"] == "Completed"

    world(case)


def test_what_waits_for_a_count_does_not_wait_for_its_status() -> None:
    async def case(server: ModelServer) -> None:
        second = replicated_job("second", dependsOn=[{"name": "first", "status": "Ready"}])
        server.put("jobsets", manifest("js", replicated_job("first"), second))
        async with controller(server):
            await settled(server)
            assert server.names("jobs") == ["js-first-0"]
            server.change("jobs", "js-first-0", {"status": {"active": 1, "ready": 1}})
            await asyncio.sleep(0.1)
            assert server.names("jobs") == ["js-first-0", "js-second-0"]

    world(case)


def test_a_look_at_all_jobsets_does_not_stop_everything_else() -> None:
    turns = 0
    at: list[int] = []
    decide = reconcile.decide

    def recorded(observation: Observation) -> Decision:
        at.append(turns)
        return decide(observation)

    async def case(server: ModelServer) -> None:
        nonlocal turns
        for number in range(200):
            server.put("jobsets", manifest(f"js-{number}"))
        async with controller(server) as manager:
            await settled(server)
            manager.reconciler.decide = recorded
            manager.watches.wake_all()
            while len(at) < 200:
                await asyncio.sleep(0)
                turns += 1

    world(case)
    assert max(at.count(turn) for turn in set(at)) <= OPTIONS.concurrent_reconciles


def test_many_jobsets_are_reconciled_at_the_same_time() -> None:
    async def case(server: ModelServer) -> None:
        server.latency_seconds = 0.5
        for number in range(OPTIONS.concurrent_reconciles):
            server.put("jobsets", manifest(f"js-{number}"))
        async with controller(server):
            started = asyncio.get_running_loop().time()
            await until(lambda: len(server.names("jobs")) == 2 * OPTIONS.concurrent_reconciles)
            assert asyncio.get_running_loop().time() - started < 3

    world(case)


def test_the_jobset_of_another_controller_is_left_alone() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest(managedBy="example.com/other"))
        async with controller(server):
            await settled(server)
        assert server.writes() == []

    world(case)


def test_only_the_chosen_namespace_is_reconciled() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest("here"), namespace="a")
        server.put("jobsets", manifest("there"), namespace="b")
        async with controller(server, replace(OPTIONS, namespace="a")):
            await settled(server)
        assert {namespace for plural, namespace, _ in server.objects if plural == "jobs"} == {"a"}
        assert {namespace for _, namespace in server.watched} == {"a"}

    world(case)


# A life


def test_a_jobset_completes_and_events_follow_the_status() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest(scheduling=GANG))
        async with controller(server):
            await settled(server)
            finish_jobs(server)
            await settled(server)
        assert server.get("jobsets", "js")["status"]["terminalState"] == "Completed"
        assert conditions(server)["Completed"]["status"] == "True"
        assert server.names("workloads") == server.names("podgroups") == []
        assert events(server) == ["AllJobsCompleted"]
        order = [str(call) for call in server.calls]
        stored = max(n for n, call in enumerate(order) if call == "PATCH jobsets js status")
        assert stored < next(n for n, call in enumerate(server.calls) if call.plural == "events")

    world(case)


def test_a_restart_is_counted_first_and_recreates_each_job_once() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest(failurePolicy={"maxRestarts": 3}))
        async with controller(server):
            await settled(server)
            before = len(server.calls)
            server.change("jobs", "js-w-0", {"status": {"conditions": [FAILED]}})
            await settled(server)
        writes = [str(c) for c in server.calls[before:] if c.method != "GET" and c.plural != "events"]
        assert writes[0] == "PATCH jobsets js status"
        assert sorted(w for w in writes if "jobs js-w" in w) == [
            "DELETE jobs js-w-0",
            "DELETE jobs js-w-1",
            "POST jobs js-w-0",
            "POST jobs js-w-1",
        ]
        assert server.get("jobsets", "js")["status"]["restarts"] == 1
        assert server.statuses(409) == []

    world(case)


def test_deleting_the_jobset_leaves_nothing_and_a_new_one_of_the_name_starts_afresh() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
            server.remove("jobsets", "js")
            await settled(server)
            assert server.names("jobs") == []
            server.put("jobsets", manifest())
            await settled(server)
            assert server.names("jobs") == ["js-w-0", "js-w-1"]

    world(case)


def test_it_goes_on_after_its_own_writes_without_hearing_of_them() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest(failurePolicy={"maxRestarts": 3}))
        async with controller(server):
            await settled(server)
            server.silent.add("jobsets")
            server.change("jobs", "js-w-0", {"status": {"conditions": [FAILED]}})
            await settled(server)
        assert [j["metadata"]["labels"][RESTART_ATTEMPT] for j in jobs(server)] == ["1", "1"]
        assert server.statuses(409) == []

    world(case)


def test_a_child_that_is_taken_away_from_its_jobset_is_noticed() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
            server.change("jobs", "js-w-1", {"metadata": {"ownerReferences": []}})
            await asyncio.sleep(1)
            assert "js-w-1" in conditions(server)["Blocked"]["message"]

    world(case)


def test_the_pods_of_a_gang_are_watched_and_judged() -> None:
    async def case(server: ModelServer) -> None:
        async with controller(server):
            server.put("jobsets", manifest("plain"))
            await settled(server)
            assert ("pods", "") not in server.watched, "nobody needs them yet"
            server.put("jobsets", manifest("js", replicated_job("w"), scheduling=GANG))
            await settled(server)
            (group,) = server.names("podgroups")
            owner = {"kind": "Job", "name": "js-w-0", "uid": server.get("jobs", "js-w-0")["metadata"]["uid"]}
            metadata = {"name": "p", "labels": {JOBSET_NAME: "js"}, "ownerReferences": [owner | {"controller": True}]}
            spec = {"schedulingGroup": {"podGroupName": group}}
            server.put("pods", {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
            server.change("pods", "p", {"spec": {"nodeName": "node"}})
            await asyncio.sleep(1)
            assert conditions(server)["PodGroupsScheduled"]["status"] == "True"

    world(case)


def test_a_child_that_somebody_deletes_comes_back() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
            server.remove("jobs", "js-w-1")
            await settled(server)
        assert server.names("jobs") == ["js-w-0", "js-w-1"]

    world(case)
