"""The Lease of coordination.k8s.io/v1, as leaders are elected with it: who holds it, and for how long.

Read and written by controller.lease. Its times are for people: they come from other machines' clocks.
"""

from pyjobset.objects.meta import ObjectMeta, Struct

API_VERSION = "coordination.k8s.io/v1"


class LeaseSpec(Struct, frozen=True):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0


class Lease(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()
