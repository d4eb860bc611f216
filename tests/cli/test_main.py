"""What a person reads when something goes wrong, and the exit codes that scripts act on."""

import errno
import os
import runpy
import sys
from pathlib import Path

import pytest
import typer

from pyjobset import __version__, errors
from pyjobset.cli import main as cli
from pyjobset.cli import output, plan
from tests.cli.conftest import Run

PROBLEMS = (
    errors.Problem("short", "spec.a", None, "must be set", "set it"),
    errors.Problem("long-code", "spec.replicatedJobs[0].name", "x" * 3, "is too long"),
)
CASES: dict[str, tuple[BaseException, int, list[str]]] = {
    "usage": (errors.UsageError("no such thing", hint="look"), 2, ["error: no such thing", "hint: look"]),
    "no hint": (errors.UsageError("no such thing"), 2, ["error: no such thing"]),
    "invalid": (
        errors.InvalidSpec(PROBLEMS, subject="JobSet train"),
        3,
        [
            "error: JobSet train is invalid: 2 problems",
            "  spec.a                        must be set [short]",
            "                                hint: set it",
            "  spec.replicatedJobs[0].name   is too long (got 'xxx') [long-code]",
        ],
    ),
    "refused": (errors.Refused("no right", code=403), 4, ["error: no right"]),
    "not found": (errors.NotFound("no JobSet x", hint="try y"), 4, ["error: no JobSet x", "hint: try y"]),
    "raced": (errors.Raced("changed"), 4, ["error: changed"]),
    "foreign": (errors.ForeignObject("taken", kind="Job", namespace="n", name="x", owner="o"), 4, ["error: taken"]),
    "unavailable": (errors.Unavailable("down"), 5, ["error: down"]),
    "unknown": (errors.OutcomeUnknown("may have happened"), 5, ["error: may have happened"]),
    "plane": (errors.PlaneError("no Go", hint="install it"), 5, ["error: no Go", "hint: install it"]),
    "several": (
        ExceptionGroup("", [errors.InvalidSpec(PROBLEMS[:1], subject=name) for name in "ab"]),
        3,
        [
            "error: a is invalid: 1 problem",
            "  spec.a   must be set [short]",
            "           hint: set it",
            "error: b is invalid: 1 problem",
            "  spec.a   must be set [short]",
            "           hint: set it",
        ],
    ),
    "escapes": (errors.UsageError("a\x1b[31mb\x07"), 2, ["error: a\\x1b[31mb\\x07"]),
    "Ctrl-C": (KeyboardInterrupt(), 130, []),
}  # fmt: skip


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """`jobset plan` raises what is put into this list."""
    raises: list[BaseException] = []

    def register(root: typer.Typer) -> None:
        @root.command("plan")
        def fail() -> None:
            raise raises[0]

    monkeypatch.setattr(plan, "register", register)
    return raises


@pytest.mark.parametrize(("error", "code", "lines"), CASES.values(), ids=CASES.keys())
def test_an_error_is_text_and_a_code(
    run: Run, failing: list[BaseException], error: BaseException, code: int, lines: list[str]
) -> None:
    failing.append(error)
    ended = run("plan")
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.splitlines() == lines


@pytest.mark.parametrize("error", [AssertionError("broken"), KeyError("x"), ExceptionGroup("", [KeyError("x")])])
def test_a_bug_is_not_dressed_up(run: Run, failing: list[BaseException], error: BaseException) -> None:
    failing.append(error)
    with pytest.raises(type(error)):
        run("plan")


def test_wrong_usage_says_where_help_is(run: Run) -> None:
    mistyped = run("statuss")
    assert (mistyped.code, mistyped.out) == (2, "")
    assert mistyped.err == "error: No such command 'statuss'. Did you mean 'status'?\nhint: jobset --help\n"
    option = run("tree", "x", "--watsh")
    assert option.code == 2
    assert "--watch" in option.err
    assert "hint: jobset tree --help" in option.err
    assert "hint: jobset plan --help" in run("plan", "-f", "x", "-o", "xml").err
    assert "hint: jobset nodes add --help" in run("nodes", "add", "--count").err


@pytest.mark.parametrize("command", ["plan", "lint"])
def test_a_file_without_its_flag(run: Run, command: str) -> None:
    assert run(command, "my file.yaml", "-o", "json").err.endswith(f"\nhint: jobset {command} -f 'my file.yaml'\n")
    assert run(command).err.endswith(f"\nhint: jobset {command} --help\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["controller", "--feature-gates", "Foo=true"], "unknown feature gate 'Foo'"),
        (["up", "--feature-gates", "RestrtJob=true"], "did you mean RestartJob? known gates: InPlaceRestart, "),
        (["plan", "-f", "x", "--feature-gates", "restartjob=true"], "did you mean RestartJob? known gates: "),
        (["nodes", "add", "--rack", "a b"], "--rack: 'a b' is not a label value"),
        (["nodes", "add", "--slice", "-"], "--slice: '-' is not a label value"),
    ],
)
def test_a_value_that_cannot_be_meant(run: Run, tmp_path: Path, words: list[str], said: str) -> None:
    place = ["--dir", tmp_path] if words[0] in ("up", "nodes") else []
    ended = run(*words, *place)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_plugin_of_kubectl_names_itself_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/kubectl-jobset"])
    assert "hint: kubectl jobset plan --help" in run("plan").err


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == f"jobset {__version__}\n"
    alone = run()
    assert alone.code == 0
    assert alone.out == run("--help").out


class Broken:
    """A stdout that cannot be written to."""

    def __init__(self, number: int, descriptor: int) -> None:
        self.number = number
        self.descriptor = descriptor

    def write(self, _: str) -> int:
        raise OSError(self.number, os.strerror(self.number))

    def flush(self) -> None:
        self.write("")

    def fileno(self) -> int:
        return self.descriptor


@pytest.mark.parametrize(
    ("number", "err"),
    [(errno.EPIPE, ""), (errno.ENOSPC, "error: cannot write the output: no space left on device\n")],
)
def test_an_output_that_takes_no_more(
    gang: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    number: int,
    err: str,
) -> None:
    """`jobset plan | true` is quiet, a full disk is not."""
    with (tmp_path / "descriptor").open("w") as file:
        monkeypatch.setattr(sys, "stdout", Broken(number, file.fileno()))
        with pytest.raises(SystemExit) as ended:
            sys.exit(cli.main(["plan", "-f", str(gang)]))
    monkeypatch.undo()
    assert ended.value.code == 1
    assert capsys.readouterr().err == err


@pytest.mark.parametrize("module", ["pyjobset", "pyjobset.cli.main"])
def test_it_runs_as_a_module(module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "argv", ["x", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"jobset {__version__}\n"


def test_a_group_without_its_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["nodes"]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("Usage: ")
    assert "\\x0a" not in shown.err
    assert shown.out == ""


def test_a_long_path_does_not_run_into_its_message() -> None:
    path = "spec.replicatedJobs[0].template.spec.template.spec.containers[0].name"
    lines = output.error_lines(errors.InvalidSpec([errors.Problem("c", path, None, "must be set", "add it")]))
    assert [line.strip() for line in lines[1:]] == [path, "must be set [c]", "hint: add it"]
