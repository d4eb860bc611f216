"""A ResourceClaim of the PodGroup: made once, shared by the pods of a Job."""

from tests.server.scheduling.lab import RUN_FOR, Lab


def test_the_pods_of_a_job_share_one_claim(lab: Lab) -> None:
    lab.add_nodes(4)
    own = lab.namespace
    driver = f"{own}.example.com"
    lab.add(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": own},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": own},
            "spec": {
                "driver": driver,
                "pool": {"name": "net", "generation": 1, "resourceSliceCount": 1},
                "allNodes": True,
                "devices": [{"name": "channel-0"}, {"name": "channel-1"}],
            },
        },
    )
    request = {"name": "channel", "exactly": {"deviceClassName": own}}
    lab.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "channels"},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        }
    )
    claim = {"name": "channel", "resourceClaimTemplateName": "channels"}
    job = {"schedulingPolicy": {"gang": {}}, "resourceClaims": [claim]}
    lab.start(
        lab.job(
            "w", "sleep infinity", 2, 2, pod={"resourceClaims": [claim]}, resources={"claims": [{"name": "channel"}]}
        ),
        scheduling={"replicatedJobs": [{"targetReplicatedJobs": ["w"], "job": job}]},
    )
    nodes = lab.wait_running(4)
    assert len(set(nodes.values())) == 4, "shared across nodes"
    groups = {g["metadata"]["name"]: g for g in lab.of("podgroups")}
    made = {c["metadata"]["name"]: c for c in lab.all("resourceclaims")}
    assert len(made) == 2, "one a Job, not one a pod"
    for pod in lab.of("pods"):
        group = groups[pod["spec"]["schedulingGroup"]["podGroupName"]]
        (used,) = pod["status"]["resourceClaimStatuses"]
        (shared,) = group["status"]["resourceClaimStatuses"]
        assert used["resourceClaimName"] == shared["resourceClaimName"]
        (holder,) = made[used["resourceClaimName"]]["status"]["reservedFor"]
        assert (holder["resource"], holder["uid"]) == ("podgroups", group["metadata"]["uid"])
    lab.note(nodes, RUN_FOR, "0s")
    lab.wait_true("Completed")
