"""compile_claims and the volumes that a Job gets from them."""

from typing import Any

import pytest

from pyjobset.compiler.jobs import child_jobs, compile_job
from pyjobset.compiler.volumes import compile_claims
from pyjobset.objects.features import DEFAULTS
from pyjobset.objects.meta import Manifest
from tests.builders import jobset, replicated_job

SPEC = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}, "newField": 1}
DATA = {"metadata": {"name": "data"}, "spec": SPEC}
LOGS = {"metadata": {"name": "logs"}, "spec": SPEC}
VOLUME = {"name": "data", "persistentVolumeClaim": {"claimName": "data-js"}}
OWNER = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "name": "js",
    "uid": "uid-js",
    "controller": True,
    "blockOwnerDeletion": True,
}


def policy(*templates: Manifest, when_deleted: str | None = None) -> Manifest:
    retention = {} if when_deleted is None else {"retentionPolicy": {"whenDeleted": when_deleted}}
    return {"templates": list(templates), **retention}


def test_a_claim_in_full() -> None:
    given = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data",
            "labels": {"team": "x", "jobset.sigs.k8s.io/jobset-name": "someone"},
            "annotations": {"note": "y"},
            "creationTimestamp": None,
        },
        "spec": SPEC,
        "status": {"phase": "Bound"},
    }
    assert compile_claims(jobset(volumeClaimPolicies=[policy(given)])) == (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "data-js",
                "namespace": "ns",
                "labels": {"team": "x", "jobset.sigs.k8s.io/jobset-name": "js"},
                "annotations": {"note": "y", "jobset.sigs.k8s.io/jobset-uid": "uid-js"},
                "ownerReferences": [OWNER],
            },
            "spec": SPEC,
        },
    )


def test_claims_come_in_spec_order_and_only_those_to_delete_are_owned() -> None:
    scratch = {"metadata": {"name": "scratch"}, "spec": {}}
    js = jobset(volumeClaimPolicies=[policy(DATA, scratch, when_deleted="Retain"), policy(LOGS, when_deleted="Delete")])
    found = [(c["metadata"]["name"], c["metadata"].get("ownerReferences")) for c in compile_claims(js)]
    assert found == [("data-js", None), ("scratch-js", None), ("logs-js", [OWNER])]


def test_no_policies_no_claims() -> None:
    assert compile_claims(jobset()) == ()


def mounting(*names: str, how: str = "volumeMounts") -> Manifest:
    return {"name": "c", how: [{"name": name, "mountPath": "/x"} for name in names]}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"containers": [{"name": "c"}]}, None),
        ({"containers": [mounting("other")]}, None),
        ({"containers": [mounting("data")]}, [VOLUME]),
        ({"containers": [{"name": "a"}, mounting("data")]}, [VOLUME]),
        ({"initContainers": [mounting("data")], "containers": [{"name": "c"}]}, [VOLUME]),
        ({"containers": [mounting("data", how="volumeDevices")]}, [VOLUME]),
        (
            {"containers": [mounting("data", "tmp")], "volumes": [{"name": "tmp", "emptyDir": {}}]},
            [{"name": "tmp", "emptyDir": {}}, VOLUME],
        ),
        (
            {"containers": [mounting("data")], "volumes": [{"name": "data", "emptyDir": {}}]},
            [{"name": "data", "emptyDir": {}}],
        ),
        ({"containers": [mounting("data")], "volumes": None}, [VOLUME]),
    ],
)
def test_only_jobs_that_mount_a_claim_get_its_volume(pod: dict[str, Any], expected: list[Manifest] | None) -> None:
    given = replicated_job("w")
    given["template"]["spec"]["template"]["spec"] = pod
    js = jobset(given, volumeClaimPolicies=[policy(DATA, LOGS)])
    job = compile_job(js, next(child_jobs(js)), placement=None, features=DEFAULTS, suspend=False)
    assert job["spec"]["template"]["spec"].get("volumes") == expected
