"""How long the webhooks take to answer for a JobSet of many ReplicatedJobs: what each create and update costs us.

Run it: `.venv/bin/python -m bench.webhook [--replicated-jobs 50] [--kubeconfig FILE]`. From the body of the review to
that of the answer, in process, without TLS and sockets; with a kubeconfig also the trial of as many different Job
templates on that API server. Pods too: one that is not placed exclusively, a leader, and a follower whose leader the
caches know. It prints figures and never fails on a slow machine.
"""

import argparse
import asyncio
import gc
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter, thread_time

from msgspec import convert, json, to_builtins
from msgspec.structs import replace

from bench.compile import jobset
from pyjobset.compiler.jobs import child_jobs, compile_job
from pyjobset.controller.manager import GC_THRESHOLDS
from pyjobset.controller.webhook import admission, pods
from pyjobset.controller.webhook.dry_run import DryRun
from pyjobset.controller.webhook.pods import Lookup, Placed
from pyjobset.controller.webhook.review import Response, decode, encode
from pyjobset.controller.webhook.server import Judge, answer
from pyjobset.kube.client import connect
from pyjobset.objects import features as gates
from pyjobset.objects import labels
from pyjobset.objects.batch import Node, NodeMeta, Pod
from pyjobset.objects.jobset import API_VERSION, GROUP, KIND, VERSION
from pyjobset.objects.meta import Manifest

FEATURES = frozenset({gates.WORKLOAD_AWARE_SCHEDULING, gates.ELASTIC_JOBSET})
REPEATS = 1000
TRIALS = 30
"""Each is as many requests as there are templates."""
TARGET_SECONDS = 0.005


def manifest(replicated_jobs: int, *, defaulted: bool) -> Manifest:
    """As it comes after the defaults of the CRD, and after those of the mutating webhook or before."""
    made: Manifest = {"apiVersion": API_VERSION, "kind": KIND, **to_builtins(jobset(replicated_jobs, 2))}
    spec = made["spec"]
    spec |= {"successPolicy": {"operator": "All"}, "startupPolicy": {"startupPolicyOrder": "AnyOrder"}}
    spec["scheduling"] = {}  # a Workload has no room for an entry of each ReplicatedJob
    if not defaulted:
        for job in spec["replicatedJobs"]:
            template = job["template"]["spec"]
            job["template"] = {"spec": {**template, "template": {"spec": {**template["template"]["spec"]}}}}
            del job["template"]["spec"]["completionMode"], job["template"]["spec"]["template"]["spec"]["restartPolicy"]
    return made


def review(new: Manifest, old: Manifest | None = None) -> bytes:
    """As an API server sends it; an update comes with the stored object."""
    kind = {"group": GROUP, "version": VERSION, "kind": KIND}
    asked: Manifest = {
        "uid": "8ad4ac9b-8ee0-4a05-b6f4-4cf04ff8f1c1",
        "operation": "UPDATE" if old else "CREATE",
        "kind": kind,
    }
    asked |= {"object": new, "oldObject": old}
    return json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked})


async def measure(work: Callable[[], Awaitable[object]], repeats: int = REPEATS) -> str:
    """CPU and wall time of each call: on a busy machine the wall time is mostly that of other programs."""
    for _ in range(repeats // 10):
        await work()
    cpu, wall = [], []
    for _ in range(repeats):
        start = thread_time(), perf_counter()
        await work()
        cpu.append(thread_time() - start[0])
        wall.append(perf_counter() - start[1])
    return f"CPU {_percentiles(cpu)}, wall {_percentiles(wall)}"


def _percentiles(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    middle, worst = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    return f"p50 {middle * 1e3:.2f} ms, p99 {worst * 1e3:.2f} ms"


class Known(Lookup):
    """Where the leader is, as the caches tell it."""

    async def leader(self, follower: Placed) -> Pod:
        owner = {"kind": "Job", "name": "j", "uid": follower.owner_uid, "controller": True}
        metadata = {"name": "leader", "annotations": {labels.COMPLETION_INDEX: "0"}, "ownerReferences": [owner]}
        return convert({"metadata": metadata, "spec": {"nodeName": "n"}}, Pod)

    async def node(self, leader: Pod, topology: str) -> Node:
        return Node(NodeMeta(name=leader.spec.node_name, labels={topology: "r"}))


def pod_review(index: int, *, is_exclusive: bool) -> bytes:
    """A pod of the size that they are: what the Job controller sends of a compiled Job."""
    made = jobset(1, 1)
    child = next(child_jobs(made))
    template = compile_job(made, child, placement=None, features=FEATURES, suspend=False)["spec"]["template"]
    metadata = template["metadata"]
    exclusive = {labels.EXCLUSIVE_TOPOLOGY: "topology.kubernetes.io/rack"} if is_exclusive else {}
    metadata = {
        **metadata,
        "annotations": {**metadata["annotations"], **exclusive, labels.COMPLETION_INDEX: str(index)},
    }
    owned = [f"f:{key}" for key in (*metadata["labels"], *metadata["annotations"])]
    metadata["managedFields"] = [{"manager": "kube-controller-manager", "fieldsV1": {key: {} for key in owned}}]
    asked = {
        "uid": "8ad4ac9b-8ee0-4a05-b6f4-4cf04ff8f1c1",
        "operation": "CREATE",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": "ns",
        "object": {"metadata": metadata, "spec": {**template["spec"], "priority": 0}},
    }
    return json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked})


def measure_pods() -> None:
    mutate: Judge = partial(pods.mutate, lookup=Known())
    for name, body in (
        ("pod, not exclusive", pod_review(1, is_exclusive=False)),
        ("pod, a leader", pod_review(0, is_exclusive=True)),
        ("pod, a follower", pod_review(1, is_exclusive=True)),
    ):
        assert b'"allowed":true' in asyncio.run(answer(body, mutate)).body
        print(f"{name}, {len(body) / 1024:.1f} KiB: {asyncio.run(measure(partial(answer, body, mutate)))}")


async def measure_trial(kubeconfig: str, replicated_jobs: int) -> str:
    made = manifest(replicated_jobs, defaulted=True)
    for index, job in enumerate(made["spec"]["replicatedJobs"]):
        job["template"] = {**job["template"], "metadata": {"labels": {"index": str(index)}}}
    asked = replace(decode(review(made)), namespace="default")
    async with connect(kubeconfig=kubeconfig, qps=0) as client:  # not limited
        look = DryRun(client, FEATURES)
        said = await look(asked, Response(asked.uid, allowed=True))
        assert said.allowed, said.status
        assert not said.warnings, said.warnings
        return await measure(partial(look, asked, said), TRIALS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicated-jobs", type=int, default=50, help="of the JobSet (default 50)")
    parser.add_argument("--kubeconfig", help="of an API server on which the Job templates are tried")
    arguments = parser.parse_args()
    count = arguments.replicated_jobs
    gc.set_threshold(*GC_THRESHOLDS)
    gc.freeze()
    stored = manifest(count, defaulted=True)
    resumed = {**stored, "spec": {**stored["spec"], "suspend": False}}
    validate: Judge = partial(admission.validate, features=FEATURES)
    kib = len(review(stored)) / 1024
    print(
        f"a JobSet of {count} ReplicatedJobs, {kib:.0f} KiB; {REPEATS} times; target p99 {TARGET_SECONDS * 1e3:.0f} ms"
    )
    for name, body, judge in (
        ("validating, CREATE", review(stored), validate),
        ("validating, UPDATE", review(resumed, stored), validate),
        ("mutating, CREATE", review(manifest(count, defaulted=False)), admission.mutate),
    ):
        assert b'"allowed":true' in encode(judge(decode(body)))
        print(f"{name}: {asyncio.run(measure(partial(answer, body, judge)))}")
    measure_pods()
    if arguments.kubeconfig:
        print(f"trial of {count} templates: {asyncio.run(measure_trial(arguments.kubeconfig, count))}")


if __name__ == "__main__":
    main()
