"""docs/better.md is tested: every row has tests that carry its number, and the row names the files that they are in."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import pytest

from tests.tidy.house import Source, documents, python, snippet

TABLE = "docs/better.md"
COLUMNS = 4
_ROW = re.compile(r"^\| (\d+) \|.*$", re.MULTILINE)


def breaches(table: str, sources: Sequence[Source]) -> Iterator[str]:
    """`table` is the document's text, `sources` the tests."""
    marked, complaints = _marked(sources)
    yield from complaints
    rows = [match[0] for match in _ROW.finditer(table)]
    numbers = [int(row.split("|")[1]) for row in rows]
    if numbers != list(range(1, len(rows) + 1)):
        yield f"{TABLE}: its numbers are not 1, 2, 3, and so on: {numbers}"
    for number, row in zip(numbers, rows, strict=True):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        files = ", ".join(f"`{path}`" for path in sorted(marked.get(number, ())))
        if len(cells) != COLUMNS:
            yield f"{TABLE}: row {number} has {len(cells)} columns instead of {COLUMNS}"
        elif not files:
            yield f"{TABLE}: no test has @pytest.mark.decision({number})"
        elif cells[-1] != files:
            yield f"{TABLE}: row {number} names {cells[-1] or 'no tests'}; its tests are in {files}"
    for number in sorted(marked.keys() - set(numbers)):
        yield f"{', '.join(sorted(marked[number]))}: decision({number}) is no row of {TABLE}"


def _marked(sources: Sequence[Source]) -> tuple[Mapping[int, set[str]], list[str]]:
    """Which files carry each number, and marks that cannot be read."""
    found: dict[int, set[str]] = defaultdict(set)
    complaints: list[str] = []
    for source in sources:
        for node in source.nodes:
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.decision"):
                continue
            match node.args:
                case [ast.Constant(value=int() as number)] if not node.keywords:
                    found[number].add(source.path)
                case _:
                    complaints.append(f"{source.at(node)}: {ast.unparse(node)}: write the number itself")
    return found, complaints


def test_every_row_is_tested_and_says_where() -> None:
    (table,) = (source.text for source in documents() if source.path == TABLE)
    assert list(breaches(table, python("tests"))) == []


def row(number: int, files: str) -> str:
    return f"| {number} | they | we | {files} |\n"


HEAD = "# Better\n\n| # | they | we | tests |\n|---|---|---|---|\n"
MARKED = "@pytest.mark.decision({})\ndef test_x():\n    pass\n"
PARAMETER = "CASES = [pytest.param(1, marks=pytest.mark.decision({}))]\n"


@pytest.mark.parametrize(
    ("rows", "tests", "complaint"),
    [
        (row(1, "`tests/t.py`"), MARKED.format(1), ""),
        (row(1, "`tests/t.py`"), PARAMETER.format(1), ""),
        (row(1, "`tests/t.py`") + row(2, "`tests/t.py`"), MARKED.format(1) + PARAMETER.format(2), ""),
        (row(1, ""), "def test_x():\n    'decision(1)'\n", "no test has @pytest.mark.decision(1)"),
        (row(1, ""), MARKED.format(1), "row 1 names no tests; its tests are in `tests/t.py`"),
        (row(1, "`tests/t.py`, `tests/u.py`"), MARKED.format(1), "row 1 names `tests/t.py`, `tests/u.py`"),
        (row(1, "`tests/t.py`"), MARKED.format(1) + MARKED.format(9), "decision(9) is no row"),
        (row(1, "`tests/t.py`") + row(3, "`tests/t.py`"), MARKED.format(1) + MARKED.format(3), "are not 1, 2, 3"),
        (row(1, "`tests/t.py`") * 2, MARKED.format(1), "are not 1, 2, 3"),
        (row(1, "a | b"), MARKED.format(1), "row 1 has 5 columns"),
        (row(1, "`tests/t.py`"), MARKED.format(1) + MARKED.format("N"), "write the number itself"),
        (row(1, "`tests/t.py`"), MARKED.format(1) + MARKED.format("number=2"), "write the number itself"),
    ],
)
def test_breaches_are_found(rows: str, tests: str, complaint: str) -> None:
    found = list(breaches(HEAD + rows, snippet(tests, "tests/t.py")))
    assert [complaint in text for text in found] == ([True] if complaint else [])
