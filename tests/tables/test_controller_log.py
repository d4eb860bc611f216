"""Log lines: a constant message, key=value, one line an entry, as text and as JSON."""

import json
import logging

import pytest

from pyjobset.controller.log import JsonFormatter, TextFormatter
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
