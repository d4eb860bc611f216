"""Several controllers, one leader: nobody else writes, whatever happens to the processes and to their network."""

import asyncio
import random

import pytest

from pyjobset.controller.manager import SHUTDOWN_SECONDS
from pyjobset.errors import NotLeading, OutcomeUnknown
from pyjobset.kube.requests import Request
from tests.builders import replicated_job
from tests.controller_world import GANG, manifest, until
from tests.replicas import ELECTION, LEASE, TAKEOVER_SECONDS, Replica, World, replicated
from tests.tables.test_metrics import page_of


async def ended(replica: Replica, seconds: float) -> None:
    """By the loss of leadership, and by nothing else."""
    await until(replica.running.done, seconds)
    error = replica.running.exception()
    while isinstance(error, ExceptionGroup):
        assert len(error.exceptions) == 1
        error = error.exceptions[0]
    assert isinstance(error, NotLeading), error


def test_a_follower_is_ready_and_warm_and_writes_nothing() -> None:
    async def case(world: World) -> None:
        leader, follower = await world.pair()
        world.server.put("jobsets", manifest("gang", scheduling=GANG))
        await world.is_done("gang-w-1", 5)
        await asyncio.sleep(1)
        assert leader.manager.is_ready
        assert follower.manager.is_ready
        assert {sender for _, sender, _ in world.writes} == {"a"}
        assert follower.manager.caches.pods is not None
        assert follower.manager.caches.pods.is_synced
        assert len(follower.manager._queue) == 0
        before = world.server.get(*LEASE[::2], namespace=LEASE[1])["spec"]
        await asyncio.sleep(60)
        after = world.server.get(*LEASE[::2], namespace=LEASE[1])["spec"]
        assert after["renewTime"] > before["renewTime"]
        assert (after["acquireTime"], after["leaseTransitions"]) == (before["acquireTime"], 0)

    assert replicated(case).violations == []


def test_metrics_tell_who_leads() -> None:
    async def case(world: World) -> None:
        leader, follower = await world.pair()
        assert leader.manager.leads() == {ELECTION.name: True}
        assert follower.manager.leads() == {ELECTION.name: False}
        assert page_of(leader.manager)[f'leader_election_master_status{{name="{ELECTION.name}"}}'] == 1
        assert page_of(follower.manager)[f'leader_election_master_status{{name="{ELECTION.name}"}}'] == 0
        leader.fault = "hang"
        await asyncio.sleep(ELECTION.renew_deadline_seconds)
        assert leader.manager.leads() == {ELECTION.name: False}

    replicated(case)


def test_a_leader_that_stops_hands_over_after_its_last_write() -> None:
    async def case(world: World) -> None:
        leader, follower = await world.pair()
        world.server.latency_seconds = 0.5
        world.work()
        await asyncio.sleep(0.6)
        leader.stop.set()
        await until(leader.running.done, SHUTDOWN_SECONDS + 3)
        leader.running.result()
        assert world.holder() == ""
        await until(lambda: follower.is_leading, 1.2 * ELECTION.retry_seconds + 1)
        await world.is_done("js-1-w-1", 10)
        assert world.server.get(*LEASE[::2], namespace=LEASE[1])["spec"]["leaseTransitions"] == 1

    assert replicated(case).violations == []


@pytest.mark.parametrize("is_renewal", [False, True], ids=["its first claim", "a renewal"])
def test_a_claim_that_was_under_way_at_the_end_is_given_back(is_renewal: bool) -> None:
    async def case(world: World) -> None:
        world.server.latency_seconds = 0.5
        only = world.add("a")

        def stop(request: Request, plural: str) -> None:
            world.judge(request, plural)
            is_claim = plural == "leases" and request.is_mutating
            if is_claim and is_renewal == only.is_leading and request.method == ("PATCH" if is_renewal else "POST"):
                only.stop.set()
                world.server.before = world.judge  # its answer is on its way, and nobody waits for it any more

        world.server.before = stop
        await until(only.running.done, 60)
        only.running.result()
        assert world.holder() == ""

    assert replicated(case).violations == []


def test_a_leader_that_gives_up_a_write_does_not_hand_over() -> None:
    async def case(world: World) -> None:
        leader, follower = await world.pair()
        leader.fault = "lose"
        job = world.work()
        await asyncio.sleep(1)
        leader.fault = ""
        leader.stop.set()
        await until(leader.running.done, SHUTDOWN_SECONDS + 3)
        leader.running.result()
        assert world.holder() == leader.identity
        await until(lambda: follower.is_leading, TAKEOVER_SECONDS)
        await world.is_done(job, 5)

    assert replicated(case).violations == []


def test_after_a_kill_the_follower_leads_within_the_lease() -> None:
    async def case(world: World) -> None:
        leader, follower = await world.pair()
        leader.kill()
        job = world.work()
        await until(lambda: follower.is_leading, TAKEOVER_SECONDS)
        await world.is_done(job, 5)

    world = replicated(case)
    assert world.violations == []
    assert {sender for _, sender, _ in world.writes} == {"b"}


@pytest.mark.parametrize("fault", ["hang", "fail", "lose"])
def test_a_leader_that_is_cut_off_ends_before_its_lease_does(fault: str) -> None:
    async def case(world: World) -> None:
        leader, follower = await world.pair()
        leader.fault = fault
        job = world.work()
        if fault == "lose":  # its renewals are stored, and nobody else leads as long as it sends some
            await ended(leader, ELECTION.renew_deadline_seconds + 0.1)
            await until(lambda: follower.is_leading, TAKEOVER_SECONDS)
        else:
            await until(lambda: follower.is_leading, TAKEOVER_SECONDS)
            assert leader.running.done()
            await ended(leader, 0)
        await world.is_done(job, 5)

    assert replicated(case).violations == []


def test_a_short_outage_costs_no_leader() -> None:
    async def case(world: World) -> None:
        leader, follower = await world.pair()
        for replica in (leader, follower):
            replica.fault = "hang"
        await asyncio.sleep(ELECTION.renew_deadline_seconds - 1.2 * ELECTION.retry_seconds - 0.5)
        for replica in (leader, follower):
            replica.fault = ""
        job = world.work()
        await world.is_done(job, 5)
        await asyncio.sleep(60)
        assert leader.is_leading

    assert replicated(case).violations == []


@pytest.mark.parametrize("in_flight", ["jobs", "leases"])
def test_the_first_write_after_a_pause_is_refused_by_the_leader_itself(in_flight: str) -> None:
    """It wakes up with answers that let it go on, before any timer has told it how late it is. One of them may be that
    its renewal was stored, 30 seconds ago."""

    async def case(world: World) -> None:
        leader, follower = await world.pair()
        world.server.latency_seconds = 0.5

        def pause(request: Request, plural: str) -> None:
            world.judge(request, plural)
            if plural == in_flight and world.writes and leader.is_leading:
                leader.pause()
                leader.is_deaf = True  # it does not hear either that another one did the work

        world.server.before = pause
        for _ in range(100):
            world.work()
        await until(lambda: follower.is_leading, 60)
        await asyncio.sleep(2)
        woken = asyncio.get_running_loop().time()
        leader.resume()
        await ended(leader, 5)
        await asyncio.sleep(1)  # what it has sent arrives
        assert [w for w in world.writes if w[0] > woken and w[1] == "a"] == []
        assert [w for w in world.writes if w[1] == "a"]

    assert replicated(case).violations == []


def test_a_pause_that_ends_in_time_is_no_loss() -> None:
    async def case(world: World) -> None:
        leader, _ = await world.pair()
        leader.pause()
        await asyncio.sleep(ELECTION.renew_deadline_seconds - 1.2 * ELECTION.retry_seconds)
        leader.resume()
        await world.is_done(world.work(), 5)
        assert leader.is_leading

    assert replicated(case).violations == []


def test_a_lease_that_others_write_on_is_kept() -> None:
    async def case(world: World) -> None:
        leader, _ = await world.pair()
        for number in range(10):
            note = {"metadata": {"annotations": {"note": str(number)}}}
            world.server.change("leases", ELECTION.name, note, namespace="system")
            await asyncio.sleep(3)
        assert leader.is_leading
        assert not leader.running.done()

    assert replicated(case).violations == []


def test_a_lease_that_is_taken_away_ends_the_leader_at_its_next_look() -> None:
    async def case(world: World) -> None:
        leader, follower = await world.pair()
        taken = {"spec": {"holderIdentity": follower.identity}}
        world.server.change("leases", ELECTION.name, taken, namespace="system")
        await ended(leader, ELECTION.retry_seconds + 0.1)

    replicated(case)


def test_a_lease_that_is_deleted_stays_with_its_leader() -> None:
    async def case(world: World) -> None:
        leader, _ = await world.pair()
        await asyncio.sleep(10)
        world.server.remove("leases", ELECTION.name, namespace="system")
        await asyncio.sleep(10)
        assert leader.is_leading
        await world.is_done(world.work(), 5)

    assert replicated(case).violations == []


def test_an_answer_to_the_first_claim_that_is_lost_delays_nobody() -> None:
    async def case(world: World) -> None:
        lost = iter([OutcomeUnknown("the connection was reset")])

        def lose(request: Request, plural: str) -> OutcomeUnknown | None:
            return next(lost, None) if plural == "leases" and request.is_mutating else None

        world.server.after = lose
        world.add("a")
        await world.is_done(world.work(), 2 * ELECTION.retry_seconds)
        assert next(lost, None) is None

    assert replicated(case).violations == []


def test_renewals_do_not_wait_behind_writes() -> None:
    """At 5 requests a second, 400 Jobs take 80 seconds."""

    async def case(world: World) -> None:
        world.qps, world.burst = 5.0, 1
        leader, _ = await world.pair()
        world.server.put("jobsets", manifest("big", replicated_job("w", replicas=400)))
        await world.is_done("big-w-399", 120)
        assert leader.is_leading

    assert replicated(case).violations == []


def test_a_write_that_waited_for_its_turn_is_refused_when_the_lease_is_gone() -> None:
    async def case(world: World) -> None:
        leader, _ = await world.pair()

        def forbid(request: Request, plural: str) -> None:
            world.judge(request, plural)
            if plural == "jobs" and request.is_mutating and _is_first(request):
                leader.fault = "fail"

        world.server.before = forbid
        world.work()
        await ended(leader, ELECTION.renew_deadline_seconds + 0.1)

    def _is_first(request: Request) -> bool:
        return request.subject.endswith("w-0")

    assert replicated(case).violations == []


@pytest.mark.parametrize("seed", range(25))
def test_there_are_never_two_writers_and_in_the_end_there_is_one(seed: int) -> None:
    """Three replicas, two minutes of pauses, cuts, lost answers, slow networks, stops and kills at random."""
    chance = random.Random(seed)

    async def case(world: World) -> None:
        random.seed(seed)
        names = iter("abcdefghijklmnopqrstuvwxyz" * 9)
        number = 0

        def fresh() -> None:
            nonlocal number
            number += 1
            world.add(f"{next(names)}{number}").delay_seconds = chance.choice((0.0, 0.5, 3.0))

        paused: set[str] = set()
        for _ in range(3):
            fresh()
        for _ in range(60):
            world.work()
            living = [r for r in world.replicas.values() if not r.running.done() and r.name not in paused]
            if len(living) < 2:
                fresh()
                continue
            leading = [r for r in living if r.is_leading]
            victim = chance.choice(leading or living) if chance.random() < 0.6 else chance.choice(living)
            match chance.randrange(7):
                case 0:
                    victim.pause()
                    paused.add(victim.name)
                case 1 | 2 | 3:
                    victim.fault = chance.choice(("hang", "fail", "lose", ""))
                case 4 if chance.random() < 0.4:
                    victim.stop.set()
                case 5 if paused:
                    name = chance.choice(sorted(paused))
                    paused.discard(name)
                    world.replicas[name].resume()
                case _:
                    victim.fault = ""
            await asyncio.sleep(chance.choice((0.01, 0.3, 2.0, 5.0, 12.0)))
        for replica in world.replicas.values():
            replica.fault = ""
            replica.resume()
        if all(r.running.done() or r.stop.is_set() for r in world.replicas.values()):
            fresh()
        await world.is_done(world.work(), 60)
        assert len({sender for _, sender, _ in world.writes}) > 1, "nobody ever took over"

    assert replicated(case).violations == []
