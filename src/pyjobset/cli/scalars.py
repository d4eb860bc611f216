"""What an unquoted word of YAML means: text, number, bool or null, as kubectl reads it. Pure.

kubectl reads YAML 1.1 with its own habits, checked against kubectl 1.37: `yes`, `y` and `on` are true, `0777` is 511,
`1e3` is 1000, `1:30` and `2001-01-01` are text, integers beyond 64 bits become floats. documents.py is the caller.
"""

import re

_WORDS = {"": None, "~": None, "null": None, "y": True, "yes": True, "true": True, "on": True}
_WORDS |= {"n": False, "no": False, "false": False, "off": False}
_SPELLED = {form: value for word, value in _WORDS.items() for form in (word, word.capitalize(), word.upper())}
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))$")
_BASES = (16, 2, 8, 10)
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_NOT_JSON = (".nan", ".inf", "+.inf", "-.inf")
_DIGITS_MAX = 64
"""A 64-bit integer in binary. Longer ones are floats before Python's limit on digits is met."""


def resolve(text: str) -> str | int | float | bool | None:
    """The value of a plain scalar. Raises ValueError for what JSON cannot say, such as `.inf`."""
    if text in _SPELLED:
        return _SPELLED[text]
    if text[0] not in "+-.0123456789":
        return text
    if text.lower() in _NOT_JSON:
        raise ValueError(f"{text} is not a number in JSON")
    digits = text.replace("_", "")
    match = _INTEGER.match(digits)
    if match and len(digits) <= _DIGITS_MAX + 3:
        sign, *forms = match.groups()
        value = next(int(form, base) for form, base in zip(forms, _BASES, strict=True) if form is not None)
        return _in_64_bits(-value if sign == "-" else value)
    return real(digits) if _REAL.match(digits) else text


def integer(text: str) -> int | float:
    """A JSON number without fraction and exponent."""
    return _in_64_bits(int(text)) if len(text) <= _DIGITS_MAX else real(text)


def real(text: str) -> int | float:
    """A JSON number with fraction or exponent; whole ones are integers, as they are after a trip through Go's JSON."""
    value = float(text)
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is not a number in JSON")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _in_64_bits(value: int) -> int | float:
    return value if -(2**63) <= value < 2**64 else float(value)
