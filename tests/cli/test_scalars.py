"""Unquoted words mean what kubectl makes of them. The expected values are what kubectl 1.37 printed for them."""

import pytest

from pyjobset.cli.scalars import integer, real, resolve

AS_KUBECTL = {
    "y": True,
    "yes": True,
    "ON": True,
    "N": False,
    "off": False,
    "~": None,
    "": None,
    "null": None,
    "yEs": "yEs",
    "1e3": 1000,
    "1.5e+3": 1500,
    "0777": 511,
    "0o777": 511,
    "0x1f": 31,
    "0b11": 3,
    "-0b11": -3,
    "+1": 1,
    ".5": 0.5,
    "1.": 1,
    "08": 8,
    "0": 0,
    "1_000": 1000,
    "0_7": 7,
    "1:30": "1:30",
    "2001-01-01": "2001-01-01",
    "1.2.3": "1.2.3",
    "-": "-",
    ".": ".",
    "0x": "0x",
    "12345678901234567890123": 1.2345678901234568e22,
    "18446744073709551615": 18446744073709551615,
    "-9223372036854775808": -9223372036854775808,
    "100m": "100m",
}


@pytest.mark.parametrize(("text", "value"), AS_KUBECTL.items())
def test_a_word_means_what_kubectl_makes_of_it(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".nan", "1e999"])
def test_what_json_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a number in JSON"):
        resolve(text)


@pytest.mark.parametrize("digits", ["9" * 5000, "-" + "9" * 5000, "1" * 64 + "0" * 300])
def test_endless_digits_are_refused_without_counting_them(digits: str) -> None:
    with pytest.raises(ValueError, match="not a number in JSON"):
        integer(digits)
    with pytest.raises(ValueError, match="not a number in JSON"):
        resolve(digits)


def test_whole_floats_are_integers_as_in_json() -> None:
    assert type(real("3.0")) is int
    assert type(real("3.5")) is float
    assert type(real("1e300")) is float
