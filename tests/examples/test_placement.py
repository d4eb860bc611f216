"""The examples of exclusive placement: admitted without a word, and placed as they say."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

from pyjobset.cli.files import read
from pyjobset.objects.features import DEFAULTS
from pyjobset.rules.validation import check, warnings
from tests.examples.conftest import Shell
from tests.server.plane import Kubectl

EXAMPLES = Path(__file__).parents[2] / "examples" / "placement"
RACK = "topology.kubernetes.io/rack"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_nothing_is_wrong_with_it(path: Path) -> None:
    found, problems = read([str(path)])
    assert not problems
    (example,) = found
    assert warnings(check(example.manifest, DEFAULTS), DEFAULTS) == ()


@pytest.mark.server
def test_a_rack_for_each_job(default: Shell, kubectl: Kubectl) -> None:
    path = str(EXAMPLES / "exclusive-placement.yaml")
    default.applied.append(path)
    default.run(f"kubectl apply -f {path}")
    racks = {
        node["metadata"]["name"]: node["metadata"]["labels"].get(RACK)
        for node in json.loads(kubectl("get", "nodes", "-o", "json").stdout)["items"]
    }
    nodes = default.pods_running("exclusive-placement", 16)
    by_job = defaultdict(set)
    for pod, node in nodes.items():
        by_job[pod.rsplit("-", 2)[0]].add(racks[node])
    default.look()
    assert [len(found) for found in by_job.values()] == [1, 1, 1, 1]
    assert len(set.union(*by_job.values())) == 4
