"""What is remembered of refusals: when the next try is, and what makes them forgotten."""

from datetime import timedelta

import pytest

from pyjobset.controller.queue import SLOW_SECONDS
from pyjobset.controller.refusals import MESSAGE_LENGTH_MAX, Memory, Refusals
from pyjobset.errors import ForeignObject, Refused
from pyjobset.objects.meta import Key
from pyjobset.reconciler.refusals import RETRY_SECONDS_MAX, blocked
from tests.builders import NOW

JOB_0, JOB_1, SERVICE = ("Job", "js-w-0"), ("Job", "js-w-1"), ("Service", "js")
QUOTA = Refused("quota exceeded", code=403, reason="Forbidden")
FOREIGN = ForeignObject("taken", kind="Service", namespace="ns", name="js", owner="Deployment/web")
KEY = Key("ns", "js")


def memory() -> Memory:
    return Memory("uid", 1)


def test_a_refusal_says_who_what_and_when_to_try_again() -> None:
    kept = memory()
    kept.refuse([JOB_0], QUOTA, NOW)
    (refusal,) = kept.refusals()
    assert (refusal.kind, refusal.name, refusal.code, refusal.reason) == ("Job", "js-w-0", 403, "Forbidden")
    assert (refusal.message, refusal.owner) == ("quota exceeded", "")
    assert refusal.retry_at == NOW + timedelta(seconds=5)


def test_an_answer_that_several_share_is_told_once_of_the_object_that_it_names() -> None:
    """After a refusal the others are not tried, and have the answer of the one that was."""
    kept = memory()
    said = "POST jobs ns/js-w-1: no luck"
    kept.refuse([JOB_0, JOB_1], Refused(said, code=403, reason="Forbidden"), NOW)
    kept.refuse([SERVICE], FOREIGN, NOW)
    (told,) = blocked(kept.refusals(), "js").conditions
    assert told.message == (
        f"Job js-w-1 was refused: {said} (and 1 more with it); "
        "Service js exists and belongs to Deployment/web; it is not touched: delete or rename one of the two; "
        "what was refused is tried again within 5 minutes"
    )


def test_a_foreign_object_is_told_with_its_owner() -> None:
    kept = memory()
    kept.refuse([SERVICE], FOREIGN, NOW)
    (refusal,) = kept.refusals()
    assert (refusal.code, refusal.reason, refusal.owner) == (409, "AlreadyExists", "Deployment/web")


def test_each_refusal_moves_the_next_try_further_away() -> None:
    kept = memory()
    seconds = []
    for _ in range(8):
        kept.refuse([JOB_0], QUOTA, NOW)
        seconds.append((kept.refusals()[0].retry_at - NOW).total_seconds())
    assert seconds == [5, 10, 20, 40, 80, 160, 300, 300]


def test_a_success_forgets_and_starts_the_count_again() -> None:
    kept = memory()
    kept.refuse([JOB_0, JOB_1], QUOTA, NOW)
    kept.accept(JOB_0)
    assert [r.name for r in kept.refusals()] == ["js-w-1"]
    kept.refuse([JOB_0], QUOTA, NOW)
    assert kept.refusals()[1].retry_at == NOW + timedelta(seconds=5)


def test_what_is_due_and_no_longer_wanted_is_forgotten() -> None:
    kept = memory()
    kept.refuse([JOB_0, SERVICE], QUOTA, NOW)
    kept.forget_unwanted({JOB_0}, NOW)
    assert len(kept.refusals()) == 2, "decide is not free to ask for it yet"
    kept.forget_unwanted({JOB_0}, NOW + timedelta(seconds=5))
    assert [r.kind for r in kept.refusals()] == ["Job"]


def test_how_long_it_is_to_the_first_that_is_due() -> None:
    kept = memory()
    assert kept.wait_seconds(NOW) is None
    kept.refuse([JOB_0], QUOTA, NOW + timedelta(seconds=20))
    kept.refuse([SERVICE], QUOTA, NOW)
    assert kept.wait_seconds(NOW) == 5
    assert kept.wait_seconds(NOW + timedelta(seconds=7)) == 0


def test_a_clock_that_was_set_back_makes_everything_due() -> None:
    """The time of the next try was noted an hour ahead."""
    kept = memory()
    kept.refuse([JOB_0], QUOTA, NOW + timedelta(hours=1))
    assert kept.wait_seconds(NOW) == 0
    kept.forget_unwanted(set(), NOW)
    assert not kept.refusals()


def test_the_same_answer_again_is_no_news() -> None:
    kept = memory()
    kept.refuse([JOB_0], QUOTA, NOW)
    told = kept.told()
    kept.refuse([JOB_0], QUOTA, NOW + timedelta(seconds=5))
    assert kept.told() == told
    kept.refuse([JOB_0], Refused("no rights", code=403, reason="Forbidden"), NOW)
    assert kept.told() != told


def test_a_long_answer_is_cut() -> None:
    kept = memory()
    kept.refuse([JOB_0], Refused("x" * 5000), NOW)
    assert len(kept.refusals()[0].message) == MESSAGE_LENGTH_MAX


@pytest.mark.parametrize(("uid", "generation"), [("uid", 2), ("another", 1)])
def test_a_changed_spec_or_a_new_jobset_starts_without_refusals(uid: str, generation: int) -> None:
    all_ = Refusals()
    kept = all_.of(KEY, "uid", 1)
    kept.refuse([JOB_0], QUOTA, NOW)
    all_.store(KEY, kept)
    assert all_.of(KEY, "uid", 1).refusals()
    assert not all_.of(KEY, uid, generation).refusals()


def test_a_foreign_object_that_goes_makes_the_next_try_due() -> None:
    all_ = Refusals()
    kept = all_.of(KEY, "uid", 1)
    kept.refuse([SERVICE], FOREIGN, NOW)
    kept.refuse([JOB_0], QUOTA, NOW)
    all_.store(KEY, kept)
    assert all_.freed("Service", "ns", "another") == []
    assert all_.freed("Service", "elsewhere", "js") == []
    assert all_.freed("Job", "ns", "js-w-0") == [], "a refusal by the server has nothing to do with a name"
    assert all_.freed("Service", "ns", "js") == [KEY]
    due = {r.kind: r.retry_at <= NOW for r in kept.refusals()}
    assert due == {"Service": True, "Job": False}


def test_who_waits_for_a_name_is_known_without_looking_at_everybody() -> None:
    """Every deletion of a child asks: with ten thousand refused JobSets a search would be the whole CPU."""
    all_ = Refusals()
    for number in range(100):
        key = Key("ns", f"js{number}")
        kept = all_.of(key, "uid", 1)
        kept.refuse([("Service", f"s{number % 50}")], FOREIGN, NOW)
        all_.store(key, kept)
    assert all_.freed("Service", "ns", "s7") == [Key("ns", "js57"), Key("ns", "js7")]
    all_.forget(Key("ns", "js7"))
    assert all_.freed("Service", "ns", "s7") == [Key("ns", "js57")]
    kept = all_.of(Key("ns", "js57"), "uid", 1)
    kept.accept(("Service", "s7"))
    all_.store(Key("ns", "js57"), kept)
    assert all_.freed("Service", "ns", "s7") == []


def missing(name: str) -> Refused:
    return Refused(f'podgroups "x" is forbidden: no PriorityClass with name {name} was found', code=403)


def test_a_class_that_comes_makes_what_was_refused_for_it_due_and_soon_again() -> None:
    """The API server's admission may learn of it a moment later than we do, after many tries as after one."""
    all_, group = Refusals(), ("PodGroup", "x")
    kept = all_.of(KEY, "uid", 1)
    for _ in range(9):
        kept.refuse([group], missing("high"), NOW)
    kept.refuse([JOB_0], QUOTA, NOW)
    all_.store(KEY, kept)
    assert kept.lacks() == {"high"}
    assert all_.class_came("higher") == []
    assert all_.class_came("high") == [KEY]
    assert {r.kind: r.retry_at <= NOW for r in kept.refusals()} == {"PodGroup": True, "Job": False}
    kept.refuse([group], missing("high"), NOW)
    assert kept.wait_seconds(NOW) == 5
    kept.accept(group)
    all_.store(KEY, kept)
    assert not kept.lacks()
    assert all_.class_came("high") == []


@pytest.mark.parametrize(
    ("refused", "ends"),
    [
        ([QUOTA], "quota exceeded; what was refused is tried again within 5 minutes"),
        ([missing("high")], "no PriorityClass with name high was found, and is tried again when there is one"),
        ([FOREIGN], "delete or rename one of the two"),
        ([FOREIGN, QUOTA], "; what was refused is tried again within 5 minutes"),
    ],
)
def test_it_is_said_when_it_is_tried_again(refused: list[Refused | ForeignObject], ends: str) -> None:
    kept = memory()
    for index, error in enumerate(refused):
        kept.refuse([("Job", f"js-w-{index}")], error, NOW)
    (told,) = blocked(kept.refusals(), "js").conditions
    assert told.message.endswith(ends)


def test_nothing_waits_longer_than_is_said() -> None:
    assert max(SLOW_SECONDS) == RETRY_SECONDS_MAX
