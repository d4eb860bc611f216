"""compile_service: the headless Service of a JobSet and its ports."""

from typing import Any

import pytest

from pyjobset.compiler.service import compile_service
from pyjobset.objects.meta import Manifest
from tests.builders import jobset, replicated_job


def with_containers(name: str, *containers: Manifest, **pod: Any) -> Manifest:
    given = replicated_job(name)
    given["template"]["spec"]["template"]["spec"].update(containers=list(containers), **pod)
    return given


def ports(*given: Manifest) -> Manifest:
    return {"name": "c", "ports": list(given)}


def test_a_service_in_full() -> None:
    assert compile_service(jobset(with_containers("w", ports({"containerPort": 80})))) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "js",
            "namespace": "ns",
            "labels": {"jobset.sigs.k8s.io/jobset-name": "js"},
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
            "clusterIP": "None",
            "selector": {"jobset.sigs.k8s.io/jobset-name": "js"},
            "publishNotReadyAddresses": True,
            "ports": [{"name": "tcp-80", "port": 80, "protocol": "TCP"}],
        },
    }


@pytest.mark.parametrize(
    ("network", "name", "publish"),
    [
        (None, "js", True),
        ({}, "js", True),
        ({"subdomain": "net"}, "net", True),
        ({"publishNotReadyAddresses": False}, "js", False),
        ({"enableDNSHostnames": True, "publishNotReadyAddresses": True}, "js", True),
        ({"enableDNSHostnames": False}, None, None),
    ],
)
def test_network(network: Manifest | None, name: str | None, publish: bool | None) -> None:
    service = compile_service(jobset(network=network))
    found = None if service is None else service["metadata"]["name"]
    assert found == name
    if service is not None:
        assert service["spec"]["publishNotReadyAddresses"] is publish


@pytest.mark.parametrize(
    ("replicated_jobs", "expected"),
    [
        ([with_containers("w", {"name": "c"})], None),
        ([with_containers("w", {"name": "c", "ports": None})], None),
        ([with_containers("w", ports({"containerPort": 0}, {"name": "x"}))], None),
        ([with_containers("w", ports({"containerPort": 80, "name": "web"}))], [("tcp-80", 80, "TCP")]),
        (
            [with_containers("w", ports({"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}))],
            [("tcp-80", 80, "TCP"), ("udp-80", 80, "UDP")],
        ),
        (
            [with_containers("w", ports({"containerPort": 9}), ports({"containerPort": 8})), with_containers("v")],
            [("tcp-9", 9, "TCP"), ("tcp-8", 8, "TCP")],
        ),
        (
            [
                with_containers("w", ports({"containerPort": 80, "protocol": "TCP"})),
                with_containers("v", ports({"containerPort": 80}, {"containerPort": 90, "protocol": "SCTP"})),
            ],
            [("tcp-80", 80, "TCP"), ("sctp-90", 90, "SCTP")],
        ),
    ],
)
def test_ports(replicated_jobs: list[Manifest], expected: list[tuple[str, int, str]] | None) -> None:
    service = compile_service(jobset(*replicated_jobs))
    assert service is not None
    found = service["spec"].get("ports")
    assert (found and [(p["name"], p["port"], p["protocol"]) for p in found]) == expected
