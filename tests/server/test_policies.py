"""Failure policies, startup, suspension, deadlines and TTL next to the real Job controller, with pods that fail."""

from collections.abc import Iterator
from typing import Any

import pytest

from pyjobset.localplane.plane import Plane
from tests.server.plane import Kubectl, wait_for
from tests.server.scheduling.lab import ATTEMPT, READY_AFTER, RUN_FOR, TERMINATE_AFTER, Lab
from tests.server.test_controller import Cluster, Object, is_live, manifest, replicated_job

JOB_ATTEMPT = "jobset.sigs.k8s.io/job-restart-attempt"
FAIL_ON_42 = {"rules": [{"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [42]}}]}


@pytest.fixture
def cluster(kubectl: Kubectl, namespace: str) -> Cluster:
    return Cluster(kubectl, namespace)


@pytest.fixture
def lab(plane: Plane, namespace: str) -> Iterator[Lab]:
    made = Lab(plane, namespace)
    yield made
    made.close()


def noted(replicated_job: Object, **notes: str) -> Object:
    """With annotations for its pods."""
    replicated_job["template"]["spec"]["template"]["metadata"] = {"annotations": notes}
    return replicated_job


def rule(action: str, **match: Any) -> Object:
    return {"name": "r", "action": action, **match}


def policy(*rules: Object, max_restarts: int = 3, **more: Any) -> Object:
    return {"maxRestarts": max_restarts, "rules": list(rules), **more}


def status(cluster: Cluster, name: str = "js") -> Object:
    found: Object = cluster.get("jobset", name).get("status", {})
    return found


def attempts(cluster: Cluster, label: str = ATTEMPT) -> dict[str, str]:
    return {j["metadata"]["name"]: j["metadata"]["labels"][label] for j in cluster.all("jobs")}


def uids(cluster: Cluster) -> dict[str, str]:
    return {j["metadata"]["name"]: j["metadata"]["uid"] for j in cluster.all("jobs")}


FAILURES = {
    "BackoffLimitExceeded": replicated_job("f", "sleep 1; exit 3"),
    "PodFailurePolicy": replicated_job("f", "sleep 1; exit 42", backoffLimit=3, podFailurePolicy=FAIL_ON_42),
    "DeadlineExceeded": replicated_job("f", "sleep infinity", activeDeadlineSeconds=1),
    "FailedIndexes": replicated_job("f", "sleep 1; exit 3", pods=2, backoffLimit=2147483647, backoffLimitPerIndex=0),
    "MaxFailedIndexesExceeded": replicated_job(
        "f", "sleep 1; exit 3", 1, 2, completions=6, backoffLimit=2147483647, backoffLimitPerIndex=0, maxFailedIndexes=1
    ),
}


@pytest.mark.parametrize("reason", FAILURES)
def test_a_rule_knows_why_a_job_failed(cluster: Cluster, reason: str) -> None:
    """The real Job controller says it; a rule about any other reason does not match."""
    others = [r for r in FAILURES if r != reason]
    rules = [
        rule("RestartJobSet", onJobFailureReasons=others) | {"name": "others"},
        rule("FailJobSet", onJobFailureReasons=[reason]),
    ]
    cluster.apply(manifest("js", FAILURES[reason], failurePolicy=policy(*rules)))
    failed = cluster.wait_true("Failed")
    assert failed["reason"] == "FailJobSetFailurePolicyAction"
    assert failed["message"].endswith("(first failed job: js-f-0)")
    assert status(cluster)["restarts"] == 0


@pytest.mark.decision(3)
@pytest.mark.parametrize(("pattern", "state"), [("exit code 42 matching", "Failed"), ("^exit code", "")])
def test_a_pattern_is_searched_in_the_job_controllers_message(cluster: Cluster, pattern: str, state: str) -> None:
    rules = [rule("FailJobSet", onJobFailureMessagePatterns=[pattern])]
    cluster.apply(manifest("js", FAILURES["PodFailurePolicy"], failurePolicy=policy(*rules, max_restarts=100)))
    if state:
        assert cluster.wait_true("Failed")["reason"] == "FailJobSetFailurePolicyAction"
    else:
        assert wait_for(lambda: status(cluster).get("restarts", 0) >= 1, "a restart")


def test_a_job_with_a_template_of_its_own_restarts_alone(cluster: Cluster) -> None:
    failing, worker = replicated_job("f", "sleep infinity"), replicated_job("w", "sleep infinity")
    cluster.apply(manifest("js", failing, worker, failurePolicy=policy(rule("RestartJob"))))
    before = wait_for(lambda: len(uids(cluster)) == 2 and uids(cluster), "the Jobs")
    for number in ("1", "2", "3"):
        cluster.fail("js-f-0")
        wait_for(lambda n=number: attempts(cluster, JOB_ATTEMPT).get("js-f-0") == n, f"the Job of attempt {number}")
    after = uids(cluster)
    assert after["js-w-0"] == before["js-w-0"]
    assert after["js-f-0"] != before["js-f-0"]
    cluster.fail("js-f-0")
    assert cluster.wait_true("Failed")["reason"] == "ReachedMaxRestarts"
    counted = {s["name"]: s.get("jobRestartsCountTowardsMax") for s in status(cluster)["replicatedJobsStatus"]}
    assert counted == {"f": [3], "w": None}
    assert status(cluster)["restarts"] == 0
    cluster.wait_event("RestartJobFailurePolicyAction")
    assert not cluster.condition("RestartingJobSet")["status"]


def test_a_restart_that_does_not_count(cluster: Cluster) -> None:
    rules = [rule("RestartJobSetAndIgnoreMaxRestarts", onJobFailureReasons=["PodFailurePolicy"])]
    js = manifest("js", FAILURES["PodFailurePolicy"], failurePolicy=policy(*rules, max_restarts=0))
    cluster.apply(js)
    wait_for(lambda: status(cluster).get("restarts", 0) >= 2, "two restarts")
    assert status(cluster).get("restartsCountTowardsMax", 0) == 0
    assert not status(cluster).get("terminalState")
    assert cluster.condition("RestartingJobSet")["reason"] in ("FailurePolicy_r", "JobsReady")
    cluster.wait_event("RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction")


def test_blocking_recreate_creates_nothing_before_the_last_old_job_is_gone(lab: Lab) -> None:
    slow = noted(replicated_job("w", "sleep infinity", replicas=2), **{TERMINATE_AFTER: "4s"})
    blocking = policy(restartStrategy="BlockingRecreate")
    since = lab.version()
    lab.apply(manifest("js", replicated_job("f", "sleep infinity"), slow, failurePolicy=blocking))
    lab.wait_running(3)
    lab.fail("js-f-0")
    wait_for(lambda: list(attempts(lab).values()) == ["1"] * 3, "the second attempt")
    changes = [(c.version, c.type, c.object["metadata"]["labels"][ATTEMPT]) for c in lab.history("jobs", since)]
    made = [version for version, type_, attempt in changes if (type_, attempt) == ("ADDED", "1")]
    gone = [version for version, type_, attempt in changes if (type_, attempt) == ("DELETED", "0")]
    assert (len(made), len(gone)) == (3, 3)
    assert min(made) > max(gone), "Jobs of both attempts at once"


def test_recreate_does_not_wait_for_other_jobs(lab: Lab) -> None:
    slow = noted(replicated_job("w", "sleep infinity"), **{TERMINATE_AFTER: "1h"})
    lab.apply(manifest("js", replicated_job("f", "sleep infinity"), slow, failurePolicy=policy(max_restarts=1)))
    lab.wait_running(2)
    lab.fail("js-f-0")
    wait_for(lambda: attempts(lab) == {"js-f-0": "1", "js-w-0": "0"}, "the failed Job is back before the other")


@pytest.mark.parametrize("order", ["InOrder", "dependsOn"])
def test_startup_is_replayed_on_restart_and_on_resume(lab: Lab, order: str) -> None:
    """The follower's Job is not there, or not running, while the leader's pod is not ready."""
    leader, follower = replicated_job("leader", "sleep infinity"), replicated_job("w", "sleep infinity")
    more: Object = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
    if order == "dependsOn":
        follower["dependsOn"], more = [{"name": "leader", "status": "Ready"}], {}
    since = lab.version()
    lab.apply(manifest("js", noted(leader, **{READY_AFTER: "1h"}), follower, failurePolicy=policy(), **more))

    def running(attempt: str) -> list[str]:
        jobs = (j for j in lab.of("jobs") if not j["spec"].get("suspend") and is_live(j))
        return [j["metadata"]["name"] for j in jobs if j["metadata"]["labels"][ATTEMPT] == attempt]

    def starts_in_order(what: str, attempt: str = "0") -> None:
        def leads() -> str:
            assert running(attempt) == ["js-leader-0"]
            (pod,) = (p for p in lab.of("pods") if is_live(p) and p["metadata"]["labels"][ATTEMPT] == attempt)
            assert pod["status"]["phase"] == "Running"
            return str(pod["metadata"]["name"])

        pod = wait_for(leads, f"{what}: the leader is first")
        lab.run("annotate", "pod", pod, f"{READY_AFTER}=0s", "--overwrite")
        wait_for(lambda: running(attempt) == ["js-leader-0", "js-w-0"], f"{what}: the follower is next")

    starts_in_order("start")
    lab.patch("jobset", "js", {"spec": {"suspend": True}})
    wait_for(lambda: not running("0") and not lab.of("pods"), "all suspended")
    lab.patch("jobset", "js", {"spec": {"suspend": False}})
    starts_in_order("resume")
    lab.fail("js-leader-0")
    wait_for(lambda: status(lab).get("restarts") == 1, "a restart")
    starts_in_order("restart", "1")

    ready: list[int] = []
    """Pods of the leader, each time that the follower started."""
    ready_now, runs = 0, False
    for change in lab.history("jobs", since):
        if change.name == "js-leader-0":
            ready_now = change.object["status"].get("ready", 0) if change.type != "DELETED" else 0
            continue
        before, runs = runs, change.type != "DELETED" and not change.object["spec"].get("suspend")
        ready += [ready_now] if runs and not before else []
    assert ready == [1, 1, 1]


@pytest.mark.decision(18)
def test_in_order_suspended_turns_false_when_the_first_runs(cluster: Cluster) -> None:
    leader = noted(replicated_job("leader", "sleep infinity"), **{READY_AFTER: "1h"})
    order = {"startupPolicyOrder": "InOrder"}
    cluster.apply(manifest("js", leader, replicated_job("w", "sleep 1"), startupPolicy=order, suspend=True))
    cluster.wait_true("Suspended")
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    cluster.wait_false("Suspended")
    assert {j["metadata"]["name"]: bool(j["spec"].get("suspend")) for j in cluster.all("jobs")} == {
        "js-leader-0": False,
        "js-w-0": True,
    }


@pytest.mark.decision(7)
def test_a_resume_carries_what_changed_into_jobs_that_ran_before(cluster: Cluster, kubectl: Kubectl) -> None:
    """As queueing controllers do it: suspended, another node selector, resumed. Nothing of the first one stays."""
    job = replicated_job("w", "sleep infinity", replicas=2)
    pod = job["template"]["spec"]["template"]
    pod["metadata"] = {"labels": {"first": "1"}}
    pod["spec"]["nodeSelector"] = {"kubernetes.io/os": "linux"}
    cluster.apply(manifest("js", job))
    wait_for(lambda: len(cluster.names("pods")) == 2, "the pods")
    before = uids(cluster)
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    path = "/spec/replicatedJobs/0/template/spec/template"
    patch = (
        f'[{{"op":"replace","path":"{path}/metadata/labels","value":{{"second":"2"}}}},'
        f'{{"op":"replace","path":"{path}/spec/nodeSelector","value":{{"kubernetes.io/arch":"amd64"}}}},'
        f'{{"op":"add","path":"{path}/spec/tolerations","value":[{{"key":"k","operator":"Exists"}}]}},'
        '{"op":"replace","path":"/spec/suspend","value":false}]'
    )
    cluster.run("patch", "jobset", "js", "--type=json", "-p", patch)

    def is_carried() -> bool:
        pods = [p for p in cluster.all("pods") if not p["metadata"].get("deletionTimestamp")]
        assert len(pods) == 2
        for pod in pods:
            assert pod["spec"].get("nodeSelector") == {"kubernetes.io/arch": "amd64"}
            assert {"key": "k", "operator": "Exists"} in pod["spec"]["tolerations"]
            assert pod["metadata"]["labels"].get("second") == "2"
            assert "first" not in pod["metadata"]["labels"]
        return True

    wait_for(is_carried, "the new pods")
    assert uids(cluster) == before, "the Jobs are the same"


def test_the_deadline_of_a_jobset(cluster: Cluster) -> None:
    cluster.apply(manifest("js", replicated_job("w", "sleep infinity", replicas=2), activeDeadlineSeconds=3))
    wait_for(lambda: status(cluster).get("startTime"), "a start")
    failed = cluster.wait_true("Failed")
    assert failed["reason"] == "DeadlineExceeded"
    wait_for(lambda: not cluster.names("jobs,pods"), "what ran is stopped")
    assert status(cluster)["terminalState"] == "Failed"


@pytest.mark.parametrize("command", ["sleep 1", "sleep 1; exit 3"])
def test_a_finished_jobset_is_deleted_after_its_ttl(cluster: Cluster, command: str) -> None:
    cluster.apply(manifest("js", replicated_job("w", command), ttlSecondsAfterFinished=2))
    wait_for(lambda: not cluster.names("jobsets,jobs,services,pods"), "nothing is left")


def test_another_controllers_jobset_is_left_alone_until_its_ttl(cluster: Cluster) -> None:
    js = manifest("js", replicated_job("w", "sleep 1"), managedBy="example.com/other", ttlSecondsAfterFinished=0)
    cluster.apply(js, manifest("ours", replicated_job("w", "sleep 1")))
    cluster.wait_true("Completed", "ours")
    assert not [j for j in cluster.names("jobs") if "js-" in j]
    done = '{"status":{"restarts":0,"conditions":[{"type":"Completed","status":"True","reason":"AllJobsCompleted",'
    done += '"message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
    cluster.run("patch", "jobset", "js", "--subresource=status", "--type=merge", "-p", done)
    wait_for(lambda: cluster.names("jobsets") == {"JobSet/ours"}, "it is deleted")


@pytest.mark.parametrize(("operator", "state"), [("Any", "Completed"), ("All", "Failed")])
def test_success_policy_on_targets(cluster: Cluster, operator: str, state: str) -> None:
    """One Job of the target succeeds at once, the other one fails later."""
    good, bad = replicated_job("good", "sleep 1"), replicated_job("bad", "sleep infinity")
    targets = {"operator": operator, "targetReplicatedJobs": ["good", "bad"]}
    cluster.apply(manifest("js", good, bad, successPolicy=targets))
    wait_for(lambda: cluster.get("job", "js-good-0")["status"].get("succeeded"), "the success")
    if operator == "All":
        cluster.fail("js-bad-0")
    cluster.wait_true(state)
    assert status(cluster)["terminalState"] == state


def test_the_coordinator_is_told_to_every_job_and_pod(cluster: Cluster) -> None:
    coordinator = {"replicatedJob": "leader", "jobIndex": 0, "podIndex": 0}
    network = {"subdomain": "net", "publishNotReadyAddresses": False}
    leader = replicated_job("leader", "sleep infinity")
    leader["template"]["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 29500}]
    js = manifest("js", leader, replicated_job("w", "sleep infinity"), coordinator=coordinator, network=network)
    cluster.apply(js)
    wait_for(lambda: len(cluster.names("pods")) == 2, "the pods")
    for child in cluster.all("jobs,pods"):
        for where in ("labels", "annotations"):
            assert child["metadata"][where]["jobset.sigs.k8s.io/coordinator"] == "js-leader-0-0.net"
    pods = cluster.all("pods")
    assert {p["spec"]["subdomain"] for p in pods} == {"net"}
    assert {p["spec"]["hostname"] for p in pods} == {"js-leader-0-0", "js-w-0-0"}
    service = cluster.get("service", "net")["spec"]
    assert (service["clusterIP"], service.get("publishNotReadyAddresses", False)) == ("None", False)
    assert [(p["name"], p["port"], p["protocol"]) for p in service["ports"]] == [("tcp-29500", 29500, "TCP")]


def test_what_others_read_in_status(cluster: Cluster) -> None:
    """Kueue and Trainer: counts by ReplicatedJob, Suspended, Completed and terminalState; people: kubectl wait."""
    driver, workers = replicated_job("driver", "sleep infinity"), replicated_job("w", "sleep infinity", 2, 2)
    cluster.apply(manifest("js", driver, workers, suspend=True))
    zero = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}

    def counts() -> dict[str, Object]:
        found = status(cluster).get("replicatedJobsStatus", [])
        return {s["name"]: {k: s[k] for k in zero} for s in found}

    wait_for(lambda: counts() == {"driver": zero | {"suspended": 1}, "w": zero | {"suspended": 2}}, "suspended counts")
    cluster.run("wait", "jobset/js", "--for=condition=Suspended", "--timeout=100s")
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    running = {"driver": zero | {"ready": 1, "active": 1}, "w": zero | {"ready": 2, "active": 2}}
    wait_for(lambda: counts() == running, "running counts")
    cluster.run("annotate", "pod", "--all", f"{RUN_FOR}=0s")
    cluster.run("wait", "jobset/js", "--for=condition=Completed", "--timeout=100s")
    wait_for(lambda: counts() == {"driver": zero | {"succeeded": 1}, "w": zero | {"succeeded": 2}}, "final counts")
    shown = cluster.run("get", "jobset", "js").splitlines()
    assert shown[0].split() == ["NAME", "TERMINALSTATE", "RESTARTS", "COMPLETED", "SUSPENDED", "AGE"]
    assert shown[1].split()[:5] == ["js", "Completed", "0", "True", "false"]
