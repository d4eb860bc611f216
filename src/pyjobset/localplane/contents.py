"""What is inside a running plane: the JobSet CRD, the controller's rights and the simulated nodes, for `plane.py`.

The CRD and the roles are those of an installation on a cluster (deploy/). They come from the package once that is
installed, else from the checkout.
"""

import importlib.resources
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from pyjobset.errors import PlaneError, UsageError
from pyjobset.localplane import nodes
from pyjobset.localplane.api import ApiServer
from pyjobset.localplane.components import API_SERVER, CONTROLLER, KWOK
from pyjobset.localplane.options import NodeLayout
from pyjobset.localplane.processes import wait_until

CRD_FILE = "jobset.x-k8s.io_jobsets.yaml"
_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/jobsets.jobset.x-k8s.io"
_RBAC = "rbac.authorization.k8s.io"
ROLES = {
    "rbac/manager_role.yaml": "jobset-manager-role",
    "scheduling/scheduling_role.yaml": "jobset-manager-scheduling-role",
}
"""The ClusterRole that each file begins with."""
LEASE_ROLE = "rbac/leader_election_role.yaml"
"""It begins with a Role of the controller's namespace."""
CONTROLLER_NAMESPACE = "jobset-system"
"""Where a controller outside of a pod looks for its Lease."""
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_NAMESPACES = "/api/v1/namespaces"
_NODES = "/api/v1/nodes"
_NOT_READY = "node.kubernetes.io/not-ready"
_WAIT_SECONDS = 60


class NodeStatus(Struct, frozen=True):
    """One simulated node. `ready`: it says so and takes pods. `cpu` and `memory` are what pods may use of it."""

    name: str
    ready: bool
    cpu: str
    memory: str
    labels: dict[str, str]


def install_crd(server: ApiServer) -> bool:
    """Applies the CRD and waits until it is served. False when this installation has none."""
    text = _shipped(f"crd/{CRD_FILE}")
    if not text:
        return False
    server.apply(_CRD, text)
    if not wait_until(lambda: _is_established(server.get(_CRD)), _WAIT_SECONDS):
        raise _not_ready("the JobSet CRD", API_SERVER)
    return True


def install_rights(server: ApiServer) -> bool:
    """Lets the controller do what it may do on a cluster, and nothing else. False when this installation has none."""
    roles = [_shipped(file).partition(b"\n---\n")[0] for file in (*ROLES, LEASE_ROLE)]
    if not all(roles):  # each without its binding, which is for a service account
        return False
    *cluster_roles, lease_role = roles
    for name, role in zip(ROLES.values(), cluster_roles, strict=True):
        _grant(server, f"/apis/{_RBAC}/v1/cluster", "Cluster", name, role)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROLLER_NAMESPACE}}
    server.apply(f"{_NAMESPACES}/{CONTROLLER_NAMESPACE}", json.dumps(namespace).encode())
    _grant(
        server, f"/apis/{_RBAC}/v1/namespaces/{CONTROLLER_NAMESPACE}/", "", "jobset-leader-election-role", lease_role
    )
    return True


def _grant(server: ApiServer, under: str, scope: str, name: str, role: bytes) -> None:
    """The role, and its binding to the controller's user. `scope` is Cluster for a ClusterRole."""
    server.apply(f"{under}roles/{name}", role)
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{scope}RoleBinding",
        "metadata": {"name": f"{name}-of-the-plane"},
        "roleRef": {"apiGroup": _RBAC, "kind": f"{scope}Role", "name": name},
        "subjects": [{"kind": "User", "apiGroup": _RBAC, "name": CONTROLLER}],
    }
    server.apply(f"{under}rolebindings/{name}-of-the-plane", json.dumps(binding).encode())


def _shipped(file: str) -> bytes:
    """A file of deploy/. Empty where this installation lacks it."""
    installed = importlib.resources.files("pyjobset") / "deploy" / file
    checkout = Path(__file__).parents[3] / "deploy" / file
    source = installed if installed.is_file() else checkout
    return source.read_bytes() if source.is_file() else b""


def list_nodes(server: ApiServer) -> list[NodeStatus]:
    """All nodes, node-2 before node-10."""
    found = [node_status(item) for item in server.get(_NODES)["items"]]
    return sorted(found, key=lambda n: (len(n.name), n.name))


def create_nodes(server: ApiServer, names: Sequence[str], layout: NodeLayout) -> list[str]:
    """Creates the nodes of a layout; returns the names of those that were not there."""
    return [name for i, name in enumerate(names) if server.create(_NODES, nodes.manifest(name, layout, i))]


def delete_nodes(server: ApiServer, names: Sequence[str]) -> None:
    """Deletes all that are there, then complains of those that are not."""
    lost = [name for name in names if not server.delete(f"{_NODES}/{name}")]
    if lost:
        raise UsageError(f"there is no node {', '.join(lost)}", hint="jobset nodes list shows them")


def forget_leases(server: ApiServer) -> None:
    """Before kwok starts: a new one would wait for the leases of the old one to run out."""
    server.delete(_LEASES)


def wait_for_nodes(server: ApiServer) -> None:
    """Returns when all nodes take pods."""
    if not wait_until(lambda: is_settled(server), _WAIT_SECONDS):
        raise _not_ready("a node", KWOK)


def is_settled(server: ApiServer) -> bool:
    """Is there a default namespace, and is every node ready and held by the kwok that runs now?"""
    names = {item["metadata"]["name"] for item in server.get(_NAMESPACES)["items"]}
    found = list_nodes(server)
    return "default" in names and all(n.ready for n in found) and len(server.get(_LEASES)["items"]) >= len(found)


def node_status(item: Mapping[str, Any]) -> NodeStatus:
    """A Node object in short."""
    conditions = item["status"].get("conditions", [])
    resources = item["status"].get("allocatable", {})
    says_so = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    tainted = any(t["key"] == _NOT_READY for t in item["spec"].get("taints", []))
    return NodeStatus(
        name=item["metadata"]["name"],
        ready=says_so and not tainted,
        cpu=resources.get("cpu", ""),
        memory=resources.get("memory", ""),
        labels=item["metadata"].get("labels", {}),
    )


def _is_established(definition: Mapping[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _not_ready(what: str, by: str) -> PlaneError:
    return PlaneError(
        f"{what} was not ready after {_WAIT_SECONDS} seconds",
        hint=f"jobset up repairs what is down; jobset logs {by} says more",
    )
