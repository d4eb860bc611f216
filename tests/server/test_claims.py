"""volumeClaimPolicies on real Kubernetes: binding, defaults of the API server, garbage collection, claims in use."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.plane import Kubectl, wait_for
from tests.server.test_controller import Cluster, Object, cluster, manifest, replicated_job

__all__ = ["cluster"]

LABEL = "jobset.sigs.k8s.io/jobset-name"


@pytest.fixture
def volume(kubectl: Kubectl, cluster: Cluster) -> Iterator[str]:
    """A volume of 1Gi for this test alone: the plane has nobody who makes volumes. Its name is also its class."""
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
        "storageClassName": cluster.namespace,
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": "/simulated"},
    }
    cluster.apply(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": cluster.namespace}, "spec": spec}
    )
    yield cluster.namespace
    kubectl("delete", "pv", cluster.namespace, "--wait=false")


def stateful(
    name: str = "js",
    *,
    template: str = "data",
    command: str = "sleep 1",
    when_deleted: str = "Delete",
    storage: object = "1Gi",
    storage_class: str | None = None,
    **spec: Any,
) -> Object:
    mounting = replicated_job("w", command)
    (container,) = mounting["template"]["spec"]["template"]["spec"]["containers"]
    container["volumeMounts"] = [{"name": template, "mountPath": "/data"}]
    claim: Object = {"accessModes": ["ReadWriteMany", "ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    if storage_class is not None:
        claim["storageClassName"] = storage_class
    policy = {
        "templates": [{"metadata": {"name": template, "labels": {"team": "x"}}, "spec": claim}],
        "retentionPolicy": {"whenDeleted": when_deleted},
    }
    return manifest(name, mounting, volumeClaimPolicies=[policy], **spec)


def claim_of(cluster: Cluster, name: str = "data-js") -> Object:
    def there() -> Object:
        assert f"PersistentVolumeClaim/{name}" in cluster.names("pvc")
        return cluster.get("pvc", name)

    return wait_for(there, f"claim {name}")


def is_bound(cluster: Cluster) -> Object:
    claim = claim_of(cluster)
    assert claim["status"]["phase"] == "Bound"
    return claim


def is_running(cluster: Cluster) -> bool:
    return [p["status"]["phase"] for p in cluster.all("pods")] == ["Running"]


def look(claim: Object) -> Object:
    """All that somebody could have changed."""
    fields = ("uid", "labels", "annotations", "ownerReferences", "finalizers", "deletionTimestamp")
    return {"spec": claim["spec"], **{name: claim["metadata"].get(name) for name in fields}}


def test_a_claim_goes_with_its_jobset(cluster: Cluster, volume: str) -> None:
    cluster.apply(stateful(command="sleep infinity", storage_class=volume))
    wait_for(lambda: is_running(cluster), "a pod that runs on the volume")
    claim = wait_for(lambda: is_bound(cluster), "the claim is bound")
    assert claim["metadata"]["labels"] == {LABEL: "js", "team": "x"}
    (pod,) = cluster.all("pods")
    mounted = {"name": "data", "persistentVolumeClaim": {"claimName": "data-js"}}
    assert mounted in pod["spec"]["volumes"]
    cluster.run("delete", "jobset", "js", "--wait=false")
    assert wait_for(lambda: not cluster.names("pvc,pods"), "nothing is left")


@pytest.mark.decision(8)
def test_a_kept_claim_serves_the_next_jobset_of_that_name(cluster: Cluster, volume: str) -> None:
    """The API server has set defaults and the binding a volume; the next JobSet spells the size in another way."""
    cluster.apply(stateful(when_deleted="Retain", storage_class=volume))
    cluster.wait_true("Completed")
    first = cluster.get("jobset", "js")
    cluster.run("delete", "jobset", "js", "--cascade=foreground")
    before = is_bound(cluster)
    assert before["spec"]["volumeMode"] == "Filesystem"
    assert before["spec"]["volumeName"] == volume
    cluster.apply(stateful(when_deleted="Retain", storage_class=volume, storage="1024Mi"))
    cluster.wait_true("Completed")
    assert cluster.get("jobset", "js")["metadata"]["uid"] != first["metadata"]["uid"]
    assert look(claim_of(cluster)) == look(before)
    assert cluster.condition("Blocked")["status"] == ""


@pytest.mark.decision(14)
def test_a_kept_claim_that_is_too_small_is_told_and_one_that_fits_heals_it(cluster: Cluster) -> None:
    cluster.apply(stateful(when_deleted="Retain", suspend=True))
    before = claim_of(cluster)
    cluster.run("delete", "jobset", "js", "--cascade=foreground")
    cluster.apply(stateful(when_deleted="Retain", storage="2Gi", suspend=True))
    blocked = cluster.wait_true("Blocked", words="spec.resources.requests.storage is '1Gi' instead of '2Gi'")
    assert blocked["reason"] == "PVCCreationFailed"
    assert "data-js" in blocked["message"]
    cluster.wait_event("PVCCreationFailed")
    assert cluster.names("jobs") == set()
    assert claim_of(cluster)["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    cluster.run("delete", "pvc", "data-js", "--wait=false")
    assert wait_for(lambda: cluster.names("jobs") == {"Job/js-w-0"}, "the Job")
    assert claim_of(cluster)["spec"]["resources"]["requests"]["storage"] == "2Gi"
    cluster.wait_false("Blocked")


@pytest.mark.decision(9)
def test_two_jobsets_whose_claims_have_one_name(cluster: Cluster) -> None:
    cluster.apply(stateful("a-b", template="data", suspend=True))
    before = claim_of(cluster, "data-a-b")
    cluster.apply(stateful("b", template="data-a", suspend=True))
    cluster.wait_true("Blocked", "b", words="PersistentVolumeClaim data-a-b exists and belongs to JobSet/a-b")
    assert cluster.names("jobs") == {"Job/a-b-w-0"}
    assert claim_of(cluster, "data-a-b")["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    cluster.run("delete", "jobset", "a-b", "--cascade=foreground")
    assert wait_for(lambda: cluster.names("jobs") == {"Job/b-w-0"}, "the second has it")
    assert claim_of(cluster, "data-a-b")["metadata"]["labels"][LABEL] == "b"


OTHERS: dict[str, tuple[Object, str]] = {
    "owned": (
        {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "controller": True}]},
        "belongs to ConfigMap/c",
    ),
    "labelled": ({"labels": {LABEL: "other"}}, "belongs to JobSet/other"),
    "another size": ({}, "spec.resources.requests.storage is '1Mi' instead of '1Gi'"),
}


@pytest.mark.decision(9)
@pytest.mark.parametrize("whose", OTHERS)
def test_a_claim_of_someone_else_is_never_touched_and_is_told(cluster: Cluster, whose: str) -> None:
    metadata, told = OTHERS[whose]
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    for reference in metadata.get("ownerReferences", []):
        reference["uid"] = cluster.get("configmap", "c")["metadata"]["uid"]
    spec = {"accessModes": ["ReadWriteMany", "ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    cluster.apply(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-js", **metadata}, "spec": spec}
    )
    before = claim_of(cluster)
    cluster.apply(stateful(when_deleted="Retain", suspend=True))
    cluster.wait_true("Blocked", words=told)
    assert cluster.names("jobs") == set()
    assert look(claim_of(cluster)) == look(before)
    cluster.run("delete", "pvc", "data-js", "--wait=false")
    assert wait_for(lambda: cluster.names("jobs") == {"Job/js-w-0"}, "the Job")
    assert claim_of(cluster)["metadata"]["labels"][LABEL] == "js"


def test_a_claim_made_by_hand_is_used_as_it_is(cluster: Cluster, volume: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce", "ReadWriteMany"], "storageClassName": volume}
    spec["resources"] = {"requests": {"storage": "1Gi"}}
    cluster.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-js"}, "spec": spec})
    before = claim_of(cluster)
    cluster.apply(stateful(when_deleted="Retain", storage_class=volume))
    cluster.wait_true("Completed")
    after = claim_of(cluster)["metadata"]
    assert after["uid"] == before["metadata"]["uid"]
    assert not after.keys() & {"labels", "ownerReferences"}


@pytest.mark.decision(28)
@pytest.mark.parametrize("when_deleted", ["Delete", "Retain"])
def test_a_claim_that_is_deleted_comes_back(cluster: Cluster, when_deleted: str) -> None:
    cluster.apply(stateful(when_deleted=when_deleted, suspend=True))
    first = claim_of(cluster)
    assert wait_for(lambda: cluster.names("jobs") == {"Job/js-w-0"}, "the Job")
    cluster.run("delete", "pvc", "data-js", "--wait=false")
    assert wait_for(lambda: claim_of(cluster)["metadata"]["uid"] != first["metadata"]["uid"], "another claim")


@pytest.mark.decision(28)
def test_a_claim_that_is_deleted_under_a_running_pod(cluster: Cluster, volume: str) -> None:
    """It stays until the pod is gone: nothing new starts on it, and what runs is left alone."""
    cluster.apply(stateful(command="sleep infinity", storage_class=volume))
    wait_for(lambda: is_running(cluster), "a pod that runs on the volume")
    first = claim_of(cluster)
    cluster.run("delete", "pvc", "data-js", "--wait=false")
    cluster.wait_true("Blocked", words="data-js is being deleted")
    assert is_running(cluster)
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    assert wait_for(lambda: claim_of(cluster)["metadata"]["uid"] != first["metadata"]["uid"], "another claim")
    cluster.run("patch", "pv", volume, "--type=merge", "-p", '{"spec":{"claimRef":null}}')
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    assert wait_for(lambda: is_running(cluster), "a pod that runs on the volume again")
    cluster.wait_false("Blocked")


def test_a_claim_whose_label_is_taken_away_stays_in_use(cluster: Cluster) -> None:
    cluster.apply(stateful(when_deleted="Retain", suspend=True))
    before = claim_of(cluster)
    assert wait_for(lambda: cluster.names("jobs") == {"Job/js-w-0"}, "the Job")
    cluster.run("label", "pvc", "data-js", f"{LABEL}-")
    cluster.run("delete", "job", "js-w-0")
    assert wait_for(lambda: cluster.names("jobs") == {"Job/js-w-0"}, "the Job again")
    after = claim_of(cluster)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert LABEL not in after["metadata"].get("labels", {})
    assert cluster.condition("Blocked")["status"] == ""


def test_a_full_quota_of_claims_is_told_and_ends_by_itself(cluster: Cluster) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    cluster.apply({**quota, "spec": {"hard": {"persistentvolumeclaims": "0"}}})
    wait_for(lambda: cluster.get("resourcequota", "q").get("status", {}).get("hard"), "the quota is counted")
    cluster.apply(stateful(suspend=True))
    blocked = cluster.wait_true("Blocked", words="exceeded quota: q")
    assert blocked["reason"] == "PVCCreationFailed"
    assert cluster.names("jobs") == set()
    cluster.apply({**quota, "spec": {"hard": {"persistentvolumeclaims": "9"}}})
    assert wait_for(lambda: cluster.names("jobs,pvc") == {"Job/js-w-0", "PersistentVolumeClaim/data-js"}, "all")
