"""Misspelled fields and values of another type in templates, which JobSet carries unseen and the API server does not
take."""

from typing import Any

import pytest

from pyjobset.cli.template_fields import _objects, field_problems
from pyjobset.rules.durations import counts_seconds
from pyjobset.rules.parse import wrong_type

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
    (problem,) = field_problems({"spec": spec})
    assert (problem.code, problem.path, problem.hint) == ("unknown-field", path, hint)


CPU = f"{POD}.containers[0].resources.requests.cpu"


@pytest.mark.parametrize(
    ("spec", "path", "message", "hint"),
    [
        (
            container(command="sleep 10s"),
            f"{POD}.containers[0].command",
            "must be a list, not a string",
            "start each item with '- '",
        ),
        (
            container(env=[{"name": "A", "value": 1}]),
            f"{POD}.containers[0].env[0].value",
            "must be a string, not an integer",
            'put it in quotes: "1"',
        ),
        (
            container(resources={"requests": {"cpu": 0.5}}),
            CPU,
            "must be a quantity: a string or a whole number",
            'put it in quotes: "0.5"',
        ),
        (
            container(resources={"requests": {"cpu": "2cores"}}),
            CPU,
            "must be a quantity",
            "write a number and a unit, such as 500m, 2 or 16Gi",
        ),
        (
            job(template={"spec": {"containers": {"name": "c"}}}),
            f"{POD}.containers",
            "must be a list, not an object",
            "start each item with '- '",
        ),
        (
            container(livenessProbe={"httpGet": {"port": True}}),
            f"{POD}.containers[0].livenessProbe.httpGet.port",
            "must be an integer or a string, not a boolean",
            "write a value of the field's type",
        ),
    ],
)
def test_a_value_of_another_type(spec: dict[str, Any], path: str, message: str, hint: str) -> None:
    (problem,) = field_problems({"spec": spec})
    assert (problem.code, problem.path, problem.message, problem.hint) == ("wrong-type", path, message, hint)


@pytest.mark.parametrize(
    "spec",
    [
        container(resources={"limits": {"cpu": 1, "example.com/gpu": 2}}),
        container(livenessProbe={"httpGet": {"port": "http"}}),
        container(livenessProbe=None),
        container(resources={"requests": {"cpu": 1.0, "memory": "1.5Gi"}, "limits": {"cpu": "500m", "memory": 1}}),
        container(command=["sleep"], stdin=True, env=[{"name": "A", "value": "1"}]),
        {"replicatedJobs": [{"template": {"metadata": {"labels": {"paralelism": "x"}}}}]},
        {"replicatedJobs": [None, {"template": None}]},
        None,
    ],
)
def test_nothing_to_say(spec: Any) -> None:
    """Of names that the user chooses, and of null."""
    assert field_problems({"spec": spec}) == ()


def test_hostile_input_is_bounded() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert [p.path for p in field_problems({"spec": deep})] == ["spec"]
    assert len(field_problems({"spec": {f"f{number}": 1 for number in range(100_000)}})) == 100


def test_every_field_that_counts_seconds_says_what_to_write() -> None:
    """By the names that the CRD has: probes, tolerations, deadlines, projected tokens."""
    numbers = {name for fields in _objects() for name, held in fields.items() if held == "i"}
    counting = sorted(name for name in numbers if counts_seconds(name))
    assert {"activeDeadlineSeconds", "periodSeconds", "tolerationSeconds"} <= set(counting)
    for name in counting:
        hint = wrong_type("an integer", "5m", f"spec.replicatedJobs[0].template.spec.{name}").hint
        assert hint == "write 300: the field counts seconds", name
    assert [name for name in numbers if "second" in name.lower() and name not in counting] == []


def test_a_duration_in_a_template() -> None:
    (problem,) = field_problems({"spec": container(livenessProbe={"periodSeconds": "1m30s"})})
    assert problem.path == f"{POD}.containers[0].livenessProbe.periodSeconds"
    assert problem.hint == "write 90: the field counts seconds"
