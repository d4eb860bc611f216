"""The rules of leader election: who may claim the Lease when, with which patch, and until when the leader may write."""

import math
from typing import Any

import msgspec
import pytest

from pyjobset.controller.election import Election
from pyjobset.controller.options import LeaderElection
from pyjobset.objects.coordination import Lease

OPTIONS = LeaderElection(enabled=True)
TIME = "2026-11-30T12:00:00.000000Z"
LONG_AGO = "1999-01-01T00:00:00.000000Z"


def lease(holder: str, version: int = 7, **spec: Any) -> Lease:
    fields = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "renewTime": LONG_AGO,
        "leaseTransitions": 3,
        **spec,
    }
    return msgspec.convert({"metadata": {"resourceVersion": str(version)}, "spec": fields}, Lease)


def election(options: LeaderElection = OPTIONS) -> Election:
    return Election("me", options)


def seen(*at: tuple[float, Lease | None], options: LeaderElection = OPTIONS) -> Election:
    made = election(options)
    for now, found in at:
        made.see(found, now)
    return made


TAKEN = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": TIME, "acquireTime": TIME}


def test_where_there_is_no_lease_one_is_made() -> None:
    made = seen((0, None))
    assert not made.exists
    assert made.claim(0, TIME) == {"spec": TAKEN | {"leaseTransitions": 0}}


def test_a_released_lease_is_taken_at_once_in_the_version_that_was_seen() -> None:
    claim = seen((0, lease("", 9, leaseDurationSeconds=1))).claim(0, TIME)
    assert claim == {"metadata": {"resourceVersion": "9"}, "spec": TAKEN | {"leaseTransitions": 4}}


def test_a_lease_is_taken_when_it_has_not_changed_for_its_own_duration_by_our_clock() -> None:
    """Its times, from another clock, say nothing: this one was renewed in the last century."""
    made = seen((100, lease("other", leaseDurationSeconds=30)))
    assert made.claim(129.9, TIME) is None
    made.see(lease("other", leaseDurationSeconds=30), 129.9)
    assert made.claim(130, TIME) == {"metadata": {"resourceVersion": "7"}, "spec": TAKEN | {"leaseTransitions": 4}}


def test_each_renewal_that_is_seen_begins_the_time_anew_and_an_annotation_does_not() -> None:
    renewed = lease("other", 8, renewTime=TIME)
    made = seen((0, lease("other")), (14, renewed), (20, lease("other", 9, renewTime=TIME)))
    assert made.free_in_seconds(20) == 9
    claim = made.claim(29, TIME)
    assert claim is not None
    assert claim["metadata"] == {"resourceVersion": "9"}


def test_a_lease_without_a_duration_lasts_as_long_as_ours() -> None:
    made = seen((0, lease("other", leaseDurationSeconds=0)))
    assert made.free_in_seconds(0) == OPTIONS.lease_seconds


def test_a_deleted_lease_is_not_made_anew_while_its_leader_may_believe_in_it() -> None:
    made = seen((0, lease("other")), (5, None))
    assert made.claim(14, TIME) is None
    made.see(None, 14)
    assert made.claim(15, TIME) == {"spec": TAKEN | {"leaseTransitions": 4}}


def test_what_a_lost_answer_gave_us_is_renewed_at_once() -> None:
    made = seen((0, lease("me")))
    assert not made.is_leading(0)
    claim = made.claim(0, TIME)
    assert claim is not None
    assert "acquireTime" not in claim["spec"]
    made.hold(lease("me", 8), 0)
    assert made.is_leading(0)


def test_the_leader_renews_without_a_new_transition() -> None:
    made = election()
    made.hold(lease("me", 8), 0)
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": TIME}
    assert made.claim(2, TIME) == {"metadata": {"resourceVersion": "8"}, "spec": spec}


def test_it_may_write_for_the_deadline_after_it_sent_its_last_claim() -> None:
    """Not after the answer: others count from when the server stored it, which is later than it was sent."""
    made = election()
    made.hold(lease("me"), 100)
    assert made.seconds_left(104) == 6
    assert made.is_leading(109.9)
    assert not made.is_leading(110)
    made.hold(lease("me", 8), 109)
    assert made.is_leading(118.9)


def test_who_never_claimed_does_not_lead() -> None:
    assert not election().is_leading(0)
    assert election().seconds_left(0) == -math.inf


def test_whoever_sees_another_holder_does_not_lead_any_more() -> None:
    made = election()
    made.hold(lease("me"), 0)
    made.see(lease("other", 8), 1)
    assert not made.is_leading(1)
    assert made.claim(1, TIME) is None


@pytest.mark.parametrize(("seconds", "written"), [(15.0, 15), (15.2, 16), (1.1, 2)])
def test_fractions_of_a_duration_are_not_cut_off(seconds: float, written: int) -> None:
    """Others read whole seconds. With fewer they might lead before our deadline is over."""
    options = LeaderElection(enabled=True, lease_seconds=seconds, renew_deadline_seconds=seconds - 0.05)
    claim = seen((0, None), options=options).claim(0, TIME)
    assert claim is not None
    assert claim["spec"]["leaseDurationSeconds"] == written


def test_a_release_leaves_no_holder_and_ends_the_leadership() -> None:
    made = election()
    made.hold(lease("me", 8), 0)
    released = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": TIME, "acquireTime": TIME}
    assert made.release(TIME) == {"metadata": {"resourceVersion": "8"}, "spec": released}
    assert not made.is_leading(1)


@pytest.mark.parametrize("found", [None, lease(""), lease("other")])
def test_what_is_not_ours_is_not_released(found: Lease | None) -> None:
    made = election()
    made.hold(lease("me"), 0)
    made.see(found, 1)
    assert made.release(TIME) is None


def test_between_a_claim_and_its_answer_nothing_is_known() -> None:
    """Also where the answer never comes: the next claim needs a look."""
    made = election()
    made.hold(lease("me"), 0)
    assert made.is_known
    made.claim(2, TIME)
    assert not made.is_known
    assert made.has_claimed
    made.hold(lease("me", 8), 2)
    assert made.is_known


def test_a_look_that_finds_the_lease_taken_holds_for_one_claim() -> None:
    made = seen((0, lease("other")))
    assert made.claim(0, TIME) is None
    assert not made.is_known
    assert not made.has_claimed
