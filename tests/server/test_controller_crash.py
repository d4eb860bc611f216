"""The controller is killed in the middle of its work and started again: the end is the same, nothing is done twice."""

import json
import os
import re
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyjobset.localplane import components
from pyjobset.localplane.options import NodeLayout
from pyjobset.localplane.plane import Plane
from tests.server.plane import MakePlane, wait_for
from tests.server.scheduling.lab import ATTEMPT, FAIL_AFTER, RUN_FOR, Lab
from tests.server.test_controller import GANG, Cluster, Object, manifest, replicated_job

JOBSETS = 40
ENDS = {"Complete", "Failed"}
CREATED = ("jobs", "services", "workloads", "podgroups")
_REQUESTS = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)


def controller_pid(plane: Plane) -> int:
    return next(c.pid for c in plane.status().components if c.name == "jobset-controller")


def writes(plane: Plane) -> Counter[tuple[str, str, str, str]]:
    """What the API server counted of verb, resource, subresource, code, for all that the controller writes."""
    counted: Counter[tuple[str, str, str, str]] = Counter()
    for labels, value in _REQUESTS.findall(plane.run_kubectl("get", "--raw", "/metrics").stdout):
        of = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if of["dry_run"]:  # the webhooks ask whether Jobs would be taken
            continue
        if of["verb"] in ("POST", "PATCH", "APPLY", "DELETE") and of["resource"] in (*CREATED, "jobsets"):
            counted[of["verb"], of["resource"], of["subresource"], of["code"]] += int(float(value))
    return counted


def test_killed_in_the_middle_it_goes_on_where_it_was(make_plane: MakePlane, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = components._controller
    with monkeypatch.context() as slowed:  # so that there is a middle on every machine
        flags = ["--kube-api-qps=30", "--kube-api-burst=30"]
        slowed.setattr(components, "_controller", lambda *given: [*plain(*given), *flags])
        plane = make_plane(controller=True, layout=NodeLayout(count=2, cpu="64"))
    cluster = Cluster(plane.run_kubectl, "default")
    # Creations go on while the controller is dead, so its webhooks must not be asked; the next start has them again.
    plane.run_kubectl("delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--all")
    jobsets = [manifest(f"js-{n}", replicated_job("w", "sleep infinity", 3), scheduling=GANG) for n in range(JOBSETS)]
    pid = controller_pid(plane)
    with ThreadPoolExecutor() as threads:
        creating = threads.submit(create, cluster, jobsets)
        wait_for(lambda: cluster.names("jobs"), "the first Jobs")
        os.kill(pid, signal.SIGKILL)
        creating.result()
    wait_for(lambda: not controller_pid(plane), "the end of the controller")
    made = {name: uid for name, uid in uids(cluster).items() if name.startswith("Job/")}
    assert 0 < len(made) < 3 * JOBSETS, "it was not killed in the middle"
    plane.start()

    def is_running() -> bool:
        statuses = [o.get("status", {}).get("replicatedJobsStatus", [{}])[0] for o in cluster.all("jobsets")]
        assert [s.get("ready") for s in statuses] == [3] * JOBSETS
        return True

    assert wait_for(is_running, "all JobSets run")
    after = uids(cluster)
    assert Counter(name.partition("/")[0] for name in after) == {
        "Job": 3 * JOBSETS,
        "Workload": JOBSETS,
        "PodGroup": JOBSETS,
        "Service": JOBSETS + 1,  # the API server's own
    }
    assert made.items() <= after.items(), "a Job that was there was made again"

    # A restart looks at everything, as a resync does. All is right, so it writes nothing.
    before = writes(plane)
    os.kill(controller_pid(plane), signal.SIGTERM)
    wait_for(lambda: not controller_pid(plane), "the end of the controller")
    plane.start()
    probe = manifest("probe", replicated_job("w", "sleep infinity"))
    cluster.apply(probe)
    wait_for(lambda: "Job/probe-w-0" in cluster.names("jobs"), "a JobSet made after the restart is served")
    new = {what: count for what, count in (writes(plane) - before).items() if what[1] in CREATED}
    assert new == {("POST", "jobs", "", "201"): 1, ("POST", "services", "", "201"): 1}


def create(cluster: Cluster, objects: list[Object]) -> None:
    cluster.run("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def uids(cluster: Cluster) -> dict[str, str]:
    return {f"{o['kind']}/{o['metadata']['name']}": o["metadata"]["uid"] for o in cluster.all(",".join(CREATED))}


def test_each_object_is_posted_once_and_no_write_conflicts(make_plane: MakePlane) -> None:
    plane = make_plane(controller=True, layout=NodeLayout(count=2, cpu="64"))
    cluster = Cluster(plane.run_kubectl, "default")
    before = writes(plane)
    jobsets = [manifest(f"js-{n}", replicated_job("w", "sleep infinity", 4), scheduling=GANG) for n in range(JOBSETS)]
    create(cluster, jobsets)

    def is_running() -> bool:
        statuses = [o.get("status", {}).get("replicatedJobsStatus", [{}])[0] for o in cluster.all("jobsets")]
        assert [s.get("ready") for s in statuses] == [4] * JOBSETS
        return True

    assert wait_for(is_running, "all JobSets run")
    sent = writes(plane) - before
    posts = {resource: count for (verb, resource, _, _), count in sent.items() if verb == "POST"}
    assert {r: posts[r] for r in CREATED} == {
        "jobs": 4 * JOBSETS,
        "services": JOBSETS,
        "workloads": JOBSETS,
        "podgroups": JOBSETS,
    }
    assert [what for what in sent if what[3] == "409"] == []
    assert sent["PATCH", "jobsets", "status", "200"] <= 4 * JOBSETS  # two; some more where the machine is very slow


@pytest.mark.decision(17)
def test_each_restart_is_counted_once_also_when_the_controller_is_killed_right_after_it(make_plane: MakePlane) -> None:
    """Between the count and the Jobs of the next attempt there is nothing but what is stored."""
    plane = make_plane(controller=True)
    lab = Lab(plane, "default")
    since = lab.version()
    failing, worker = replicated_job("f", "sleep infinity"), replicated_job("w", "sleep infinity")
    lab.apply(manifest("js", failing, worker, failurePolicy={"maxRestarts": 3}))
    for number in (1, 2, 3):
        lab.fail("js-f-0")
        wait_for(lambda n=number: lab.get("jobset", "js").get("status", {}).get("restarts") == n, "a restart")
        os.kill(controller_pid(plane), signal.SIGKILL)
        wait_for(lambda: not controller_pid(plane), "the end of the controller")
        plane.start()
    lab.fail("js-f-0")
    assert lab.wait_true("Failed")["reason"] == "ReachedMaxRestarts"
    assert lab.get("jobset", "js")["status"]["restarts"] == 3
    made = [c.object["metadata"] for c in lab.history("jobs", since) if c.type == "ADDED"]
    assert Counter((m["name"], m["labels"][ATTEMPT]) for m in made) == {
        (name, attempt): 1 for name in ("js-f-0", "js-w-0") for attempt in "0123"
    }


@pytest.mark.decision(40)
def test_jobs_whose_failures_are_seen_together_restart_in_one_write(make_plane: MakePlane) -> None:
    plane = make_plane(controller=True, feature_gates={"RestartJob": True})
    lab = Lab(plane, "default")
    policy = {"maxRestarts": 9, "rules": [{"name": "r", "action": "RestartJob"}]}
    lab.apply(manifest("js", replicated_job("f", "sleep infinity", 2), failurePolicy=policy))
    pods = lab.wait_running(2)
    os.kill(controller_pid(plane), signal.SIGKILL)
    since = lab.version()
    lab.note(pods, FAIL_AFTER, "0s")

    def failed() -> int:
        return sum(c["type"] == "Failed" for j in lab.all("jobs") for c in j["status"].get("conditions", []))

    wait_for(lambda: failed() == 2, "both have failed")
    plane.start()
    wait_for(lambda: restarts(lab.get("jobset", "js")) == [1, 1], "both restart")
    seen = [restarts(change.object) for change in lab.history("jobsets", since)]
    assert [1, 1] in seen
    assert [1, 0] not in seen
    assert [0, 1] not in seen


def restarts(jobset: Object) -> list[int]:
    found: list[int] = jobset.get("status", {}).get("replicatedJobsStatus", [{}])[0].get("jobRestarts", [])
    return found


@pytest.mark.decision(4)
def test_a_success_and_a_failure_that_are_seen_together_are_a_success(make_plane: MakePlane) -> None:
    plane = make_plane(controller=True)
    lab = Lab(plane, "default")
    works, fails = replicated_job("works", "sleep infinity"), replicated_job("fails", "sleep infinity")
    enough = {"operator": "All", "targetReplicatedJobs": ["works"]}
    lab.apply(manifest("js", fails, works, successPolicy=enough, failurePolicy={"maxRestarts": 1}))
    pods = lab.wait_running(2)
    os.kill(controller_pid(plane), signal.SIGKILL)
    for pod in pods:
        lab.note([pod], FAIL_AFTER if "-fails-" in pod else RUN_FOR, "0s")

    def ended() -> set[str]:
        return {c["type"] for j in lab.all("jobs") for c in j["status"].get("conditions", []) if c["type"] in ENDS}

    wait_for(lambda: ended() == ENDS, "one Job has succeeded and the other has failed")
    plane.start()
    lab.wait_true("Completed")
    assert lab.get("jobset", "js")["status"].get("restarts", 0) == 0
