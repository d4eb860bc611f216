"""Kubernetes quantities compared by value: "1", 1 and "1000m" are the same. Called by rules.difference."""

import re
from fractions import Fraction

_QUANTITY = re.compile(
    r"([-+]?)(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})([eE][-+]?\d{1,2}|[numkMGTPE]|[KMGTPE]i)?", re.ASCII
)
_DECIMAL = {
    unit: Fraction(10) ** power for unit, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
}
_BINARY = {f"{unit}i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", start=1)}
_FACTORS = _DECIMAL | _BINARY


def quantity(value: object) -> Fraction | None:
    """The value of a quantity as it is written in a manifest, a string or a number, or None if it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    match = _QUANTITY.fullmatch(str(value)) if len(str(value)) < 100 else None
    if match is None:
        return None
    sign, digits, suffix = match.groups()
    number = Fraction(digits if digits[-1] != "." else digits[:-1])
    if suffix in _FACTORS:
        number *= _FACTORS[suffix]
    elif suffix:
        number *= Fraction(10) ** int(suffix[1:])
    return -number if sign == "-" else number
