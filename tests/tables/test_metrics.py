"""The metrics: what is counted and when, what the page says, and who may read it.

The page is read with the parser of Prometheus' own library. The controller runs on a model API server; HTTPS is real,
on the loopback.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as families

from pyjobset.controller import certificate
from pyjobset.controller import metrics as table
from pyjobset.controller.manager import Manager
from pyjobset.controller.metrics import COMPLETED, DEADLINE_EXCEEDED, FAILED, GONE_SECONDS, Ends, Histogram, Reviews
from pyjobset.controller.metrics_access import (
    ACCESS_REVIEWS,
    ALLOWED_SECONDS,
    DENIED_SECONDS,
    REMEMBERED_MAX,
    TOKEN_REVIEWS,
    WAITING_MAX,
    Access,
)
from pyjobset.controller.metrics_page import Page, Sources
from pyjobset.controller.metrics_server import serving
from pyjobset.controller.options import Address, Metrics
from pyjobset.errors import OutcomeUnknown, Unavailable, UsageError
from pyjobset.kube.client import Client
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.localplane import certificates
from pyjobset.objects.jobset import JobSet, JobSetStatus
from pyjobset.objects.meta import Condition, Key, ObjectMeta
from pyjobset.simulation.clock import run
from tests.controller_world import controller, finish_jobs, manifest, new_manager, settled, until, world
from tests.model_server import ModelServer, failure

Samples = dict[str, float]
KEY = Key("ns", "js")
JS = '{jobset_name="js",namespace="ns"}'


def read(text: str) -> Samples:
    """Values by name and labels, written as in a query."""
    found: Samples = {}
    for family in families(text):
        for s in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(s.labels.items()))
            found[f"{s.name}{{{labels}}}" if labels else s.name] = s.value
    return found


def sources_of(manager: Manager) -> Sources:
    now = asyncio.get_running_loop().time
    answers = manager._client.answers
    counters, queue, caches, leads = manager.reconciler.counters, manager._queue, manager.caches, manager.leads
    return Sources(counters, queue, caches, Reviews(), answers, "server:6443", now, leads)


def page_of(manager: Manager) -> Samples:
    return read(Page(sources_of(manager)).render("")[0].decode())


# When an end is counted


def status(*conditions: tuple[str, str, str]) -> JobSetStatus:
    return JobSetStatus(conditions=tuple(Condition(type_, status, reason) for type_, status, reason in conditions))


def jobset(stored: JobSetStatus, uid: str = "u") -> JobSet:
    return JobSet(metadata=ObjectMeta(name="js", namespace="ns", uid=uid), status=stored)


RUNNING = status(("Suspended", "False", "ResumeJobs"), ("Failed", "False", ""))
DONE = status(("Completed", "True", "AllJobsCompleted"))
DEAD = status(("Failed", "True", "FailedJobs"))
LATE = status(("Suspended", "False", ""), ("Failed", "True", "DeadlineExceeded"))


def counted(ends: Ends) -> set[Any]:
    return {family for family, series in ends.series.items() if series == {KEY: 1}}


@pytest.mark.parametrize(
    ("before", "after", "families"),
    [
        (RUNNING, DONE, {COMPLETED}),
        (RUNNING, DEAD, {FAILED}),
        (RUNNING, LATE, {FAILED, DEADLINE_EXCEEDED}),
        (RUNNING, RUNNING, set()),
        (DONE, DONE, set()),
        (DEAD, LATE, set()),
    ],
)
def test_a_write_counts_what_it_ended(before: JobSetStatus, after: JobSetStatus, families: set[Any]) -> None:
    ends = Ends()
    ends.wrote(jobset(before), after)
    assert counted(ends) == families
    assert sum(ends.results.values()) == bool(families)


@pytest.mark.parametrize(
    ("seen", "families"),
    [
        (jobset(DEAD), {FAILED}),
        (jobset(RUNNING), set()),  # the write did not happen; the next one counts for itself
        (jobset(DEAD, uid="another"), set()),
    ],
)
def test_a_write_without_an_answer_counts_once_it_is_seen(seen: JobSet, families: set[Any]) -> None:
    ends = Ends()
    ends.perhaps_wrote(jobset(RUNNING), DEAD)
    assert counted(ends) == set()
    for _ in range(3):
        ends.seen(seen)
        assert counted(ends) == families


def test_series_of_a_deleted_jobset_stay_to_be_read_and_then_go() -> None:
    ends = Ends()
    ends.wrote(jobset(RUNNING), LATE)
    ends.gone(KEY, 0.0)
    ends.forget_old(GONE_SECONDS - 1)
    assert counted(ends) == {FAILED, DEADLINE_EXCEEDED}
    ends.forget_old(GONE_SECONDS)
    assert ends.series == {COMPLETED: {}, FAILED: {}, DEADLINE_EXCEEDED: {}}
    assert ends.results == {"completed": 0, "failed": 1}, "what has no name is kept"


def test_a_jobset_that_is_made_again_goes_on_counting() -> None:
    ends = Ends()
    ends.wrote(jobset(RUNNING), DONE)
    ends.gone(KEY, 0.0)
    ends.wrote(jobset(RUNNING, uid="v"), DONE)
    ends.forget_old(GONE_SECONDS * 2)
    assert ends.series[COMPLETED] == {KEY: 2}


def test_deleted_jobsets_that_nobody_reads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "GONE_MAX", 3)
    ends = Ends()
    for number in range(10):
        of = JobSet(metadata=ObjectMeta(name=f"js-{number}", namespace="ns", uid="u"))
        ends.wrote(of, DONE)
        ends.gone(Key("ns", f"js-{number}"), float(number))
    assert [key.name for key in ends.series[COMPLETED]] == ["js-7", "js-8", "js-9"]


def test_jobsets_that_did_not_end_leave_no_trace() -> None:
    ends = Ends()
    ends.wrote(jobset(RUNNING), RUNNING)
    ends.gone(KEY, 0.0)
    assert (ends._gone, ends._unsure) == ({}, {})


# The controller counts


@pytest.mark.decision(16)
def test_a_conflict_at_the_end_does_not_count_twice() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server) as manager:
            await settled(server)
            conflicts = [failure(409, "Conflict", "modified"), failure(409, "Conflict", "modified")]

            def refuse(request: Request, plural: str) -> Response | None:
                is_end = request.path.endswith("/status") and b"Completed" in request.body
                if is_end:
                    assert COMPLETED_JS not in page_of(manager), "counted before it was stored"
                return conflicts.pop() if is_end and conflicts else None

            server.before = refuse
            finish_jobs(server)
            await settled(server)
            assert conflicts == []
            samples = page_of(manager)
            assert samples[COMPLETED_JS] == 1
            assert samples['pyjobset_jobset_ends_total{result="completed"}'] == 1
            assert samples['controller_runtime_reconcile_errors_total{controller="jobset"}'] == 2
            assert samples['controller_runtime_reconcile_total{controller="jobset",result="error"}'] == 2

    world(case)


COMPLETED_JS = f"jobset_completed_total{JS}"


def test_a_lost_answer_at_the_end_counts_once() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server) as manager:
            await settled(server)
            lost: list[bytes] = []

            def lose(request: Request, plural: str) -> Exception | None:
                if request.path.endswith("/status") and b"Completed" in request.body and not lost:
                    lost.append(request.body)
                    return OutcomeUnknown("no answer")
                return None

            server.after = lose
            finish_jobs(server)
            await settled(server, 30)
            assert lost
            assert page_of(manager)[COMPLETED_JS] == 1

    world(case)


def test_a_jobset_that_had_ended_before_the_start_is_not_counted() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server):
            await settled(server)
            finish_jobs(server)
            await settled(server)
        async with controller(server) as second:
            await settled(server)
            assert COMPLETED_JS not in page_of(second)

    world(case)


def test_runs_queue_and_caches() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server) as manager:
            await settled(server)
            server.drop_watches()
            await until(lambda: manager.caches.jobs.watches == 2)
            await settled(server)
            server.model.bookmark()
            await settled(server)
            samples = page_of(manager)
            runs = samples['controller_runtime_reconcile_time_seconds_count{controller="jobset"}']
            results = ("success", "requeue_after", "error")
            by_result = [
                samples[f'controller_runtime_reconcile_total{{controller="jobset",result="{r}"}}'] for r in results
            ]
            assert runs == sum(by_result) >= 2
            assert by_result[0] >= 1
            assert by_result[1] >= 1
            assert by_result[2] == 0
            assert samples['workqueue_depth{name="jobset"}'] == 0
            taken = samples['workqueue_queue_duration_seconds_count{name="jobset"}']
            assert samples['workqueue_adds_total{name="jobset"}'] == taken >= runs
            assert samples['pyjobset_cache_objects{resource="jobs"}'] == 2
            assert samples['pyjobset_cache_following{resource="jobs"}'] == 1
            server.remove("jobsets", "js")
            await settled(server)
            assert page_of(manager)['pyjobset_cache_objects{resource="jobs"}'] == 0

    world(case)


def test_a_cache_that_cannot_follow_says_so() -> None:
    async def case(server: ModelServer) -> None:
        server.put("jobsets", manifest())
        async with controller(server) as manager:
            following = 'pyjobset_cache_following{resource="jobs"}'
            assert page_of(manager)[following] == 1
            server.unserved.add("jobs")
            server.drop_watches()
            await until(lambda: manager.caches.jobs.problem)
            assert page_of(manager)[following] == 0
            await until(lambda: manager.caches.jobs.is_unserved)
            assert page_of(manager)[following] == 1, "that there are none is known"

    world(case)


# The page


def test_the_page_has_every_metric_and_no_other() -> None:
    async def case() -> tuple[str, str, str]:
        async with Client(ModelServer()) as client:
            client.answers["GET", 200] += 3
            client.answers["POST", 0] += 1
            sources = sources_of(new_manager(client))
            sources.reviews.judged("/validate", "denied", 0.002)
            sources.counters.ends.wrote(jobset(RUNNING), LATE)
            page = Page(sources)
            old, new = page.render(""), page.render("application/openmetrics-text; version=1.0.0")
            assert "openmetrics" in new[1]
            return old[0].decode(), old[1], new[0].decode()

    text, content_type, open_text = run(case())
    assert content_type.startswith("text/plain; version=0.0.4")
    assert list(open_families(open_text))
    found = {f.name: f for f in families(text) if not f.name.startswith("process_")}
    names = {f.name.removesuffix("_total") if f.kind == "counter" else f.name: f for f in table.FAMILIES}
    assert found.keys() == names.keys()
    for name, family in names.items():
        assert (found[name].type, found[name].documentation) == (family.kind, family.help)
        for s in found[name].samples:
            assert set(s.labels) - {"le"} == set(family.labels), s
    samples = read(text)
    assert samples['rest_client_requests_total{code="200",host="server:6443",method="GET"}'] == 3
    assert samples['rest_client_requests_total{code="<error>",host="server:6443",method="POST"}'] == 1
    assert samples[f"jobset_active_deadline_exceeded_total{JS}"] == samples[f"jobset_failed_total{JS}"] == 1
    assert samples['pyjobset_webhook_reviews_total{verdict="denied",webhook="/validate"}'] == 1
    assert samples['controller_runtime_webhook_latency_seconds_bucket{le="0.001",webhook="/validate"}'] == 0
    assert samples['controller_runtime_webhook_latency_seconds_bucket{le="0.0025",webhook="/validate"}'] == 1
    assert samples['controller_runtime_webhook_latency_seconds_bucket{le="+Inf",webhook="/validate"}'] == 1
    assert samples['pyjobset_cache_following{resource="jobs"}'] == 0, "not listed yet"
    assert samples["process_resident_memory_bytes"] > 1e6


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0.0, 0), (0.001, 0), (0.0011, 1), (60.0, len(table.BOUNDS_SECONDS) - 1), (61.0, -1)]
)
def test_buckets_include_their_bound(seconds: float, bucket: int) -> None:
    histogram = Histogram()
    histogram.observe(seconds)
    expected = [0] * (len(table.BOUNDS_SECONDS) + 1)
    expected[bucket] = 1
    assert (histogram.counts, histogram.sum) == (expected, seconds)


# Who may read


class ApiServer:
    """Answers the two reviews. A token is a user's name; `bad` is none, `reader...` may read."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.fault: Response | Exception | None = None
        self.gate: asyncio.Event | None = None

    async def send(self, request: Request) -> Response:
        spec = json.loads(request.body)["spec"]
        self.asked.append((request.path, spec))
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.fault, Exception):
            raise self.fault
        if self.fault is not None:
            return self.fault
        if request.path == TOKEN_REVIEWS:
            user = {"username": spec["token"], "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}}
            answer = (
                {"authenticated": False} if spec["token"].startswith("bad") else {"authenticated": True, "user": user}
            )
        else:
            answer = {"allowed": spec["user"].startswith("reader")}
        return Response(201, json.dumps({"status": answer}).encode())

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise AssertionError(request)

    async def close(self) -> None: ...


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def asking(case: Callable[[Access, ApiServer, Clock], Awaitable[None]]) -> None:
    async def main() -> None:
        server, clock = ApiServer(), Clock()
        async with Client(server) as client:
            await case(Access(client, clock), server, clock)

    run(main())


async def code(access: Access, authorization: str) -> int:
    denial = await access.denial(authorization)
    return 200 if denial is None else denial.code


@pytest.mark.parametrize(
    ("authorization", "expected", "requests"),
    [
        ("", 401, 0),
        ("Bearer", 401, 0),
        ("Bearer  ", 401, 0),
        ("Basic cmVhZGVyOg==", 401, 0),
        ("Bearer bad", 401, 1),
        ("Bearer writer", 403, 2),
        ("Bearer reader", 200, 2),
        ("bearer reader", 200, 2),
        ("Bearer reader\udcff", 401, 0),  # no text that the API server could be sent
    ],
)
def test_tokens(authorization: str, expected: int, requests: int) -> None:
    async def case(access: Access, server: ApiServer, clock: Clock) -> None:
        assert await code(access, authorization) == expected
        assert len(server.asked) == requests

    asking(case)


def test_what_the_api_server_is_asked() -> None:
    async def case(access: Access, server: ApiServer, clock: Clock) -> None:
        await access.denial("Bearer reader")
        attributes = {"path": "/metrics", "verb": "get"}
        user = {"user": "reader", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}}
        assert server.asked == [
            (TOKEN_REVIEWS, {"token": "reader"}),
            (ACCESS_REVIEWS, user | {"nonResourceAttributes": attributes}),
        ]

    asking(case)


@pytest.mark.parametrize(("token", "seconds"), [("reader", ALLOWED_SECONDS), ("writer", DENIED_SECONDS)])
def test_an_answer_holds_for_a_while(token: str, seconds: float) -> None:
    async def case(access: Access, server: ApiServer, clock: Clock) -> None:
        first = await code(access, f"Bearer {token}")
        clock.now = seconds - 1
        assert await code(access, f"Bearer {token}") == first
        assert len(server.asked) == 2
        clock.now = seconds
        await access.denial(f"Bearer {token}")
        assert len(server.asked) == 4

    asking(case)


@pytest.mark.parametrize(
    "fault",
    [
        failure(403, "Forbidden", "tokenreviews is forbidden"),
        failure(500, "InternalError", "etcd"),
        Response(201, b"no JSON"),
        Response(201, b'{"status": {"authenticated": "yes"}}'),
        Unavailable("no connection"),
        OutcomeUnknown("no answer"),
    ],
)
def test_without_an_answer_nobody_may_read_and_nothing_is_remembered(
    fault: Response | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def case(access: Access, server: ApiServer, clock: Clock) -> None:
        server.fault = fault
        assert [await code(access, "Bearer reader") for _ in range(3)] == [503] * 3
        assert len(caplog.records) == 1, "said once"
        assert "reader" not in caplog.text, "no token in the log"
        server.fault = None
        assert await code(access, "Bearer reader") == 200

    asking(case)


def test_a_flood_asks_one_at_a_time_and_few_wait() -> None:
    async def case(access: Access, server: ApiServer, clock: Clock) -> None:
        server.gate = asyncio.Event()
        codes = [asyncio.create_task(code(access, f"Bearer bad{n}")) for n in range(WAITING_MAX + 5)]
        await asyncio.sleep(0.1)
        assert len(server.asked) == 1
        assert sum(task.done() for task in codes) == 5
        server.gate.set()
        assert sorted(await asyncio.gather(*codes)) == [401] * WAITING_MAX + [503] * 5

    asking(case)


def test_an_api_server_that_does_not_answer_is_not_waited_for() -> None:
    async def case(access: Access, server: ApiServer, clock: Clock) -> None:
        server.gate = asyncio.Event()
        assert await code(access, "Bearer reader") == 503
        server.gate.set()
        assert await code(access, "Bearer reader") == 200

    asking(case)


def test_guessed_tokens_do_not_push_out_a_right_one() -> None:
    async def case(access: Access, server: ApiServer, clock: Clock) -> None:
        await access.denial("Bearer reader")
        for number in range(REMEMBERED_MAX * 2):
            await access.denial(f"Bearer bad{number}")
        asked = len(server.asked)
        assert await code(access, "Bearer reader") == 200
        assert len(server.asked) == asked
        assert len(access._remembered) == REMEMBERED_MAX
        assert all(b"reader" not in digest for digest in access._remembered)

    asking(case)


# Over the wire


class Reader:
    """One HTTP client of a served page."""

    def __init__(self, port: int, tls: ssl.SSLContext | None) -> None:
        self.port = port
        self.tls = tls
        self.version: str | None = None

    async def get(self, path: str = "/metrics", *headers: str, method: str = "GET") -> tuple[int, str, bytes]:
        """Status, head and body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.tls)
        try:
            if self.tls is not None:
                self.version = writer.get_extra_info("ssl_object").version()
            lines = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", *headers, "", ""]
            writer.write("\r\n".join(lines).encode())
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        return int(head.split()[1]), head.decode(), body


def served(options: Metrics, case: Callable[[Reader, ApiServer], Awaitable[None]], tls: ssl.SSLContext | None) -> None:
    async def main() -> None:
        server = ApiServer()
        async with Client(server) as client, serving(options, sources_of(new_manager(client)), client) as port:
            await case(Reader(port, tls), server)

    asyncio.run(main())


def trusting_anything() -> ssl.SSLContext:
    made = ssl.create_default_context()
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.set_alpn_protocols(["h2", "http/1.1"])
    return made


HERE = Address("127.0.0.1", 0)


def test_over_https_only_who_may_gets_the_page() -> None:
    async def case(reader: Reader, server: ApiServer) -> None:
        refused, head, body = await reader.get()
        assert (refused, body) == (401, b"Send a bearer token: Authorization: Bearer TOKEN\n")
        assert "WWW-Authenticate: Bearer" in head
        assert b"jobset_" not in body
        assert (await reader.get("/metrics", "Authorization: Bearer writer"))[::2] == (
            403,
            b"User 'writer' may not get /metrics: a ClusterRole with this nonResourceURL allows it\n",
        )
        status, head, body = await reader.get("/metrics", "Authorization: Bearer reader")
        assert (status, b"# TYPE jobset_failed_total counter" in body) == (200, True)
        assert "Content-Type: text/plain; version=0.0.4" in head
        assert reader.version == "TLSv1.3"
        for path in ("/", "/healthz", "/metrics/x"):
            assert (await reader.get(path, "Authorization: Bearer reader"))[0] == 404
        assert (await reader.get("/metrics", "Authorization: Bearer reader", method="POST"))[0] == 405
        server.fault = Unavailable("secret address")
        status, _, body = await reader.get("/metrics", "Authorization: Bearer reader2")
        assert (status, b"secret" in body) == (503, False)

    served(Metrics(HERE), case, trusting_anything())


def test_its_own_certificate_is_made_once_when_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    plain = certificate._self_signed
    monkeypatch.setattr(certificate, "_self_signed", lambda now: made.append(plain(now)) or made[-1])

    async def case(reader: Reader, server: ApiServer) -> None:
        assert made == []
        assert [(await reader.get())[0] for _ in range(2)] == [401, 401]
        assert len(made) == 1

    served(Metrics(HERE), case, trusting_anything())


def test_a_page_is_compressed_for_who_asks() -> None:
    async def case(reader: Reader, server: ApiServer) -> None:
        _, head, body = await reader.get("/metrics", "Accept-Encoding: gzip")
        assert ("Content-Encoding: gzip" in head, body[:2]) == (True, b"\x1f\x8b")

    served(Metrics(HERE, is_secure=False), case, None)


def test_on_a_laptop_it_is_plain_and_asks_nobody() -> None:
    async def case(reader: Reader, server: ApiServer) -> None:
        assert (await reader.get())[0] == 200
        assert server.asked == []

    served(Metrics(HERE, is_secure=False), case, None)


def test_with_certificates_they_serve(tmp_path: Path) -> None:
    certificates.ensure(tmp_path)
    trusting = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT

    async def case(reader: Reader, server: ApiServer) -> None:
        assert (await reader.get())[0] == 401

    served(Metrics(HERE, tmp_path / "webhook"), case, trusting)


def test_old_tls_is_refused() -> None:
    old = trusting_anything()
    old.maximum_version = ssl.TLSVersion.MINIMUM_SUPPORTED

    async def case(reader: Reader, server: ApiServer) -> None:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await reader.get()

    served(Metrics(HERE), case, old)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Metrics(HERE, Path("/nowhere")), "metrics.certDir /nowhere"),
        (Metrics(Address("192.0.2.1", 1)), "--metrics-bind-address 192.0.2.1:1"),
    ],
)
def test_what_cannot_be_served_is_told(options: Metrics, said: str) -> None:
    async def case(reader: Reader, server: ApiServer) -> None:
        raise AssertionError

    with pytest.raises(UsageError, match=said):
        served(options, case, None)


def test_the_library_is_not_loaded_by_a_manager_that_serves_nothing() -> None:
    import subprocess
    import sys

    code = "import sys, pyjobset.controller.manager; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
