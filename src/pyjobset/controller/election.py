"""Who leads, as one replica knows it: what it saw of the Lease, what it may claim, until when it may write. Pure.

The rules are those of client-go's leader election, so that its programs and we exclude each other. All times are
seconds of one clock of this machine: times in the Lease are never compared with ours. controller.lease asks the API
server and tells the answers here; it also has the clock.
"""

import math

from pyjobset.controller.options import LeaderElection
from pyjobset.objects.coordination import Lease, LeaseSpec
from pyjobset.objects.meta import Manifest

RELEASED_SECONDS = 1
"""The API allows no 0. Nobody waits for a Lease without a holder, whatever its duration."""


class Election:
    def __init__(self, identity: str, options: LeaderElection) -> None:
        self.identity = identity
        self.is_known = False
        """What the API server has is what was seen last. If not, look before the next claim."""
        self.has_claimed = False
        """The Lease may be ours, whatever came back."""
        self._deadline_seconds = options.renew_deadline_seconds
        self._lease_seconds = math.ceil(options.lease_seconds)  # others read whole seconds: they must not wait less
        self._seen: Lease | None = None
        self._exists = False
        self._changed_at = -math.inf
        self._held_since: float | None = None
        """When the last claim was sent that the server stored: our Lease begins no earlier than that."""

    def see(self, lease: Lease | None, now: float) -> None:
        """What the API server has now; None: no Lease.

        A Lease that was deleted still counts: its holder, which does not know yet, believes in it for its time.
        """
        self.is_known = True
        self._exists = lease is not None
        if lease is None:
            return
        if self._seen is None or lease.spec != self._seen.spec:
            self._changed_at = now
        self._seen = lease
        if lease.spec.holder_identity != self.identity:
            self._held_since = None

    def hold(self, lease: Lease, sent_at: float) -> None:
        """The API server stored a claim of ours."""
        self.see(lease, sent_at)
        self._held_since = sent_at

    @property
    def holder(self) -> str:
        return "" if self._seen is None else self._seen.spec.holder_identity

    def is_leading(self, now: float) -> bool:
        """May write: others may take the Lease only after its duration, which is longer than our deadline."""
        return self.seconds_left(now) > 0

    def seconds_left(self, now: float) -> float:
        """Until we must stop to write, unless a claim succeeds before. Not above 0: we do not lead."""
        return -math.inf if self._held_since is None else self._held_since + self._deadline_seconds - now

    def free_in_seconds(self, now: float) -> float:
        """Until the Lease may be taken. Not above 0: now."""
        if self._seen is None or self.holder in ("", self.identity):
            return 0.0
        duration = self._seen.spec.lease_duration_seconds or self._lease_seconds
        return self._changed_at + duration - now

    def claim(self, now: float, time: str) -> Manifest | None:
        """What to create, or to patch if the Lease exists; None: somebody else has it. `time` is for people.

        A patch has the version that was seen, so that of several claims one wins. What comes of it is not known before
        the answer.
        """
        assert self.is_known
        self.is_known = False
        if self.free_in_seconds(now) > 0:
            return None
        self.has_claimed = True
        seen = LeaseSpec() if self._seen is None else self._seen.spec
        spec = {"holderIdentity": self.identity, "leaseDurationSeconds": self._lease_seconds, "renewTime": time}
        if not self._exists or self.holder != self.identity:
            before = self._seen is not None
            spec |= {"acquireTime": time, "leaseTransitions": seen.lease_transitions + before}
        return self._body(spec)

    def release(self, time: str) -> Manifest | None:
        """The patch that gives the Lease away; None: it is not ours. From now on we do not lead."""
        assert self.is_known
        self._held_since = None
        if not self._exists or self.holder != self.identity:
            return None
        return self._body(
            {"holderIdentity": "", "leaseDurationSeconds": RELEASED_SECONDS, "renewTime": time, "acquireTime": time}
        )

    @property
    def exists(self) -> bool:
        return self._exists

    def _body(self, spec: Manifest) -> Manifest:
        if not self._exists or self._seen is None:
            return {"spec": spec}
        return {"metadata": {"resourceVersion": self._seen.metadata.resource_version}, "spec": spec}
