"""The examples on real Kubernetes: the documentation's commands, word for word, and what the scheduler makes of it."""

import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyjobset.cli.main import main
from pyjobset.localplane.options import NodeLayout
from pyjobset.localplane.plane import Plane
from pyjobset.localplane.stages import RUN_FOR
from tests.examples.conftest import EXAMPLES, Shell
from tests.server.plane import Kubectl, MakePlane, wait_for

pytestmark = pytest.mark.server

ANNOTATIONS = (
    "kubectl get jobs -n default -o jsonpath='{range .items[*]}{.metadata.name}: {.metadata.annotations}{\"\\n\"}{end}'"
)
COUNTS = "kubectl get workloads,podgroups,jobs -n default"
MIN_COUNTS = (
    "kubectl get podgroups -n default "
    "-o custom-columns=NAME:.metadata.name,MINCOUNT:.spec.schedulingPolicy.gang.minCount"
)


def counts(shell: Shell) -> tuple[int, int, int]:
    """Workloads, PodGroups and Jobs in the namespace, as the documentation lists them."""
    kinds = Counter(line.split("/")[0] for line in shell.run(COUNTS).splitlines() if "/" in line.split(" ")[0])
    return kinds["workload.scheduling.k8s.io"], kinds["podgroup.scheduling.k8s.io"], kinds["job.batch"]


def min_counts(shell: Shell) -> list[str]:
    return sorted(line.split()[1] for line in shell.run(MIN_COUNTS).splitlines()[1:])


def labels_of_nodes(kubectl: Kubectl, key: str) -> dict[str, str]:
    nodes = json.loads(kubectl("get", "nodes", "-o", "json").stdout)["items"]
    return {node["metadata"]["name"]: node["metadata"]["labels"].get(key) for node in nodes}


def has(shell: Shell, expected: tuple[int, int, int]) -> None:
    def counted() -> bool:
        assert counts(shell) == expected
        return True

    wait_for(counted, f"{expected} Workloads, PodGroups and Jobs")


def test_whole_jobset_gang(default: Shell) -> None:
    default.apply("gang-scheduling")
    has(default, (1, 1, 3))
    default.pods_running("gang-training", 5)
    described = default.run("kubectl describe workload -n default -l jobset.sigs.k8s.io/jobset-name=gang-training")
    assert re.search(r"Min Count: +5\n", described)
    assert re.search(r"Kind: +JobSet\n +Name: +gang-training\n", described)
    (group,) = default.objects("podgroups", "gang-training")
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 5}}
    assert group["spec"]["disruptionMode"] == {"all": {}}
    (workload,) = default.objects("workloads", "gang-training")
    (template,) = workload["spec"]["podGroupTemplates"]
    lines = default.run(ANNOTATIONS).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"gang-training-{j}" for j in ("driver-0", "workers-0", "workers-1")
    ]
    assert all(f'"scheduling.k8s.io/group-template-name":"{template["name"]}"' in line for line in lines)
    default.look()


def test_single_gang(default: Shell) -> None:
    default.apply("single-gang")
    has(default, (1, 1, 2))
    assert min_counts(default) == ["8"]
    default.pods_running("single-gang", 8)
    default.look()


def test_no_scheduling_baseline(default: Shell) -> None:
    default.apply("no-scheduling-baseline")
    default.pods_running("no-sched-baseline", 2)
    jobs = default.run("kubectl get jobs -n default -l jobset.sigs.k8s.io/jobset-name=no-sched-baseline")
    assert jobs.count("no-sched-baseline-workers-") == 2
    assert "no-sched-baseline" not in default.run("kubectl get workloads -n default")
    assert "no-sched-baseline" not in default.run("kubectl get podgroups -n default")
    assert "scheduling.k8s.io" not in default.run(ANNOTATIONS)
    assert all("schedulingGroup" not in pod["spec"] for pod in default.objects("pods", "no-sched-baseline"))
    default.look()


def test_independent_pod_groups_per_replicated_job(default: Shell) -> None:
    default.apply("per-rj-independent")
    has(default, (1, 2, 3))
    assert min_counts(default) == ["1", "4"]
    default.pods_running("per-rj-independent", 5)
    default.look()


def test_one_pod_group_over_two_replicated_jobs(default: Shell) -> None:
    default.apply("per-rj-grouped")
    has(default, (1, 1, 3))
    command = (
        "kubectl get podgroups -n default -l jobset.sigs.k8s.io/jobset-name=per-rj-grouped "
        "-o jsonpath='{.items[0].spec.schedulingPolicy.gang.minCount}{\"\\n\"}'"
    )
    assert default.run(command) == "5\n"
    default.pods_running("per-rj-grouped", 5)
    default.look()


def test_a_pod_group_per_job(default: Shell) -> None:
    default.apply("per-ij-job-independent")
    has(default, (1, 3, 3))
    assert min_counts(default) == ["1", "2", "2"]
    default.pods_running("per-ij-job-independent", 5)
    default.look()


def test_workers_on_one_rack(default: Shell, kubectl: Kubectl) -> None:
    default.apply("topology-constrained")
    nodes = default.pods_running("topo-training", 5)
    text = default.run("kubectl get podgroups -n default -l jobset.sigs.k8s.io/jobset-name=topo-training -o yaml")
    assert text.count("key: topology.kubernetes.io/rack") == 1
    assert text.count("basic: {}") == 1
    assert "minCount: 4" in text
    racks = labels_of_nodes(kubectl, "topology.kubernetes.io/rack")
    workers = {racks[node] for pod, node in nodes.items() if "-workers-" in pod}
    assert len(workers) == 1
    assert None not in workers
    default.look()


def test_a_gang_on_one_slice(default: Shell, kubectl: Kubectl) -> None:
    default.apply("tpu-topology-gang")
    nodes = default.pods_running("tpu-multislice", 4)
    command = (
        "kubectl get podgroups -n default -l jobset.sigs.k8s.io/jobset-name=tpu-multislice "
        '-o jsonpath=\'{.items[0].spec.schedulingPolicy}{" "}{.items[0].spec.schedulingConstraints}{"\\n"}\''
    )
    policy, constraints = default.run(command).split()
    assert json.loads(policy) == {"gang": {"minCount": 4}}
    assert json.loads(constraints) == {"topology": [{"key": "cloud.google.com/gke-tpu-slice"}]}
    slices = labels_of_nodes(kubectl, "cloud.google.com/gke-tpu-slice")
    assert len({slices[node] for node in nodes.values()}) == 1
    default.look()


def test_sequenced_startup(default: Shell) -> None:
    default.apply("sequenced-startup-gang")
    wait_for(lambda: min_counts(default) == ["1", "2"], "PodGroups")
    default.pods_running("sequenced-gang", 3)  # the leader waits until the worker's Job was made and runs
    default.look()


def test_suspend_and_resume(default: Shell) -> None:
    default.apply("suspend-resume")
    default.pods_running("gang-suspend", 2)
    names = "kubectl get workloads,podgroups -n default -o name"
    before = default.run(names)
    assert before.count("gang-suspend") == 2
    default.run("""kubectl patch jobset gang-suspend -n default --type=merge -p '{"spec":{"suspend":true}}'""")
    wait_for(lambda: default.run(names) == "", "no Workload and no PodGroup")
    default.run("""kubectl patch jobset gang-suspend -n default --type=merge -p '{"spec":{"suspend":false}}'""")
    wait_for(lambda: default.run(names) == before, "the same Workload and PodGroup")
    default.pods_running("gang-suspend", 2)
    default.look()


def test_an_elastic_gang_grows_in_place(default: Shell) -> None:
    default.apply("elastic-gang")
    default.pods_running("gang-elastic", 2)
    min_count = (
        "kubectl get podgroups -n default -l jobset.sigs.k8s.io/jobset-name=gang-elastic "
        "-o jsonpath='{.items[0].spec.schedulingPolicy.gang.minCount}{\"\\n\"}'"
    )
    uids = "kubectl get workloads,podgroups -n default -o jsonpath='{.items[*].metadata.uid}'"
    before = default.run(uids)
    assert default.run(min_count) == "2\n"
    default.apply("elastic-gang-scale-patch")
    default.pods_running("gang-elastic", 4)
    assert default.run(min_count) == "4\n"
    assert default.run(uids) == before
    default.look()


def test_a_claim_of_the_pod_group(default: Shell) -> None:
    default.apply("dra-resource-claims")
    command = (
        "kubectl get podgroups -n default -l jobset.sigs.k8s.io/jobset-name=dra-shared-claim "
        "-o jsonpath='{.items[0].spec.resourceClaims}{\"\\n\"}'"
    )
    wait_for(lambda: default.objects("podgroups", "dra-shared-claim"), "a PodGroup")
    claim = {"name": "imex-channel", "resourceClaimTemplateName": "imex-channel-template"}
    assert json.loads(default.run(command)) == [claim]
    default.look()


def test_a_gang_of_higher_priority_takes_the_place(make_plane: MakePlane) -> None:
    plane = make_plane(controller=True, layout=NodeLayout(count=8))
    shell = Shell(plane.run_kubectl)
    shell.apply("preemption", "-l", "step=first")
    low = shell.pods_running("preempt-low", 8)
    shell.apply("preemption", "-l", "step=second")
    high = shell.pods_running("preempt-high", 4)
    assert set(high.values()) < set(low.values())
    wait_for(
        lambda: not low.keys() & {p["metadata"]["name"] for p in shell.objects("pods", "preempt-low")},
        "the end of the whole gang",
    )


def test_all_or_none(kubectl: Kubectl, namespace: str, plane: Plane, capsys: pytest.CaptureFixture[str]) -> None:
    """Where one pod of a gang finds no room, no pod of it is bound, and the tree says what is missing."""
    manifest = (EXAMPLES / "gang-scheduling.yaml").read_text().replace("namespace: default", f"namespace: {namespace}")
    driver, _, workers = manifest.partition("- name: workers")
    huge = workers.replace("cpu: 100m", 'cpu: "5"')
    done = kubectl("apply", "-f", "-", stdin=f"{driver}- name: workers{huge}")
    assert done.returncode == 0, done.stderr

    def explained() -> bool:
        assert main(["tree", "gang-training", "-n", namespace, "--kubeconfig", str(plane.kubeconfig)]) == 0
        shown = capsys.readouterr().out
        assert "Waiting" in shown
        assert "waits: needs 5 pods at once" in shown
        assert "Insufficient cpu" in shown
        return True

    wait_for(explained, "an explanation")
    pods = json.loads(kubectl("get", "pods", "-n", namespace, "-o", "json").stdout)["items"]
    assert [pod["spec"].get("nodeName") for pod in pods] == [None] * 5


def test_the_tree_follows_a_jobset_to_its_end(
    kubectl: Kubectl, namespace: str, plane: Plane, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = (EXAMPLES / "gang-scheduling.yaml").read_text().replace("namespace: default", f"namespace: {namespace}")
    done = kubectl("apply", "-f", "-", stdin=manifest.replace("30s", "infinity"))
    assert done.returncode == 0, done.stderr
    flags = ["-n", namespace, "--kubeconfig", str(plane.kubeconfig)]

    def run() -> bool:
        status = json.loads(kubectl("get", "jobset", "gang-training", "-n", namespace, "-o", "json").stdout)["status"]
        return [s["ready"] for s in status["replicatedJobsStatus"]] == [1, 2]

    def end() -> None:
        wait_for(run, "a status that says that all run")
        kubectl("annotate", "pod", "--all", "-n", namespace, f"{RUN_FOR}=0s")

    with ThreadPoolExecutor() as threads:
        ending = threads.submit(end)
        assert main(["tree", "gang-training", "--watch", *flags]) == 0
        ending.result()
    pictures = capsys.readouterr().out.split("\n\n")
    states = [line.split()[2] for picture in pictures for line in picture.splitlines() if line.startswith("JobSet ")]
    assert states[-1] == "Completed"
    assert "Running" in states
    assert main(["tree", "gang-trainin", *flags]) == 4
    assert "did you mean gang-training?" in capsys.readouterr().err


def test_plan_is_what_the_controller_makes(default: Shell, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The same names, specs and labels, but for what the API server and the JobSet's uid add."""
    default.apply("gang-scheduling")
    default.pods_running("gang-training", 5)
    live = tmp_path / "live.yaml"
    live.write_text(default.run("kubectl get jobset gang-training -n default -o yaml"))
    assert main(["plan", "-f", str(live), "-o", "json"]) == 0
    planned = json.loads(capsys.readouterr().out)["items"]
    stored = {(o["kind"], o["metadata"]["name"]): o for kind in ("workloads", "podgroups", "services", "jobs")
              for o in default.objects(kind, "gang-training")}  # fmt: skip
    assert {(o["kind"], o["metadata"]["name"]) for o in planned} == stored.keys()
    for one in planned:
        there = stored[one["kind"], one["metadata"]["name"]]
        assert missing(one, there) == []


def missing(planned: object, stored: object, path: str = "") -> list[str]:
    """Where the stored object does not have what was planned."""
    if isinstance(planned, dict) and isinstance(stored, dict):
        return [p for key, value in planned.items() for p in missing(value, stored.get(key), f"{path}.{key}")]
    if isinstance(planned, list) and isinstance(stored, list) and len(planned) == len(stored):
        return [p for i, (a, b) in enumerate(zip(planned, stored, strict=True)) for p in missing(a, b, f"{path}[{i}]")]
    return [] if planned == stored else [f"{path}: {planned!r}, stored {stored!r}"]


def test_the_demo(default: Shell, plane: Plane, capsys: pytest.CaptureFixture[str]) -> None:
    """It leaves alone what it did not make, clears what it made, and proves what it shows."""
    default.apply("gang-scheduling")
    command = ["demo", "--dir", str(plane.directory)]
    assert main(command) == 2
    assert "the demo did not make" in capsys.readouterr().err
    default.run("kubectl annotate jobset gang-training -n default jobset.sigs.k8s.io/made-by-demo=true")
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "JobSet Completed" in shown.out
    assert "5 pods ran on" in shown.out
    assert f"down --dir {plane.directory}" in shown.out
    assert "Running, 5 of 5 pods have run" in shown.err
