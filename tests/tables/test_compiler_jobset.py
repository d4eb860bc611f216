"""compile_jobset: all objects of a fresh JobSet in creation order."""

import pytest

from pyjobset.compiler.jobset import compile_jobset
from pyjobset.objects.features import DEFAULTS, WORKLOAD_AWARE_SCHEDULING
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from tests.builders import jobset, plain, replicated_job

ON = DEFAULTS | {WORKLOAD_AWARE_SCHEDULING}
GANG = {"schedulingPolicy": {"gang": {}}}
CLAIMS = [{"templates": [{"metadata": {"name": "data"}, "spec": {}}]}]


def kinds(objects: list[Manifest]) -> list[str]:
    return [f"{manifest['kind']}/{manifest['metadata']['name']}" for manifest in objects]


def test_everything_in_creation_order() -> None:
    js = jobset(replicated_job("w", replicas=2), scheduling=GANG, volumeClaimPolicies=CLAIMS)
    objects = list(compile_jobset(js, ON))
    assert kinds(objects) == [
        "Workload/js-277bbf9c41",
        "PodGroup/js-277bbf9c41",
        "Service/js",
        "PersistentVolumeClaim/data-js",
        "Job/js-w-0",
        "Job/js-w-1",
    ]
    assert plain(objects) == objects, "JSON values only"


@pytest.mark.parametrize(
    "js", [jobset(), jobset(scheduling=GANG)], ids=["spec.scheduling unset", "set, with its gate off"]
)
def test_without_scheduling(js: JobSet) -> None:
    compiled = compile_jobset(js, ON if js.spec.scheduling is None else DEFAULTS)
    assert kinds(list(compiled)) == ["Service/js", "Job/js-w-0", "Job/js-w-1"]
    assert compiled.jobs == compile_jobset(jobset(), DEFAULTS).jobs


def test_suspended_has_no_groups_yet_but_its_jobs_name_them() -> None:
    """The field is immutable on a Job, so it must be right before the first resume."""
    running = compile_jobset(jobset(scheduling=GANG), ON)
    suspended = compile_jobset(jobset(scheduling=GANG, suspend=True), ON)
    assert kinds(list(suspended)) == ["Service/js", "Job/js-w-0", "Job/js-w-1"]
    assert all(job["spec"]["suspend"] is True for job in suspended.jobs)
    for job in suspended.jobs:
        job["spec"]["suspend"] = False
    assert suspended.jobs == running.jobs


def test_no_hostnames_no_service() -> None:
    assert compile_jobset(jobset(network={"enableDNSHostnames": False})).service is None


def test_no_replicated_jobs() -> None:
    js = JobSet(metadata=jobset().metadata)
    assert kinds(list(compile_jobset(js, ON))) == ["Service/js"]
