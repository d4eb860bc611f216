"""Log lines: a constant message, key=value, one line an entry, as text and as JSON."""

import json
import logging

import pytest

from pyjobset.controller.log import ROOT, TIMES, JsonFormatter, TextFormatter, configure, more
from pyjobset.controller.options import TIME_FORMATS
from pyjobset.objects.meta import Key


def record(message: str, bug: BaseException | None = None, **fields: object) -> logging.LogRecord:
    info = (type(bug), bug, bug.__traceback__) if bug is not None else None
    made = logging.LogRecord("pyjobset.controller.x", logging.INFO, "", 0, message, (), info)
    made.created = 1_796_040_000.25
    made.fields = fields
    return made


def raised() -> BaseException:
    try:
        [].index("boom")
    except ValueError as error:
        return error
    raise AssertionError


def test_text() -> None:
    line = TextFormatter().format(record("Reconciled", jobset=Key("ns", "js"), cause=7, reasons="", error='a "b" c'))
    assert line == r'2026-11-30T12:00:00.250Z INFO    Reconciled jobset=ns/js cause=7 reasons="" error="a \"b\" c"'


@pytest.mark.parametrize("value", ["two\nlines", "a=b", "tab\there", "\x1b[31mred", "a\u2028b"])
def test_a_value_cannot_break_the_line_or_fake_a_field(value: str) -> None:
    line = TextFormatter().format(record("m", error=value))
    assert line.splitlines() == [line]
    assert "\x1b" not in line
    assert line.endswith(f"error={json.dumps(value)}")


def test_json() -> None:
    line = JsonFormatter().format(record("Reconciled", jobset=Key("ns", "js"), cause=7, status=True))
    assert json.loads(line) == {
        "ts": "2026-11-30T12:00:00.250Z",
        "level": "info",
        "logger": "pyjobset.controller.x",
        "msg": "Reconciled",
        "jobset": "ns/js",
        "cause": 7,
        "status": True,
    }


def test_a_bug_has_its_traceback() -> None:
    assert "ValueError: 'boom' is not in list" in TextFormatter().format(record("Bug", raised()))
    line = JsonFormatter().format(record("Bug", raised()))
    assert "ValueError: 'boom' is not in list" in json.loads(line)["stacktrace"]
    assert "\n" not in line


def test_lines_of_other_modules_are_formatted_too() -> None:
    made = logging.LogRecord("pyjobset.kube.cache", logging.WARNING, "", 0, "watch of %s ended", ("jobs",), None)
    assert TextFormatter().format(made).endswith("WARNING watch of jobs ended")


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("iso8601", "2026-11-30T12:00:00.250Z"),
        ("rfc3339", "2026-11-30T12:00:00Z"),
        ("rfc3339nano", "2026-11-30T12:00:00.250000Z"),
        ("epoch", 1796040000.25),
        ("millis", 1796040000250.0),
        ("nano", 1796040000250000000),
    ],
)
@pytest.mark.parametrize("output", ["text", "json"])
def test_times_and_stack_traces_are_configured(
    monkeypatch: pytest.MonkeyPatch, encoding: str, expected: object, output: str
) -> None:
    root = logging.getLogger(ROOT)
    for name, value in (("handlers", list(root.handlers)), ("propagate", root.propagate), ("level", root.level)):
        monkeypatch.setattr(root, name, value)
    configure("info", output, encoding, stack_traces=False)
    line = root.handlers[0].format(record("Bug", raised()))
    assert "ValueError" not in line
    assert json.loads(line)["ts"] == expected if output == "json" else line.startswith(f"{expected} ")
    assert set(TIMES) == set(TIME_FORMATS)


@pytest.mark.parametrize(
    ("level", "steps", "expected"),
    [
        ("INFO", 1, "debug"),
        ("INFO", -1, "warning"),
        ("DEBUG", 1, "debug"),
        ("ERROR", -1, "error"),
        ("ERROR", 1, "warning"),
    ],
)
def test_it_says_more_or_less(monkeypatch: pytest.MonkeyPatch, level: str, steps: int, expected: str) -> None:
    root = logging.getLogger(ROOT)
    monkeypatch.setattr(root, "level", logging.getLevelName(level))
    assert more(steps) == expected
    assert root.level == logging.getLevelName(expected.upper())
