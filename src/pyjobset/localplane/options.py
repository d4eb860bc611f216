"""What a local control plane is made of: gates, nodes, ports. Plain data, stored in the plane's directory.

The command line and tests build these; `plane.py` stores them, so that a later `up` without flags means the same plane.
The parsers raise UsageError. Nothing here looks at the machine.
"""

import re
from collections.abc import Iterable

from msgspec import Struct, field

from pyjobset.errors import UsageError

WORKLOAD_GATE = "GenericWorkload"
DEPENDENTS = ("WorkloadWithJob", "TopologyAwareWorkloadScheduling", "DRAWorkloadResourceClaims")
RUNTIME_CONFIG = {"scheduling.k8s.io/v1alpha3": "true", "scheduling.k8s.io/v1beta1": "true"}
CONTROLLER_GATES = {"JobSetWorkloadAwareSchedulingAPI": True, "ElasticJobSet": True}
TOPOLOGY_KEYS = {"rack": "topology.kubernetes.io/rack", "slice": "cloud.google.com/gke-tpu-slice"}
NODES_MAX = 10_000

_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"(?:[a-z0-9][-a-z0-9.]{{0,251}}[a-z0-9]/)?{_NAME}")
_LABEL_VALUE = re.compile(rf"(?:{_NAME})?")
_QUANTITY = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")


class NodeLayout(Struct, frozen=True):
    """`count` equal nodes. `topology` maps a label key to the number of domains that the nodes are spread over."""

    count: int = 8
    cpu: str = "4"
    memory: str = "16Gi"
    pods: int = 110
    labels: dict[str, str] = field(default_factory=dict)
    topology: dict[str, int] = field(default_factory=lambda: {TOPOLOGY_KEYS["rack"]: 4, TOPOLOGY_KEYS["slice"]: 2})
    resources: dict[str, str] = field(default_factory=dict)


class PlaneOptions(Struct, frozen=True):
    """Everything a person may choose. The gate maps hold only what was asked for; defaults are added on use.

    `fsync=False`: etcd leaves writing to the disk to the kernel. A killed process loses nothing, a power cut may.
    """

    layout: NodeLayout = NodeLayout()
    kubernetes_feature_gates: dict[str, bool] = field(default_factory=dict)
    kubernetes_runtime_config: dict[str, str] = field(default_factory=dict)
    feature_gates: dict[str, bool] = field(default_factory=dict)
    controller: bool = True
    bin_dir: str = ""
    port: int = 0
    fsync: bool = False

    def cluster_gates(self) -> dict[str, bool]:
        """The Kubernetes gates. Without GenericWorkload the gates that need it are off too, unless asked for."""
        base = self.kubernetes_feature_gates.get(WORKLOAD_GATE, True)
        return {WORKLOAD_GATE: base, **dict.fromkeys(DEPENDENTS, base), **self.kubernetes_feature_gates}

    def runtime_config(self) -> dict[str, str]:
        """The API groups to serve, by group/version or api/ALPHA-LEVEL."""
        return RUNTIME_CONFIG | self.kubernetes_runtime_config

    def controller_gates(self) -> dict[str, bool]:
        """The gates of our own controller."""
        return CONTROLLER_GATES | self.feature_gates


def parse_pairs(text: str, flag: str) -> dict[str, str]:
    """`A=x,B=y` as a dict. Empty text is no pairs."""
    pairs: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = (p.strip() for p in part.partition("="))
        if not key or not equals:
            raise UsageError(f"{flag}: {part!r} is not KEY=VALUE", hint=f"write it as {flag} KEY=VALUE,KEY=VALUE")
        pairs[key] = value
    return pairs


def parse_gates(text: str, flag: str) -> dict[str, bool]:
    """`A=true,B=false` as a dict."""
    gates: dict[str, bool] = {}
    for name, value in parse_pairs(text, flag).items():
        if value.lower() not in _BOOLEANS:
            raise UsageError(f"{flag}: {name}={value} is neither true nor false", hint=f"for example {name}=true")
        gates[name] = _BOOLEANS[value.lower()]
    return gates


def parse_labels(items: Iterable[str], flag: str) -> dict[str, str]:
    """Label pairs, each item `k=v` or several with commas. Key and value must be valid for Kubernetes."""
    labels = {k: v for item in items for k, v in parse_pairs(item, flag).items()}
    for key, value in labels.items():
        _check_label_key(key, flag)
        if not _LABEL_VALUE.fullmatch(value):
            raise UsageError(
                f"{flag}: {value!r} is not a label value", hint="up to 63 letters, digits, '-', '_' and '.'"
            )
    return labels


def parse_topology(text: str, flag: str = "--topology") -> dict[str, int]:
    """`rack=4,example.com/zone=2` as label key -> number of domains. `rack` and `slice` are short names."""
    domains: dict[str, int] = {}
    if text == "none":
        return domains
    for name, count in parse_pairs(text, flag).items():
        key = TOPOLOGY_KEYS.get(name, name)
        _check_label_key(key, flag)
        domains[key] = parse_count(count, f"{flag} {name}")
    return domains


def parse_count(text: str, flag: str) -> int:
    """A number from 1 to NODES_MAX."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= NODES_MAX):
        raise UsageError(f"{flag}: {text!r} is not a number from 1 to {NODES_MAX}")
    return int(text)


def parse_quantity(text: str, flag: str) -> str:
    """A Kubernetes quantity such as 500m or 16Gi, unchanged."""
    if not _QUANTITY.fullmatch(text):
        raise UsageError(f"{flag}: {text!r} is not a quantity", hint="for example 4, 500m or 16Gi")
    return text


def _check_label_key(key: str, flag: str) -> None:
    if not _LABEL_KEY.fullmatch(key):
        raise UsageError(f"{flag}: {key!r} is not a label key", hint="for example topology.kubernetes.io/rack")
