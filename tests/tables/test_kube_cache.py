"""The cache against a server that drops, forgets, refuses and restarts. In virtual time; see tests/watch_server.py."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from pyjobset.errors import Refused, Unavailable
from pyjobset.kube.cache import PROBE_SECONDS, Cache
from pyjobset.kube.client import SILENCE_SECONDS_MAX, Client
from pyjobset.kube.responses import Response
from pyjobset.objects.batch import Job
from pyjobset.objects.resources import JOBS
from pyjobset.simulation.clock import run
from tests.watch_server import WatchServer, failure

Change = tuple[str, int | None, int | None]


class Watched:
    """A running cache of a server, and the changes it told: name, old and new version."""

    def __init__(self, server: WatchServer, **options: Any) -> None:
        self.server = server
        self.changes: list[Change] = []
        self.cache: Cache[Job] = Cache(Client(server, qps=0), JOBS, on_change=self.on_change, **options)

    def on_change(self, old: Job | None, new: Job | None) -> None:
        one = old or new
        assert one is not None
        self.changes.append((one.metadata.name, version(old), version(new)))

    def new_changes(self) -> list[Change]:
        changes, self.changes = self.changes, []
        return changes

    @property
    def names(self) -> list[str]:
        return sorted(job.metadata.name for job in self.cache)

    async def caught_up(self) -> None:
        """All that the server has said has arrived; bookmarks come once a minute."""
        await asyncio.sleep(60)
        self.server.bookmark()
        await asyncio.sleep(1)


def version(obj: Job | None) -> int | None:
    return None if obj is None else int(obj.metadata.resource_version)


@asynccontextmanager
async def watched(server: WatchServer, **options: Any) -> AsyncIterator[Watched]:
    seen = Watched(server, **options)
    task = asyncio.create_task(seen.cache.run())
    try:
        yield seen
        assert not task.done(), "run() ended"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def scenario(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """An async test in virtual time."""

    def wrapper() -> None:
        run(test())  # type: ignore[arg-type]

    wrapper.__name__ = test.__name__
    return wrapper


def server_with(*names: str, **options: Any) -> WatchServer:
    server = WatchServer(**options)
    for name in names:
        server.put(name)
    return server


def watches(server: WatchServer) -> list[str]:
    """How each list and watch began: `stream`, `list`, or the version it resumed from."""
    begun = []
    for request in server.requests:
        query = dict(part.split("=") for part in request.query.split("&"))
        is_watch = "watch" in query
        begun.append("list" if not is_watch else "stream" if "sendInitialEvents" in query else query["resourceVersion"])
    return begun


@scenario
async def test_the_first_list_then_changes() -> None:
    server = server_with("a", "b")
    async with watched(server) as seen:
        assert not seen.cache.is_synced
        await seen.cache.wait_synced()
        assert seen.cache.is_synced
        assert seen.new_changes() == [("a", None, 11), ("b", None, 12)]
        server.put("a")
        server.put("c")
        server.remove("b")
        await seen.caught_up()
        assert seen.new_changes() == [("a", 11, 13), ("c", None, 14), ("b", 12, None)]
        assert seen.names == ["a", "c"]
        assert version(seen.cache.get("ns", "a")) == 13
        assert seen.cache.get("other", "a") is None
        assert watches(server) == ["stream"]


@scenario
async def test_a_synced_cache_shows_everything_before_anyone_is_told() -> None:
    server = server_with("a", "b")
    seen = Watched(server)
    task = asyncio.create_task(seen.cache.run())
    await seen.cache.wait_synced()
    assert seen.names == ["a", "b"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@scenario
async def test_an_empty_server_counts_as_synced() -> None:
    async with watched(WatchServer()) as seen:
        await seen.cache.wait_synced()
        assert (len(seen.cache), seen.cache.is_unserved) == (0, False)


@scenario
async def test_a_dropped_watch_resumes_where_it_was_and_misses_nothing() -> None:
    server = server_with("a", "b")
    async with watched(server) as seen:
        await seen.cache.wait_synced()
        seen.new_changes()
        server.put("a")
        await asyncio.sleep(0.01)
        server.allowed = 0
        server.put("b")
        server.remove("a")
        server.drop()
        server.put("c")
        server.deliver(float("inf"))
        await seen.caught_up()
        assert seen.new_changes() == [("a", 11, 13), ("b", 12, 14), ("a", 13, None), ("c", None, 16)]
        assert watches(server) == ["stream", "13"]


@scenario
async def test_a_watch_that_the_server_ends_is_resumed_at_once() -> None:
    server = server_with("a")
    async with watched(server) as seen:
        await seen.cache.wait_synced()
        await asyncio.sleep(300)
        server.finish()
        await asyncio.sleep(0.001)
        assert watches(server) == ["stream", "11"]
        assert seen.cache.problem is None


@scenario
async def test_a_watch_that_ends_as_soon_as_it_begins_is_not_asked_for_in_a_loop() -> None:
    server = server_with("a")
    async with watched(server) as seen:
        await seen.cache.wait_synced()
        for _ in range(6000):
            server.finish()
            await asyncio.sleep(0.01)
        assert 3 < len(server.requests) < 15


@scenario
async def test_bookmarks_keep_the_version_fresh_so_that_a_drop_needs_no_list() -> None:
    server = server_with("a")
    async with watched(server) as seen:
        await seen.cache.wait_synced()
        server.tick()
        server.tick()
        server.bookmark()
        await asyncio.sleep(0.01)
        server.forget()
        server.drop()
        server.put("b")
        await seen.caught_up()
        assert watches(server) == ["stream", "13"]
        assert seen.names == ["a", "b"]


@pytest.mark.parametrize("streams", [True, False])
def test_after_410_a_new_list_reports_only_differences_and_deletions(streams: bool) -> None:
    async def main() -> None:
        server = server_with("same", "changed", "gone", "replaced")
        async with watched(server) as seen:
            await seen.cache.wait_synced()
            seen.new_changes()
            if not streams:
                server.streaming_refusal = failure(422, "Invalid", "sendInitialEvents is forbidden")
            server.drop()
            server.put("changed")
            server.remove("gone")
            server.put("new")
            server.put("replaced", uid="another")
            server.forget()
            await seen.caught_up()
            assert sorted(seen.new_changes(), key=str) == [
                ("changed", 12, 15),
                ("gone", 13, None),
                ("new", None, 17),
                ("replaced", 14, None),
                ("replaced", None, 19),
            ]
            assert seen.names == ["changed", "new", "replaced", "same"]
            assert watches(server)[:3] == ["stream", "14", "stream"]
            # However this list was read, the next one tries to stream again.
            begun = len(server.requests)
            server.streaming_refusal = None
            server.drop()
            server.forget()
            server.put("newer")
            server.forget()
            await seen.caught_up()
            assert seen.names == ["changed", "new", "newer", "replaced", "same"]
            assert watches(server)[begun:] == ["19", "stream"]

    run(main())


@scenario
async def test_after_410_it_lists_at_once_however_long_the_server_was_away() -> None:
    """The pause that had grown while nothing answered is no reason to know nothing for half a minute more."""
    server = server_with("a")
    async with watched(server) as seen:
        await seen.cache.wait_synced()
        server.refusal = Unavailable("down")
        server.drop()
        await asyncio.sleep(120)
        server.put("b")
        server.forget()
        server.refusal = None
        await server.asked(len(server.requests) + 1)
        await asyncio.sleep(1)
        assert seen.names == ["a", "b"]


@scenario
async def test_a_list_that_breaks_in_the_middle_is_begun_again() -> None:
    server = server_with("a", "b", "c")
    server.allowed = 2
    async with watched(server) as seen:
        await asyncio.sleep(1)
        assert (seen.cache.is_synced, seen.names) == (False, ["a", "b"])
        server.remove("a")
        server.drop()
        server.deliver(float("inf"))
        await seen.cache.wait_synced()
        assert seen.names == ["b", "c"]
        assert seen.new_changes() == [("a", None, 11), ("b", None, 12), ("c", None, 13), ("a", 11, None)]


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(failure(422, "Invalid", "sendInitialEvents: Forbidden"), id="WatchList off"),
        pytest.param(failure(400, "BadRequest"), id="bad request"),
        pytest.param(failure(500, "InternalError", "RequestWatchProgress is disabled"), id="old etcd"),
    ],
)
def test_a_server_that_cannot_stream_a_list_is_read_page_by_page(refusal: Any) -> None:
    async def main() -> None:
        server = server_with("a", "b", "c", "d", "e", page_size_max=2, streaming_refusal=refusal)
        async with watched(server) as seen:
            await seen.cache.wait_synced()
            assert seen.names == ["a", "b", "c", "d", "e"]
            server.put("f")
            await seen.caught_up()
            assert seen.names == ["a", "b", "c", "d", "e", "f"]
            assert watches(server) == ["stream", "list", "list", "list", "15"]

    run(main())


@scenario
async def test_a_server_that_ignores_the_wish_for_a_streaming_list_is_read_page_by_page() -> None:
    server = server_with("a", "b", allowed=2)  # the objects, and never the bookmark
    async with watched(server) as seen:
        await asyncio.sleep(100)
        assert not seen.cache.is_synced
        server.finish()
        for stream in server.streams:
            stream.lines.clear()
        server.deliver(float("inf"))
        await seen.cache.wait_synced()
        assert watches(server)[:2] == ["stream", "list"]


@scenario
async def test_pages_that_expire_in_the_middle_are_read_again() -> None:
    server = server_with("a", "b", "c", page_size_max=1, streaming_refusal=failure(422, "Invalid"))
    async with watched(server) as seen:
        await server.asked(2)
        server.put("b")
        server.forget()
        await seen.caught_up()
        assert seen.names == ["a", "b", "c"]
        assert version(seen.cache.get("ns", "b")) == 14


@scenario
async def test_objects_of_a_page_are_of_the_first_page_s_version() -> None:
    server = server_with("a", "b", "c", page_size_max=1, streaming_refusal=failure(422, "Invalid"))
    async with watched(server) as seen:
        await server.asked(2)
        server.put("c")
        server.put("a")
        await seen.caught_up()
        assert {job.metadata.name: version(job) for job in seen.cache} == {"a": 15, "b": 12, "c": 14}
        assert watches(server)[-1] == "13"


# The API is not there, or does not let us


@scenario
async def test_an_api_that_is_not_served_counts_as_empty_until_it_appears() -> None:
    server = server_with("a", refusal=failure(404, "NotFound", "the server could not find the requested resource"))
    async with watched(server) as seen:
        await seen.cache.wait_synced()
        assert (seen.cache.is_unserved, len(seen.cache)) == (True, 0)
        assert isinstance(seen.cache.problem, Refused)
        await asyncio.sleep(10 * PROBE_SECONDS)
        assert len(server.requests) < 20
        server.refusal = None
        await asyncio.sleep(2 * PROBE_SECONDS)
        assert (seen.cache.is_unserved, seen.names, seen.cache.problem) == (False, ["a"], None)


@scenario
async def test_a_single_404_of_a_starting_server_empties_nothing() -> None:
    server = server_with("a")
    async with watched(server) as seen:
        await seen.cache.wait_synced()
        seen.new_changes()
        server.refusal = failure(404, "NotFound")
        server.drop()
        await server.asked(2)
        server.refusal = None
        await seen.caught_up()
        assert (seen.cache.is_unserved, seen.names, seen.new_changes()) == (False, ["a"], [])


@scenario
async def test_objects_of_an_api_that_is_taken_away_are_deleted() -> None:
    server = server_with("a")
    async with watched(server) as seen:
        await seen.cache.wait_synced()
        seen.new_changes()
        server.refusal = failure(404, "NotFound")
        server.drop()
        await asyncio.sleep(10)
        assert (seen.cache.is_unserved, seen.names, seen.new_changes()) == (True, [], [("a", 11, None)])
        server.refusal = None
        await asyncio.sleep(2 * PROBE_SECONDS)
        assert (seen.cache.is_unserved, seen.names, seen.new_changes()) == (False, ["a"], [("a", None, 11)])


def test_who_listens_is_told_once_when_an_api_goes_and_once_when_it_comes() -> None:
    async def main() -> None:
        server, told = server_with("a", "b"), list[tuple[bool, list[str]]]()
        async with watched(server, on_served=lambda: told.append((seen.cache.is_unserved, seen.names))) as seen:
            await seen.cache.wait_synced()
            server.refusal = failure(404, "NotFound")
            server.drop()
            await asyncio.sleep(10 * PROBE_SECONDS)
            assert told == [(True, [])]
            server.remove("b")
            server.refusal = None
            await asyncio.sleep(2 * PROBE_SECONDS)
            assert told == [(True, []), (False, ["a"])]

    run(main())


@pytest.mark.parametrize("between", [failure(403, "Forbidden"), Unavailable("connection refused")])
def test_two_404_that_are_not_in_a_row_empty_nothing(between: Any) -> None:
    """Each of two API servers that start anew, one after the other, may not know all of its resources yet."""

    async def main() -> None:
        server = server_with("a")
        async with watched(server) as seen:
            await seen.cache.wait_synced()
            seen.new_changes()
            server.drop()
            for refusal in (failure(404, "NotFound"), between, failure(404, "NotFound")):
                server.refusal = refusal
                await server.asked(len(server.requests) + 1)
            server.refusal = None
            await seen.caught_up()
            assert (seen.cache.is_unserved, seen.names, seen.new_changes()) == (False, ["a"], [])

    run(main())


@pytest.mark.parametrize("refusal", [failure(403, "Forbidden"), failure(401, "Unauthorized"), Unavailable("refused")])
def test_a_cache_that_may_not_or_cannot_list_keeps_trying_slower_and_slower(refusal: Any) -> None:
    async def main() -> None:
        server = server_with("a", refusal=refusal)
        async with watched(server) as seen:
            await asyncio.sleep(600)
            assert (seen.cache.is_synced, seen.cache.is_unserved) == (False, False)
            assert seen.cache.problem is not None
            assert 20 < len(server.requests) < 100
            server.refusal = None
            await seen.cache.wait_synced()
            assert (seen.names, seen.cache.problem) == (["a"], None)
            if not isinstance(refusal, Exception):
                assert set(watches(server)) == {"stream"}, "the way of listing is not what was refused"
            await asyncio.sleep(1)
            begun = len(server.requests)
            server.drop()
            await asyncio.sleep(1)
            assert watches(server)[begun:] == ["11"], "after a success the first pause is short again"

    run(main())


@scenario
async def test_a_server_that_is_overloaded_is_asked_when_it_wishes() -> None:
    server = server_with("a", refusal=Response(429, b"", {"retry-after": "20"}))
    async with watched(server) as seen:
        await asyncio.sleep(19)
        assert len(server.requests) == 1
        server.refusal = None
        await asyncio.sleep(2)
        assert (seen.cache.is_synced, len(server.requests)) == (True, 2)


# Bad events, bad listeners


@scenario
async def test_an_event_that_cannot_be_read_leaves_what_was_known() -> None:
    server = server_with("a", "b")
    async with watched(server) as seen:
        await seen.cache.wait_synced()
        bad = {"type": "MODIFIED", "object": {"metadata": {"namespace": "ns", "name": "a", "resourceVersion": "13"}}}
        bad["object"]["spec"] = {"parallelism": "x"}  # type: ignore[index]
        server.send_line(json.dumps(bad).encode())
        server.send_line(b"{" * 9)
        server.version = 13
        server.put("b")
        await seen.caught_up()
        assert {job.metadata.name: version(job) for job in seen.cache} == {"a": 11, "b": 14}
        assert watches(server) == ["stream"]
        server.send_line(json.dumps(bad | {"type": "DELETED"}).replace('"13"', '"15"').encode())
        await asyncio.sleep(0.01)
        assert seen.names == ["b"]


@pytest.mark.parametrize("streaming_refusal", [None, failure(422, "Invalid")])
def test_an_object_that_cannot_be_read_does_not_keep_the_others_out(streaming_refusal: Any) -> None:
    async def main() -> None:
        server = server_with("a", "b", streaming_refusal=streaming_refusal)
        server.objects["ns", "bad"] = {"metadata": {"namespace": "ns", "name": "bad", "labels": {}, "uid": 5}}
        async with watched(server) as seen:
            await seen.cache.wait_synced()
            assert seen.names == ["a", "b"]

    run(main())


def test_a_listener_that_fails_is_logged_and_the_cache_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def fail(old: Job | None, new: Job | None) -> None:
        raise LookupError("a bug")

    async def main() -> None:
        server = server_with("a", "b")
        seen = Watched(server)
        cache: Cache[Job] = Cache(Client(server, qps=0), JOBS, on_change=fail)
        task = asyncio.create_task(cache.run())
        await cache.wait_synced()
        assert len(cache) == 2
        assert seen.changes == []
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with caplog.at_level(logging.ERROR):
        run(main())
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [LookupError] * 2


def test_a_listener_to_the_api_that_fails_ends_no_cache(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        server = server_with("a", refusal=failure(404, "NotFound"))
        async with watched(server, on_served=lambda: 1 / 0) as seen:
            await seen.cache.wait_synced()
            await asyncio.sleep(1)
            server.refusal = None
            await asyncio.sleep(2 * PROBE_SECONDS)
            assert (seen.names, watches(server)[-1]) == (["a"], "stream")

    run(main())
    assert caplog.text.count("on_served failed resource=jobs.batch") == 2
    assert "cache failed" not in caplog.text


def test_a_problem_that_stays_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        server = server_with("a", refusal=failure(403, "Forbidden", "you may not"))
        async with watched(server) as seen:
            await asyncio.sleep(3600)
            server.refusal = Unavailable("connection refused")
            await asyncio.sleep(3600)
            server.refusal = None
            await seen.caught_up()
            server.refusal = failure(403, "Forbidden", "you may not")
            server.drop()
            await asyncio.sleep(3600)

    with caplog.at_level(logging.INFO):
        run(main())
    said = [record.getMessage().rpartition(": ")[2].rpartition("error=")[2] for record in caplog.records]
    assert said == ["you may not", "connection refused", "connection reset", "you may not"]


def test_an_object_that_an_index_fails_on_is_only_missing_there(caplog: pytest.LogCaptureFixture) -> None:
    def index(job: Job) -> list[str]:
        if job.metadata.name == "a":
            raise LookupError("a bug")
        return ["all"]

    async def main() -> None:
        async with watched(server_with("a", "b"), indexes={"x": index}) as seen:
            await seen.cache.wait_synced()
            assert seen.names == ["a", "b"]
            assert [job.metadata.name for job in seen.cache.by_index("x", "all")] == ["b"]
            seen.server.remove("a")
            await seen.caught_up()
            assert seen.names == ["b"]

    run(main())
    assert "index failed index=x object=ns/a" in caplog.text


def test_a_bug_of_the_cache_itself_is_logged_and_followed_by_a_new_list(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        server = server_with("a")
        async with watched(server) as seen:
            await seen.cache.wait_synced()
            with monkeypatch.context() as patched:
                patched.setattr(seen.cache._mirror, "told", lambda _: 1 / 0)
                server.put("b")
                await asyncio.sleep(0.1)
            await seen.caught_up()
            assert seen.names == ["a", "b"]
            assert watches(server) == ["stream", "stream"]

    run(main())
    assert "cache failed resource=jobs.batch" in caplog.text


# A server restored from a backup


@scenario
async def test_a_server_that_goes_back_in_time_is_listed_again() -> None:
    server = server_with("a", "b")
    async with watched(server) as seen:
        await seen.cache.wait_synced()
        backup, at = dict(server.objects), server.version
        for _ in range(5):
            server.put("a")
        server.put("c")
        await seen.caught_up()
        seen.new_changes()
        server.restore(backup, at)
        await seen.caught_up()
        assert watches(server) == ["stream", "18"]
        # The server waits for the version that we asked for, and says nothing. The silence is the sign.
        await asyncio.sleep(SILENCE_SECONDS_MAX)
        server.drop()
        await seen.caught_up()
        assert {job.metadata.name: version(job) for job in seen.cache} == {"a": 11, "b": 12}
        assert sorted(seen.new_changes(), key=str) == [("a", 17, 11), ("c", 18, None)]


@scenario
async def test_an_event_from_the_past_is_a_reason_to_list_again() -> None:
    server = server_with("a", "b")
    async with watched(server) as seen:
        await seen.cache.wait_synced()
        server.objects.pop(("ns", "b"))
        server.version = 5
        server.put("a")
        await seen.caught_up()
        assert {job.metadata.name: version(job) for job in seen.cache} == {"a": 6}
        assert watches(server) == ["stream", "stream"]


# Selectors and namespaces


@scenario
async def test_a_label_selector_adds_and_deletes_what_begins_and_ceases_to_match() -> None:
    server = WatchServer()
    server.put("in", x="1")
    server.put("out")
    async with watched(server, label_selector="x") as seen:
        await seen.cache.wait_synced()
        server.put("out", x="1")
        server.put("in")
        await seen.caught_up()
        assert seen.new_changes() == [("in", None, 11), ("out", None, 13), ("in", 11, None)]
        assert seen.names == ["out"]


@scenario
async def test_our_write_that_the_selector_does_not_match_goes_away_again() -> None:
    server = WatchServer()
    async with watched(server, label_selector="x") as seen:
        await seen.cache.wait_synced()
        seen.cache.wrote(msgspec.convert(server.put("a"), Job))
        assert seen.names == ["a"]
        await seen.caught_up()
        assert (seen.names, seen.new_changes()) == ([], [])


@scenario
async def test_a_cache_of_one_namespace() -> None:
    server = WatchServer()
    server.put("a", namespace="one")
    server.put("a", namespace="two")
    async with watched(server, namespace="one") as seen:
        await seen.cache.wait_synced()
        seen.cache.wrote(msgspec.convert(server.put("b", namespace="two"), Job))
        assert [(job.metadata.namespace, job.metadata.name) for job in seen.cache] == [("one", "a")]
        assert seen.new_changes() == [("a", None, 11)]


# Our own writes


@scenario
async def test_our_own_writes_are_seen_at_once_and_told_once() -> None:
    server = server_with("a")
    async with watched(server, indexes={"name": lambda job: [job.metadata.name]}) as seen:
        await seen.cache.wait_synced()
        seen.new_changes()
        server.allowed = 0
        seen.cache.wrote(msgspec.convert(server.put("b", owner="o"), Job))
        assert seen.names == ["a", "b"]
        assert [job.metadata.name for job in seen.cache.by_owner("ns", "o")] == ["b"]
        assert [job.metadata.name for job in seen.cache.by_index("name", "b")] == ["b"]
        seen.cache.deleted("ns", "a", "uid-11")
        server.remove("a")
        assert seen.names == ["b"]
        assert seen.new_changes() == []
        server.deliver(float("inf"))
        await seen.caught_up()
        assert seen.new_changes() == [("b", None, 12), ("a", 11, None)]
        assert seen.names == ["b"]


@scenario
async def test_our_write_survives_a_list_that_is_older() -> None:
    server = server_with("a")
    server.allowed = 0
    async with watched(server) as seen:
        await asyncio.sleep(1)  # the list is taken, and on its way
        seen.cache.wrote(msgspec.convert(server.put("b"), Job))
        server.deliver(2)  # the list, without the event of b
        await asyncio.sleep(1)
        assert seen.names == ["a", "b"]
        server.deliver(float("inf"))
        await seen.caught_up()
        assert (seen.names, seen.new_changes()) == (["a", "b"], [("a", None, 11), ("b", None, 12)])
