"""Short words for the parts of a JobSet's spec that the tests of the CRD send."""

import copy
from typing import Any

Spec = dict[str, Any]

POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
TEMPLATE = {"spec": {"template": POD}}


def rj(name: str = "w", **fields: Any) -> Spec:
    return {"name": name, "template": TEMPLATE, **fields}


def scheduling(**fields: Any) -> Spec:
    return {"scheduling": fields}


def entry(**fields: Any) -> Spec:
    return scheduling(replicatedJobs=[{"targetReplicatedJobs": ["w"], **fields}])


def job(**fields: Any) -> Spec:
    return entry(job=fields)


def rule(**fields: Any) -> Spec:
    return {"failurePolicy": {"rules": [{"name": "r", "action": "FailJobSet", **fields}]}}


def claims(*templates: Spec, **policy: Any) -> Spec:
    return {"volumeClaimPolicies": [{"templates": list(templates), **policy}]}


def claim(number: int = 0, **metadata: Any) -> Spec:
    return {"metadata": {"name": f"c{number}", **metadata}, "spec": {}}


def depends(*names: str, status: str = "Ready") -> Spec:
    return {"replicatedJobs": [*map(rj, names), rj(dependsOn=[{"name": n, "status": status} for n in names])]}


def names(count: int) -> list[str]:
    return [f"n{i}" for i in range(count)]


def resource_claims(count: int) -> list[Spec]:
    return [{"name": f"n{i}", "resourceClaimName": "c"} for i in range(count)]


def container(**fields: Any) -> Spec:
    template = copy.deepcopy(TEMPLATE)
    template["spec"]["template"]["spec"]["containers"][0] |= fields
    return {"replicatedJobs": [rj(template=template)]}
