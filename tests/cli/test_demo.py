"""What the demo tells a person to type works in the shell of that person."""

import os
import sys
from pathlib import Path

import pytest

from pyjobset.cli.demo import how_called
from pyjobset.cli.examples import example
from pyjobset.errors import UsageError


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A checkout with the program in its virtual environment, which is not on the PATH."""
    mine = program(tmp_path / "checkout" / ".venv" / "bin" / "jobset")
    monkeypatch.chdir(tmp_path / "checkout")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(sys, "argv", [str(mine)])
    return mine


def test_from_a_virtual_environment(called: Path) -> None:
    assert how_called() == ".venv/bin/jobset"


def test_on_the_path(called: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(called.parent))
    assert how_called() == "jobset"


def test_another_one_is_on_the_path(called: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "other" / "jobset").parent))
    assert how_called() == ".venv/bin/jobset"


def test_from_far_away(called: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert how_called() == os.path.relpath(called)


def test_as_a_module(called: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/pyjobset/__main__.py"])
    monkeypatch.setattr(sys, "executable", str(called.parent / "python"))
    assert how_called() == ".venv/bin/python -m pyjobset"


def test_the_example_is_found() -> None:
    assert example("scheduling/gang-scheduling.yaml").is_file()
    with pytest.raises(UsageError, match="not installed"):
        example("scheduling/none.yaml")
