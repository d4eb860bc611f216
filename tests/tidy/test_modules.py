"""Every module says what it is for, is of a size that one can read, and has nothing in it that we do without."""

import ast
from collections.abc import Iterator, Sequence

import pytest

from tests.tidy.house import Ratchet, Source, files, python, snippet, without

DOCSTRING_LINES_MAX = 10
MODULE_LINES_MAX = 450
FUNCTION_LINES_MAX = 60
PAUSE_SECONDS_MAX = 1.0

LONG_DOCSTRINGS: Ratchet = {
    "src/pyjobset/errors.py": "it draws the tree of errors",
    "src/pyjobset/localplane/plane.py": "it shows the interface in use",
}
LONG_MODULES: Ratchet = {}
LONG_FUNCTIONS: Ratchet = {}
MARKERS = ("TO" + "DO", "FIX" + "ME", "X" * 3)


def docstrings(sources: Sequence[Source]) -> Iterator[tuple[str, str]]:
    for source in sources:
        text = ast.get_docstring(source.tree) or ""
        first, _, _ = text.partition("\n\n")
        lines = len(text.splitlines())
        if not text:
            yield source.path, f"{source.path}: no docstring; say what it decides or holds and who calls it"
        elif first.endswith(".") is False or len(first.split()) < 4:
            yield source.path, f"{source.path}: its docstring does not begin with a full sentence: {first!r}"
        elif lines > DOCSTRING_LINES_MAX:
            yield source.path, f"{source.path}: its docstring has {lines} lines; {DOCSTRING_LINES_MAX} are enough"


def modules(sources: Sequence[Source]) -> Iterator[tuple[str, str]]:
    for source in sources:
        lines = len(source.text.splitlines())
        if lines > MODULE_LINES_MAX:
            yield source.path, f"{source.path}: {lines} lines; cut it in two at {MODULE_LINES_MAX}"


def functions(sources: Sequence[Source]) -> Iterator[tuple[str, str]]:
    """Their bodies: a command may declare many flags."""
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.body[0].lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    subject = f"{source.path} {node.name}"
                    yield subject, f"{source.at(node)} {node.name}: {lines} lines; the most is {FUNCTION_LINES_MAX}"


def markers(sources: Sequence[Source]) -> Iterator[str]:
    """Work that was put off: do it, or write an issue."""
    for source in sources:
        for number, line in enumerate(source.text.splitlines(), 1):
            if found := [marker for marker in MARKERS if marker in line]:
                yield f"{source.at(number)}: {found[0]}; do it, or say in the changelog what does not work yet"


def prints(sources: Sequence[Source]) -> Iterator[str]:
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                yield f"{source.at(node)}: print; a command says things with cli.output, a shell logs them"


VIRTUAL_TIME = ("pyjobset.simulation.clock", "tests.controller_world")
"""Modules whose users run on a clock that jumps."""


def pauses(sources: Sequence[Source]) -> Iterator[str]:
    """A test that sleeps is slow on a fast machine and wrong on a slow one. Virtual time costs none of ours."""
    for source in sources:
        if any(module in source.text for module in VIRTUAL_TIME):
            continue
        for node in source.nodes:
            if isinstance(node, ast.Call) and _is_sleep(node.func) and node.args:
                seconds = _constant(node.args[0])
                if seconds is not None and seconds >= PAUSE_SECONDS_MAX:
                    yield f"{source.at(node)}: sleeps {seconds:g} s; wait for a condition"


def _is_sleep(function: ast.expr) -> bool:
    return ast.unparse(function) in ("time.sleep", "asyncio.sleep", "sleep")


def _constant(expression: ast.expr) -> float | None:
    try:
        value = ast.literal_eval(expression)
    except ValueError:
        return None
    return value if isinstance(value, int | float) else None


def test_a_module_begins_with_what_it_is_for() -> None:
    assert without(docstrings(python("src", "bench", "scripts")), LONG_DOCSTRINGS) == []


def test_a_module_can_be_read_in_one_go() -> None:
    assert without(modules(python("src", "bench", "scripts")), LONG_MODULES) == []


def test_a_function_fits_a_screen() -> None:
    assert without(functions(python("src", "bench", "scripts")), LONG_FUNCTIONS) == []


def test_no_work_is_left_in_comments() -> None:
    assert list(markers([f for f in files() if not f.path.endswith((".lock", ".sum", ".json"))])) == []


def test_only_commands_print() -> None:
    assert list(prints([f for f in python("src") if "/cli/" not in f.path])) == []


def test_tests_wait_for_conditions() -> None:
    assert list(pauses(python("tests"))) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import os\n", "no docstring"),
        ('"""Helpers."""\n', "full sentence"),
        ('"""Things that are useful for many purposes"""\n', "full sentence"),
        ('"""It holds one thing."""\n', ""),
        ('"""It holds one thing.\n\n' + "More.\n" * 9 + '"""\n', "11 lines"),
    ],
)
def test_docstrings_are_judged(text: str, complaint: str) -> None:
    assert _only(text for _, text in docstrings(snippet(text))).count(complaint) >= (1 if complaint else 0)
    assert bool(list(docstrings(snippet(text)))) == bool(complaint)


def test_sizes_are_judged() -> None:
    assert list(modules(snippet("x = 1\n" * 450))) == []
    assert "451 lines" in _only(text for _, text in modules(snippet("x = 1\n" * 451)))
    body = "    x = 1\n" * 60
    assert list(functions(snippet(f"def short():\n{body}"))) == []
    assert "long: 61 lines" in _only(text for _, text in functions(snippet(f"async def long():\n{body}    x = 2\n")))


def test_a_ratchet_only_tightens() -> None:
    complaint = ("a.py", "a.py: 500 lines")
    assert without([complaint], {}) == ["a.py: 500 lines"]
    assert without([complaint], {"a.py": "reason"}) == []
    assert without([], {"a.py": "reason"}) == ["a.py: the exception is no longer needed, take it out"]


@pytest.mark.parametrize("marker", MARKERS)
def test_markers_are_found(marker: str) -> None:
    assert "snippet.py:2" in _only(markers(snippet(f"x = 1\ny = 2  # {marker}: later\n")))


def test_prints_are_found() -> None:
    assert "snippet.py:2" in _only(prints(snippet("def f():\n    print('x')\n")))
    assert list(prints(snippet("printer.print('x')\nblueprint(1)\n"))) == []


@pytest.mark.parametrize("call", ["time.sleep(1)", "await asyncio.sleep(2.5)", "sleep(30)"])
def test_pauses_are_found(call: str) -> None:
    assert "wait for a condition" in _only(pauses(snippet(f"async def test():\n    {call}\n")))


@pytest.mark.parametrize("call", ["time.sleep(0.02)", "asyncio.sleep(seconds)", "asyncio.sleep(0)"])
def test_short_pauses_between_looks_are_fine(call: str) -> None:
    assert list(pauses(snippet(f"{call}\n"))) == []


def _only(complaints: Iterator[str]) -> str:
    found = list(complaints)
    assert len(found) <= 1
    return found[0] if found else ""
