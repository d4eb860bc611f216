"""Execution attempts and changed resources, whose gates are off by default, on a plane that has them on."""

from pyjobset.objects import features as gates
from tests.server.plane import MakePlane, wait_for
from tests.server.test_controller import Cluster, manifest, replicated_job

ATTEMPT = "jobset.sigs.k8s.io/execution-attempt"


def test_each_execution_has_a_number_that_its_pods_know(make_plane: MakePlane) -> None:
    """First run, resume with other resources, restart: 0, 1, 2, on Jobs and pods, and in status."""
    on = {gates.EXECUTION_ATTEMPTS_TRACKING: True, gates.MUTABLE_POD_RESOURCES: True}
    cluster = Cluster(make_plane(controller=True, feature_gates=on).run_kubectl, "default")
    job = replicated_job("w", "sleep infinity", replicas=2)
    job["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    cluster.apply(manifest("js", job, failurePolicy={"maxRestarts": 1}))

    def wait_attempt(number: int, cpu: str) -> None:
        def is_running() -> bool:
            children = cluster.all("jobs,pods")
            assert [c["metadata"].get("annotations", {}).get(ATTEMPT) for c in children] == [str(number)] * 4
            pods = [c for c in children if c["kind"] == "Pod"]
            assert [p["spec"]["containers"][0]["resources"]["requests"]["cpu"] for p in pods] == [cpu] * 2
            return True

        wait_for(is_running, f"attempt {number}")
        assert cluster.get("jobset", "js")["status"]["executionAttempts"] == number

    wait_attempt(0, "100m")
    cluster.run("patch", "jobset", "js", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    cluster.wait_true("Suspended")
    path = "/spec/replicatedJobs/0/template/spec/template/spec/containers/0/resources/requests/cpu"
    patch = (
        f'[{{"op":"replace","path":"{path}","value":"200m"}},{{"op":"replace","path":"/spec/suspend","value":false}}]'
    )
    cluster.run("patch", "jobset", "js", "--type=json", "-p", patch)
    wait_attempt(1, "200m")
    cluster.run("delete", *(f"pod/{p['metadata']['name']}" for p in cluster.all("pods")[:1]), "--wait=false")
    wait_attempt(2, "200m")
