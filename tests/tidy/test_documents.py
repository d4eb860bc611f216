"""The documents are true: their links lead somewhere, their commands exist, and decisions have a head."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pytest
import typer

from pyjobset.cli.main import app
from tests.tidy.house import Source, documents, files, python

DECISIONS = "docs/decisions/"
_LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_FENCE = re.compile(r"^ {0,3}(```|~~~)", re.MULTILINE)
_HEADING = re.compile(r"^#+\s+(.*?)\s*#*$", re.MULTILINE)
_COMMAND = re.compile(r"(?:^|[`;&|(\"'=] ?|\$ |kubectl |bin/)jobset((?: +[^\s`;&|()'\"<>]+)*)")
_RECORD = re.compile(r"(\d{4})-[a-z0-9-]+\.md")
_STATUS = re.compile(r"^Status: (accepted|outdated \(by \d+\))$", re.MULTILINE)


def broken_links(sources: Sequence[Source], paths: Collection[str]) -> Iterator[str]:
    """Relative links to files, folders and headings. `paths` is all that exists."""
    texts = {source.path: source.text for source in sources}
    for source in sources:
        for match in _LINK.finditer(_without_blocks(source.text)):
            target, _, anchor = match[1].partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            path = _resolved(source.path, target) if target else source.path
            if not any(p == path or p.startswith(f"{path}/") for p in paths):
                yield f"{source.path}: {match[1]} leads nowhere"
            elif anchor and path in texts and anchor not in _anchors(texts[path]):
                yield f"{source.path}: {match[1]}: there is no such heading"


def _without_blocks(text: str) -> str:
    """The text outside of fenced blocks."""
    return "".join(re.split(r"(?ms)^ {0,3}```.*?^ {0,3}```", text))


def _resolved(source: str, target: str) -> str:
    parts = source.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            if not parts:
                return target
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _anchors(text: str) -> set[str]:
    """As the usual renderers make them: lower case, punctuation gone, spaces to hyphens."""
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in _HEADING.findall(_without_blocks(text))}


def bad_decisions(sources: Sequence[Source]) -> Iterator[str]:
    records = [s for s in sources if s.path.startswith(DECISIONS) and not s.path.endswith("README.md")]
    numbers: Counter[int] = Counter()
    for source in records:
        name = source.path.removeprefix(DECISIONS)
        match = _RECORD.fullmatch(name)
        if match is None:
            yield f"{source.path}: a record is called NNNN-subject.md"
            continue
        number = int(match[1])
        numbers[number] += 1
        if not re.match(rf"# {number}\. \S.*\n", source.text):
            yield f"{source.path}: its first line is not the title `# {number}. …`"
        if not _STATUS.search(source.text):
            yield f"{source.path}: no line `Status: accepted` or `Status: outdated (by N)`"
    for number, count in numbers.items():
        if count > 1:
            yield f"{DECISIONS}: {count} records have the number {number}"


def unknown_commands(sources: Sequence[Source], root: Any) -> Iterator[str]:
    """`jobset …` in code of documents and in hints of our code, against the commands that the program has."""
    for source in sources:
        for line in _code(source):
            for match in _COMMAND.finditer(line):
                if problem := _problem(match[1].split(), root):
                    yield f"{source.path}: `jobset{match[1]}`: {problem}"


def _code(source: Source) -> Iterator[str]:
    if source.path.endswith(".py"):
        yield from (hint for hint in re.findall(r"hint=f?\"((?:[^\"\\]|\\.)*)\"", source.text))
        return
    inside = False
    for line in source.text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif inside or line.startswith("    "):
            yield line.strip()
        else:
            yield from (f"`{span}`" for span in re.findall(r"`([^`]+)`", line))


def _problem(words: list[str], command: Any) -> str:
    """What is wrong with these words after the program's name. Arguments and prose after them are not looked at."""
    if not words or not re.fullmatch(r"[a-z][a-z-]*", words[0]):
        return _unknown_flag(words, command)
    while words and hasattr(command, "commands"):
        if words[0].startswith("-"):
            break
        if words[0] not in command.commands:
            return f"there is no command {words[0]!r}" if re.fullmatch(r"[a-z][a-z-]*", words[0]) else ""
        command, words = command.commands[words[0]], words[1:]
    return _unknown_flag(words, command)


def _unknown_flag(words: list[str], command: Any) -> str:
    known = {"--help", "-h"} | {flag for p in command.params for flag in (*p.opts, *p.secondary_opts)}
    flags = [found[0] for word in words if (found := re.match(r"\[?(--[a-z][a-z-]*|-[a-zA-Z])", word))]
    unknown = [flag.removeprefix("[") for flag in flags if flag.removeprefix("[") not in known]
    return f"{command.name} has no {unknown[0]}" if unknown else ""


@cache
def _commands() -> Any:
    return typer.main.get_command(app())


def test_links_lead_somewhere() -> None:
    assert list(broken_links(documents(), [f.path for f in files()])) == []


def test_decisions_have_a_head() -> None:
    assert list(bad_decisions(documents())) == []


def test_commands_in_documents_exist() -> None:
    assert list(unknown_commands(documents(), _commands())) == []


def test_commands_in_hints_exist() -> None:
    assert list(unknown_commands(python("src"), _commands())) == []


@pytest.mark.parametrize(
    ("link", "is_broken"),
    [
        ("[x](other.md)", False),
        ("[x](../README.md#two-words)", False),
        ("[x](folder)", False),
        ("[x](https://example.com/none)", False),
        ("```\n[x](none.md)\n```\n", False),
        ("[x](none.md)", True),
        ("[x](../README.md#none)", True),
        ("[x](#none)", True),
        ("[x](../../outside.md)", True),
    ],
)
def test_broken_links_are_found(link: str, is_broken: bool) -> None:
    sources = [Source("docs/here.md", f"# Here\n\n{link}\n"), Source("README.md", "# Read\n## Two words\n")]
    paths = ["docs/here.md", "docs/other.md", "docs/folder/a.md", "README.md"]
    assert bool(list(broken_links(sources, paths))) == is_broken


@pytest.mark.parametrize(
    ("records", "complaint"),
    [
        ({"0007-x.md": "# 7. X\n\nStatus: accepted\n"}, ""),
        ({"0007-x.md": "# 7. X\n\nStatus: outdated (by 9)\n"}, ""),
        ({"x.md": "# 7. X\n\nStatus: accepted\n"}, "is called"),
        ({"0007-x.md": "# 8. X\n\nStatus: accepted\n"}, "first line"),
        ({"0007-x.md": "# 7. X\n\nIt is accepted.\n"}, "no line"),
        ({f"0007-{n}.md": "# 7. X\n\nStatus: accepted\n" for n in "xy"}, "2 records"),
    ],
)
def test_decisions_are_judged(records: Mapping[str, str], complaint: str) -> None:
    found = list(bad_decisions([Source(DECISIONS + name, text) for name, text in records.items()]))
    assert [complaint in text for text in found] == ([True] if complaint else [])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```\n$ jobset plan -f x.yaml\n```", ""),
        ("Use `jobset plan` or `kubectl jobset tree NAME [--watch]`.", ""),
        ("    export KUBECONFIG=$(jobset kubeconfig)\n", ""),
        ("the jobset controller, `jobset.x-k8s.io`, `jobset …`, `jobset --version`", ""),
        ("```\njobset plna -f x.yaml\n```", "no command 'plna'"),
        ("    kubectl jobset tre x\n", "no command 'tre'"),
        ("`jobset nodes ad`", "no command 'ad'"),
        ("    jobset plan --fiel x\n", "plan has no --fiel"),
        ("    x=$(jobset nonsense)\n", "no command 'nonsense'"),
    ],
)
def test_unknown_commands_are_found(text: str, complaint: str) -> None:
    found = list(unknown_commands([Source("README.md", text)], _commands()))
    assert [complaint in line for line in found] == ([True] if complaint else [])


def test_unknown_commands_in_hints_are_found() -> None:
    source = Source(
        "src/x.py", 'raise E("x", hint="jobset repair mends it")\nraise E("y", hint=f"jobset up --dir {d}")\n'
    )
    assert list(unknown_commands([source], _commands())) == [
        "src/x.py: `jobset repair mends it`: there is no command 'repair'"
    ]
