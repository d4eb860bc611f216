"""`jobset plan`: the table, the objects, the gates."""

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import EXAMPLES, Run

GANG = """\
KIND       NAME                       DETAILS                                 PODS
JobSet     default/gang-training                                              5
Workload   gang-training-536cd048a7   1 template                              5
PodGroup   gang-training-536cd048a7   gang minCount=5 disruptionMode=all      5
Service    gang-training              headless
Job        gang-training-driver-0     podGroupName=gang-training-536cd048a7   1
Job        gang-training-workers-0    podGroupName=gang-training-536cd048a7   2
Job        gang-training-workers-1    podGroupName=gang-training-536cd048a7   2
"""

DETAILS = {
    "topology-constrained": ["basic", "gang minCount=4 topology=topology.kubernetes.io/rack"],
    "dra-resource-claims": ["gang minCount=2 claim=imex-channel"],
    "sequenced-startup-gang": ["sequenced startup", "when leader is Ready"],
    "preemption": ["priorityClassName=batch-low", "priorityClassName=batch-high"],
}


def changed(tmp_path: Path, *changes: tuple[str, str], example: str = "gang-scheduling") -> Path:
    text = (EXAMPLES / f"{example}.yaml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "m.yaml"
    file.write_text(text)
    return file


def test_the_table(run: Run, gang: Path) -> None:
    ended = run("plan", "-f", gang)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == GANG


@pytest.mark.parametrize("example", DETAILS)
def test_details_are_spelled_as_in_the_api(run: Run, example: str) -> None:
    out = run("plan", "-f", EXAMPLES / f"{example}.yaml").out
    assert [text for text in DETAILS[example] if text not in out] == []


def test_no_scheduling_is_jobs_and_a_service(run: Run) -> None:
    out = run("plan", "-f", EXAMPLES / "no-scheduling-baseline.yaml").out
    assert [line.split()[0] for line in out.splitlines()] == ["KIND", "JobSet", "Service", "Job", "Job"]
    assert "podGroupName" not in out


def test_the_gate_can_be_switched_off(run: Run, gang: Path) -> None:
    ended = run("plan", "-f", gang, "--feature-gates", "JobSetWorkloadAwareSchedulingAPI=false")
    assert ended.code == 3
    assert "JobSetWorkloadAwareSchedulingAPI" in ended.err


def test_an_unknown_gate(run: Run, gang: Path) -> None:
    ended = run("plan", "-f", gang, "--feature-gates", "ElasticJobset=true")
    assert ended.code == 2
    assert "did you mean ElasticJobSet?" in ended.err


def test_suspended_has_no_groups_yet(run: Run, tmp_path: Path) -> None:
    out = run("plan", "-f", changed(tmp_path, ("suspend: false", "suspend: true"), example="suspend-resume")).out
    assert "suspended: no Workload and no PodGroups before it is resumed" in out
    assert "PodGroup " not in out


@pytest.mark.parametrize(("flags", "namespace"), [((), "default"), (("-n", "team"), "team")])
def test_the_namespace_of_the_command_line(run: Run, tmp_path: Path, flags: tuple[str, ...], namespace: str) -> None:
    file = changed(tmp_path, ("  namespace: default\n", ""))
    objects = json.loads(run("plan", "-f", file, "-o", "json", *flags).out)["items"]
    assert {o["metadata"]["namespace"] for o in objects} == {namespace}


def test_the_manifest_knows_its_namespace_best(run: Run, gang: Path) -> None:
    assert "default/gang-training" in run("plan", "-f", gang, "-n", "team").out


def test_a_generated_name(run: Run, tmp_path: Path) -> None:
    out = run("plan", "-f", changed(tmp_path, ("  name: gang-training", "  generateName: gang-"))).out
    assert "JobSet     default/gang-" in out


def test_objects_as_yaml_and_json(run: Run, gang: Path) -> None:
    documents = list(yaml.safe_load_all(run("plan", "-f", gang, "-o", "yaml").out))
    assert documents == json.loads(run("plan", "-f", gang, "-o", "json").out)["items"]
    assert [d["kind"] for d in documents] == ["Workload", "PodGroup", "Service", "Job", "Job", "Job"]
    assert all("ownerReferences" not in d["metadata"] for d in documents)


def test_a_jobset_of_the_cluster_keeps_its_owner(run: Run, tmp_path: Path) -> None:
    file = changed(tmp_path, ("  name: gang-training\n", "  name: gang-training\n  uid: 0c5a\n"))
    objects = json.loads(run("plan", "-f", file, "-o", "json").out)["items"]
    assert {o["metadata"]["ownerReferences"][0]["uid"] for o in objects} == {"0c5a"}


def test_many_jobs_share_a_row(run: Run, tmp_path: Path) -> None:
    out = run("plan", "-f", changed(tmp_path, ("replicas: 2", "replicas: 21"))).out
    (row,) = (line for line in out.splitlines() if line.startswith("Job ") and "workers" in line)
    assert row.split(maxsplit=4)[1:4] == ["gang-training-workers-0", "to", "gang-training-workers-20"]
    assert "21 Jobs" in row
    assert row.endswith(" 42")


def test_in_order_startup(run: Run, tmp_path: Path) -> None:
    start = ("  network:\n", "  startupPolicy:\n    startupPolicyOrder: InOrder\n  network:\n")
    ended = run("plan", "-f", changed(tmp_path, start, example="no-scheduling-baseline"))
    assert ended.code == 0
    assert ended.err.startswith("warning: JobSet no-sched-baseline in ")
    assert "spec.startupPolicy" in ended.err


@pytest.mark.parametrize(("policy", "kept"), [("Delete", "deleted with the JobSet"), ("Retain", "kept")])
def test_claims(run: Run, tmp_path: Path, policy: str, kept: str) -> None:
    claims = f"""  volumeClaimPolicies:
    - retentionPolicy:
        whenDeleted: {policy}
      templates:
        - metadata:
            name: data
          spec:
            accessModes: ["ReadWriteOnce"]
            resources:
              requests:
                storage: 10Gi
  network:
"""
    mount = "                  image: busybox:1.37\n"
    mounted = f'{mount}                  volumeMounts: [{{"name": "data", "mountPath": "/d"}}]\n'
    file = changed(tmp_path, ("  network:\n", claims), (mount, mounted), example="no-scheduling-baseline")
    ended = run("plan", "-f", file)
    assert ended.code == 0
    assert ended.err == ""
    (row,) = (line.split(maxsplit=2) for line in ended.out.splitlines() if line.startswith("PersistentVolumeClaim"))
    assert row == ["PersistentVolumeClaim", "data-no-sched-baseline", f"storage=10Gi {kept}"]
