"""How things look on a terminal or in a pipe: tables, YAML and JSON, errors. Pure but for `say` and `note`.

Every command prints through here. Results go to stdout, everything else to stderr. What came from a manifest or a
server is made printable first, so that no name or message can move the cursor of a terminal. It decides no content.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pyjobset.errors import InvalidSpec, JobSetError, Problem
from pyjobset.objects.meta import Manifest

Format = Literal["table", "yaml", "json"]
GAP = 3
"""Spaces between columns, as kubectl has it."""
_PATH_WIDTH_MAX = 60
_UNPRINTABLE = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}


def printable(text: str) -> str:
    """`text` on one line, with control characters spelled out."""
    return text.translate(_UNPRINTABLE)


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Aligned lines, headers first, no space at the end of a line."""
    cells = [list(headers), *([printable(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) + GAP for i in range(len(headers))]
    return ["".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def dump(objects: Sequence[Manifest], form: Literal["yaml", "json"]) -> str:
    """Objects that `kubectl apply -f -` takes: YAML documents, or one JSON List."""
    if form == "yaml":
        return "---\n".join(to_yaml(o) for o in objects)
    return to_json({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def to_json(value: object) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def to_yaml(value: object) -> str:
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    dumper = type("Dumper", (base,), {"ignore_aliases": lambda *_: True})  # siblings share parts: write each out
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=10_000))


def error_lines(error: JobSetError) -> list[str]:
    """What a person reads on stderr: what happened, then what to do."""
    if isinstance(error, InvalidSpec):
        return _problem_lines(error)
    first, *more = error.message.splitlines() or [""]
    lines = [f"error: {first}", *(f"  {line}" for line in more)]  # such as the end of a log
    return [*lines, f"hint: {error.hint}"] if error.hint else lines


def _problem_lines(error: InvalidSpec) -> list[str]:
    count = len(error.problems)
    lines = [f"error: {error.subject} is invalid: {count} problem{'s' * (count > 1)}"]
    widths = (len(printable(p.path)) for p in error.problems)
    indent = max((w for w in widths if w <= _PATH_WIDTH_MAX), default=4) + 2 + GAP
    for problem in error.problems:
        path = f"  {printable(problem.path)}"
        if len(path) + GAP > indent:  # a long path has a line of its own
            lines.append(path)
            path = ""
        lines.append(path.ljust(indent) + problem_text(problem))
        if problem.hint:
            lines.append(" " * indent + f"hint: {printable(problem.hint)}")
    return lines


def problem_text(problem: Problem) -> str:
    """What is wrong, the value seen and the code; the path and the hint are put around it."""
    value = "" if problem.value is None else f" (got {problem.value!r})"
    return f"{printable(problem.message)}{printable(value)} [{problem.code}]"


def say(text: str) -> None:
    """A result, on stdout."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def note(text: str) -> None:
    """Something worth knowing that is no result, on stderr."""
    sys.stdout.flush()
    sys.stderr.write(printable(text) + "\n")


def fail(error: JobSetError) -> None:
    for line in error_lines(error):
        note(line)
