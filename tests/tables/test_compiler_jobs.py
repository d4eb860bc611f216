"""compile_job: what a child Job and its pods carry."""

import copy
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from pyjobset.compiler.jobs import child_jobs, compile_job
from pyjobset.compiler.scheduling import Placement
from pyjobset.objects import features as gates
from pyjobset.objects import labels
from pyjobset.objects.features import DEFAULTS, Features
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from tests.builders import jobset, replicated_job, with_status

TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
STRATEGY = "alpha.jobset.sigs.k8s.io/node-selector"


def compiled(
    js: JobSet,
    replicated_job: str = "w",
    index: int = 0,
    *,
    placement: Placement | None = None,
    features: Features = DEFAULTS,
    suspend: bool = False,
) -> Manifest:
    child = next(child for child in child_jobs(js) if child.key == (replicated_job, index))
    return compile_job(js, child, placement=placement, features=features, suspend=suspend)


def pod_spec(job: Manifest) -> Manifest:
    return job["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def with_annotations(js: JobSet, annotations: Mapping[str, str]) -> JobSet:
    return msgspec.structs.replace(js, metadata=msgspec.structs.replace(js.metadata, annotations=dict(annotations)))


def with_template(metadata: Manifest | None = None, pod: Manifest | None = None, **spec: Any) -> Manifest:
    """ReplicatedJob w whose pod spec also has `pod`."""
    given = replicated_job("w", replicas=2, pods=2)
    given["template"]["spec"].update(spec)
    given["template"]["spec"]["template"]["spec"].update(pod or {})
    if metadata is not None:
        given["template"]["metadata"] = metadata
    return given


def test_a_job_in_full() -> None:
    """Every label and annotation of the API, on the Job and on its pods; the rest is the template."""
    js = with_status(
        jobset(
            replicated_job("driver", groupName="head"),
            with_template({"labels": {"team": "x"}, "annotations": {"note": "y"}}),
            replicated_job("v", replicas=3),
            coordinator={"replicatedJob": "driver"},
        ),
        restarts=2,
    )
    common = {
        "jobset.sigs.k8s.io/jobset-name": "js",
        "jobset.sigs.k8s.io/jobset-uid": "uid-js",
        "jobset.sigs.k8s.io/replicatedjob-name": "w",
        "jobset.sigs.k8s.io/replicatedjob-replicas": "2",
        "jobset.sigs.k8s.io/global-replicas": "6",
        "jobset.sigs.k8s.io/job-index": "1",
        "jobset.sigs.k8s.io/job-global-index": "2",
        "jobset.sigs.k8s.io/job-key": "05b7e2c46893c9e9b1e4dccc98fa0a862b1f8959",
        "jobset.sigs.k8s.io/group-name": "default",
        "jobset.sigs.k8s.io/group-replicas": "5",
        "jobset.sigs.k8s.io/job-group-index": "1",
        "jobset.sigs.k8s.io/restart-attempt": "2",
        "jobset.sigs.k8s.io/coordinator": "js-driver-0-0.js",
    }
    assert compiled(js, "w", 1, placement=Placement("template", "group"), suspend=True) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "js-w-1",
            "namespace": "ns",
            "labels": {"team": "x", **common},
            "annotations": {"note": "y", **common, "scheduling.k8s.io/group-template-name": "template"},
            "ownerReferences": [
                {
                    "apiVersion": "jobset.x-k8s.io/v1alpha2",
                    "kind": "JobSet",
                    "name": "js",
                    "uid": "uid-js",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "completionMode": "Indexed",
            "suspend": True,
            "template": {
                "metadata": {"labels": common, "annotations": common},
                "spec": {
                    "restartPolicy": "OnFailure",
                    "containers": [{"name": "c", "image": "i"}],
                    "subdomain": "js",
                    "schedulingGroup": {"podGroupName": "group"},
                },
            },
        },
    }


def test_indexes_count_through_the_jobset_and_through_each_group() -> None:
    js = jobset(
        replicated_job("a", replicas=2, groupName="g"),
        replicated_job("b", replicas=0, groupName="g"),
        replicated_job("c", replicas=2),
        replicated_job("d", replicas=1, groupName="g"),
    )
    children = list(child_jobs(js))
    assert [(c.name, c.index, c.global_index, c.group_index) for c in children] == [
        ("js-a-0", 0, 0, 0),
        ("js-a-1", 1, 1, 1),
        ("js-c-0", 0, 2, 0),
        ("js-c-1", 1, 3, 1),
        ("js-d-0", 0, 4, 2),
    ]
    found = compiled(js, "d")["metadata"]["labels"]
    assert found[labels.JOB_GROUP_INDEX] == "2"
    assert found[labels.GROUP_REPLICAS] == "3"
    assert found[labels.JOB_GLOBAL_INDEX] == "4"


def test_the_users_keys_are_kept_and_ours_win() -> None:
    mine = {"team": "x", labels.JOBSET_NAME: "someone", labels.JOB_INDEX: "9"}
    given = with_template({"labels": dict(mine), "annotations": dict(mine)})
    given["template"]["spec"]["template"]["metadata"] = {"labels": dict(mine), "annotations": dict(mine)}
    job = compiled(jobset(given))
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        for found in (metadata["labels"], metadata["annotations"]):
            assert found["team"] == "x"
            assert found[labels.JOBSET_NAME] == "js"
            assert found[labels.JOB_INDEX] == "0"


def test_what_we_do_not_know_survives() -> None:
    given = with_template(
        {"labels": {}, "name": "ignored", "finalizers": ["example.com/f"]},
        {"newPodField": {"deep": [1]}, "containers": [{"name": "c", "newContainerField": None}]},
        newJobField=1,
    )
    given["template"]["spec"]["template"]["newTemplateField"] = "x"
    given["template"]["spec"]["template"]["metadata"] = {"name": "p", "finalizers": ["example.com/g"]}
    job = compiled(jobset(given))
    assert job["spec"]["newJobField"] == 1
    assert job["spec"]["template"]["newTemplateField"] == "x"
    assert pod_spec(job)["newPodField"] == {"deep": [1]}
    assert pod_spec(job)["containers"] == [{"name": "c", "newContainerField": None}]
    assert job["spec"]["template"]["metadata"]["finalizers"] == ["example.com/g"]
    assert job["metadata"]["name"] == "js-w-0"
    assert "finalizers" not in job["metadata"], "of the template's own metadata only labels and annotations"


def test_without_scheduling_no_scheduling_keys_and_the_native_field_passes_through() -> None:
    native = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    job = compiled(jobset(with_template(scheduling=native)))
    assert job["spec"]["scheduling"] == native
    assert labels.GROUP_TEMPLATE_NAME not in job["metadata"]["annotations"]
    assert "schedulingGroup" not in pod_spec(job)


@pytest.mark.decision(10)
@pytest.mark.parametrize(
    ("given", "completion_mode", "restart_policy"),
    [
        ({}, "Indexed", "OnFailure"),
        ({"spec": None}, "Indexed", "OnFailure"),
        ({"spec": {"completionMode": None, "template": {"spec": None}}}, "Indexed", "OnFailure"),
        (
            {"spec": {"completionMode": "NonIndexed", "template": {"spec": {"restartPolicy": "Never"}}}},
            "NonIndexed",
            "Never",
        ),
    ],
)
def test_defaults_are_applied_when_read(given: Manifest, completion_mode: str, restart_policy: str) -> None:
    job = compiled(jobset({"name": "w", "template": given}))
    assert job["spec"]["completionMode"] == completion_mode
    assert pod_spec(job)["restartPolicy"] == restart_policy


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (None, "js"),
        ({}, "js"),
        ({"subdomain": "net"}, "net"),
        ({"enableDNSHostnames": True}, "js"),
        ({"enableDNSHostnames": False, "subdomain": "net"}, None),
    ],
)
def test_subdomain(network: Manifest | None, expected: str | None) -> None:
    assert pod_spec(compiled(jobset(network=network))).get("subdomain") == expected


@pytest.mark.parametrize("suspend", [True, False])
def test_suspend_is_the_callers_and_not_the_templates(suspend: bool) -> None:
    assert compiled(jobset(with_template(suspend=not suspend)), suspend=suspend)["spec"]["suspend"] is suspend


@pytest.mark.parametrize(
    ("features", "job_restarts", "expected"),
    [
        (DEFAULTS, [4, 5], None),
        (DEFAULTS | {gates.RESTART_JOB}, [4, 5], "5"),
        (DEFAULTS | {gates.RESTART_JOB}, [4], "0"),
        (DEFAULTS | {gates.RESTART_JOB}, None, "0"),
    ],
)
def test_job_restart_attempt(features: Features, job_restarts: list[int] | None, expected: str | None) -> None:
    status: Manifest = {"name": "w"} if job_restarts is None else {"name": "w", "jobRestarts": job_restarts}
    js = with_status(jobset(), replicatedJobsStatus=[{"name": "other", "jobRestarts": [9, 9]}, status])
    job = compiled(js, index=1, features=features)
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        assert metadata["labels"].get(labels.JOB_RESTART_ATTEMPT) == expected
        assert metadata["annotations"].get(labels.JOB_RESTART_ATTEMPT) == expected


@pytest.mark.parametrize(
    ("features", "attempts", "expected"),
    [
        (DEFAULTS, 3, None),
        (DEFAULTS | {gates.EXECUTION_ATTEMPTS_TRACKING}, None, None),
        (DEFAULTS | {gates.EXECUTION_ATTEMPTS_TRACKING}, 0, "0"),
        (DEFAULTS | {gates.EXECUTION_ATTEMPTS_TRACKING}, 3, "3"),
    ],
)
def test_execution_attempt_is_an_annotation_only(
    features: Features, attempts: int | None, expected: str | None
) -> None:
    job = compiled(with_status(jobset(), executionAttempts=attempts), features=features)
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        assert metadata["annotations"].get(labels.EXECUTION_ATTEMPT) == expected
        assert labels.EXECUTION_ATTEMPT not in metadata["labels"]


@pytest.mark.parametrize(
    ("of_jobset", "of_template", "expected"),
    [
        ({}, {}, {}),
        ({TOPOLOGY: "rack"}, {}, {TOPOLOGY: "rack"}),
        ({}, {TOPOLOGY: "rack"}, {TOPOLOGY: "rack"}),
        ({TOPOLOGY: "rack"}, {TOPOLOGY: "zone"}, {TOPOLOGY: "zone"}),
        ({TOPOLOGY: "rack", STRATEGY: "true"}, {}, {TOPOLOGY: "rack", STRATEGY: "true"}),
        ({}, {TOPOLOGY: "rack", STRATEGY: "true"}, {TOPOLOGY: "rack", STRATEGY: "true"}),
        ({STRATEGY: "true"}, {}, {}),
        ({STRATEGY: "true"}, {TOPOLOGY: "rack"}, {TOPOLOGY: "rack"}),
    ],
)
def test_exclusive_placement(of_jobset: dict[str, str], of_template: dict[str, str], expected: dict[str, str]) -> None:
    js = with_annotations(jobset(with_template({"annotations": of_template})), of_jobset)
    job = compiled(js, index=1)
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        found = {key: value for key, value in metadata["annotations"].items() if key in (TOPOLOGY, STRATEGY)}
        assert found == expected
    by_node_selector = STRATEGY in expected
    assert pod_spec(job).get("nodeSelector") == (
        {"alpha.jobset.sigs.k8s.io/namespaced-job": "ns_js-w-1"} if by_node_selector else None
    )
    assert ("tolerations" in pod_spec(job)) is by_node_selector


def test_the_node_selector_strategy_adds_to_what_the_pod_has() -> None:
    pod = {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "mine", "operator": "Exists"}]}
    job = compiled(with_annotations(jobset(with_template(pod=pod)), {TOPOLOGY: "rack", STRATEGY: "true"}))
    assert pod_spec(job)["nodeSelector"] == {"disk": "ssd", "alpha.jobset.sigs.k8s.io/namespaced-job": "ns_js-w-0"}
    assert pod_spec(job)["tolerations"] == [
        {"key": "mine", "operator": "Exists"},
        {"key": "alpha.jobset.sigs.k8s.io/no-schedule", "operator": "Exists", "effect": "NoSchedule"},
    ]


def test_siblings_differ_only_where_they_must_and_the_jobset_stays_as_it_was() -> None:
    js = with_annotations(jobset(with_template(pod={"nodeSelector": {"a": "b"}})), {TOPOLOGY: "rack", STRATEGY: "true"})
    before = copy.deepcopy(msgspec.to_builtins(js))
    first, second = compiled(js, index=0), compiled(js, index=1)
    assert msgspec.to_builtins(js) == before
    text = msgspec.json.encode(second).decode()
    assert first["metadata"]["name"] == "js-w-0"
    assert "js-w-0" not in text
    assert first["metadata"]["labels"][labels.JOB_KEY] not in text


def test_a_child_job_follows_the_jobset_it_is_compiled_for() -> None:
    """The part that siblings share is remembered; a later status or other gates must not get the old one."""
    js = jobset()
    child = next(child_jobs(js))

    def attempts(js: JobSet, features: Features) -> tuple[str, str | None]:
        job = compile_job(js, child, placement=None, features=features, suspend=False)
        found = job["metadata"]["labels"]
        return found[labels.RESTART_ATTEMPT], found.get(labels.JOB_RESTART_ATTEMPT)

    restarted = with_status(js, restarts=1)
    assert attempts(js, DEFAULTS) == ("0", None)
    assert attempts(restarted, DEFAULTS) == ("1", None)
    assert attempts(restarted, DEFAULTS | {gates.RESTART_JOB}) == ("1", "0")
    assert attempts(js, DEFAULTS) == ("0", None)


@pytest.mark.decision(39)
def test_a_job_never_deletes_itself() -> None:
    """It would take its result along: the controller would take it for one that is missing, and run it again."""
    assert "ttlSecondsAfterFinished" not in compiled(jobset(with_template(ttlSecondsAfterFinished=0)))["spec"]
