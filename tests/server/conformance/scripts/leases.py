"""The Lease by which one replica leads, and the Events that it writes."""

from collections.abc import Mapping

from tests.server.conformance.bodies import event, lease
from tests.server.conformance.player import Script, create, delete, get, patch
from tests.server.conformance.scripts.words import steps

LATER = "2026-01-01T00:00:10.000000Z"

LEASES: Mapping[str, Script] = {
    "a Lease is created once": steps(
        create("leases", lease()), create("leases", lease(holderIdentity="y")), watch="leases"
    ),
    "a Lease is renewed by who saw it last": steps(
        create("leases", lease()),
        patch("leases", "a", {"metadata": {"resourceVersion": "$version:leases/a"}, "spec": {"renewTime": LATER}}),
        patch(
            "leases", "a", {"metadata": {"resourceVersion": "$first-version:leases/a"}, "spec": {"holderIdentity": "y"}}
        ),
        patch("leases", "a", {"metadata": {"resourceVersion": "$version:leases/a"}, "spec": {"renewTime": LATER}}),
        get("leases", "a"),
        watch="leases",
    ),
    "a Lease is given up": steps(
        create("leases", lease()),
        patch(
            "leases",
            "a",
            {"metadata": {"uid": "$uid:leases/a"}, "spec": {"holderIdentity": "", "leaseDurationSeconds": 1}},
        ),
        patch("leases", "a", {"spec": {"holderIdentity": "y", "leaseTransitions": 2}}),
        delete("leases", "a"),
        get("leases", "a"),
        watch="leases",
    ),
    "an Event": steps(
        create("events", event()),
        create("events", event()),
        create("events", {**event(), "metadata": {"generateName": "made-"}}),
    ),
}
