"""Choosers: what each of them answers to the same questions."""

from itertools import product

import pytest

from pyjobset.simulation.chooser import Answer, Choices, Chooser, Plain, Recorded, Replayed, Seeded, exhaustive


def answers(chooser: Chooser) -> tuple[int, ...]:
    """A second question that is asked only after some answers to the first, as in a world."""
    first = chooser.index(3, "first")
    return (first, int(chooser.happens(50, "second"))) if first else (first,)


def throws(chooser: Chooser) -> str:
    """The same question three times."""
    return "".join("x" if chooser.happens(20, "is there a fault: any") else "." for _ in range(3))


def test_every_combination_is_met_once() -> None:
    assert [answers(chooser) for chooser in exhaustive()] == [(0,), *product((1, 2), (0, 1))]


@pytest.mark.parametrize(
    ("most", "worlds"),
    [
        (0, {"..."}),
        (1, {"...", "x..", ".x.", "..x"}),
        (2, {"...", "x..", ".x.", "..x", "xx.", "x.x", ".xx"}),
        (3, {"".join(letters) for letters in product(".x", repeat=3)}),
    ],
)
def test_a_bounded_question_leaves_the_plain_case_only_so_often(most: int, worlds: set[str]) -> None:
    played = [throws(chooser) for chooser in exhaustive({"is there a fault": most})]
    assert set(played) == worlds
    assert len(played) == len(worlds)


def test_other_questions_are_not_bounded() -> None:
    assert [answers(chooser) for chooser in exhaustive({"second": 0})] == [(0,), (1, 0), (2, 0)]


def test_a_world_that_is_not_the_same_each_time_is_told() -> None:
    choosers = exhaustive()
    next(choosers).index(2, "first")
    again = next(choosers)
    with pytest.raises(AssertionError, match="first had 2 ways, now 3"):
        again.index(3, "first")


def test_what_was_answered_is_answered_again() -> None:
    for seed in range(20):
        recorded = Recorded(Seeded(seed))
        given = answers(recorded)
        assert answers(Replayed(recorded.special)) == answers(Replayed(recorded.answers)) == given
        assert given == answers(Seeded(seed))


def test_a_recording_survives_questions_that_are_new() -> None:
    recorded = Recorded(Replayed([("is there a fault: any", 1, True), ("first", 0, 2)]))
    given = throws(recorded), answers(recorded)
    assert given == (".x.", (2, 0))
    assert recorded.special == [Answer("is there a fault: any", 1, True), Answer("first", 0, 2)]
    replayed = Replayed(recorded.special)
    assert replayed.index(7, "new") == 0
    assert (throws(replayed), answers(replayed)) == given


def test_where_a_recording_has_no_answer_or_none_that_fits_the_plain_case_is() -> None:
    assert answers(Plain()) == answers(Replayed()) == answers(Replayed([("first", 0, 7)])) == (0,)
    assert answers(Replayed([("first", 0, 2)])) == (2, 0)


def test_what_never_happens_is_not_asked() -> None:
    recorded = Recorded(Plain())
    assert not Choices(recorded).happens(0, "never")
    assert not recorded.answers


def test_a_seed_knows_probabilities() -> None:
    seeded = Seeded(0)
    assert 120 < sum(seeded.happens(15, "rare") for _ in range(1000)) < 180
