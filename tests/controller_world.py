"""Words for tests of the whole controller: a model API server, and a controller that runs on it in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from pyjobset.controller.manager import Manager
from pyjobset.controller.options import Options
from pyjobset.kube.client import Client
from pyjobset.objects import features as gates
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.clock import run
from tests.builders import NOW, replicated_job
from tests.model_server import ModelServer, failure

OPTIONS = Options(health_address=None, features=gates.resolve({gates.WORKLOAD_AWARE_SCHEDULING: True}))
GANG = {"schedulingPolicy": {"gang": {}}}
FAILED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}
FAILED["lastTransitionTime"] = "2026-11-30T12:00:00Z"
QUOTA = failure(403, "Forbidden", "exceeded quota: jobs")


def manifest(name: str = "js", *replicated_jobs: Manifest, **spec: Any) -> Manifest:
    jobs = list(replicated_jobs) or [replicated_job("w", replicas=2, pods=2)]
    return {"metadata": {"name": name, "generation": 1}, "spec": {"replicatedJobs": jobs, **spec}}


@asynccontextmanager
async def controller(server: ModelServer, options: Options = OPTIONS) -> AsyncIterator[Manager]:
    """A running manager that is stopped, in order, at the end."""
    stop = asyncio.Event()
    async with Client(server) as client:
        manager = new_manager(client, options)
        running = asyncio.create_task(manager.run(stop))
        try:
            await until(lambda: manager.is_ready or running.done())
            yield manager
        finally:
            stop.set()
            await running


def new_manager(client: Client, options: Options = OPTIONS) -> Manager:
    loop = asyncio.get_running_loop()
    return Manager(client, options, now=lambda: NOW + timedelta(seconds=loop.time()))


async def until(condition: Callable[[], Any], seconds: float = 600.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  # virtual time costs nothing
            await asyncio.sleep(0.01)


async def settled(server: ModelServer, seconds: float = 3.0) -> None:
    """Until the server has seen no request for a while."""
    seen = -1
    while seen != len(server.calls):
        seen = len(server.calls)
        await asyncio.sleep(seconds)


def world(case: Callable[[ModelServer], Awaitable[None]]) -> None:
    run(case(ModelServer()))  # type: ignore[arg-type]


def conditions(server: ModelServer, name: str = "js") -> dict[str, Manifest]:
    return {c["type"]: c for c in server.get("jobsets", name).get("status", {}).get("conditions", [])}


def events(server: ModelServer) -> list[str]:
    return [call.body["reason"] for call in server.calls if call.plural == "events"]


def jobs(server: ModelServer) -> list[Manifest]:
    return [server.get("jobs", name) for name in server.names("jobs")]


def finish_jobs(server: ModelServer) -> None:
    for name in server.names("jobs"):
        done = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-11-30T12:00:00Z"}
        server.change("jobs", name, {"status": {"active": 0, "succeeded": 2, "conditions": [done]}})
