"""Misspelled fields in templates, which JobSet carries unseen and the API server does not take."""

from typing import Any

import pytest

from pyjobset.cli.template_fields import unknown_fields

JOB = "spec.replicatedJobs[0].template"
POD = f"{JOB}.spec.template.spec"


def container(**fields: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "c", "image": "i", **fields}]}
    return {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": {"spec": pod}}}}]}


def job(**fields: Any) -> dict[str, Any]:
    return {"replicatedJobs": [{"name": "w", "template": {"spec": fields}}]}


@pytest.mark.parametrize(
    ("spec", "path", "hint"),
    [
        (job(paralelism=2), f"{JOB}.spec.paralelism", "did you mean parallelism?"),
        (job(qqqqqq=2), f"{JOB}.spec.qqqqqq", "remove it, or correct its spelling"),
        (container(resource={}), f"{POD}.containers[0].resource", "did you mean resources?"),
        (container(env=[{"name": "A"}, {"valu": "b"}]), f"{POD}.containers[0].env[1].valu", "did you mean value?"),
        (container(resources={"limit": {}}), f"{POD}.containers[0].resources.limit", "did you mean limits?"),
        (
            {"replicatedJobs": [{"template": {"metadata": {"creationTimestamp": None}}}]},
            f"{JOB}.metadata.creationTimestamp",
            "remove it, or correct its spelling",
        ),
        (
            {"volumeClaimPolicies": [{"templates": [{"spec": {"accessMode": []}}]}]},
            "spec.volumeClaimPolicies[0].templates[0].spec.accessMode",
            "did you mean accessModes?",
        ),
    ],
)
def test_a_field_that_is_not_there(spec: dict[str, Any], path: str, hint: str) -> None:
    (problem,) = unknown_fields({"spec": spec})
    assert (problem.code, problem.path, problem.hint) == ("unknown-field", path, hint)


@pytest.mark.parametrize(
    "spec",
    [
        container(resources={"limits": {"cpu": 1, "example.com/gpu": 2}}),
        container(livenessProbe={"httpGet": {"port": "http"}}),
        container(livenessProbe=None),
        {"replicatedJobs": [{"template": {"metadata": {"labels": {"paralelism": "x"}}}}]},
        {"replicatedJobs": 1},
        {"replicatedJobs": [None, "x", {"template": []}]},
        None,
        [],
    ],
)
def test_nothing_to_say(spec: Any) -> None:
    """Of names that the user chooses, of null, and of what is wrong in another way."""
    assert unknown_fields({"spec": spec}) == ()


def test_hostile_input_is_bounded() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert unknown_fields({"spec": deep}) == ()
    assert len(unknown_fields({"spec": {f"f{number}": 1 for number in range(100_000)}})) == 100
