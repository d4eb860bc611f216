"""Durations in fields that count seconds: what is meant by them, which fields these are, and the hint that says it."""

from fractions import Fraction

import pytest

from pyjobset.rules.durations import counts_seconds, seconds
from pyjobset.rules.parse import read
from tests.manifests import JOBSET, edited


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("5m", 300),
        ("5M", 300),
        ("300s", 300),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("90 sec", 90),
        (" 2 hours 5 min ", 7500),
        ("7d", 604_800),
        ("2 weeks", 1_209_600),
        ("500ms", Fraction(1, 2)),
        ("", None),
        ("5", None),
        ("m", None),
        ("5x", None),
        ("-5m", None),
        ("5m later", None),
        ("\u0665m", None),
        ("1s" * 100_000, None),
        ("1" * 39 + "s", None),
    ],
)
def test_what_is_meant(text: str, meant: int | Fraction | None) -> None:
    assert seconds(text) == meant


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("ttlSecondsAfterFinished", True),
        ("activeDeadlineSeconds", True),
        ("terminationGracePeriodSeconds", True),
        ("seconds", True),
        ("maxRestarts", False),
        ("secondsight", False),
        ("Secondsight", False),
    ],
)
def test_which_fields(field: str, expected: bool) -> None:
    assert counts_seconds(field) is expected


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("5m", "write 300: the field counts seconds"),
        ("500ms", "write a whole number of seconds"),
        ("300", "write 300 without quotes"),
        ("soon", "write a value of the field's type"),
        (1.5, "write a whole number"),
    ],
)
@pytest.mark.parametrize("field", ["ttlSecondsAfterFinished", "activeDeadlineSeconds"])
def test_the_hint(field: str, value: object, hint: str) -> None:
    _, (problem,) = read(edited(JOBSET, {f"spec.{field}": value}))
    assert (problem.code, problem.path, problem.hint) == ("wrong-type", f"spec.{field}", hint)


def test_other_fields_are_no_durations() -> None:
    _, (problem,) = read(edited(JOBSET, {"spec.failurePolicy": {"maxRestarts": "5m"}}))
    assert problem.hint == "write a value of the field's type"
