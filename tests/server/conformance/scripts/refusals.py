"""What a quota and a policy of the cluster say to who creates something."""

from collections.abc import Mapping

from tests.server.conformance.bodies import claim, job, pod_group, service, workload
from tests.server.conformance.player import Script, Step, create, patch
from tests.server.conformance.scripts.words import RED

BODIES = {
    "jobs": job,
    "podgroups": pod_group,
    "workloads": workload,
    "services": service,
    "persistentvolumeclaims": claim,
}
FIRST = [create(plural, body()) for plural, body in BODIES.items()]
SECOND: list[Step] = [create(plural, body("b")) for plural, body in BODIES.items()]
AGAIN = [create("jobs", job(), dry_run=True), create("jobs", job("b"), dry_run=True), patch("jobs", "a", RED)]

REFUSALS: Mapping[str, Script] = {
    "a quota refuses what is one too many, before it looks at names": Script(
        (*FIRST, *SECOND, *FIRST, *AGAIN), lists=tuple(BODIES), refuses="quota"
    ),
    "a policy refuses what is created, not what is changed": Script(
        (*FIRST, *SECOND, *FIRST, *AGAIN), lists=tuple(BODIES), refuses="policy"
    ),
}
