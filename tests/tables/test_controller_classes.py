"""A PriorityClass that is missing, in the running controller: who is told, what is watched, what its coming does."""

import asyncio
import json
from typing import Any

import pytest

from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from tests.controller_world import GANG, conditions, controller, manifest, settled, until, world
from tests.model_server import ModelServer, failure

CLASS = "high"


def admit(server: ModelServer) -> None:
    """As the admission plugin Priority does."""

    def judge(request: Request, plural: str) -> Response | None:
        if plural != "podgroups" or request.method != "POST":
            return None
        if CLASS in server.names("priorityclasses"):
            return None
        name = json.loads(request.body)["metadata"]["name"]
        said = f'podgroups.scheduling.k8s.io "{name}" is forbidden: no PriorityClass with name {CLASS} was found'
        return failure(403, "Forbidden", said)

    server.before = judge


def put_class(server: ModelServer, name: str) -> None:
    server.put("priorityclasses", {"metadata": {"name": name}, "value": 7}, namespace="")


def watched(server: ModelServer) -> set[str]:
    return {plural for plural, _ in server.watched}


@pytest.mark.decision(33)
def test_a_class_that_comes_ends_the_wait() -> None:
    async def case(server: ModelServer) -> None:
        admit(server)
        put_class(server, "another")
        server.put("jobsets", manifest("other"))
        async with controller(server):
            await until(lambda: server.names("jobs"))
            assert "priorityclasses" not in watched(server)
            for name in ("js", "second"):
                server.put("jobsets", manifest(name, scheduling=GANG))
            await until(lambda: "Blocked" in conditions(server) and "Blocked" in conditions(server, "second"))
            assert conditions(server)["Blocked"]["message"].endswith(", and is tried again when there is one")
            await until(lambda: "priorityclasses" in watched(server))
            await asyncio.sleep(700)  # by now a try is 5 minutes away
            before = len(server.calls)
            put_class(server, "higher")
            await settled(server, 1)
            assert server.writes(before) == [], "it is about another one"
            put_class(server, CLASS)
            await until(lambda: len(server.names("jobs")) == 6, seconds=2)
            await settled(server)
            assert conditions(server)["Blocked"]["status"] == "False"
            assert sum(call.plural == "priorityclasses" for call in server.calls) < 20, "one watch for all"

    world(case)


def test_a_watch_that_is_not_allowed_leaves_the_tries() -> None:
    async def case(server: ModelServer) -> None:
        admit(server)
        judge = server.before

        def forbid(request: Request, plural: str) -> Any:
            if plural == "priorityclasses":
                return failure(403, "Forbidden", "priorityclasses is forbidden")
            return judge(request, plural)

        server.before = forbid
        server.put("jobsets", manifest(scheduling=GANG))
        async with controller(server):
            await until(lambda: "Blocked" in conditions(server))
            put_class(server, CLASS)
            await until(lambda: server.names("jobs"), seconds=301)
            assert "priorityclasses" not in watched(server)

    world(case)
