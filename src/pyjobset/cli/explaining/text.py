"""An Explanation as lines for people: the headline, then each finding with what was seen and what helps. Pure."""

from collections.abc import Iterator

from pyjobset.cli.explaining.reasons import Explanation, Finding
from pyjobset.cli.output import printable

SAYS_MAX = 600
"""Longer words of others are cut."""


def lines(explanation: Explanation) -> list[str]:
    return [_capital(printable(explanation.headline)), *(line for f in explanation.findings for line in _finding(f))]


def _finding(found: Finding) -> Iterator[str]:
    more = f" and {found.more} more" if found.more else ""
    yield ""
    yield printable(f"{found.about}{more}: {found.text} [{found.code}]")
    for i, seen in enumerate(found.evidence):
        label = "  seen   " if i == 0 else "         "
        yield label + printable(f"{seen.object}, {seen.where}: {_cut(seen.says)}")
    for i, help_ in enumerate(found.advice):
        yield ("  help   " if i == 0 else "         ") + printable(help_.text)
        if help_.command:
            yield f"           {printable(help_.command)}"


def _cut(text: str) -> str:
    return text if len(text) <= SAYS_MAX else f"{text[:SAYS_MAX]}..."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
