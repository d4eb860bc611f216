"""Marks these tests, and says in the end how much was tried."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.world)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A table of all that the tests recorded as `tried`."""
    tried: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") != "call":
                continue
            for name, value in report.user_properties:
                if name == "tried":
                    tried.update(value)
    if tried:
        terminalreporter.section("what the worlds were")
        for what, count in tried.items():
            terminalreporter.write_line(f"{count:12,}  {what}")
