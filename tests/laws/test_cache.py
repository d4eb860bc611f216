"""Whatever happens between the API server and the cache, the cache ends as the server is and tells every step once."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pyjobset.kube.cache import Cache
from pyjobset.kube.client import Client
from pyjobset.objects.batch import Job
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import JOBS
from pyjobset.simulation.clock import run
from tests.watch_server import Name, WatchServer, failure

NAMES = ("a", "b")
ATTEMPTS = "012"
OWNERS = ("", "owner-1", "owner-2")


def key_of(obj: Job) -> Name:
    return obj.metadata.namespace, obj.metadata.name


def uid(obj: Job) -> str:
    return obj.metadata.uid


def version(obj: Job) -> int:
    return int(obj.metadata.resource_version)


def job(obj: Manifest) -> Job:
    return msgspec.convert(obj, Job)


class World:
    """A server, a cache of it, and a reader that believes only `on_change`."""

    def __init__(self) -> None:
        self.server = WatchServer()
        self.replayed: dict[Name, Job] = {}
        self.answers: list[Callable[[], None]] = []
        """Answers to our own writes that are still on their way to the cache."""
        self.faults: list[tuple[Job | None, Job | None]] = []
        self.ours: dict[Name, dict[int, Job | None]] = {}
        """What our own answered writes made of an object, by version; None: deleted."""
        self.cache: Cache[Job] = Cache(
            Client(self.server, qps=0), JOBS, on_change=self.on_change, indexes={"attempt": attempts}
        )

    def on_change(self, old: Job | None, new: Job | None) -> None:
        one = old or new
        assert one is not None
        key = key_of(one)
        is_sequel = old == self.replayed.get(key)
        is_step = old is None or new is None or (uid(old) == uid(new) and version(old) != version(new))
        if not (is_sequel and is_step):
            self.faults.append((old, new))  # not raised: the cache logs what on_change raises, and goes on
        if new is None:
            del self.replayed[key]
        else:
            self.replayed[key] = new

    def wrote(self, obj: Job) -> None:
        self.ours.setdefault(key_of(obj), {})[version(obj)] = obj
        self.cache.wrote(obj)

    def deleted(self, gone: Job) -> None:
        shown = self.cache.get(*key_of(gone))
        # Who deletes has seen the object: what the cache does not show cannot be hidden.
        if shown is not None and uid(shown) == uid(gone):
            self.ours.setdefault(key_of(gone), {})[version(gone)] = None
        self.cache.deleted(*key_of(gone), uid(gone))

    def check(self) -> None:
        assert self.faults == []
        shown = {key_of(obj): obj for obj in self.cache}
        assert len(self.cache) == len(shown)
        for owner in OWNERS[1:]:
            for namespace in {key[0] for key in shown}:
                expected = {
                    key
                    for key, o in shown.items()
                    if key[0] == namespace and owner in {r.uid for r in o.metadata.owner_references}
                }
                assert {key_of(obj) for obj in self.cache.by_owner(namespace, owner)} == expected
        for value in ATTEMPTS:
            expected = {key for key, o in shown.items() if o.metadata.labels.restart_attempt == value}
            assert {key_of(obj) for obj in self.cache.by_index("attempt", value)} == expected
        if self.cache._is_listed and not self.cache._is_listing:
            told = self.cache._mirror.version
            assert self.replayed == {key: job(obj) for key, obj in self.server.past[told].items()}
            assert shown == self.expected(told)

    def expected(self, told: int) -> dict[Name, Job]:
        """What was told, and on top of it those of our own writes that are newer."""
        objects = dict(self.replayed)
        for key, writes in self.ours.items():
            newest = max(writes)
            obj = writes[newest]
            if newest > told and obj is not None:
                objects[key] = obj
            elif newest > told:
                objects.pop(key, None)
        return objects


def attempts(obj: Job) -> list[str]:
    return [obj.metadata.labels.restart_attempt]


ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
names, owners, attempt = st.sampled_from(NAMES), st.sampled_from(OWNERS), st.sampled_from(ATTEMPTS)
whose = st.sampled_from(["theirs", "ours", "ours, answered"])
Step = tuple[Any, ...]
writes = st.one_of(
    st.tuples(st.just("put"), names, owners, attempt, whose),
    st.tuples(st.just("replace"), names, attempt, whose),
    st.tuples(st.just("remove"), names, whose),
    st.tuples(st.just("answer"), st.integers(0, 2)),
)
arrivals = st.one_of(
    st.tuples(st.just("deliver"), st.integers(1, 5)),
    st.tuples(st.sampled_from(["hold", "flow", "tick", "bookmark"])),
)
troubles = st.one_of(
    st.tuples(st.sampled_from(["drop", "finish", "forget"])),
    st.tuples(st.sampled_from(["down", "up", "unserved", "no streaming", "streaming"])),
    st.tuples(st.just("wait"), st.sampled_from([0.01, 0.5, 5.0])),
)
steps = st.one_of(writes, writes, arrivals, troubles)


async def take(world: World, step: Step) -> None:
    server = world.server
    match step:
        case "put" | "replace", name, *owner, value, whose:
            new_uid = "" if owner else f"new-{server.version}"
            obj = job(server.put(name, owner="".join(owner), uid=new_uid, **{ATTEMPT: value}))
            if whose != "theirs":
                world.answers.append(lambda: world.wrote(obj))
            if whose == "ours, answered":
                world.answers.pop()()
        case "remove", name, whose:
            if ("ns", name) in server.objects:
                gone = job(server.remove(name))
                if whose != "theirs":
                    world.answers.append(lambda: world.deleted(gone))
                if whose == "ours, answered":
                    world.answers.pop()()
        case "answer", which:
            if world.answers:
                world.answers.pop(min(which, len(world.answers) - 1))()
        case "deliver", count:
            server.deliver(count)
        case "wait", seconds:
            await asyncio.sleep(seconds)
        case ("hold",):
            server.allowed = 0.0
        case ("flow",):
            server.deliver(float("inf"))
        case ("no streaming",):
            server.streaming_refusal = failure(422, "Invalid", "sendInitialEvents is forbidden")
        case ("streaming",):
            server.streaming_refusal = None
        case ("down",):
            server.refusal = failure(503, "ServiceUnavailable")
            server.drop()
        case ("unserved",):
            server.refusal = failure(404, "NotFound", "the server could not find the requested resource")
        case ("up",):
            server.refusal = None
        case (simple,):
            getattr(server, simple)()
    await asyncio.sleep(0.001)


async def live(script: list[Step], *, is_synced: bool) -> None:
    world = World()
    server = world.server
    server.put("a", **{ATTEMPT: "0"})
    server.page_size_max = 2
    task = asyncio.create_task(world.cache.run())
    try:
        if is_synced:
            await world.cache.wait_synced()
        server.allowed = 0.0
        for step in script:
            await take(world, step)
            world.check()
        while world.answers:
            world.answers.pop(0)()
        server.refusal = None
        server.deliver(float("inf"))
        await settle(world)
        expected = {key: job(obj) for key, obj in server.objects.items()}
        assert {key_of(obj): obj for obj in world.cache} == expected
        assert world.replayed == expected
        assert world.cache.is_synced
        assert not world.cache.is_unserved
        world.check()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def settle(world: World) -> None:
    """Until the cache has heard the newest version, with the bookmarks of a quiet server once a minute."""
    for _ in range(30):
        await asyncio.sleep(60)
        world.server.bookmark()
        await asyncio.sleep(1)


@settings(max_examples=250, deadline=None)
@given(st.lists(steps, min_size=10, max_size=40), st.booleans())
def test_the_cache_converges_and_tells_every_step_once(script: list[Step], is_synced: bool) -> None:
    run(live(script, is_synced=is_synced))
