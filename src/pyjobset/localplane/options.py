"""What a local control plane is made of: gates, nodes, ports. Plain data, stored in the plane's directory.

The command line and tests build these; `plane.py` stores them, so that a later `up` without flags means the same plane.
Pure: nothing here looks at the machine.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

from pyjobset.errors import UsageError

WORKLOAD_GATE = "GenericWorkload"
DEPENDENTS = ("WorkloadWithJob", "TopologyAwareWorkloadScheduling", "DRAWorkloadResourceClaims")
OFF = ("false", "0", "f")
ON = ("true", "1", "t")
TOPOLOGY_ALIASES = {"rack": "topology.kubernetes.io/rack", "slice": "cloud.google.com/gke-tpu-slice"}


class NodeLayout(Struct, frozen=True):
    """`count` equal nodes. `topology` maps a label key to the number of domains the nodes are spread over."""

    count: int = 8
    cpu: str = "4"
    memory: str = "16Gi"
    pods: int = 110
    labels: dict[str, str] = field(default_factory=dict)
    topology: dict[str, int] = field(
        default_factory=lambda: {TOPOLOGY_ALIASES["rack"]: 4, TOPOLOGY_ALIASES["slice"]: 2}
    )
    resources: dict[str, str] = field(default_factory=dict)


class PlaneOptions(Struct, frozen=True):
    """Everything a person may choose. The gate maps hold only what was asked for; defaults are added on use."""

    layout: NodeLayout = NodeLayout()
    kubernetes_feature_gates: dict[str, bool] = field(default_factory=dict)
    kubernetes_runtime_config: dict[str, str] = field(default_factory=dict)
    feature_gates: dict[str, bool] = field(default_factory=dict)
    controller: bool = True
    bin_dir: str = ""
    api_port: int = 0
    fsync: bool = False

    def cluster_gates(self) -> dict[str, bool]:
        """The Kubernetes gates. Without GenericWorkload the gates that need it go off too, unless asked for."""
        base = self.kubernetes_feature_gates.get(WORKLOAD_GATE, True)
        return {WORKLOAD_GATE: base, **dict.fromkeys(DEPENDENTS, base), **self.kubernetes_feature_gates}

    def runtime_config(self) -> dict[str, str]:
        defaults = {"scheduling.k8s.io/v1alpha3": "true", "scheduling.k8s.io/v1beta1": "true"}
        return {**defaults, **self.kubernetes_runtime_config}

    def controller_gates(self) -> dict[str, bool]:
        return {"JobSetWorkloadAwareSchedulingAPI": True, "ElasticJobSet": True, **self.feature_gates}
