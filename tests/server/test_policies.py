"""Failure policies, startup, suspension, deadlines and TTL next to the real Job controller, with pods that fail."""

from typing import Any

import pytest

from tests.server.plane import Kubectl, wait_for
from tests.server.test_controller import Cluster, Object, manifest, replicated_job

ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
JOB_ATTEMPT = "jobset.sigs.k8s.io/job-restart-attempt"
FAIL_ON_42 = {"rules": [{"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [42]}}]}


@pytest.fixture
def cluster(kubectl: Kubectl, namespace: str) -> Cluster:
    return Cluster(kubectl, namespace)


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
        assert wait_for(lambda: status(cluster).get("restarts", 0) >= 1, "a restart", 60)


def test_a_job_with_a_template_of_its_own_restarts_alone(cluster: Cluster) -> None:
    failing = replicated_job("f", "sleep 2; exit 3")
    js = manifest("js", failing, replicated_job("w", "sleep infinity"), failurePolicy=policy(rule("RestartJob")))
    cluster.apply(js)
    before = wait_for(lambda: len(uids(cluster)) == 2 and uids(cluster), "the Jobs")
    wait_for(lambda: attempts(cluster, JOB_ATTEMPT).get("js-f-0") == "1", "the second Job", 60)
    after = uids(cluster)
    assert after["js-w-0"] == before["js-w-0"]
    assert after["js-f-0"] != before["js-f-0"]
    assert cluster.wait_true("Failed")["reason"] == "ReachedMaxRestarts"
    counted = {s["name"]: s.get("jobRestartsCountTowardsMax") for s in status(cluster)["replicatedJobsStatus"]}
    assert counted == {"f": [3], "w": None}
    assert status(cluster)["restarts"] == 0
    assert ("Warning", "RestartJobFailurePolicyAction") in cluster.events()
    assert not cluster.condition("RestartingJobSet")["status"]


def test_a_restart_that_does_not_count(cluster: Cluster) -> None:
    rules = [rule("RestartJobSetAndIgnoreMaxRestarts", onJobFailureReasons=["PodFailurePolicy"])]
    js = manifest("js", FAILURES["PodFailurePolicy"], failurePolicy=policy(*rules, max_restarts=0))
    cluster.apply(js)
    wait_for(lambda: status(cluster).get("restarts", 0) >= 2, "two restarts", 60)
    assert status(cluster).get("restartsCountTowardsMax", 0) == 0
    assert not status(cluster).get("terminalState")
    assert cluster.condition("RestartingJobSet")["reason"] in ("FailurePolicy_r", "JobsReady")
    wait_for(lambda: ("Warning", "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction") in cluster.events(), "event")


def test_blocking_recreate_creates_nothing_before_the_last_old_job_is_gone(cluster: Cluster) -> None:
    slow = replicated_job("w", "sleep infinity", replicas=2)
    slow["template"]["spec"]["template"]["metadata"] = {"annotations": {"plane.pyjobset/terminate-after": "6s"}}
    js = manifest(
        "js",
        replicated_job("f", "sleep 2; exit 3"),
        slow,
        failurePolicy=policy(restartStrategy="BlockingRecreate"),
    )
    cluster.apply(js)
    wait_for(lambda: len(cluster.names("pods")) == 3, "the pods")
    seen: list[frozenset[str]] = []

    def is_restarted() -> bool:
        found = attempts(cluster)
        seen.append(frozenset(found.values()))
        return len(found) == 3 and set(found.values()) == {"1"}

    wait_for(is_restarted, "the second attempt", 60)
    assert frozenset({"0", "1"}) not in seen, "Jobs of both attempts at once"


def test_recreate_does_not_wait_for_other_jobs(cluster: Cluster) -> None:
    slow = replicated_job("w", "sleep infinity")
    slow["template"]["spec"]["template"]["metadata"] = {"annotations": {"plane.pyjobset/terminate-after": "20s"}}
    cluster.apply(manifest("js", replicated_job("f", "sleep 2; exit 3"), slow, failurePolicy=policy(max_restarts=1)))
    wait_for(lambda: attempts(cluster) == {"js-f-0": "1", "js-w-0": "0"}, "the failed Job is back before the other", 60)


@pytest.mark.parametrize("order", ["InOrder", "dependsOn"])
def test_startup_is_replayed_on_restart_and_on_resume(cluster: Cluster, order: str) -> None:
    """The follower's Job is not there, or not running, while the leader's pod is not ready."""
    leader, follower = replicated_job("leader", "sleep infinity"), replicated_job("w", "sleep infinity")
    leader["template"]["spec"]["template"]["metadata"] = {"annotations": {"plane.pyjobset/ready-after": "3s"}}
    more: Object = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
    if order == "dependsOn":
        follower["dependsOn"], more = [{"name": "leader", "status": "Ready"}], {}
    cluster.apply(manifest("js", leader, follower, failurePolicy=policy(), **more))

    def running() -> set[str]:
        return {j["metadata"]["name"] for j in cluster.all("jobs") if not j["spec"].get("suspend")}

    def starts_in_order(what: str) -> None:
        wait_for(lambda: running() == {"js-leader-0"}, f"{what}: the leader is first", 60)
        wait_for(lambda: running() == {"js-leader-0", "js-w-0"}, f"{what}: the follower is next", 60)
        leaders = [j for j in cluster.all("jobs") if j["metadata"]["name"] == "js-leader-0"]
        assert leaders[0]["status"]["ready"] == 1

    starts_in_order("start")
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    wait_for(lambda: not running(), "all suspended", 60)
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    starts_in_order("resume")
    leaders = [p["metadata"]["name"] for p in cluster.all("pods") if "-leader-" in p["metadata"]["name"]]
    cluster.run("delete", "pod", *leaders, "--wait=false")  # its Job has no second try
    wait_for(lambda: status(cluster).get("restarts") == 1, "a restart", 60)
    starts_in_order("restart")


@pytest.mark.decision(18)
def test_in_order_suspended_turns_false_when_the_first_runs(cluster: Cluster) -> None:
    leader = replicated_job("leader", "sleep infinity")
    leader["template"]["spec"]["template"]["metadata"] = {"annotations": {"plane.pyjobset/ready-after": "forever"}}
    order = {"startupPolicyOrder": "InOrder"}
    cluster.apply(manifest("js", leader, replicated_job("w", "sleep 1"), startupPolicy=order, suspend=True))
    cluster.wait_true("Suspended")
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    wait_for(lambda: cluster.condition("Suspended")["status"] == "False", "it runs", 60)
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

    wait_for(is_carried, "the new pods", 60)
    assert uids(cluster) == before, "the Jobs are the same"


def test_the_deadline_of_a_jobset(cluster: Cluster) -> None:
    cluster.apply(manifest("js", replicated_job("w", "sleep infinity", replicas=2), activeDeadlineSeconds=3))
    assert wait_for(lambda: status(cluster).get("startTime"), "a start")
    failed = cluster.wait_true("Failed")
    assert failed["reason"] == "DeadlineExceeded"
    wait_for(lambda: not cluster.names("jobs,pods"), "what ran is stopped", 60)
    assert status(cluster)["terminalState"] == "Failed"


@pytest.mark.parametrize("command", ["sleep 1", "sleep 1; exit 3"])
def test_a_finished_jobset_is_deleted_after_its_ttl(cluster: Cluster, command: str) -> None:
    cluster.apply(manifest("js", replicated_job("w", command), ttlSecondsAfterFinished=2))
    wait_for(lambda: not cluster.names("jobsets,jobs,services,pods"), "nothing is left", 60)


def test_another_controllers_jobset_is_left_alone_until_its_ttl(cluster: Cluster) -> None:
    js = manifest("js", replicated_job("w", "sleep 1"), managedBy="example.com/other", ttlSecondsAfterFinished=0)
    cluster.apply(js, manifest("ours", replicated_job("w", "sleep 1")))
    cluster.wait_true("Completed", "ours")
    assert not [j for j in cluster.names("jobs") if "js-" in j]
    done = '{"status":{"restarts":0,"conditions":[{"type":"Completed","status":"True","reason":"AllJobsCompleted",'
    done += '"message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
    cluster.run("patch", "jobset", "js", "--subresource=status", "--type=merge", "-p", done)
    wait_for(lambda: cluster.names("jobsets") == {"JobSet/ours"}, "it is deleted", 60)


@pytest.mark.parametrize(("operator", "state"), [("Any", "Completed"), ("All", "Failed")])
def test_success_policy_on_targets(cluster: Cluster, operator: str, state: str) -> None:
    """One Job of the target succeeds at once, the other one fails later."""
    good, bad = replicated_job("good", "sleep 1"), replicated_job("bad", "sleep 4; exit 3")
    targets = {"operator": operator, "targetReplicatedJobs": ["good", "bad"]}
    cluster.apply(manifest("js", good, bad, successPolicy=targets))
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
    driver, workers = replicated_job("driver", "sleep 2"), replicated_job("w", "sleep 2", replicas=2, pods=2)
    cluster.apply(manifest("js", driver, workers, suspend=True))
    zero = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}

    def counts() -> dict[str, Object]:
        found = status(cluster).get("replicatedJobsStatus", [])
        return {s["name"]: {k: s[k] for k in zero} for s in found}

    wait_for(lambda: counts() == {"driver": zero | {"suspended": 1}, "w": zero | {"suspended": 2}}, "suspended counts")
    cluster.run("wait", "jobset/js", "--for=condition=Suspended", "--timeout=30s")
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    running = {"driver": zero | {"ready": 1, "active": 1}, "w": zero | {"ready": 2, "active": 2}}
    wait_for(lambda: counts() == running, "running counts", 60)
    cluster.run("wait", "jobset/js", "--for=condition=Completed", "--timeout=60s")
    wait_for(lambda: counts() == {"driver": zero | {"succeeded": 1}, "w": zero | {"succeeded": 2}}, "final counts")
    shown = cluster.run("get", "jobset", "js").splitlines()
    assert shown[0].split() == ["NAME", "TERMINALSTATE", "RESTARTS", "COMPLETED", "SUSPENDED", "AGE"]
    assert shown[1].split()[:5] == ["js", "Completed", "0", "True", "false"]
