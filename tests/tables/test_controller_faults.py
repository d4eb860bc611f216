"""The whole controller when something goes wrong: faults, refusals, foreign objects, bugs, the end of the process."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from pyjobset.controller import budget, reconcile
from pyjobset.controller.apply import PARALLEL
from pyjobset.controller.manager import RESYNC_SECONDS
from pyjobset.controller.options import Options
from pyjobset.errors import OutcomeUnknown, Unavailable
from pyjobset.kube.client import Client
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.objects import features as gates
from pyjobset.objects.labels import RESTART_ATTEMPT
from pyjobset.objects.meta import Manifest
from pyjobset.reconciler.decision import Decision
from pyjobset.reconciler.observation import Observation
from pyjobset.simulation.patches import merged
from tests.builders import NOW, replicated_job
from tests.controller_world import (
    FAILED,
    GANG,
    OPTIONS,
    QUOTA,
    conditions,
    controller,
    events,
    finish_jobs,
    jobs,
    manifest,
    new_manager,
    settled,
    until,
    world,
)
from tests.model_server import ModelServer

# Faults


def test_a_failed_wave_stops_the_later_ones_until_it_passes() -> None:
    async def case(server: ModelServer) -> None:
        down = True

        def fault(request: Request, plural: str) -> Exception | None:
            return Unavailable("down") if down and request.method == "POST" and plural == "podgroups" else None

        server.before = fault
        server.put("jobsets", manifest(scheduling=GANG))
        async with controller(server):
            await asyncio.sleep(20)
            assert server.names("workloads")
            assert server.names("services") == server.names("jobs") == []
            down = False
            await settled(server, 60)
            assert len(server.names("jobs")) == 2
        assert [c.status for c in server.calls if (c.method, c.plural) == ("POST", "workloads")] == [201]

    world(case)


def test_a_lost_answer_is_looked_up_and_nothing_is_made_twice() -> None:
    async def case(server: ModelServer) -> None:
        lost: set[str] = set()

        def fault(request: Request, plural: str) -> Exception | None:
            if request.method in ("POST", "PATCH") and plural != "events" and request.subject not in lost:
                lost.add(request.subject)
                return OutcomeUnknown("no answer")
            return None

        server.after = fault
        server.put("jobsets", manifest(scheduling=GANG))
        async with controller(server):
            await settled(server, 60)
            finish_jobs(server)
            await settled(server, 60)
        assert len(lost) >= 6
        assert server.names("jobs") == ["js-w-0", "js-w-1"]
        assert server.get("jobsets", "js")["status"]["terminalState"] == "Completed"
        assert [c.status for c in server.calls if c.method == "POST" and c.plural != "events"].count(409) == 0

    world(case)


def test_a_create_that_lands_after_all_is_adopted() -> None:
    """The answer is lost, a look finds nothing yet, and only then is the object stored."""

    async def case(server: ModelServer) -> None:
        late: list[Manifest] = []

        def fault(request: Request, plural: str) -> Exception | None:
            if request.method == "POST" and plural == "services" and not late:
                late.append(msgspec.json.decode(request.body))
                asyncio.get_running_loop().call_later(0.05, server.put, "services", late[0])
                server.drop_watches()
                return OutcomeUnknown("no answer")
            return None

        server.before = fault
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server, 60)
        assert server.names("services") == ["js"]
        assert len(server.names("jobs")) == 2
        assert conditions(server).get("Blocked", {}).get("status") != "True"

    world(case)


@pytest.mark.decision(13)
def test_a_quota_is_told_and_asked_again_by_one_request_at_a_time() -> None:
    async def case(server: ModelServer) -> None:
        full = True
        server.before = lambda request, plural: (
            QUOTA if full and request.method == "POST" and plural == "jobs" else None
        )
        in_order = {"startupPolicyOrder": "InOrder"}  # the first decision has a status of its own
        server.put("jobsets", manifest("js", replicated_job("w", replicas=200), startupPolicy=in_order))
        async with controller(server):
            await asyncio.sleep(4)
            assert conditions(server)["StartupPolicyInProgress"]["status"] == "True"
            assert conditions(server)["Blocked"]["status"] == "True"
            assert "exceeded quota" in conditions(server)["Blocked"]["message"]
            assert sorted(events(server)) == ["InOrderStartupPolicyInProgress", "JobCreationFailed"]
            assert server.writes().count("PATCH jobsets js status") == 1
            refused = [c for c in server.calls if c.status == 403]
            assert len(refused) <= PARALLEL
            await asyncio.sleep(70)  # tries 5, 15, 35 and 75 seconds after the first
            assert len([c for c in server.calls if c.status == 403]) - len(refused) == 3
            assert events(server).count("JobCreationFailed") == 1
            full = False
            await settled(server, 300)
            assert len(server.names("jobs")) == 200
            assert conditions(server)["Blocked"]["status"] == "False"

    world(case)


def test_a_clock_that_is_set_back_during_a_refused_request_puts_off_no_try() -> None:
    async def case(server: ModelServer) -> None:
        ahead, refused, full = timedelta(hours=1), 0, True

        def before(request: Request, plural: str) -> Response | None:
            nonlocal ahead, refused
            if not (full and request.method == "POST" and plural == "services"):
                return None
            refused += 1
            if refused == 2:  # the first one is news, and is followed by another run all the same
                ahead = timedelta()
            return QUOTA

        server.before = before
        loop = asyncio.get_running_loop()
        async with controller(server) as manager:
            manager.reconciler.now = lambda: NOW + ahead + timedelta(seconds=loop.time())
            server.put("jobsets", manifest())
            await until(lambda: not ahead)
            full = False
            await until(lambda: server.names("jobs"), 20)

    world(case)


FOREIGN = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}]
}


@pytest.mark.decision(11)
@pytest.mark.parametrize(
    ("plural", "owner", "told"),
    [
        ("services", FOREIGN, "Deployment/web"),
        ("services", {}, "nobody"),
        ("jobs", FOREIGN, "Deployment/web"),
        ("podgroups", {}, "nobody"),
        ("workloads", {}, "nobody"),
    ],
)
def test_a_foreign_object_is_never_touched_and_is_told(plural: str, owner: Manifest, told: str) -> None:
    async def case(server: ModelServer) -> None:
        async with controller(server):
            server.put("jobsets", manifest(scheduling=GANG))
            await settled(server)
            name = server.names(plural)[0]
            server.remove("jobsets", "js")
            await settled(server)
            foreign = server.put(plural, {"metadata": {"name": name, **owner}, "spec": {}})
            server.put("jobsets", manifest(scheduling=GANG))
            await asyncio.sleep(100)
            assert server.get(plural, name) == foreign
            assert told in conditions(server)["Blocked"]["message"]
            assert "js-w-1" in server.names("jobs") if plural == "jobs" else not server.names("jobs")
            assert len([c for c in server.calls if c.status == 409]) <= 5
            server.remove(plural, name)
            await settled(server, 300)
            assert server.get(plural, name)["metadata"]["uid"] != foreign["metadata"]["uid"]
            assert conditions(server)["Blocked"]["status"] == "False"
            assert len(server.names("jobs")) == 2

    world(case)


def test_the_end_of_a_foreign_service_is_noticed_at_once() -> None:
    async def case(server: ModelServer) -> None:
        server.put("services", {"metadata": {"name": "js"}, "spec": {}})
        server.put("jobsets", manifest())
        async with controller(server):
            await asyncio.sleep(100)
            server.remove("services", "js")
            await asyncio.sleep(1)
            assert len(server.names("jobs")) == 2

    world(case)


def test_a_status_that_somebody_else_wrote_first_is_observed_again() -> None:
    async def case(server: ModelServer) -> None:
        raced = False

        def fault(request: Request, plural: str) -> None:
            nonlocal raced
            if not raced and request.method == "PATCH" and plural == "jobsets":
                raced = True
                server.change("jobsets", "js", {"metadata": {"labels": {"by": "somebody"}}})

        server.before = lambda request, plural: fault(request, plural)
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
            finish_jobs(server)
            await settled(server)
        assert server.statuses(409) == ["PATCH jobsets js status"]
        stored = server.get("jobsets", "js")
        assert stored["status"]["terminalState"] == "Completed"
        assert stored["metadata"]["labels"] == {"by": "somebody"}

    world(case)


def somebody_writes(server: ModelServer) -> Exception | None:
    server.change("jobsets", "js", {"metadata": {"labels": {"by": "somebody"}}})
    return None


@pytest.mark.decision(17)
@pytest.mark.parametrize(
    ("fault", "is_stored"),
    [
        (somebody_writes, False),
        (lambda _: Unavailable("down"), False),
        (lambda _: OutcomeUnknown("lost on the way there"), False),
        (lambda _: OutcomeUnknown("lost on the way back"), True),
    ],
    ids=["conflict", "away", "request lost", "answer lost"],
)
def test_a_restart_is_counted_once_whatever_becomes_of_its_write(
    fault: Callable[[ModelServer], Exception | None], is_stored: bool
) -> None:
    async def case(server: ModelServer) -> None:
        hit: list[str] = []

        def once(request: Request, plural: str) -> Exception | None:
            if hit or not request.path.endswith("/status") or b'"restarts":1' not in request.body:
                return None
            hit.append(plural)
            return fault(server)

        server.put("jobsets", manifest(failurePolicy={"maxRestarts": 5}))
        async with controller(server):
            await settled(server)
            setattr(server, "after" if is_stored else "before", once)
            server.change("jobs", "js-w-0", {"status": {"conditions": [FAILED]}})
            await settled(server, 60)
            assert hit == ["jobsets"]
            assert server.get("jobsets", "js")["status"]["restarts"] == 1
            assert [job["metadata"]["labels"][RESTART_ATTEMPT] for job in jobs(server)] == ["1", "1"]

    world(case)


def test_no_event_is_sent_for_a_status_that_was_not_stored() -> None:
    async def case(server: ModelServer) -> None:
        down = False
        server.before = lambda request, plural: (
            Unavailable("down") if down and request.method == "PATCH" and plural == "jobsets" else None
        )
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
            down = True
            finish_jobs(server)
            await asyncio.sleep(10)
            assert events(server) == []
            down = False
            await settled(server, 60)
            assert events(server) == ["AllJobsCompleted"]

    world(case)


def test_an_event_that_is_refused_stops_nothing() -> None:
    async def case(server: ModelServer) -> None:
        server.before = lambda _request, plural: QUOTA if plural == "events" else None
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
            finish_jobs(server)
            await settled(server)
        assert server.get("jobsets", "js")["status"]["terminalState"] == "Completed"
        assert events(server) == ["AllJobsCompleted"], "tried once"

    world(case)


def test_a_server_that_is_away_is_waited_for() -> None:
    async def case(server: ModelServer) -> None:
        down = True
        server.before = lambda _request, _plural: Unavailable("connection refused") if down else None
        server.put("jobsets", manifest())
        stop = asyncio.Event()
        async with Client(server) as client:
            manager = new_manager(client)
            running = asyncio.create_task(manager.run(stop))
            await asyncio.sleep(30)
            assert not manager.is_ready
            down = False
            await settled(server, 60)
            assert len(server.names("jobs")) == 2
            stop.set()
            await running

    world(case)


def test_without_the_crd_it_waits_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def case(server: ModelServer) -> None:
        server.unserved.add("jobsets")
        stop = asyncio.Event()
        async with Client(server) as client:
            manager = new_manager(client)
            running = asyncio.create_task(manager.run(stop))
            await asyncio.sleep(60)
            assert not manager.is_ready
            said = [r for r in caplog.records if r.message == "Waiting for the JobSet API"]
            assert len(said) == 1
            server.unserved.clear()
            server.put("jobsets", manifest())
            await until(lambda: len(server.names("jobs")) == 2)
            stop.set()
            await running

    world(case)


def test_without_the_scheduling_api_the_rest_works_and_the_jobset_says_what_is_missing() -> None:
    async def case(server: ModelServer) -> None:
        server.unserved |= {"workloads", "podgroups"}
        server.put("jobsets", manifest("plain"))
        server.put("jobsets", manifest("gang", scheduling=GANG))
        async with controller(server):
            await settled(server)
            assert conditions(server, "gang")["SchedulingDegraded"]["status"] == "True"
            assert "plain-w-0" in server.names("jobs")
            server.unserved.clear()
            await until(lambda: server.names("podgroups"), RESYNC_SECONDS / 2)
            assert server.names("workloads"), "noticed without any change of the JobSet"

    world(case)


# Bugs


def test_a_bug_stops_its_jobset_only(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    broken = True
    decide = reconcile.decide

    def sometimes(observation: Observation) -> Decision:
        assert not (broken and observation.jobset.metadata.name == "bad"), "broken invariant"
        return decide(observation)

    async def case(server: ModelServer) -> None:
        nonlocal broken
        async with controller(server) as manager:
            manager.reconciler.decide = sometimes
            server.put("jobsets", manifest("bad"))
            server.put("jobsets", manifest("good"))
            await settled(server, 20)
            assert {name.split("-")[0] for name in server.names("jobs")} == {"good"}
            assert 1 <= manager.reconciler.counters.bugs <= 4, "retried, slowly"
            broken = False
            await settled(server, 600)
            assert "bad-w-0" in server.names("jobs")

    world(case)
    bugs = [r for r in caplog.records if r.message == "Bug: JobSet stopped"]
    assert bugs
    assert "broken invariant" in str(bugs[0].exc_info)


def test_a_bug_is_not_met_more_often_because_children_change(caplog: pytest.LogCaptureFixture) -> None:
    is_broken = False
    decide = reconcile.decide

    def sometimes(observation: Observation) -> Decision:
        assert not is_broken, "broken invariant"
        return decide(observation)

    async def case(server: ModelServer) -> None:
        nonlocal is_broken
        server.put("jobsets", manifest())
        async with controller(server) as manager:
            await settled(server)
            manager.reconciler.decide = sometimes
            for _ in range(2):
                is_broken = True
                for second in range(12):
                    server.change("jobs", "js-w-0", {"status": {"active": second, "conditions": []}})
                    await asyncio.sleep(1)
                is_broken = False
                await settled(server, 30)

    world(case)
    bugs = [record for record in caplog.records if record.message == "Bug: JobSet stopped"]
    assert [record.fields["retry_seconds"] for record in bugs] == [5.0, 10.0] * 2  # type: ignore[attr-defined]


def test_a_decision_that_never_settles_is_slowed_down(caplog: pytest.LogCaptureFixture) -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server) as manager:
            await settled(server)
            before = len(server.calls)
            manager.reconciler.decide = flip
            server.change("jobsets", "js", {"metadata": {"labels": {"a": "b"}}})
            await asyncio.sleep(60)
            assert len(server.calls) - before < budget.RUNS_IN_A_ROW_MAX + 20

    def flip(observation: Observation) -> Decision:
        status = observation.jobset.status
        return Decision(
            status=msgspec.structs.replace(status, terminal_state="" if status.terminal_state else "Failed")
        )

    world(case)
    assert any(r.message == "JobSet does not settle" for r in caplog.records)


# Shutdown


def test_on_shutdown_running_writes_are_finished_and_no_new_jobset_is_begun() -> None:
    async def case(server: ModelServer) -> None:
        server.latency_seconds = 0.2
        for number in range(40):
            server.put("jobsets", manifest(f"js-{number}"))
        async with controller(server):
            await until(lambda: server.names("services"))
        begun = set(server.names("services"))
        jobs = server.names("jobs")
        assert len(begun) == OPTIONS.concurrent_reconciles
        assert {name.rsplit("-", 2)[0] for name in jobs} == begun
        assert len(jobs) == 2 * len(begun)

    world(case)


def test_a_jobset_that_comes_during_shutdown_is_left_for_the_next_start() -> None:
    async def case(server: ModelServer) -> None:
        async with controller(server):
            server.latency_seconds = 1.0
            server.put("jobsets", manifest("early", scheduling=GANG))
            await until(lambda: server.names("workloads"))
            asyncio.get_running_loop().call_later(0.1, server.put, "jobsets", manifest("late"))
        assert server.names("services") == ["early"]
        assert server.names("jobs") == ["early-w-0", "early-w-1"]

    world(case)


def test_events_of_what_was_stored_are_still_sent() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
            server.latency_seconds = 0.2
            finish_jobs(server)
            await until(lambda: server.get("jobsets", "js")["status"])
            assert events(server) == []
        assert events(server) == ["AllJobsCompleted"]

    world(case)


def test_shutdown_does_not_wait_for_ever() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        stop = asyncio.Event()
        async with Client(server) as client:
            manager = new_manager(client)
            running = asyncio.create_task(manager.run(stop))
            await until(lambda: manager.is_ready)
            server.latency_seconds = 10_000
            await asyncio.sleep(1)
            stopped = asyncio.get_running_loop().time()
            stop.set()
            await running
            assert asyncio.get_running_loop().time() - stopped < 10

    world(case)


@pytest.mark.parametrize("how", ["deleted", "restarted", "suspended"])
def test_nothing_is_created_for_a_jobset_that_is_no_longer_what_was_seen(how: str) -> None:
    """Its watch lags, that of its Jobs does not: those that went with it, or with its last attempt, would run again."""

    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
            for name in server.names("jobs"):
                server.change("jobs", name, {"status": {"active": 2, "ready": 2}})
            await settled(server)
            assert server.get("jobsets", "js")["status"], "it has lived"
            before = len(server.calls)
            server.silent.add("jobsets")
            if how == "deleted":
                del server.objects["jobsets", "ns", "js"]
            elif how == "restarted":
                server.change("jobsets", "js", {"status": {"restarts": 1}})
            else:
                server.change("jobsets", "js", {"spec": {"suspend": True}})
            for name in server.names("jobs"):
                server.remove("jobs", name)
            await settled(server)
        created = [call.body for call in server.calls[before:] if (call.method, call.plural) == ("POST", "jobs")]
        if how == "deleted":
            assert created == []
        elif how == "restarted":
            assert {job["metadata"]["labels"][RESTART_ATTEMPT] for job in created} == {"1"}
        else:
            assert {job["spec"]["suspend"] for job in created} == {True}

    world(case)


def test_a_new_process_asks_before_it_makes_anything_for_a_jobset_that_it_found() -> None:
    """It has no status: whoever made things for it before could not write one. They are gone with it."""

    async def case(server: ModelServer) -> None:
        def before(request: Request, plural: str) -> None:
            if request.method == "GET" and request.path.endswith("/jobsets/js"):
                server.before = lambda *_: None
                server.remove("jobsets", "js")

        server.before = before
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
        assert not server.names("jobsets")
        assert not server.writes()

    world(case)


def test_no_job_is_resumed_as_a_jobset_asked_that_has_changed_since() -> None:
    """A queue has taken it back and admitted it elsewhere while its watch lags."""

    async def case(server: ModelServer) -> None:
        order, jobs = {"startupPolicyOrder": "InOrder"}, [replicated_job("a"), replicated_job("b")]
        server.put("jobsets", manifest("js", *jobs, startupPolicy=order, suspend=True))
        async with controller(server):
            await settled(server)
            server.change("jobsets", "js", {"spec": {"suspend": False}})
            await settled(server)
            assert server.get("jobs", "js-b-0")["spec"]["suspend"], "its turn has not come"
            server.silent.add("jobsets")
            elsewhere = [_placed(each, {"zone": "other"}) for each in jobs]
            server.change("jobsets", "js", {"spec": {"replicatedJobs": elsewhere}})
            server.change("jobs", "js-a-0", {"status": {"active": 1, "ready": 1}})
            await settled(server)
            resumed = server.get("jobs", "js-b-0")["spec"]
            assert (resumed["suspend"], resumed["template"]["spec"]["nodeSelector"]) == (False, {"zone": "other"})

    world(case)


@pytest.mark.parametrize("how", ["suspended", "deleted"])
def test_a_jobset_that_changes_while_it_is_carried_out_is_looked_at_again(how: str) -> None:
    """Its groups take their time. The Jobs that follow would be those that it asked for before."""

    async def case(server: ModelServer) -> None:
        def before(request: Request, plural: str) -> None:
            if (request.method, plural) != ("POST", "workloads"):
                return
            server.before = lambda *_: None
            if how == "deleted":
                server.remove("jobsets", "js")
            else:
                server.change("jobsets", "js", {"spec": {"suspend": True}})

        server.before = before
        server.put("jobsets", manifest(scheduling=GANG))
        async with controller(server):
            await settled(server)
        created = [call.body["spec"]["suspend"] for call in server.calls if str(call).startswith("POST jobs ")]
        assert created == ([] if how == "deleted" else [True, True])

    world(case)


def _placed(replicated_job: Manifest, selector: Manifest) -> Manifest:
    return merged(replicated_job, {"template": {"spec": {"template": {"spec": {"nodeSelector": selector}}}}})


def test_a_deadline_that_was_just_put_off_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch of JobSets lags: what it shows has run too long, and nothing may be lost before that is stored."""

    async def case(server: ModelServer) -> None:
        features = gates.resolve({gates.ACTIVE_DEADLINE_SECONDS: True})
        server.put("jobsets", manifest(activeDeadlineSeconds=20))
        async with controller(server, Options(health_address=None, features=features)) as manager:
            await settled(server)
            shown = manager.caches.jobsets.get("ns", "js")
            with monkeypatch.context() as lagging:
                lagging.setattr(manager.caches.jobsets, "get", lambda *_: shown)
                server.change("jobsets", "js", {"spec": {"activeDeadlineSeconds": 100}, "metadata": {"generation": 2}})
                await asyncio.sleep(30)
            await asyncio.sleep(30)
            assert not [call for call in server.calls if call.method == "DELETE"]
            await until(lambda: conditions(server).get("Failed"))
            await until(lambda: not server.names("jobs"))

    world(case)
