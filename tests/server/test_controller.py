"""The controller on real Kubernetes, next to the real Job controller, scheduler and garbage collector."""

import json
import subprocess
import sys
from typing import Any

import pytest

from pyjobset.localplane.plane import Plane
from pyjobset.objects import names
from tests.server.plane import Kubectl, MakePlane, wait_for

GANG = {"schedulingPolicy": {"gang": {}}}
CHILDREN = "jobs,services,workloads,podgroups,pods"
Object = dict[str, Any]


def replicated_job(name: str, command: str, replicas: int = 1, pods: int = 1, **job: Any) -> Object:
    """`command` is one that simulated pods know: `sleep 1`, `sleep infinity`, or a line for a shell."""
    words = ["sh", "-c", command] if ";" in command else command.split()
    container = {"name": "c", "image": "simulated", "command": words}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": template, **job}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}}


def manifest(name: str, *replicated_jobs: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": list(replicated_jobs), **spec},
    }


class Cluster:
    """One namespace of the plane, in few words."""

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        self._kubectl = kubectl
        self.namespace = namespace

    def run(self, *arguments: str, stdin: str = "") -> str:
        done = self._kubectl(*arguments, "-n", self.namespace, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def apply(self, *objects: Object) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.run("apply", "--server-side", "-f", "-", stdin=json.dumps(items))

    def get(self, kind: str, name: str) -> Object:
        found: Object = json.loads(self.run("get", kind, name, "-o", "json"))
        return found

    def all(self, kinds: str) -> list[Object]:
        items: list[Object] = json.loads(self.run("get", kinds, "-o", "json"))["items"]
        return items

    def names(self, kinds: str) -> set[str]:
        return {f"{o['kind']}/{o['metadata']['name']}" for o in self.all(kinds)}

    def condition(self, type_: str, name: str = "js") -> Object:
        conditions = self.get("jobset", name).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == type_), {"status": "", "reason": "", "message": ""})

    def events(self, name: str = "js") -> list[tuple[str, str]]:
        of = f"involvedObject.kind=JobSet,involvedObject.name={name}"
        items = json.loads(self.run("get", "events", "--field-selector", of, "-o", "json"))["items"]
        return [(e["type"], e["reason"]) for e in items]

    def wait_true(self, type_: str, name: str = "js", *, words: str = "") -> Object:
        """The condition, once it is true and its message has the words."""

        def is_true() -> Object:
            condition = self.condition(type_, name)
            assert condition["status"] == "True", f"{name}: {type_} is {condition}"
            assert words in condition["message"], f"{name}: {type_} is {condition}"
            return condition

        return wait_for(is_true, f"{type_} of {name}")

    def wait_false(self, type_: str, name: str = "js") -> None:
        def is_false() -> bool:
            condition = self.condition(type_, name)
            assert condition["status"] == "False", f"{name}: {type_} is {condition}"
            return True

        wait_for(is_false, f"the end of {type_} of {name}")

    def wait_event(self, reason: str, name: str = "js", type_: str = "Warning") -> None:
        """Events come after the condition that says the same."""

        def is_told() -> bool:
            assert (type_, reason) in (seen := self.events(name)), seen
            return True

        wait_for(is_told, f"event {reason} of {name}")

    def fail(self, job: str) -> None:
        """Deletes the pod of a Job that has no second try, once it runs: the Job fails now and not by itself, so that
        nothing is missed that lasts until then."""

        def is_deleted() -> bool:
            pods = (p for p in self.all("pods") if p["metadata"]["labels"]["job-name"] == job)
            (name,) = (p["metadata"]["name"] for p in pods if is_live(p) and p["status"]["phase"] == "Running")
            self.run("delete", "pod", name, "--wait=false")
            return True

        wait_for(is_deleted, f"a running pod of {job}")


def is_live(found: Object) -> bool:
    return "deletionTimestamp" not in found["metadata"]


@pytest.fixture
def cluster(kubectl: Kubectl, namespace: str) -> Cluster:
    return Cluster(kubectl, namespace)


def test_a_gang_runs_to_its_end(cluster: Cluster) -> None:
    jobset = manifest("js", replicated_job("driver", "sleep 1"), replicated_job("w", "sleep 1", 2, 2), scheduling=GANG)
    cluster.apply(jobset)
    group = names.workload_name(cluster.namespace, "js")
    seen = wait_for(lambda: cluster.names(CHILDREN.removesuffix(",pods")) or None, "children")
    assert wait_for(lambda: "Job/js-w-1" in cluster.names("jobs"), "the Jobs")
    assert seen <= {
        f"Workload/{group}",
        f"PodGroup/{group}",
        "Service/js",
        "Job/js-driver-0",
        "Job/js-w-0",
        "Job/js-w-1",
    }
    cluster.wait_true("Completed")
    assert cluster.get("jobset", "js")["status"]["terminalState"] == "Completed"
    assert wait_for(lambda: not cluster.names("workloads,podgroups"), "no reservation is left")
    assert cluster.names("jobs") == {"Job/js-driver-0", "Job/js-w-0", "Job/js-w-1"}
    cluster.wait_event("AllJobsCompleted", type_="Normal")


def test_deleting_the_jobset_leaves_nothing(cluster: Cluster) -> None:
    cluster.apply(manifest("js", replicated_job("w", "sleep infinity", 2), scheduling=GANG))
    wait_for(lambda: len(cluster.names("pods")) == 2, "the pods")
    cluster.run("delete", "jobset", "js", "--wait=false")
    assert wait_for(lambda: not cluster.names(CHILDREN), "nothing is left")


def test_a_failed_job_restarts_all_under_the_same_groups(cluster: Cluster) -> None:
    driver, worker = replicated_job("driver", "sleep infinity"), replicated_job("w", "sleep infinity")
    cluster.apply(manifest("js", driver, worker, failurePolicy={"maxRestarts": 1}, scheduling=GANG))
    group = names.workload_name(cluster.namespace, "js")
    first = wait_for(lambda: cluster.get("podgroup", group), "the PodGroup")
    cluster.fail("js-driver-0")
    wait_for(lambda: cluster.get("jobset", "js").get("status", {}).get("restarts") == 1, "a restart")

    def second_attempt() -> bool:
        jobs = cluster.all("jobs")
        return [j["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for j in jobs] == ["1", "1"]

    assert wait_for(second_attempt, "the Jobs of the second attempt")
    assert cluster.get("podgroup", group)["metadata"]["uid"] == first["metadata"]["uid"]
    cluster.fail("js-driver-0")
    assert cluster.wait_true("Failed")["reason"] == "ReachedMaxRestarts"
    cluster.wait_event("ReachedMaxRestarts")


def test_suspended_it_holds_nothing_and_resumed_it_runs(cluster: Cluster) -> None:
    cluster.apply(manifest("js", replicated_job("w", "sleep 1", 2), suspend=True, scheduling=GANG))
    cluster.wait_true("Suspended")
    assert cluster.names(CHILDREN) == {"Service/js", "Job/js-w-0", "Job/js-w-1"}
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    cluster.wait_true("Completed")


OTHERS: dict[str, Object] = {
    "Service": {"apiVersion": "v1", "spec": {"ports": [{"port": 80}]}},
    "Job": {"apiVersion": "batch/v1", "spec": replicated_job("x", "sleep infinity")["template"]["spec"]},
    "Workload": {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": {"basic": {}}}]},
    },
    "PodGroup": {"apiVersion": "scheduling.k8s.io/v1beta1", "spec": {"schedulingPolicy": {"basic": {}}}},
}


@pytest.mark.decision(11)
@pytest.mark.parametrize("kind", OTHERS)
def test_an_object_of_someone_else_is_never_touched_and_is_told(cluster: Cluster, kind: str) -> None:
    group = names.workload_name(cluster.namespace, "js")
    name = {"Service": "js", "Job": "js-w-0", "Workload": group, "PodGroup": group}[kind]
    cluster.apply({"kind": kind, "metadata": {"name": name}, **OTHERS[kind]})
    before = cluster.get(kind, name)
    cluster.apply(manifest("js", replicated_job("w", "sleep 1"), scheduling=GANG))
    assert "nobody" in cluster.wait_true("Blocked", words=f"{kind} {name}")["message"]
    after = cluster.get(kind, name)
    assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
    assert not after["metadata"].get("ownerReferences")
    assert not after["metadata"].get("deletionTimestamp")
    wait_for(lambda: "Warning" in {type_ for type_, _ in cluster.events()}, "a warning event")
    cluster.run("delete", kind, name)
    cluster.wait_true("Completed")
    cluster.wait_false("Blocked")


@pytest.mark.decision(11)
def test_of_two_jobsets_with_one_subdomain_the_second_is_told_whose_it_is(cluster: Cluster) -> None:
    network = {"subdomain": "shared"}
    cluster.apply(manifest("first", replicated_job("w", "sleep infinity"), network=network))
    wait_for(lambda: "Job/first-w-0" in cluster.names("jobs"), "the first one's Job")
    before = cluster.get("service", "shared")
    cluster.apply(manifest("second", replicated_job("w", "sleep 1"), network=network))
    blocked = cluster.wait_true("Blocked", "second")
    assert blocked["reason"] == "HeadlessServiceCreationFailed"
    assert "Service shared exists and belongs to JobSet/first" in blocked["message"]
    cluster.wait_event(blocked["reason"], "second")
    assert cluster.names("jobs") == {"Job/first-w-0"}, "its pods would have the names of others"
    assert cluster.get("service", "shared") == before
    cluster.run("delete", "jobset", "first")
    cluster.wait_true("Completed", "second")


@pytest.mark.decision(12)
def test_of_two_jobsets_that_want_one_job_name_the_second_is_told_whose_it_is(cluster: Cluster) -> None:
    cluster.apply(manifest("a", replicated_job("b-0", "sleep infinity")))
    wait_for(lambda: cluster.names("jobs"), "the first one's Job")
    before = cluster.get("job", "a-b-0-0")["metadata"]["uid"]
    cluster.apply(manifest("a-b", replicated_job("0", "sleep 1")))
    blocked = cluster.wait_true("Blocked", "a-b")
    assert blocked["reason"] == "JobCreationFailed"
    assert "Job a-b-0-0 exists and belongs to JobSet/a" in blocked["message"]
    cluster.wait_event(blocked["reason"], "a-b")
    assert cluster.get("job", "a-b-0-0")["metadata"]["uid"] == before
    cluster.run("delete", "jobset", "a")
    cluster.wait_true("Completed", "a-b")


@pytest.mark.decision(5)
@pytest.mark.parametrize("jobs", [[], [replicated_job("w", "sleep 1", replicas=0)]], ids=["none", "no replicas"])
def test_without_jobs_it_completes_at_once_and_says_why(cluster: Cluster, jobs: list[Object]) -> None:
    cluster.apply(manifest("js", *jobs))
    assert "no Jobs" in cluster.wait_true("Completed")["message"]
    assert cluster.get("jobset", "js")["status"]["terminalState"] == "Completed"
    assert cluster.names("jobs,services,pods") == set()


@pytest.mark.decision(10)
def test_a_jobset_that_missed_the_webhooks_runs_with_every_default(make_plane: MakePlane) -> None:
    plane = make_plane(controller=True)
    cluster = Cluster(plane.run_kubectl, "default")
    cluster.run("delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--all")
    job = replicated_job("w", "sleep 1", pods=2)
    del job["template"]["spec"]["template"]["spec"]["restartPolicy"]
    wait_for(lambda: "failurePolicyRule" not in stored_rule_name(cluster, job), "the webhooks are not asked any more")
    cluster.apply(manifest("js", job))
    sent = cluster.get("jobset", "js")["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert "completionMode" not in sent
    cluster.wait_true("Completed")
    made = cluster.get("job", "js-w-0")["spec"]
    assert (made["completionMode"], made["template"]["spec"]["restartPolicy"]) == ("Indexed", "OnFailure")
    assert made["template"]["spec"]["subdomain"] == "js"
    assert "Service/js" in cluster.names("services")


def stored_rule_name(cluster: Cluster, job: Object) -> str:
    """The name that a nameless rule gets, which is the webhooks' doing."""
    trial = manifest("trial", job, failurePolicy={"rules": [{"action": "FailJobSet"}]})
    shown = cluster.run("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(trial))
    return str(json.loads(shown)["spec"]["failurePolicy"]["rules"][0].get("name", ""))


@pytest.mark.decision(30)
def test_the_column_shows_what_is_asked_and_the_tree_what_is(cluster: Cluster, plane: Plane) -> None:
    """Another controller is named, so that nobody does what is asked, and the status is what we write."""
    cluster.apply(manifest("js", replicated_job("w", "sleep 1"), managedBy="example.com/nobody", suspend=True))

    def column() -> str:
        heading, row = cluster.run("get", "jobset", "js").splitlines()
        return row[heading.index("SUSPENDED") :].split()[0]

    def state() -> str:
        words = ["tree", "js", "-n", cluster.namespace, "-o", "json", "--kubeconfig", str(plane.kubeconfig)]
        shown = subprocess.run([sys.executable, "-m", "pyjobset", *words], capture_output=True, text=True, check=True)
        return str(json.loads(shown.stdout)["state"])

    assert (column(), state()) == ("true", "Suspending")
    suspended = {"type": "Suspended", "status": "True", "reason": "SuspendedJobs", "message": ""}
    patch = {"status": {"conditions": [suspended | {"lastTransitionTime": "2026-11-30T12:00:00Z"}]}}
    cluster.run("patch", "jobset", "js", "--subresource=status", "--type=merge", "-p", json.dumps(patch))
    assert (column(), state()) == ("true", "Suspended")
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    assert (column(), state()) == ("false", "Resuming")


@pytest.mark.decision(13)
def test_a_full_quota_is_told_and_ends_by_itself(cluster: Cluster) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    cluster.apply({**quota, "spec": {"hard": {"count/jobs.batch": "0"}}})
    wait_for(lambda: cluster.get("resourcequota", "q").get("status", {}).get("hard"), "the quota is counted")
    cluster.apply(manifest("js", replicated_job("w", "sleep 1", 2)))
    blocked = cluster.wait_true("Blocked", words="exceeded quota: q")
    assert blocked["reason"] == "JobCreationFailed"
    cluster.wait_event("JobCreationFailed")
    cluster.apply({**quota, "spec": {"hard": {"count/jobs.batch": "9"}}})
    cluster.wait_true("Completed")
    cluster.wait_false("Blocked")


def test_the_status_of_someone_elses_write_is_kept(cluster: Cluster) -> None:
    """A label that is added while the controller writes the status is neither lost nor a reason to give up."""
    cluster.apply(manifest("js", replicated_job("w", "sleep 1", 4)))
    for number in range(8):
        cluster.run("label", "jobset", "js", f"by-{number}=somebody")
    cluster.wait_true("Completed")
    assert len(cluster.get("jobset", "js")["metadata"]["labels"]) == 8
