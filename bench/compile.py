"""How fast a JobSet compiles: one of 8 groups, and one of many Jobs at two sizes, to see that the cost is linear.

Run it: `.venv/bin/python bench/compile.py [--jobs 1000]`. It prints figures and never fails on a slow machine.
"""

import argparse
from collections.abc import Callable
from functools import partial
from time import process_time

from msgspec import convert, json

from pyjobset.compiler.jobs import child_jobs, compile_job
from pyjobset.compiler.jobset import compile_jobset
from pyjobset.compiler.scheduling import compile_scheduling
from pyjobset.objects.features import WORKLOAD_AWARE_SCHEDULING
from pyjobset.objects.jobset import JobSet
from pyjobset.rules.defaults import with_defaults

FEATURES = frozenset({WORKLOAD_AWARE_SCHEDULING})
REPEATS = 7


def jobset(replicated_jobs: int, replicas: int) -> JobSet:
    """Every ReplicatedJob is a gang of its own; the pod template is of an ordinary size."""
    container = {
        "name": "worker",
        "image": "registry.example/trainer:1",
        "command": ["python", "train.py"],
        "env": [{"name": f"VARIABLE_{i}", "value": str(i)} for i in range(10)],
        "resources": {"requests": {"cpu": "4", "memory": "16Gi"}},
        "ports": [{"containerPort": 3389}],
    }
    template = {"spec": {"parallelism": 4, "completions": 4, "template": {"spec": {"containers": [container]}}}}
    names = [f"group-{i}" for i in range(replicated_jobs)]
    spec = {
        "scheduling": {"replicatedJobs": [{"targetReplicatedJobs": [name]} for name in names]},
        "replicatedJobs": [{"name": name, "replicas": replicas, "template": template} for name in names],
    }
    metadata = {"name": "bench", "namespace": "default", "uid": "8ad4ac9b-8ee0-4a05-b6f4-4cf04ff8f1c1"}
    return with_defaults(convert({"metadata": metadata, "spec": spec}, JobSet))


def compile_jobs(subject: JobSet, *, encode: bool) -> None:
    scheduling = compile_scheduling(subject)
    assert scheduling is not None
    for child in child_jobs(subject):
        placement = scheduling.placement(*child.key)
        job = compile_job(subject, child, placement=placement, features=FEATURES, suspend=False)
        if encode:
            json.encode(job)


def best_seconds(work: Callable[[], object], times: int = 1) -> float:
    """CPU seconds of the best of some runs: what other programs disturbed least."""

    def run() -> float:
        start = process_time()
        for _ in range(times):
            work()
        return (process_time() - start) / times

    return min(run() for _ in range(REPEATS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000, help="child Jobs of the smaller JobSet (default 1000)")
    jobs = parser.parse_args().jobs
    groups = jobset(8, 2)
    seconds = best_seconds(lambda: compile_scheduling(groups), times=200)
    print(f"compile_scheduling, 8 groups: {seconds * 1e3:.3f} ms (target 0.2)")
    seconds = best_seconds(lambda: compile_jobset(groups, FEATURES), times=50)
    print(f"compile_jobset, 8 groups and 16 Jobs, all manifests: {seconds * 1e3:.3f} ms")
    few, many = jobset(1, jobs), jobset(1, 10 * jobs)
    each = {n: best_seconds(partial(compile_jobs, subject, encode=False)) for n, subject in ((1, few), (10, many))}
    print(f"compile_job, {jobs} Jobs: {each[1] / jobs * 1e6:.1f} us a Job (target 20), {each[1] * 1e3:.1f} ms in all")
    print(f"10 times the Jobs: {each[10] / each[1]:.1f} times the time (target 12)")
    encoded = best_seconds(lambda: compile_jobs(few, encode=True))
    print(f"compile_job and JSON, {jobs} Jobs: {encoded / jobs * 1e6:.1f} us a Job")


if __name__ == "__main__":
    main()
