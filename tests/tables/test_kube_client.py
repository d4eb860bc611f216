"""The client over a scripted transport: what it sends, what it repeats, and what it must not repeat."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from pyjobset.errors import NotFound, OutcomeUnknown, Raced, Refused, Unavailable
from pyjobset.kube.client import ATTEMPTS_MAX, AlreadyExists, Client
from pyjobset.kube.events import Bookmark, WatchEvent
from pyjobset.kube.limiter import RateLimiter
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.objects.batch import ChildMeta, Job
from pyjobset.objects.resources import JOBS, SERVICES
from pyjobset.simulation.clock import run

JOB = {"kind": "Job", "metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7"}}
STATUS = {"kind": "Status", "status": "Success"}
Answer = Response | Exception


class Scripted:
    """A transport that gives the answers it was told, and keeps what it was sent, with the time."""

    def __init__(self, *answers: Answer, lines: list[bytes] | None = None) -> None:
        self.answers = deque(answers)
        self.sent: list[Request] = []
        self.times: list[float] = []
        self.lines = lines or []
        self.is_closed = False

    async def send(self, request: Request) -> Response:
        self.sent.append(request)
        self.times.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0)
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        self.sent.append(request)

        async def read() -> AsyncIterator[bytes]:
            for line in self.lines:
                yield line

        yield read()

    async def close(self) -> None:
        self.is_closed = True


def answer(body: Any, code: int = 200, **headers: str) -> Response:
    return Response(code, json.dumps(body).encode(), headers)


def failure(code: int, reason: str = "", name: str = "a", **headers: str) -> Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": reason, "details": {"name": name}}
    return answer(body, code, **headers)


def call(transport: Scripted, act: Callable[[Client], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with Client(transport, qps=0) as client:
            return await act(client)

    return run(main())


def get(client: Client) -> Awaitable[Job]:
    return client.get(JOBS, "ns", "a")


def create(client: Client) -> Awaitable[Job]:
    return client.create(JOBS, "ns", JOB)


def patch(client: Client) -> Awaitable[Job]:
    return client.patch(JOBS, "ns", "a", {}, kind="merge")


def delete(client: Client) -> Awaitable[Job | None]:
    return client.delete(JOBS, "ns", "a", uid="u")


@pytest.mark.parametrize(
    ("act", "code", "line"),
    [
        (get, 200, "GET /apis/batch/v1/namespaces/ns/jobs/a"),
        (create, 201, "POST /apis/batch/v1/namespaces/ns/jobs?fieldManager=jobset"),
        (patch, 200, "PATCH /apis/batch/v1/namespaces/ns/jobs/a?fieldManager=jobset"),
    ],
)
def test_a_verb_sends_one_request_and_returns_the_object(act: Any, code: int, line: str) -> None:
    transport = Scripted(answer(JOB, code))
    assert call(transport, act) == Job(ChildMeta(name="a", namespace="ns", uid="u", resource_version="7"))
    assert [f"{sent.method} {sent.target}" for sent in transport.sent] == [line]
    assert transport.is_closed


@pytest.mark.parametrize(
    ("body", "is_there"),
    [
        pytest.param(STATUS, False, id="a Status: gone"),
        pytest.param(JOB, False, id="the last state of what is gone"),
        pytest.param(
            {"metadata": JOB["metadata"] | {"deletionTimestamp": "2026-11-30T00:00:00Z"}},
            True,
            id="waits for finalizers",
        ),
    ],
)
def test_delete_tells_whether_the_object_still_is_there(body: Any, is_there: bool) -> None:
    deleted = call(Scripted(answer(body)), delete)
    assert (deleted is not None) == is_there


@pytest.mark.parametrize(
    ("act", "response", "error"),
    [
        (get, failure(404, "NotFound"), NotFound),
        (delete, failure(404, "NotFound"), Raced),
        (create, failure(409, "AlreadyExists"), AlreadyExists),
        (create, failure(403, "Forbidden"), Refused),
        (create, failure(503), Unavailable),
        (create, Unavailable("refused"), Unavailable),
        (create, OutcomeUnknown("reset"), OutcomeUnknown),
        (delete, OutcomeUnknown("reset"), OutcomeUnknown),
        (patch, failure(500), Unavailable),
    ],
)
def test_what_is_sent_only_once(act: Any, response: Answer, error: type[Exception]) -> None:
    transport = Scripted(response, answer(JOB))
    with pytest.raises(error) as raised:
        call(transport, act)
    assert type(raised.value) is error
    assert len(transport.sent) == 1


@pytest.mark.parametrize(
    ("act", "response"),
    [
        (get, Unavailable("refused")),
        (get, failure(503)),
        (get, failure(500)),
        (get, failure(504)),
        (get, failure(429)),
        (create, failure(429)),
        (patch, failure(429)),
        (delete, failure(429)),
    ],
)
def test_what_is_sent_again(act: Any, response: Answer) -> None:
    transport = Scripted(response, answer(JOB))
    call(transport, act)
    assert len(transport.sent) == 2
    assert transport.sent[0] == transport.sent[1]
    assert transport.times[1] > transport.times[0]


@pytest.mark.parametrize("response", [failure(429), failure(503), Unavailable("refused")])
def test_repeating_ends(response: Answer) -> None:
    transport = Scripted(*[response] * 99)
    with pytest.raises(Unavailable):
        call(transport, get)
    assert len(transport.sent) == ATTEMPTS_MAX


def test_the_pauses_grow() -> None:
    transport = Scripted(failure(503), failure(503), failure(503), answer(JOB))
    call(transport, get)
    pauses = [later - earlier for earlier, later in zip(transport.times, transport.times[1:], strict=False)]
    assert 0.1 <= pauses[0] < pauses[2] < 1.0


@pytest.mark.parametrize("act", [get, create])
def test_the_server_s_wish_is_granted(act: Any) -> None:
    transport = Scripted(Response(429, b"", {"retry-after": "7"}), answer(JOB))
    call(transport, act)
    assert transport.times[1] - transport.times[0] == pytest.approx(7.0)


def test_the_last_refusal_carries_the_server_s_wish() -> None:
    with pytest.raises(Unavailable) as raised:
        call(Scripted(*[Response(429, b"", {"retry-after": "3"})] * ATTEMPTS_MAX), create)
    assert raised.value.retry_after_seconds == 3.0


def page(*names: str, token: str = "") -> Response:
    items = [{"metadata": {"name": name}} for name in names]
    return answer({"metadata": {"resourceVersion": "9", "continue": token}, "items": items or None})


def test_a_list_reads_all_pages() -> None:
    transport = Scripted(page("a", "b", token="t/1"), page("c", token="t2"), page())
    jobs = call(transport, lambda client: client.list(JOBS, "ns", label_selector="x=y", page_size=2))
    assert [job.metadata.name for job in jobs] == ["a", "b", "c"]
    same = "/apis/batch/v1/namespaces/ns/jobs?labelSelector=x%3Dy&limit=2"
    assert [sent.target for sent in transport.sent] == [same, same + "&continue=t%2F1", same + "&continue=t2"]


def test_a_list_with_an_item_that_cannot_be_read_is_refused_and_not_cut_short() -> None:
    bad = answer({"metadata": {}, "items": [{"metadata": {"name": "a"}}, {"metadata": 5}]})
    with pytest.raises(Refused, match="readable Job"):
        call(Scripted(bad), lambda client: client.list(JOBS))


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (answer({"resources": [{"name": "jobs"}, {"name": "cronjobs"}]}), True),
        (answer({"resources": [{"name": "cronjobs"}]}), False),
        (Response(404, b"404 page not found"), False),
    ],
)
def test_serves(response: Response, expected: bool) -> None:
    transport = Scripted(response)
    assert call(transport, lambda client: client.serves("batch/v1", "jobs")) is expected
    assert transport.sent[0].target == "/apis/batch/v1"


def test_serves_of_the_core_group_and_without_rights() -> None:
    transport = Scripted(failure(403, "Forbidden"))
    with pytest.raises(Refused):
        call(transport, lambda client: client.serves("v1", "pods"))
    assert transport.sent[0].target == "/api/v1"


def test_raw() -> None:
    transport = Scripted(Response(200, b"ok"))
    body = call(transport, lambda client: client.raw("post", "/livez?verbose=1&x", b"{}", "text/plain"))
    sent = transport.sent[0]
    assert (body, sent.method, sent.target, sent.body, sent.content_type) == (
        b"ok",
        "POST",
        "/livez?verbose=1&x",
        b"{}",
        "text/plain",
    )


def test_watch_yields_changes_and_bookmarks() -> None:
    lines = [
        json.dumps({"type": "ADDED", "object": {"metadata": {"name": "s"}}}).encode(),
        b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}',
    ]
    transport = Scripted(lines=lines)

    async def act(client: Client) -> list[Any]:
        async with aclosing(client.watch(SERVICES, "ns", resource_version="5")) as events:
            return [event async for event in events]

    added, bookmark = call(transport, act)
    assert isinstance(added, WatchEvent)
    assert (added.object.metadata.name, bookmark) == ("s", Bookmark("9"))
    assert transport.sent[0].path == "/api/v1/namespaces/ns/services"
    assert "resourceVersion=5" in transport.sent[0].query


# The rate limiter


@pytest.mark.parametrize(
    ("qps", "burst", "at", "waits"),
    [
        pytest.param(10, 2, [0, 0, 0, 0], [0, 0, 0.1, 0.2], id="the burst, then one by one"),
        pytest.param(10, 2, [0, 0, 9, 9, 9], [0, 0, 0, 0, 0.1], id="rest fills the bucket, not more"),
        pytest.param(10, 1, [0, 0.05, 0.2], [0, 0.05, 0], id="part of a token"),
        pytest.param(0, 1, [0, 0, 0], [0, 0, 0], id="no limit"),
        pytest.param(10, 0, [0, 0], [0, 0.1], id="a burst of at least one"),
    ],
)
def test_a_token_bucket(qps: float, burst: int, at: list[float], waits: list[float]) -> None:
    limiter = RateLimiter(qps, burst)
    assert [limiter.take(now) for now in at] == pytest.approx(waits)


def test_many_calls_start_at_the_allowed_rate_in_their_order() -> None:
    transport = Scripted(*[answer(JOB)] * 25)

    async def main() -> None:
        client = Client(transport, qps=10, burst=5)
        await asyncio.gather(*(client.get(JOBS, "ns", f"n{index}") for index in range(25)))

    run(main())
    assert transport.times == pytest.approx([0.0] * 5 + [index / 10 for index in range(1, 21)])
    assert [sent.subject for sent in transport.sent] == [f"jobs.batch ns/n{index}" for index in range(25)]


def test_a_watch_does_not_wait_behind_a_burst_of_calls() -> None:
    transport = Scripted(answer(JOB), lines=[b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}'])

    async def main() -> float:
        client = Client(transport, qps=0.01, burst=1)
        await client.get(JOBS, "ns", "a")
        assert [event async for event in client.watch(JOBS)] == [Bookmark("9")]
        return asyncio.get_running_loop().time()

    assert run(main()) == 0.0


def test_a_call_that_is_cancelled_while_it_waits_gives_its_token_back() -> None:
    transport = Scripted(*[answer(JOB)] * 2)

    async def main() -> None:
        client = Client(transport, qps=1, burst=1)
        await client.get(JOBS, "ns", "a")
        waiting = asyncio.create_task(asyncio.wait_for(client.get(JOBS, "ns", "b"), 0.5))
        with pytest.raises(TimeoutError):
            await waiting
        await client.get(JOBS, "ns", "c")

    run(main())
    assert transport.times == pytest.approx([0.0, 1.0])
