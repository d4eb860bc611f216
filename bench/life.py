"""The whole life of a large JobSet on a full plane: created, suspended, resumed, restarted, deleted.

    .venv/bin/python -m bench.life                 # 1,000 Jobs, with Recreate and with BlockingRecreate
    .venv/bin/python -m bench.life --jobs 100

The other works measure what the controller costs; this one says how long its users wait, most of it for the Job
controller, the scheduler and the garbage collector. A step ends when every pod is where it should be.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from bench import measure, plane
from bench.measure import Usage
from bench.trial import NAMESPACE
from bench.workloads import Workload
from pyjobset.cli.output import error_lines, table
from pyjobset.errors import JobSetError
from pyjobset.kube.cache import Cache
from pyjobset.kube.client import Client, connect
from pyjobset.objects.batch import Job, Pod
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.resources import JOBS, JOBSETS, PODS

STRATEGIES = ("Recreate", "BlockingRecreate")
STEP_SECONDS_MAX = 900.0
HEADER = ["STRATEGY", "STEP", "SECONDS", "CONTROLLER CPU", "API SERVER CPU", "OBJECTS LEFT"]
Row = list[str]


class Life:
    def __init__(self, client: Client, size: int, strategy: str) -> None:
        work = Workload("life", strategy, 1, 1, size, restart_strategy=strategy)
        (self.manifest,) = work.manifests(NAMESPACE)
        for group in self.manifest["spec"]["replicatedJobs"]:
            group["template"]["spec"]["backoffLimit"] = 0  # a deleted pod is a failed Job
        self._client = client
        self._size = size
        self._name = self.manifest["metadata"]["name"]
        self._jobsets: Cache[JobSet] = Cache(client, JOBSETS, namespace=NAMESPACE)
        self._jobs: Cache[Job] = Cache(client, JOBS, namespace=NAMESPACE)
        self._pods: Cache[Pod] = Cache(client, PODS, namespace=NAMESPACE)

    @asynccontextmanager
    async def watching(self) -> Any:
        caches: tuple[Cache[Any], ...] = (self._jobsets, self._jobs, self._pods)
        tasks = [asyncio.create_task(cache.run()) for cache in caches]
        try:
            for cache in caches:
                await cache.wait_synced()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def steps(self) -> Sequence[tuple[str, Callable[[], Any], Callable[[], bool]]]:
        """What it is called, what begins it, and when it is over."""
        return (
            ("create", self._create, lambda: self._runs(restarts=0)),
            ("suspend", lambda: self._suspend(True), lambda: not self._pods and self._is_suspended()),
            ("resume", lambda: self._suspend(False), lambda: self._runs(restarts=0)),
            ("restart", self._fail, lambda: self._runs(restarts=1)),
            ("delete", self._delete, lambda: not self._jobsets and not self._jobs and not self._pods),
        )

    def left(self) -> int:
        return len(self._jobs) + len(self._pods)

    async def _create(self) -> None:
        await self._client.create(JOBSETS, NAMESPACE, self.manifest)

    async def _suspend(self, suspend: bool) -> None:
        await self._client.patch(JOBSETS, NAMESPACE, self._name, {"spec": {"suspend": suspend}}, kind="merge")

    async def _fail(self) -> None:
        pod = next(iter(self._pods)).metadata
        await self._client.delete(PODS, NAMESPACE, pod.name, uid=pod.uid)

    async def _delete(self) -> None:
        (jobset,) = self._jobsets
        await self._client.delete(JOBSETS, NAMESPACE, self._name, uid=jobset.metadata.uid)

    def _is_suspended(self) -> bool:
        return len(self._jobs) == self._size and all(job.spec.suspend for job in self._jobs)

    def _runs(self, *, restarts: int) -> bool:
        """Every Job of this attempt is there, once, and its pod is ready."""
        jobs = list(self._jobs)
        attempt = str(restarts)
        return len(jobs) == self._size and all(
            job.status.ready == 1 and job.metadata.labels.restart_attempt == attempt for job in jobs
        )


async def run(server: plane.Server, size: int, strategy: str, pids: Sequence[int]) -> list[Row]:
    rows: list[Row] = []
    async with connect(kubeconfig=str(server.kubeconfig), qps=1_000_000, burst=1_000_000) as client:
        life = Life(client, size, strategy)
        async with life.watching():
            for name, begin, is_over in life.steps:
                before, started = [Usage.of(pid) for pid in pids], time.perf_counter()
                await begin()
                async with asyncio.timeout(STEP_SECONDS_MAX):
                    while not is_over():  # noqa: ASYNC110  # what is looked at is in memory
                        await asyncio.sleep(0.05)
                seconds = time.perf_counter() - started
                cpu = [Usage.of(pid).cpu_seconds - was.cpu_seconds for pid, was in zip(pids, before, strict=True)]
                rows.append([strategy, name, f"{seconds:.1f}", *(f"{c:.2f}" for c in cpu), str(life.left())])
                sys.stderr.write(f"{strategy} {name}: {seconds:.1f} s\n")
    return rows


async def _prepare(server: plane.Server) -> None:
    async with connect(kubeconfig=str(server.kubeconfig)) as client:
        body = f'{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{NAMESPACE}"}}}}'
        await client.raw("POST", "/api/v1/namespaces", body.encode())


def main(line: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.life", description="Times the life of a large JobSet.")
    parser.add_argument("--jobs", type=int, default=1000, help="Jobs of the JobSet, a pod each (default 1000)")
    parser.add_argument("--strategy", choices=STRATEGIES, action="append", help="default: both")
    options = parser.parse_args(line)
    rows: list[Row] = []
    try:
        with measure.compiled_python(), plane.fresh("full") as server:
            asyncio.run(_prepare(server))
            for strategy in options.strategy or STRATEGIES:
                log = server.directory / f"life-{strategy}.log"
                with measure.running(measure.ours(), server.kubeconfig, log) as controller:
                    rows += asyncio.run(run(server, options.jobs, strategy, (controller.pid, server.pid)))
    except JobSetError as error:
        sys.stderr.write("\n".join(error_lines(error)) + "\n")
        return error.exit_code
    sys.stdout.write("\n".join(table(HEADER, rows)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
