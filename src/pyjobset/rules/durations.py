"""Durations as people write them into fields that count seconds: `5m`, `1h30m`, `90 s`, `7 days`. Pure.

Only for a hint: Kubernetes takes whole numbers there. Called by rules.parse, for manifests and for templates.
"""

import re
from fractions import Fraction

_UNITS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), Fraction(1, 1000)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Fraction(1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), Fraction(60)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Fraction(3600)),
    **dict.fromkeys(("d", "day", "days"), Fraction(86_400)),
    **dict.fromkeys(("w", "week", "weeks"), Fraction(604_800)),
}
_LENGTH_MAX = 40
_PART = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([a-z]+)\s*", re.ASCII)
_DURATION = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_FIELD = re.compile(r"(?:^s|S)econds(?![a-z])")


def counts_seconds(field: str) -> bool:
    """By its name: ttlSecondsAfterFinished, terminationGracePeriodSeconds."""
    return _FIELD.search(field) is not None


def seconds(text: str) -> Fraction | None:
    """How many seconds are meant, or None where it is no duration."""
    if len(text) > _LENGTH_MAX:
        return None
    word = text.strip().lower()
    if not _DURATION.fullmatch(word):
        return None
    parts = _PART.findall(word)
    if any(unit not in _UNITS for _, unit in parts):
        return None
    return sum((Fraction(number) * _UNITS[unit] for number, unit in parts), Fraction(0))
