"""The work queue in virtual time: merging, delays, order, and how long failures wait."""

import asyncio

import pytest

from pyjobset.controller.queue import Backoff, Queue
from pyjobset.errors import ForeignObject, OutcomeUnknown, Raced, Refused, Unavailable
from pyjobset.objects.meta import Key
from pyjobset.simulation.clock import run

A, B, C = (Key("ns", name) for name in "abc")


def now() -> float:
    return asyncio.get_running_loop().time()


async def is_idle(queue: Queue) -> bool:
    """Nothing comes within an hour."""
    try:
        async with asyncio.timeout(3600):
            key = await queue.take()
    except TimeoutError:
        return True
    pytest.fail(f"{key} came")


def test_additions_while_a_key_waits_are_one_run() -> None:
    async def main() -> None:
        queue = Queue()
        for _ in range(3):
            queue.add(A)
        assert await queue.take() == A
        queue.done(A)
        assert await is_idle(queue)

    run(main())


def test_additions_while_a_key_runs_are_one_more_run_after_it() -> None:
    async def main() -> None:
        queue = Queue()
        queue.add(A)
        await queue.take()
        queue.add(A)
        queue.add(A)
        queue.add(B)
        assert await queue.take() == B, "a running key is not handed out"
        assert len(queue) == 2
        queue.done(A)
        assert await queue.take() == A
        queue.done(A)
        assert await is_idle(queue)

    run(main())


def test_a_delayed_key_comes_when_it_is_due() -> None:
    async def main() -> None:
        queue = Queue()
        queue.add(A, after_seconds=30)
        await queue.take()
        assert now() == pytest.approx(30)

    run(main())


@pytest.mark.parametrize(("first", "second", "due"), [(30, 5, 5), (5, 30, 5), (30, 0, 0), (0, 30, 0)])
def test_the_earlier_of_two_additions_counts(first: float, second: float, due: float) -> None:
    async def main() -> None:
        queue = Queue()
        queue.add(A, after_seconds=first)
        queue.add(A, after_seconds=second)
        await queue.take()
        assert now() == pytest.approx(due)
        queue.done(A)
        assert await is_idle(queue)

    run(main())


@pytest.mark.parametrize(("first", "second", "due"), [(30, 5, 5), (5, 30, 5)])
def test_the_earlier_addition_counts_also_while_the_key_runs(first: float, second: float, due: float) -> None:
    async def main() -> None:
        queue = Queue()
        queue.add(A)
        await queue.take()
        queue.add(A, after_seconds=first)
        queue.add(A, after_seconds=second)
        queue.done(A)
        await queue.take()
        assert now() == pytest.approx(due)

    run(main())


def test_a_delay_counts_from_the_addition_not_from_the_end_of_the_run() -> None:
    async def main() -> None:
        queue = Queue()
        queue.add(A)
        await queue.take()
        queue.add(A, after_seconds=10)
        await asyncio.sleep(8)
        queue.done(A)
        await queue.take()
        assert now() == pytest.approx(10)

    run(main())


def test_keys_come_in_the_order_in_which_they_became_ready() -> None:
    async def main() -> None:
        queue = Queue()
        queue.add(C, after_seconds=1)
        queue.add(A)
        queue.add(B)
        order = [await queue.take()]
        queue.add(A)  # again, while it runs: behind the others
        await asyncio.sleep(2)
        queue.done(A)
        order += [await queue.take() for _ in range(3)]
        assert order == [A, B, C, A]

    run(main())


def test_waiting_workers_each_get_a_key_and_a_cancelled_one_loses_none() -> None:
    async def main() -> None:
        queue = Queue()
        takers = [asyncio.create_task(queue.take()) for _ in range(3)]
        await asyncio.sleep(1)
        queue.add(A)
        takers[0].cancel()
        queue.add(B)
        done = await asyncio.gather(*takers, return_exceptions=True)
        taken = {key for key in done if isinstance(key, Key)}
        assert taken == {A, B}

    run(main())


def delays(error: Exception, times: int) -> list[float]:
    backoff = Backoff()
    return [backoff.delay_seconds(A, error) for _ in range(times)]


def test_a_race_is_retried_at_once_then_ever_slower() -> None:
    assert delays(Raced("x"), 4) == [0.0, 0.005, 0.01, 0.02]
    assert delays(Raced("x"), 50)[-1] == 1.0


@pytest.mark.parametrize(
    "error",
    [
        Refused("x"),
        ForeignObject("x", kind="Job", namespace="ns", name="n", owner="nobody"),
        AssertionError("a bug"),
    ],
)
def test_refusals_and_bugs_are_retried_slowly(error: Exception) -> None:
    assert delays(error, 3) == [5.0, 10.0, 20.0]
    assert delays(error, 50)[-1] == 300.0


@pytest.mark.parametrize("error", [Unavailable("x"), OutcomeUnknown("x")])
def test_an_absent_server_is_tried_ever_slower_and_not_by_all_at_the_same_time(error: Exception) -> None:
    seen = delays(error, 12)
    for delay, base in zip(seen, [0.1, 0.2, 0.4, 0.8], strict=False):
        assert 0.8 * base <= delay <= 1.2 * base
    assert 24 <= seen[-1] <= 36
    assert len({delays(error, 3)[-1] for _ in range(20)}) > 1


def test_the_servers_own_wish_is_honoured() -> None:
    assert delays(Unavailable("x", retry_after_seconds=7), 1) == [7.0]


def test_a_run_that_worked_starts_the_count_again() -> None:
    backoff = Backoff()
    backoff.delay_seconds(A, Refused("x"))
    backoff.delay_seconds(B, Refused("x"))
    backoff.forget(A)
    assert backoff.delay_seconds(A, Refused("x")) == 5.0
    assert backoff.delay_seconds(B, Refused("x")) == 10.0
