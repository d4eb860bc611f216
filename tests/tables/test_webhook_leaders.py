"""Where leaders are looked up: in the caches if they know, else with one question; every failure is told in words."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest

from pyjobset.controller.observe import Caches
from pyjobset.controller.pace import Pace
from pyjobset.controller.queue import Queue
from pyjobset.controller.refusals import Refusals
from pyjobset.controller.watches import Watches
from pyjobset.controller.webhook import leaders, pods
from pyjobset.controller.webhook.leaders import Leaders
from pyjobset.controller.webhook.pods import NotYet, Placed
from pyjobset.controller.webhook.review import Response as Verdict
from pyjobset.controller.webhook.review import decode
from pyjobset.errors import Unavailable
from pyjobset.kube.client import Client
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.objects import labels
from pyjobset.objects.batch import Node, Pod
from pyjobset.objects.features import DEFAULTS
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.clock import run
from tests.model_server import failure
from tests.reviews import body

RACK = "rack"
KEY = "0123456789abcdef0123456789abcdef01234567"


def owner(uid: str) -> Manifest:
    return {"apiVersion": "batch/v1", "kind": "Job", "name": "js-w-0", "uid": uid, "controller": True}


def pod(index: int = 0, node: str = "n1", *, uid: str = "job", attempt: str = "0", **status: Any) -> Manifest:
    metadata = {
        "name": f"js-w-0-{index}-{attempt}",
        "namespace": "ns",
        "uid": f"pod-{index}-{attempt}",
        "resourceVersion": "5",
        "labels": {labels.JOBSET_NAME: "js", labels.RESTART_ATTEMPT: attempt, labels.JOB_KEY: KEY},
        "annotations": {labels.COMPLETION_INDEX: str(index)},
        "ownerReferences": [owner(uid)],
    }
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": "Running", **status}}


def elsewhere(manifest: Manifest) -> Manifest:
    """Anybody may make a pod that says it is of a Job of another namespace."""
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": "elsewhere"}}


def node(name: str = "n1", **found: str) -> Manifest:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "5", "labels": {**found}}}


def job(uid: str = "job", **indexes: str) -> Manifest:
    return {"metadata": {"name": "js-w-0", "namespace": "ns", "uid": uid}, "status": {"active": 1, **indexes}}


class Server:
    """Answers each request with what `answer` makes of it, and remembers them."""

    def __init__(self, answer: Callable[[Request], Any]) -> None:
        self._answer = answer
        self.asked: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        answer = self._answer(request)
        if isinstance(answer, Awaitable):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Response) else Response(200, json.dumps(answer).encode())

    @asynccontextmanager
    async def stream(self, _: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        raise AssertionError("nothing is watched")
        yield

    async def close(self) -> None: ...


def of_pods(*found: Manifest, nodes: Manifest | None = None) -> Callable[[Request], Any]:
    def answer(request: Request) -> Any:
        if "/nodes/" in request.path:
            return nodes or failure(404, "NotFound", "nodes not found", "n1")
        if "/jobs/" in request.path:
            return job()
        return {"metadata": {"resourceVersion": "9"}, "items": list(found)}

    return answer


def follower(**marks: str) -> Placed:
    """As the webhook reads it."""
    found = {labels.JOB_KEY: KEY, labels.RESTART_ATTEMPT: "0", **marks}
    annotations = {labels.EXCLUSIVE_TOPOLOGY: RACK, labels.COMPLETION_INDEX: "1"}
    return Placed("ns", "js-w-0-1-", found, annotations, "js-w-0", "job", pods._Spec())


async def caches(client: Client, *, known: tuple[Manifest, ...] = (), nodes: tuple[Manifest, ...] = ()) -> Caches:
    """Those of a running controller that has seen these pods and nodes."""
    watches = Watches(client, features=DEFAULTS, namespace=None, queue=Queue(), pace=Pace(), refusals=Refusals())
    cache = watches.add_pods()
    for one in known:
        cache.wrote(msgspec.convert(one, Pod))
    cache.is_synced = True
    for one in nodes:
        (watches.caches.nodes or watches.add_nodes()).wrote(msgspec.convert(one, Node))
    return watches.caches


Case = Callable[[Leaders, Caches], Awaitable[None]]


def asked(answer: Callable[[Request], Any], case: Case, **seen: Any) -> list[Request]:
    """The requests that a case made."""

    async def main() -> list[Request]:
        server = Server(answer)
        async with Client(server) as client:
            known = await caches(client, **seen)
            await case(Leaders(client, known), known)
        return server.asked

    return run(main())


def refused(answer: Callable[[Request], Any], **marks: str) -> str:
    said: list[str] = []

    async def case(lookup: Leaders, _: Caches) -> None:
        with pytest.raises(NotYet) as caught:
            await lookup.leader(follower(**marks))
        said.append(str(caught.value))

    asked(answer, case)
    return said[0]


def test_what_the_caches_know_is_not_asked_for() -> None:
    async def case(lookup: Leaders, _: Caches) -> None:
        leader = await lookup.leader(follower())
        assert leader is not None
        assert leader.metadata.name == "js-w-0-0-0"
        assert (await lookup.node(leader, RACK)).metadata.labels[RACK] == "r1"

    assert asked(of_pods(), case, known=(pod(), pod(1)), nodes=(node(rack="r1"),)) == []


@pytest.mark.parametrize(
    "known",
    [
        (),
        (pod(node=""),),
        (pod(1, ""),),
        (pod(phase="Failed"),),
        (pod(attempt="1"),),
        (pod(uid="another"),),
        (elsewhere(pod()), elsewhere(pod(1))),
    ],
    ids=["nothing", "unscheduled", "a follower", "failed", "another attempt", "another Job", "another namespace"],
)
def test_what_the_caches_do_not_know_is_one_question(known: tuple[Manifest, ...]) -> None:
    async def case(lookup: Leaders, _: Caches) -> None:
        leader = await lookup.leader(follower())
        assert leader is not None
        assert leader.spec.node_name == "n7"

    (request,) = asked(of_pods(pod(node="n7")), case, known=known)
    assert request.path == "/api/v1/namespaces/ns/pods"
    assert set(parse_qs(request.query)["labelSelector"][0].split(",")) == {
        f"jobset.sigs.k8s.io/job-key={KEY}",
        "jobset.sigs.k8s.io/restart-attempt=0",
        "batch.kubernetes.io/job-completion-index=0",
    }


DONE = pod(phase="Succeeded")


def named(manifest: Manifest, name: str) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "name": name, "uid": name}}


@pytest.mark.decision(42)
@pytest.mark.parametrize(
    ("known", "listed", "stored", "expected", "questions"),
    [
        pytest.param((DONE, pod(3)), (), job(), 3, [], id="beside one that is placed, without a question"),
        pytest.param(
            (DONE, named(pod(0, ""), "again")), (pod(0, ""),), job(), "not scheduled yet", ["pods"],
            id="one that leads again is waited for",
        ),
        pytest.param((DONE, pod(3, "")), (), job(), None, [], id="none is placed: it leads"),
        pytest.param((DONE, pod(3, phase="Failed")), (), job(), None, [], id="none that is live is placed"),
        pytest.param((pod(3),), (), job(completedIndexes="0"), 3, ["jobs"], id="the leader's pod is gone"),
        pytest.param((pod(3),), (), job(completedIndexes="0-2,5"), 3, ["jobs"], id="of many"),
        pytest.param((pod(3),), (), job(failedIndexes="0,4"), 3, ["jobs"], id="failed for good"),
        pytest.param((), (), job(completedIndexes="0"), None, ["pods", "jobs"], id="no pod is left"),
        pytest.param((), (DONE,), job(), None, ["pods"], id="a leader that the cache does not show has succeeded"),
        pytest.param((pod(3),), (pod(),), job(completedIndexes="1-9"), 0, ["jobs", "pods"], id="index 0 is not over"),
        pytest.param((pod(3),), (), job(completedIndexes="10"), "not exist yet", ["jobs", "pods"], id="10 is not 0"),
        pytest.param((), (), job("other", completedIndexes="0"), "not exist yet", ["pods", "jobs"], id="another Job"),
        pytest.param((), (pod(node=""),), job(), "not scheduled yet", ["pods"], id="a leader that waits is not over"),
        pytest.param(
            (), (pod(phase="Succeeded", uid="old"),), job(), "not exist yet", ["pods", "jobs"],
            id="the leader of the Job before this one has succeeded",
        ),
        pytest.param(
            (), (), failure(404, "NotFound", "jobs not found", "js-w-0"), "Job js-w-0 does not exist", ["pods", "jobs"],
            id="its Job is gone",
        ),
    ],
)  # fmt: skip
def test_a_late_pod(
    known: tuple[Manifest, ...], listed: tuple[Manifest, ...], stored: Any, expected: Any, questions: list[str]
) -> None:
    def answer(request: Request) -> Any:
        return stored if "/jobs/" in request.path else of_pods(*listed)(request)

    async def case(lookup: Leaders, _: Caches) -> None:
        if isinstance(expected, str):
            with pytest.raises(NotYet, match=expected):
                await lookup.leader(follower())
            return
        found = await lookup.leader(follower())
        assert (None if found is None else found.metadata.name) == (
            None if expected is None else f"js-w-0-{expected}-0"
        )

    requests = asked(answer, case, known=known)
    assert [request.path.split("/namespaces/ns/")[1].split("/")[0] for request in requests] == questions


def test_a_name_cannot_change_the_question() -> None:
    hostile = msgspec.structs.replace(follower(), job="../../secrets/x")

    async def case(lookup: Leaders, _: Caches) -> None:
        with pytest.raises(NotYet, match="does not exist yet"):
            await lookup.leader(hostile)

    assert [request.path for request in asked(of_pods(), case)] == ["/api/v1/namespaces/ns/pods"]


@pytest.mark.parametrize("what", ["no cache", "not synced", "behind"])
def test_a_cache_that_may_be_stale_is_not_asked(what: str) -> None:
    async def case(lookup: Leaders, known: Caches) -> None:
        assert known.pods is not None
        if what == "no cache":
            known.pods = None
        elif what == "not synced":
            known.pods.is_synced = False
        else:
            known.pods.problem = Unavailable("the watch broke")
        leader = await lookup.leader(follower())
        assert leader is not None
        assert leader.spec.node_name == "n7"

    assert len(asked(of_pods(pod(node="n7")), case, known=(pod(),))) == 1


@pytest.mark.parametrize("cached", [(), (node(),), (node("n2", rack="r2"),)], ids=["nothing", "unlabelled", "another"])
def test_a_node_that_the_cache_cannot_tell_is_asked_for(cached: tuple[Manifest, ...]) -> None:
    async def case(lookup: Leaders, _: Caches) -> None:
        leader = msgspec.convert(pod(), Pod)
        assert (await lookup.node(leader, RACK)).metadata.labels == {RACK: "r1"}

    (request,) = asked(of_pods(nodes=node(rack="r1")), case, nodes=cached)
    assert request.path == "/api/v1/nodes/n1"


@pytest.mark.parametrize(
    ("stored", "words"), [(None, "node n1 .* does not exist"), (node(), "node n1 .* has no label rack")]
)
def test_a_node_that_leads_nowhere(stored: Manifest | None, words: str) -> None:
    async def case(lookup: Leaders, _: Caches) -> None:
        with pytest.raises(NotYet, match=words):
            await lookup.node(msgspec.convert(pod(), Pod), RACK)

    asked(of_pods(nodes=stored), case)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda _: Unavailable("connection refused"), "connection refused"),
        (lambda _: failure(500, "InternalError", "etcd is away"), "etcd is away"),
        (lambda _: failure(403, "Forbidden", "pods is forbidden"), "pods is forbidden"),
        (lambda _: Response(200, b"{"), "cannot be looked up"),
        (lambda _: asyncio.sleep(99), "no answer from the API server in 3 s"),
        (of_pods(), "does not exist yet"),
    ],
    ids=["unreachable", "500", "403", "garbage", "silent", "no pods"],
)
def test_every_failure_is_told_in_words(answer: Any, words: str) -> None:
    assert words in refused(answer)


def test_a_label_cannot_widen_the_question() -> None:
    """Mutating webhooks see labels before the API server has checked them."""
    hostile = follower(**{labels.RESTART_ATTEMPT: "0,job-name notin (x)"})

    async def case(lookup: Leaders, _: Caches) -> None:
        with pytest.raises(NotYet, match="restart-attempt is not the value of a label"):
            await lookup.leader(hostile)

    assert asked(of_pods(pod()), case) == []


def test_a_review_with_a_dead_api_server_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaders, "SECONDS_MAX", 0.5)
    sent = pod(1, node="")
    sent["metadata"]["annotations"][labels.EXCLUSIVE_TOPOLOGY] = RACK

    async def case(lookup: Leaders, _: Caches) -> None:
        kind = {"group": "", "version": "v1", "kind": "Pod"}
        said: Any = pods.mutate(decode(body(sent, kind=kind, namespace="ns")), lookup)
        verdict: Verdict = await said
        assert not verdict.allowed
        assert verdict.status is not None
        assert "its leader cannot be looked up" in verdict.status.message

    asked(lambda _: asyncio.sleep(99), case)
