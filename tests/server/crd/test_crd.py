"""The CRD on a real API server: it installs both ways, and what is sent comes back whole, with its defaults."""

import json
import re
from pathlib import Path

import pytest
import yaml
from crd import snapshot

from pyjobset.cli.template_fields import field_problems
from tests.server.crd.conftest import GROUP, PLURAL, RESOURCE, JobSets, install, manifest, problems
from tests.server.crd.words import TEMPLATE, Spec, claim, container, rj
from tests.server.plane import Kubectl, wait_for

ROOT = Path(__file__).parents[3]


def test_an_unknown_field_is_dropped_where_the_client_does_not_ask_for_strictness(
    checked: JobSets,
) -> None:
    spec = {"suspend": True, "paralelism": 1, **container(imagee="i")}
    stored = checked.create(spec, "--dry-run=server", "--validate=ignore")
    assert "paralelism" not in stored
    assert stored["replicatedJobs"][0]["template"] == TEMPLATE


def test_lint_finds_the_fields_that_kubectl_would_not_send(checked: JobSets) -> None:
    """kubectl asks for strictness by default."""
    pod = {
        "container": [],
        "containers": [{"name": "c", "image": "i", "imag": "i", "env": [{"name": "A", "valu": "b"}]}],
    }
    template: Spec = {
        "metadata": {"label": {}, "creationTimestamp": None},
        "spec": {"paralelism": 2, "suspend": None, "template": {"spec": pod}},
    }
    spec = {"replicatedJobs": [rj(template=template)], "volumeClaimPolicies": [{"templates": [claim(anotations={})]}]}
    refused = checked.run("create", "--dry-run=server", "-f", "-", stdin=manifest(spec))
    assert "strict decoding error" in refused.stderr
    assert {p.path for p in field_problems({"spec": spec})} == set(
        re.findall(r'unknown field "([^"]+)"', refused.stderr)
    )


def test_lint_finds_the_values_that_the_schema_refuses(checked: JobSets) -> None:
    bad = {
        "name": "c",
        "command": "sleep 1",
        "env": [{"name": "A", "value": 1}],
        "resources": {"requests": {"cpu": 0.5, "memory": "2 Gi", "gpu": True}},
        "ports": [{"containerPort": "80"}],
        "stdin": "yes",
    }
    template: Spec = {
        "metadata": {"labels": {"a": 1}},
        "spec": {"template": {"spec": {"containers": [bad], "tolerations": {"key": "a"}}}},
    }
    spec = {"replicatedJobs": [rj(template=template)], "volumeClaimPolicies": [{"templates": [claim(labels={"a": 1})]}]}
    refused = checked.run("create", "--dry-run=server", "--validate=ignore", "-f", "-", stdin=manifest(spec))
    told = set(re.findall(r"^\* (spec\.\S+): Invalid value", refused.stderr, re.MULTILINE))
    assert told, refused.stderr
    assert {p.path for p in field_problems({"spec": spec})} == told


def test_what_a_template_carries_survives(checked: JobSets) -> None:
    template: Spec = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "name": "n", "finalizers": ["x.io/f"]},
        "spec": {
            "parallelism": 2,
            "scheduling": {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}},
            "template": {
                "metadata": {"labels": {"e": "f"}},
                "spec": {
                    "schedulingGroup": {"podGroupName": "g"},
                    "containers": [
                        {
                            "name": "c",
                            "image": "i",
                            "resources": {"requests": {"cpu": 1, "memory": "64Mi"}},
                            "livenessProbe": {"httpGet": {"port": "http"}},
                            "ports": [{"containerPort": 1, "protocol": "UDP"}, {"containerPort": 1, "protocol": "TCP"}],
                        }
                    ],
                },
            },
        },
    }
    sent = {"replicatedJobs": [rj(template=template)]}
    stored = checked.create(sent, "--dry-run=server")
    assert stored["replicatedJobs"][0]["template"] == template


def test_what_is_left_out_gets_its_default(checked: JobSets) -> None:
    spec = {
        "failurePolicy": {"rules": [{"action": "FailJobSet"}]},
        "coordinator": {"replicatedJob": "w"},
        "volumeClaimPolicies": [{"templates": [claim()]}],
        "network": {"subdomain": "s"},
        **container(ports=[{"containerPort": 1}]),
    }
    stored = checked.create(spec, "--dry-run=server")
    (replicated_job,) = stored.pop("replicatedJobs")
    assert (replicated_job["replicas"], replicated_job["groupName"]) == (1, "default")
    (pod_container,) = replicated_job["template"]["spec"]["template"]["spec"]["containers"]
    assert pod_container["ports"] == [{"containerPort": 1, "protocol": "TCP"}]
    assert stored == {
        "network": {"subdomain": "s", "enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All"},
        "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
        "failurePolicy": {
            "maxRestarts": 0,
            "restartStrategy": "Recreate",
            "rules": [{"name": "", "action": "FailJobSet"}],
        },
        "coordinator": {"replicatedJob": "w", "jobIndex": 0, "podIndex": 0},
        "volumeClaimPolicies": [{"templates": [claim()], "retentionPolicy": {"whenDeleted": "Delete"}}],
    }


def test_a_jobset_without_spec_is_a_jobset(checked: JobSets) -> None:
    bare = json.dumps({"apiVersion": f"{GROUP}/v1alpha2", "kind": "JobSet", "metadata": {"name": "js"}})
    assert problems(checked.run("create", "--dry-run=server", "-f", "-", stdin=bare)) == []


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_it_installs_and_once_more_changes_nothing(how: tuple[str, ...], kubectl: Kubectl) -> None:
    group = f"{'server' if how else 'client'}.example.com"
    version = ("get", "crd", f"{PLURAL}.{group}", "-o", "jsonpath={.metadata.resourceVersion}")
    try:
        install(kubectl, group, *how)
        first = kubectl(*version).stdout
        install(kubectl, group, *how)
        assert kubectl(*version).stdout == first != ""
    finally:
        kubectl("delete", "crd", f"{PLURAL}.{group}", "--wait=false")


EXAMPLES = [f for f in sorted((ROOT / "examples").rglob("*.yaml")) if "kind: JobSet\n" in f.read_text("utf-8")]


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_are_accepted(file: Path, checked: JobSets) -> None:
    documents = yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    specs = [document["spec"] for document in documents if document["kind"] == "JobSet"]
    assert specs
    assert [checked.check(spec) for spec in specs] == [[]] * len(specs)


def test_the_stored_schemas_of_kubernetes_are_those_of_the_plane(kubectl: Kubectl) -> None:
    """`make generate-openapi` takes them from there."""
    offered = [json.loads(kubectl("get", "--raw", path).stdout) for path in snapshot.DOCUMENTS]
    assert snapshot.take(offered) == json.loads(snapshot.PATH.read_text(encoding="utf-8"))


def test_kubectl_explains_it(kubectl: Kubectl) -> None:
    text = wait_for(lambda: kubectl("explain", "jobset.spec.scheduling").stdout, "its schema is published")
    assert "KIND:       JobSet\nVERSION:    v1alpha2\n" in text
    assert "Workload-Aware Scheduling: which pods are scheduled together" in text
    for field in ("disruptionMode", "replicatedJobs", "schedulingConstraints", "schedulingPolicy"):
        assert f"\n  {field}\t" in text
    assert "ENUM:" in kubectl("explain", "jobset.spec.failurePolicy.rules.action").stdout


def with_status(jobsets: JobSets, status: Spec) -> Spec:
    """Creates a JobSet and stores its status. The status as it was stored."""
    jobsets.create({"suspend": True})
    arguments = ("--subresource=status", "--type=merge", "-o", "json", "-p", json.dumps({"status": status}))
    patched = jobsets.run("patch", RESOURCE, "js", *arguments)
    assert patched.returncode == 0, patched.stderr
    stored: Spec = json.loads(patched.stdout)["status"]
    return stored


def test_the_printed_columns(jobsets: JobSets) -> None:
    completed = {
        "type": "Completed",
        "status": "True",
        "reason": "AllJobsCompleted",
        "message": "",
        "lastTransitionTime": "2026-11-30T12:00:00Z",
    }
    with_status(jobsets, {"restarts": 2, "terminalState": "Completed", "conditions": [completed]})
    heading, row = jobsets.run("get", RESOURCE).stdout.splitlines()
    assert heading.split() == ["NAME", "TERMINALSTATE", "RESTARTS", "COMPLETED", "SUSPENDED", "AGE"]
    assert row.split()[:-1] == ["js", "Completed", "2", "True", "true"]


def test_the_whole_status_can_be_stored(jobsets: JobSets) -> None:
    counts = {"ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
    status = {
        "restarts": 1,
        "restartsCountTowardsMax": 1,
        "terminalState": "Failed",
        "startTime": "2026-11-30T12:00:00Z",
        "executionAttempts": 2,
        "previousInPlaceRestartAttempt": 0,
        "currentInPlaceRestartAttempt": 1,
        "replicatedJobsStatus": [{"name": "w", **counts, "jobRestarts": [1], "jobRestartsCountTowardsMax": [0]}],
    }
    assert with_status(jobsets, status) == status
