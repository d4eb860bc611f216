"""Structured logs: a constant message plus key=value, as text or as JSON, one line an entry on standard error.

Every shell module asks for `logger(__name__)`. The formatters also take what other modules of pyjobset log in the
standard way. No secret is ever a field: templates and request bodies are not logged above debug.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

ROOT = "pyjobset"
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


def configure(level: str, output: str) -> None:
    """Sends the logs of pyjobset to standard error. Called once, by the program's entry point."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if output == "json" else TextFormatter())
    root = logging.getLogger(ROOT)
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(level.upper())


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields: dict[str, object] = getattr(record, _FIELDS, {})
    return fields


def _timestamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        parts = [_timestamp(record), f"{record.levelname:7}", record.getMessage()]
        parts += [f"{name}={_text(value)}" for name, value in _fields(record).items()]
        if record.exc_info:
            parts.append("\n" + self.formatException(record.exc_info))
        return " ".join(parts)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        entry |= {
            name: value if isinstance(value, int | float) else str(value) for name, value in _fields(record).items()
        }
        if record.exc_info:
            entry["stacktrace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry).decode()


def _text(value: object) -> str:
    text = str(value)
    return text if text and text.isprintable() and not set(text) & set(' "=') else json.dumps(text)
