"""Structured logs: a constant message plus key=value, as text or as JSON, one line an entry on standard error.

Every shell module asks for `logger(__name__)`. The formatters also take what other modules of pyjobset log in the
standard way. No secret is ever a field: templates and request bodies are not logged above debug.
"""

import json
import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

ROOT = "pyjobset"
LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
_FIELDS = "fields"


class Log:
    """`log.info("JobSet reconciled", jobset=key, cause=7)`. Fields are rendered only when the line is written."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, message: str, **fields: object) -> None:
        self._write(logging.DEBUG, message, fields)

    def info(self, message: str, **fields: object) -> None:
        self._write(logging.INFO, message, fields)

    def warning(self, message: str, **fields: object) -> None:
        self._write(logging.WARNING, message, fields)

    def bug(self, message: str, error: BaseException, **fields: object) -> None:
        """An error with its traceback."""
        self._write(logging.ERROR, message, fields, error)

    def _write(self, level: int, message: str, fields: dict[str, object], error: BaseException | None = None) -> None:
        if not self._logger.isEnabledFor(level):
            return
        # Made by hand: the standard way walks the stack for a line number that no formatter here prints.
        info = None if error is None else (type(error), error, error.__traceback__)
        record = logging.LogRecord(self._logger.name, level, "", 0, message, (), info)
        setattr(record, _FIELDS, fields)
        self._logger.handle(record)


def configure(level: str, output: str, time_format: str = "iso8601", *, stack_traces: bool = True) -> None:
    """Sends the logs of pyjobset to standard error. Called once, by the program's entry point."""
    handler = logging.StreamHandler(sys.stderr)
    formatter = JsonFormatter() if output == "json" else TextFormatter()
    formatter.time, formatter.stack_traces = TIMES[time_format], stack_traces
    handler.setFormatter(formatter)
    root = logging.getLogger(ROOT)
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(level.upper())


def more(steps: int) -> str:
    """Makes the log say more by so many levels, or less. Returns the name of the level."""
    root = logging.getLogger(ROOT)
    place = LEVELS.index(root.level) + steps
    root.setLevel(LEVELS[min(max(place, 0), len(LEVELS) - 1)])
    return logging.getLevelName(root.level).lower()


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields: dict[str, object] = getattr(record, _FIELDS, {})
    return fields


def _utc(seconds: float, precision: str) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=precision).replace("+00:00", "Z")


TIMES: Mapping[str, Callable[[float], str | float | int]] = {
    "iso8601": lambda seconds: _utc(seconds, "milliseconds"),
    "rfc3339": lambda seconds: _utc(seconds, "seconds"),
    "rfc3339nano": lambda seconds: _utc(seconds, "microseconds"),
    "epoch": lambda seconds: seconds,
    "millis": lambda seconds: seconds * 1e3,
    "nano": lambda seconds: round(seconds * 1e6) * 1000,
}
"""By zap's names. The clock here counts microseconds."""


class _Formatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__()
        self.time = TIMES["iso8601"]
        self.stack_traces = True


class TextFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        parts = [str(self.time(record.created)), f"{record.levelname:7}", record.getMessage()]
        parts += [f"{name}={_text(value)}" for name, value in _fields(record).items()]
        if record.exc_info and self.stack_traces:
            parts.append("\n" + self.formatException(record.exc_info))
        return " ".join(parts)


class JsonFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "ts": self.time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        entry |= {
            name: value if isinstance(value, int | float) else str(value) for name, value in _fields(record).items()
        }
        if record.exc_info and self.stack_traces:
            entry["stacktrace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry).decode()


def _text(value: object) -> str:
    text = str(value)
    return text if text and text.isprintable() and not set(text) & set(' "=') else json.dumps(text)
