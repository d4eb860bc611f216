"""Flags of the local plane: what is understood, what is refused, what the gates come to."""

import pytest

from pyjobset.errors import UsageError
from pyjobset.localplane import options
from pyjobset.localplane.options import PlaneOptions

ON = {
    "GenericWorkload": True,
    "WorkloadWithJob": True,
    "TopologyAwareWorkloadScheduling": True,
    "DRAWorkloadResourceClaims": True,
}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ON),
        ({"WorkloadWithJob": False}, ON | {"WorkloadWithJob": False}),
        ({"GenericWorkload": False}, dict.fromkeys(ON, False)),
        (
            {"GenericWorkload": False, "WorkloadWithJob": True},
            dict.fromkeys(ON, False) | {"WorkloadWithJob": True},
        ),
        ({"CompositePodGroup": True}, ON | {"CompositePodGroup": True}),
    ],
    ids=["defaults", "one-off", "base-off", "explicit-stays", "another-on"],
)
def test_cluster_gates(asked: dict[str, bool], expected: dict[str, bool]) -> None:
    assert PlaneOptions(kubernetes_feature_gates=asked).cluster_gates() == expected


def test_given_values_go_over_the_defaults() -> None:
    chosen = PlaneOptions(
        kubernetes_runtime_config={"api/alpha": "true", "scheduling.k8s.io/v1alpha3": "false"},
        feature_gates={"ElasticJobSet": False, "RestartJob": True},
    )
    assert chosen.runtime_config() == {
        "api/alpha": "true",
        "scheduling.k8s.io/v1alpha3": "false",
        "scheduling.k8s.io/v1beta1": "true",
    }
    assert chosen.controller_gates() == {
        "JobSetWorkloadAwareSchedulingAPI": True,
        "ElasticJobSet": False,
        "RestartJob": True,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("A=true", {"A": True}),
        (" A = True , B=false,", {"A": True, "B": False}),
        ("A=1,B=0,C=t,D=F", {"A": True, "B": False, "C": True, "D": False}),
        ("A=true,A=false", {"A": False}),
    ],
)
def test_gates(text: str, expected: dict[str, bool]) -> None:
    assert options.parse_gates(text, "--gates") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rack=4", {"topology.kubernetes.io/rack": 4}),
        ("slice=2,rack=3", {"cloud.google.com/gke-tpu-slice": 2, "topology.kubernetes.io/rack": 3}),
        ("example.com/zone=10000", {"example.com/zone": 10_000}),
        ("none", {}),
    ],
)
def test_topology(text: str, expected: dict[str, int]) -> None:
    assert options.parse_topology(text) == expected


@pytest.mark.parametrize("text", ["1", "0.5", "500m", "16Gi", "1M", "2Ei"])
def test_quantity(text: str) -> None:
    assert options.parse_quantity(text, "--cpu") == text


def test_labels() -> None:
    given = ["a=b,example.com/c=", "d=E-f_1.2"]
    assert options.parse_labels(given, "--label") == {"a": "b", "example.com/c": "", "d": "E-f_1.2"}


REFUSED = {
    "gate-without-value": (lambda: options.parse_gates("A", "--gates"), "--gates: 'A' is not KEY=VALUE"),
    "gate-without-name": (lambda: options.parse_gates("=true", "--gates"), "--gates: '=true' is not KEY=VALUE"),
    "gate-value": (lambda: options.parse_gates("A=yes", "--gates"), "--gates: A=yes is neither true nor false"),
    "count-zero": (lambda: options.parse_topology("rack=0"), "--topology rack: '0' is not a number from 1 to 10000"),
    "count-large": (lambda: options.parse_topology("rack=10001"), "'10001' is not a number"),
    "count-huge": (lambda: options.parse_topology(f"rack={'9' * 5000}"), "is not a number"),
    "count-other-digits": (lambda: options.parse_topology("rack=²"), "'²' is not a number"),
    "count-negative": (lambda: options.parse_topology("rack=-1"), "'-1' is not a number"),
    "topology-key": (lambda: options.parse_topology("a b=1"), "'a b' is not a label key"),
    "label-key": (lambda: options.parse_labels(["/x=1"], "--label"), "'/x' is not a label key"),
    "label-value": (lambda: options.parse_labels(["x=a b"], "--label"), "'a b' is not a label value"),
    "label-value-long": (lambda: options.parse_labels(["x=" + "a" * 64], "--label"), "is not a label value"),
    "quantity-empty": (lambda: options.parse_quantity("", "--cpu"), "--cpu: '' is not a quantity"),
    "quantity-unit": (lambda: options.parse_quantity("16GB", "--memory"), "'16GB' is not a quantity"),
    "quantity-negative": (lambda: options.parse_quantity("-1", "--cpu"), "'-1' is not a quantity"),
    "quantity-newline": (lambda: options.parse_quantity("1\n", "--cpu"), "is not a quantity"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    parse, message = REFUSED[case]
    with pytest.raises(UsageError) as caught:
        parse()
    assert message in caught.value.message
