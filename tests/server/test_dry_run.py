"""Job templates are tried on the real API server before a JobSet is stored: what only it knows is wrong is refused."""

import json
import re
from typing import Any

import pytest

from tests.manifests import ABSENT, edited
from tests.server.plane import Kubectl, wait_for
from tests.server.test_controller import Cluster, Object, manifest, replicated_job

POD = "spec.replicatedJobs[1].template.spec.template.spec"
JOBSET = manifest("js", replicated_job("driver", "sleep infinity"), replicated_job("w", "sleep infinity", 2, 2))
REFUSED = "makes Jobs that Kubernetes refuses"


@pytest.fixture
def cluster(kubectl: Kubectl, namespace: str) -> Cluster:
    return Cluster(kubectl, namespace)


def said(kubectl: Kubectl, namespace: str, jobset: Object, *flags: str) -> tuple[int, str]:
    """What kubectl says to the one who applies the JobSet."""
    applied = kubectl("apply", "-n", namespace, "-f", "-", *flags, stdin=json.dumps(jobset))
    return applied.returncode, applied.stderr


@pytest.mark.decision(6)
@pytest.mark.parametrize(
    ("edits", "path", "message"),
    [
        ({f"{POD}.containers[0].name": "A_b"}, f"{POD}.containers[0].name", "RFC 1123"),
        ({f"{POD}.containers[0].image": ABSENT}, f"{POD}.containers[0].image", "Required value"),
        (
            {f"{POD}.containers[0].volumeMounts": [{"name": "gone", "mountPath": "/v"}]},
            f"{POD}.containers[0].volumeMounts[0].name",
            "Not found",
        ),
        (
            {f"{POD}.containers[0].resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
            f"{POD}.containers[0].resources.requests",
            "must be less than or equal to cpu limit",
        ),
        (
            {f"{POD}.priorityClassName": "No_Name"},
            f"{POD}.priorityClassName",
            "RFC 1123",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("spec") else "",
)
def test_what_only_the_api_server_knows_is_refused_with_its_path_and_words(
    kubectl: Kubectl, namespace: str, edits: dict[str, Any], path: str, message: str
) -> None:
    code, text = said(kubectl, namespace, edited(JOBSET, edits))
    assert code == 1
    assert path in text
    assert f"{REFUSED}: " in text
    assert message in text
    assert kubectl("get", "jobset", "js", "-n", namespace).returncode == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (f"{POD}.containers[0].resources", {"requests": {"cpu": "1x"}}),
        (f"{POD}.restartPolicy", "Always"),
        ("spec.replicatedJobs[1].template.spec.backoffLimit", -1),
    ],
    ids=["quantity", "restartPolicy", "backoffLimit"],
)
def test_whoever_knows_it_first_the_jobset_is_not_stored(
    kubectl: Kubectl, namespace: str, field: str, value: Any
) -> None:
    """The schema or our rules say it before the trial."""
    code, text = said(kubectl, namespace, edited(JOBSET, {field: value}))
    assert code == 1
    assert field in text or "spec.replicatedJobs[1].template" in text
    assert kubectl("get", "jobset", "js", "-n", namespace).returncode == 1


def test_all_templates_are_told_at_once(kubectl: Kubectl, namespace: str) -> None:
    broken = {f"spec.replicatedJobs[{i}].template.spec.template.spec.containers[0].image": ABSENT for i in range(2)}
    code, text = said(kubectl, namespace, edited(JOBSET, broken))
    assert code == 1
    assert len(re.findall(rf"^\* spec\.replicatedJobs\[\d\]\.template\S+image: .*{REFUSED}", text, re.MULTILINE)) == 2


def test_a_good_jobset_is_admitted_without_a_word_and_nothing_is_left_of_the_trial(cluster: Cluster) -> None:
    code, text = said(cluster._kubectl, cluster.namespace, JOBSET, "--dry-run=server")
    assert (code, text) == (0, "")
    assert cluster.names("jobs,pods,services") == set()


def test_a_name_that_the_server_makes_is_no_hindrance(cluster: Cluster) -> None:
    jobset = {**JOBSET, "metadata": {"generateName": "js-"}}
    created = json.loads(cluster.run("create", "-o", "json", "-f", "-", stdin=json.dumps(jobset)))
    assert wait_for(lambda: f"Job/{created['metadata']['name']}-driver-0" in cluster.names("jobs"), "its Jobs")


def test_a_change_while_suspended_is_tried_too_and_its_own_jobs_are_no_hindrance(cluster: Cluster) -> None:
    cluster.apply(edited(JOBSET, {"spec.suspend": True}))
    assert wait_for(lambda: "Job/js-w-1" in cluster.names("jobs"), "the Jobs")
    selector = "/spec/replicatedJobs/1/template/spec/template/spec/nodeSelector"

    def patch(value: Any) -> tuple[int, str]:
        operation = json.dumps([{"op": "add", "path": selector, "value": value}])
        done = cluster._kubectl("patch", "jobset", "js", "-n", cluster.namespace, "--type=json", "-p", operation)
        return done.returncode, done.stderr

    code, text = patch({"no label": "x"})
    assert code == 1
    assert f"{POD}.nodeSelector: " in text
    assert patch({"disk": "ssd"}) == (0, "")


def test_a_quota_is_a_warning(cluster: Cluster) -> None:
    """It may be raised before the Jobs are created, and the JobSet may wait for that."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"count/jobs.batch": "0"}},
    }
    cluster.apply(quota)
    wait_for(lambda: "hard" in cluster.get("resourcequota", "q").get("status", {}), "the quota")

    def admitted_with_a_warning() -> bool:
        code, text = said(cluster._kubectl, cluster.namespace, JOBSET, "--dry-run=server")
        assert code == 0
        assert "exceeded quota" in text, text
        assert text.startswith("Warning: spec.replicatedJobs[0].template")
        assert "[job-template-untried]" in text
        return True

    assert wait_for(admitted_with_a_warning, "the warning")
