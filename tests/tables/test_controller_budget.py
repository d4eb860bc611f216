"""A JobSet that writes the same things again and again is slowed down; a life of a JobSet never is."""

import asyncio
import json

import pytest

from pyjobset.controller.budget import SAME_WRITES_MAX, WINDOW_SECONDS, Budget
from pyjobset.controller.options import Options
from pyjobset.kube.requests import Request
from pyjobset.objects import features as gates
from pyjobset.objects import labels
from pyjobset.objects.meta import Key, Manifest
from tests.builders import replicated_job
from tests.controller_world import GANG, controller, jobs, manifest, settled, until, world
from tests.model_server import ModelServer

KEY = Key("ns", "js")


def holds(budget: Budget, runs: int, *, every_seconds: float = 1.0, start: float = 0.0) -> list[float]:
    """What a JobSet that writes one thing over and over is held, each hold waited for."""
    now, found = start, []
    for _ in range(runs):
        seconds = budget.spend(KEY, 1, ["patch"], asks_again=False, now=now)
        if seconds is not None:
            found.append(seconds)
        now += seconds or every_seconds
    return found


def test_a_loop_is_held_ever_longer() -> None:
    assert holds(Budget(), 40)[:8] == [5, 10, 20, 40, 80, 160, 300, 300]


def test_what_is_written_now_and_then_is_not_held() -> None:
    assert holds(Budget(), 100, every_seconds=WINDOW_SECONDS / SAME_WRITES_MAX) == []


def test_a_jobset_that_was_still_starts_afresh() -> None:
    budget = Budget()
    assert holds(budget, 20)
    assert holds(budget, SAME_WRITES_MAX, start=2000.0) == []


def test_many_runs_about_other_objects_are_the_life_of_a_big_jobset() -> None:
    budget = Budget()
    for number in range(1000):
        assert budget.spend(KEY, 1, [("create", number)], asks_again=False, now=number / 20) is None


def test_a_hold_ends_with_its_time_or_with_a_changed_spec() -> None:
    budget = Budget()
    for _ in range(SAME_WRITES_MAX + 1):
        budget.spend(KEY, 1, ["patch"], asks_again=False, now=0.0)
    assert budget.hold_seconds(KEY, 1, 1.0) == 4.0
    assert budget.hold_seconds(KEY, 1, 5.0) == 0.0
    assert budget.hold_seconds(KEY, 2, 1.0) == 0.0


def test_nothing_is_kept_of_those_that_are_still() -> None:
    budget = Budget()
    holds(budget, 20)
    budget.spend(Key("ns", "another"), 1, ["patch"], asks_again=False, now=10_000.0)
    assert list(budget._spent) == [Key("ns", "another")]


def test_a_change_that_is_undone_each_time_is_written_a_few_times_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def case(server: ModelServer) -> None:
        def undone(request: Request, plural: str) -> None:
            if plural == "services" and request.method == "PATCH":
                asyncio.get_running_loop().call_later(0.01, server.change, "services", "js", {"spec": {"ports": []}})

        server.after = undone
        worker = replicated_job("w")
        worker["template"]["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
        server.put("jobsets", manifest("js", worker))
        async with controller(server):
            await settled(server)
            server.change("services", "js", {"spec": {"ports": []}})
            await asyncio.sleep(60)
            before = len(server.calls)
            await asyncio.sleep(600)
            assert 0 < len(server.writes(before)) <= 30

    world(case)
    said = [r for r in caplog.records if r.message == "JobSet does not settle"]
    assert said[0].fields["hold_seconds"] == 5.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("plural", "field", "value"),
    [("jobs", "metadata", {"annotations": {}}), ("podgroups", "spec", {"disruptionMode": {"all": {}}})],
)
def test_what_an_admission_changes_each_time_is_not_made_again_for_ever(
    plural: str, field: str, value: Manifest
) -> None:
    async def case(server: ModelServer) -> None:
        def changed(request: Request, of: str) -> None:
            if of == plural and request.method == "POST":
                name = json.loads(request.body)["metadata"]["name"]
                server.change(plural, name, {field: value})

        server.after = changed
        server.put("jobsets", manifest(scheduling=GANG))
        async with controller(server):
            await asyncio.sleep(60)
            before = len(server.calls)
            await asyncio.sleep(600)
            assert len(server.writes(before)) <= 60

    world(case)


def test_restarts_in_place_are_no_loop() -> None:
    """Each attempt is a write or two with the same words, and a big JobSet may have many in a minute."""

    async def case(server: ModelServer) -> None:
        policy = {"maxRestarts": 100, "restartStrategy": "InPlaceRestart"}
        server.put("jobsets", manifest("js", replicated_job("w"), failurePolicy=policy))
        options = Options(health_address=None, features=gates.resolve({gates.IN_PLACE_RESTART: True}))
        async with controller(server, options):
            await until(lambda: server.names("jobs"))
            [job] = jobs(server)
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "js-w-0", "controller": True}
            owner["uid"] = job["metadata"]["uid"]
            metadata = {"name": "p", "labels": {labels.JOBSET_NAME: "js"}, "ownerReferences": [owner]}
            server.put("pods", {"metadata": metadata, "status": {"phase": "Running"}})
            for attempt in range(30):
                said = {labels.IN_PLACE_RESTART_ATTEMPT: str(attempt)}
                server.change("pods", "p", {"metadata": {"annotations": said}})
                async with asyncio.timeout(1):
                    await until(lambda: current(server) == attempt)  # noqa: B023
                await asyncio.sleep(1)

    def current(server: ModelServer) -> object:
        return server.get("jobsets", "js").get("status", {}).get("currentInPlaceRestartAttempt")

    world(case)
