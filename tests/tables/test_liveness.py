"""What makes a controller dead though its process lives, planted one by one; and what must not."""

import asyncio
from typing import Any

import pytest

from pyjobset.controller.liveness import RUN_SECONDS_MAX, SILENCE_SECONDS_MAX, Liveness
from pyjobset.controller.manager import Manager
from pyjobset.kube.cache import Cache
from pyjobset.kube.client import Client
from pyjobset.objects.meta import Key
from tests.controller_world import controller, manifest, new_manager, settled, until, world
from tests.model_server import ModelServer


@pytest.mark.parametrize(
    ("qps", "seconds", "problem"),
    [
        (500, RUN_SECONDS_MAX, ""),
        (500, RUN_SECONDS_MAX + 1, "workers are stuck: 1"),
        (5, RUN_SECONDS_MAX + 1, ""),
        (5, 20_001, "workers are stuck: 1"),
    ],
)
def test_a_run_that_does_not_end(qps: float, seconds: float, problem: str) -> None:
    """With a low rate of requests a big JobSet takes its time."""
    clock = [0.0]
    liveness = Liveness(qps, clock=lambda: clock[0])
    liveness.began(Key("ns", "js"))
    clock[0] = seconds

    async def main() -> None:
        beating = asyncio.create_task(liveness.beat())
        await asyncio.sleep(0)
        assert liveness.problem() == problem
        liveness.ended(Key("ns", "js"))
        assert liveness.problem() == ""
        beating.cancel()

    asyncio.run(main())


def with_clock(manager: Manager) -> None:
    """Its liveness on the virtual clock."""
    manager._liveness._clock = asyncio.get_running_loop().time
    manager._liveness._beat_at = manager._liveness._clock()


def test_a_quiet_controller_is_alive() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server) as manager:
            with_clock(manager)
            await settled(server)
            await asyncio.sleep(3 * RUN_SECONDS_MAX)
            assert manager.unhealthy() == ""

    world(case)


def test_a_worker_that_never_comes_back_is_noticed_and_is_not_named() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest("secret-name"))
        async with controller(server) as manager:
            with_clock(manager)
            await settled(server)
            manager.reconciler.run = stuck  # type: ignore[method-assign]
            manager.watches.wake_all()
            await asyncio.sleep(RUN_SECONDS_MAX)
            assert manager.unhealthy() == ""
            await asyncio.sleep(2)
            assert manager.unhealthy() == "workers are stuck: 1"

    async def stuck(key: Key) -> float | None:
        await asyncio.Event().wait()
        return None

    world(case)


def test_an_event_loop_that_stood_still_is_noticed() -> None:
    async def case(server: ModelServer) -> None:
        async with controller(server) as manager:
            with_clock(manager)
            await asyncio.sleep(5)
            loop: Any = asyncio.get_running_loop()
            loop._virtual.now += SILENCE_SECONDS_MAX + 2  # nobody had a turn
            assert manager.unhealthy() == "the event loop is blocked"
            await asyncio.sleep(0.1)
            assert manager.unhealthy() == ""

    world(case)


def test_a_part_that_ends_without_an_error_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Cache.run

    async def some(cache: Cache[Any]) -> None:
        """The watch of Services gives up, silently."""
        if cache.resource.plural == "services":
            async with asyncio.timeout(5):
                await run(cache)
        await run(cache)

    async def ends(cache: Cache[Any]) -> None:
        try:
            await some(cache)
        except TimeoutError:
            return

    monkeypatch.setattr(Cache, "run", ends)

    async def case(server: ModelServer) -> None:
        async with controller(server) as manager:
            assert manager.unhealthy() == ""
            await asyncio.sleep(6)
            assert manager.unhealthy() == "a part has ended: watch of services"

    world(case)


def test_what_it_waits_for_is_told_until_it_is_ready_and_that_it_stops() -> None:
    async def case(server: ModelServer) -> None:
        server.unserved.add("jobsets")
        stop = asyncio.Event()
        async with Client(server) as client:
            manager = new_manager(client)
            running = asyncio.create_task(manager.run(stop))
            assert manager.unready() == "waiting for caches and webhooks"
            await asyncio.sleep(1)
            assert manager.unready() == "waiting for caches"
            server.unserved.clear()
            await until(lambda: manager.is_ready)
            server.latency_seconds = 1.0
            server.put("jobsets", manifest())
            await asyncio.sleep(1.5)
            stop.set()
            await asyncio.sleep(0.1)
            assert not running.done(), "a write is under way"
            assert manager.unready() == "stopping"
            assert manager.unhealthy() == ""
            await running

    world(case)
