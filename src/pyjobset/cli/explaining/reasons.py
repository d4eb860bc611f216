"""What an explanation is made of: findings, the words that show them, and advice. Their text is rendered here.

A code and its arguments are stable, for programs; the sentences are those of `sentences`. Made by the modules beside
this one, printed by cli.explain.
"""

from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

from pyjobset.cli.explaining.sentences import ADVICE, FINDINGS
from pyjobset.objects.meta import Struct


class Evidence(Struct, frozen=True):
    """What somebody else wrote: where on which object, and the words."""

    object: str
    where: str
    says: str


class Advice(Struct, frozen=True):
    code: str
    text: str
    command: str = ""
    arguments: dict[str, Any] = {}


class Finding(Struct, frozen=True):
    code: str
    about: str
    """The object, as kind and name."""
    text: str
    headline: str
    arguments: dict[str, Any] = {}
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[Advice, ...] = ()
    more: int = 0
    """Other objects of which the same is to be said."""


class Explanation(Struct, frozen=True):
    """`state` is the word that `jobset tree` has for it."""

    namespace: str
    name: str
    state: str
    code: str
    headline: str
    findings: tuple[Finding, ...] = ()


class _Sentence(Formatter):
    """`{n:pod}` is 1 pod or 2 pods, `{n:pod waits|pods wait}` says both in full."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if not format_spec:
            return str(value)
        one, _, many = format_spec.partition("|")
        return f"{value} {one}" if value == 1 else f"{value} {many or one + 's'}"


def sentence(text: str, arguments: Mapping[str, Any]) -> str:
    return _Sentence().vformat(text, (), arguments)


def finding(
    code: str, about: str, evidence: Iterable[Evidence] = (), advice: Iterable[Advice] = (), **arguments: Any
) -> Finding:
    """Evidence without words is left out."""
    words = FINDINGS[code]
    return Finding(
        code,
        about,
        sentence(words.text, arguments),
        sentence(words.headline, arguments),
        arguments,
        tuple(e for e in evidence if e.says),
        tuple(advice),
    )


def advice(code: str, command: str = "", **arguments: Any) -> Advice:
    return Advice(code, sentence(ADVICE[code], arguments), command, arguments)
