"""Laws over all commands: the help of each shows an example, and nothing heavy is loaded before a command runs."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
import typer

from pyjobset.cli import controller, demo, explain, lint, main, plan, plane, tree
from tests.cli.conftest import Run


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


ALL = list(commands(typer.main.get_command(main.app())))


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_has_an_example(run: Run, path: tuple[str, ...]) -> None:
    ended = run(*path, "--help")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].startswith(" ".join(["Usage: jobset", *path]))
    examples = ended.out.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    assert examples, "no examples"
    assert all(line.startswith("    ") for line in examples), "an example must begin with two spaces after \\b"
    assert any("jobset " + " ".join(path) in line for line in examples)


@pytest.mark.parametrize("path", [p for p in ALL if p in ((), ("nodes",))], ids=" ".join)
def test_the_list_of_commands_says_what_each_does(
    run: Run, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    """In 80 columns, without a sentence that is cut."""
    monkeypatch.setenv("COLUMNS", "80")
    listed = run(*path, "--help").out.partition("Commands:\n")[2]
    assert listed
    assert [line for line in listed.splitlines() if line.endswith("...")] == []


def test_the_usual_commands_are_there() -> None:
    assert {("plan",), ("explain",), ("tree",), ("explain",), ("demo",)} <= set(ALL)


AT_THE_TOP = {"typer", "click", "pyjobset", "pyjobset.errors", *sys.stdlib_module_names}
SLOW_STDLIB = {"asyncio", "json", "subprocess", "difflib", "logging", "dataclasses"}
MODULES = (main, plan, lint, explain, tree, demo, plane, controller)


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__.rpartition(".")[2])
def test_commands_import_when_they_run(module: ModuleType) -> None:
    """`jobset --help` and `jobset plan` start at once because no command pays for the libraries of another."""
    assert module.__file__
    for node in ast.parse(Path(module.__file__).read_text()).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name in AT_THE_TOP or name.split(".")[0] in AT_THE_TOP - {"pyjobset"}, name
            assert name.split(".")[0] not in SLOW_STDLIB, name
