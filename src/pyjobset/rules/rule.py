"""What an admission rule is, and how a breach of it becomes a problem that a person can act on.

The topic modules report breaches with `Rule.at`; `rules.registry` is the table of all rules. A problem shows scalars
only, cut where long, never a whole object: the path says where to look (decision 14).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pyjobset.errors import Problem

Stage = Literal["parse", "create", "update", "warning", "cluster"]
"""Those of the cluster are judged by the API server itself, and by no code here."""

SHOWN_LENGTH_MAX = 80
SENTENCE_LENGTH_MAX = 1000
"""Of a message. Some repeat what they were given: a name that a manifest makes, what RE2 or the API server says."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`summary` completes a sentence that starts with the field; it is the message of a problem that brings none."""

    code: str
    field: str
    summary: str
    hint: str
    stage: Stage = "create"

    def at(self, path: str, value: object = None, message: str = "", hint: str = "") -> Problem:
        return Problem(self.code, path, shown(value), shortened(message or self.summary), hint or self.hint)


def shown(value: object) -> object:
    """What a problem shows of a value: a scalar, cut where long; nothing of an object or a list."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= SHOWN_LENGTH_MAX else f"{value[:SHOWN_LENGTH_MAX]}... ({len(value)} characters)"
    if isinstance(value, int):
        return value if value.bit_length() <= 64 else f"a number of {value.bit_length()} bits"
    return None


def shortened(text: str, most: int = SENTENCE_LENGTH_MAX) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "a boolean"),
    (int, "an integer"),
    (float, "a number"),
    (str, "a string"),
    (Mapping, "an object"),
    (list, "a list"),
    (tuple, "a list"),
)


def kind_of(value: object) -> str:
    """The JSON type of a value in plain words, or its Python type where JSON has none."""
    if value is None:
        return "null"
    return next((words for type_, words in _KINDS if isinstance(value, type_)), f"a Python {type(value).__name__}")


_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def child(path: str, key: str | int) -> str:
    """The path of a field, a map entry or a list item: `a.b`, `a[b/c]`, `a[0]`. Safe to print whatever the key is."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{printable(key)}]"
    return f"{path}.{printable(key)}" if path else printable(key)


def printable(text: str) -> str:
    """Cut where long, and without control characters: it may end up on a terminal."""
    text = shortened(text, SHOWN_LENGTH_MAX)
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def where_gates_are(gate: str) -> str:
    """For hints. Who reads them may be on a local plane, which has no Configuration to edit."""
    return f"in the manager's Configuration (local plane: jobset up --feature-gates {gate}=true)"
