"""What asks first: who is asked, what each answer means, and that nobody who cannot answer is asked."""

import re
import sys
from pathlib import Path

import pytest

from pyjobset.cli import plane as commands
from tests.cli.conftest import Run


class Keyboard:
    """A standard input. `lines` is what is typed; `is_terminal` says whether a person may be there."""

    def __init__(self, *lines: str, is_terminal: bool) -> None:
        self._lines = [f"{line}\n" for line in lines]
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def readline(self, *_: int) -> str:
        return self._lines.pop(0) if self._lines else ""


@pytest.fixture
def plane(tmp_path: Path) -> Path:
    directory = tmp_path / "plane"
    (directory / "logs").mkdir(parents=True)
    return directory


@pytest.mark.parametrize("keyboard", [Keyboard(is_terminal=False), Keyboard("y", is_terminal=False), None])
def test_nobody_is_asked_without_a_terminal(
    run: Run, plane: Path, monkeypatch: pytest.MonkeyPatch, keyboard: Keyboard | None
) -> None:
    monkeypatch.setattr(sys, "stdin", keyboard)
    ended = run("reset", "--dir", plane)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines() == [
        f"error: this would forget the local plane in {plane} and everything in it, and there is no terminal to ask",
        "hint: with --yes nobody is asked",
    ]
    assert (plane / "logs").exists()


@pytest.mark.parametrize(
    ("typed", "code", "is_there", "said"),
    [("y", 0, False, ""), ("n", 1, True, "Nothing was changed\n"), ("", 1, True, "Nothing was changed\n")],
)
def test_a_person_is_asked(
    run: Run, plane: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, is_there: bool, said: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard(typed, is_terminal=True))
    ended = run("reset", "--dir", plane)
    assert (ended.code, plane.exists()) == (code, is_there)
    assert ended.err.endswith(said)
    assert f"Forget the local plane in {plane} and everything in it? [y/N]" in ended.err


def test_yes_asks_nobody(run: Run, plane: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard(is_terminal=False))
    assert (run("reset", "--dir", plane, "--yes").code, plane.exists()) == (0, False)


def test_this_is_the_only_question() -> None:
    """Another command that asks must go the same way, and have its cases here."""
    folder = Path(commands.__file__).parents[1]
    asks = re.compile(r"\b(typer|click)\.(confirm|prompt)\(|(?<![\w.])input\(")
    assert [f.name for f in folder.rglob("*.py") for _ in asks.findall(f.read_text())] == ["plane.py"]
