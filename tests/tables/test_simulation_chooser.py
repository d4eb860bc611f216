"""Choosers: what each of them answers to the same questions."""

from itertools import product

from pyjobset.simulation.chooser import Chooser, Plain, Recorded, Replayed, Seeded, exhaustive


def answers(chooser: Chooser) -> tuple[int, ...]:
    """A second question that is asked only after some answers to the first, as in a world."""
    first = chooser.index(3, "first")
    return (first, chooser.index(2, "second")) if first else (first,)


def test_every_combination_is_met_once() -> None:
    assert [answers(chooser) for chooser in exhaustive()] == [(0,), *product((1, 2), (0, 1))]


def test_what_was_answered_is_answered_again() -> None:
    for seed in range(20):
        recorded = Recorded(Seeded(seed))
        given = answers(recorded)
        assert answers(Replayed(recorded.answers)) == given == answers(Seeded(seed))


def test_where_a_recording_ends_or_does_not_fit_the_plain_case_is() -> None:
    assert answers(Plain()) == answers(Replayed([])) == answers(Replayed([7])) == (0,)
    assert answers(Replayed([2])) == (2, 0)
