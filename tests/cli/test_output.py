"""How things look: aligned, without colour in a pipe, in colour on a terminal that wants it."""

import io
import json
from contextlib import redirect_stdout
from typing import Any

import pytest
import yaml

from pyjobset.cli.output import dump, printable, table
from pyjobset.cli.tree import printer
from pyjobset.cli.view import view
from tests.cli.families import family, group, pod
from tests.cli.test_view import WAITING

SHARED = {"labels": {"a": "b"}}
OBJECTS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "A", "metadata": SHARED, "on": "yes", "n": "0777", "text": "größe\nx: y\n"},
    {"apiVersion": "v1", "kind": "B", "metadata": SHARED, "long": "w " * 200},
]


def test_columns_start_at_the_same_place() -> None:
    lines = table(("A", "LONGER"), [("x" * 9, 1), ("y", "zz"), ("z", "")])
    assert lines == ["A           LONGER", "xxxxxxxxx   1", "y           zz", "z"]


def test_an_empty_table_has_its_headers() -> None:
    assert table(("A", "B"), []) == ["A   B"]


def test_control_characters_are_spelled_out() -> None:
    assert printable("a\tb\n\x1b[0m\x7f\x9b größe") == "a\\x09b\\x0a\\x1b[0m\\x7f\\x9b größe"


def test_yaml_that_is_read_back_the_same() -> None:
    text = dump(OBJECTS, "yaml")
    assert list(yaml.safe_load_all(text)) == OBJECTS
    assert "&id" not in text


def test_json_that_kubectl_takes() -> None:
    assert json.loads(dump(OBJECTS, "json")) == {"apiVersion": "v1", "kind": "List", "items": OBJECTS}


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise io.UnsupportedOperation


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "20")
    return Terminal()


def show(stream: io.TextIOBase, *, live: bool = False) -> None:
    with redirect_stdout(stream), printer("table", live=live) as shown:
        shown(view(WAITING))


def test_a_pipe_gets_plain_lines() -> None:
    pipe = io.StringIO()
    show(pipe)
    out = pipe.getvalue()
    assert "\x1b" not in out
    assert out.splitlines()[0].split() == ["NAME", "STATE", "DETAILS"]


def test_a_pipe_gets_snapshots() -> None:
    pipe = io.StringIO()
    show(pipe, live=True)
    first, header, *_, last = pipe.getvalue().split("\n")
    assert first.startswith("# ")
    assert header.startswith("NAME")
    assert last == ""


def test_a_terminal_gets_colour_and_whole_lines(terminal: Terminal) -> None:
    show(terminal)
    assert "\x1b[33m" in terminal.getvalue()
    assert "3 fit (scheduler: 0/1 nodes are available: 1 Insufficient cpu)" in terminal.getvalue()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_can_be_switched_off(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    show(terminal)
    assert "\x1b[3" not in terminal.getvalue()
    assert "JobSet ns/js" in terminal.getvalue()


def test_a_live_picture_says_below_why_groups_wait(terminal: Terminal) -> None:
    show(terminal, live=True)
    assert "js-group waits: needs 5 pods at once, 3 fit (scheduler: 0/1 nodes are available:" in terminal.getvalue()


def test_a_live_picture_says_each_reason_once(terminal: Terminal) -> None:
    groups = [group(5, name=f"g{n}") for n in range(30)]
    waiting = view(family(*groups, *(pod(f"p{n}", group=f"g{n}") for n in range(30))))
    with redirect_stdout(terminal), printer("table", live=True) as shown:
        shown(waiting)
    assert "g0 and 29 more wait: needs 5 pods at once, only 1 exists" in terminal.getvalue()
    assert "g1 waits" not in terminal.getvalue()


@pytest.mark.parametrize(("height", "deepest"), [(20, "Pod"), (11, "Job"), (7, "PodGroup")])
def test_a_live_picture_fits_the_screen(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, height: int, deepest: str
) -> None:
    monkeypatch.setenv("LINES", str(height))
    show(terminal, live=True)
    for kind in ("Job", "Pod"):
        is_shown = f"─ {kind} js-w-0" in terminal.getvalue()
        assert is_shown == ((kind, deepest) not in {("Job", "PodGroup"), ("Pod", "PodGroup"), ("Pod", "Job")})


def test_a_terminal_without_line_characters(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Terminal, "encoding", "ascii")
    show(terminal)
    assert terminal.getvalue().isascii()


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_data_has_the_reason(capsys: pytest.CaptureFixture[str], form: Any) -> None:
    with printer(form) as shown:
        shown(view(WAITING))
    data = yaml.safe_load(capsys.readouterr().out)
    assert data["state"] == "Waiting"
    assert data["groups"][0]["why"].startswith("needs 5 pods at once, 3 fit")
    assert [job["expectedPods"] for job in data["groups"][0]["jobs"]] == [1, 2, 2]
