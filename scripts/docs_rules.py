"""docs/reference/rules.md from the table of admission rules. scripts/generate.py calls it."""

from collections.abc import Iterator

from pyjobset.rules.registry import RULES
from pyjobset.rules.rule import Stage

INTRODUCTION = """\
# Admission rules

<!-- Generated from src/pyjobset/rules/registry.py by `make generate`. -->

Every rule has a code that never changes. `jobset plan` and the webhooks report all breaches of a manifest at once, each
with the path of the field, what is wrong, the value seen, what to do, and the code in brackets:

```
spec.replicatedJobs[0].replicas: must be an integer, not a string (got '2'). write 2 without quotes [wrong-type]
```
"""

SECTIONS: dict[Stage, str] = {
    "parse": "Structure and schema\n\nOne field at a time. The API server checks the same by the CRD, always.",
    "create": "Rules between fields\n\nOn create and update; a breach that the stored JobSet already has is let pass.",
    "update": "Changes\n\nOn update. A default that is written out, or left out again, is no change.",
    "warning": "Warnings\n\nThe JobSet is admitted.",
    "cluster": "Asked of the API server\n\nBy the webhooks, as a dry run. One that cannot be made is a warning.",
}


def generate() -> dict[str, str]:
    return {"docs/reference/rules.md": "\n".join([INTRODUCTION, *_sections()])}


def _sections() -> Iterator[str]:
    for stage, heading in SECTIONS.items():
        yield f"## {heading}\n"
        yield "| code | field | message | what to do |"
        yield "|---|---|---|---|"
        for rule in RULES.values():
            if rule.stage == stage:
                yield f"| `{rule.code}` | {_code(rule.field)} | {_cell(rule.summary)} | {_cell(rule.hint)} |"
        yield ""


def _code(field: str) -> str:
    """A path as code, words as they are."""
    return f"`{field}`" if " " not in field else field


def _cell(text: str) -> str:
    return text.replace("<", "&lt;").replace("|", "\\|")
