"""Every test of this folder is a server test, and shows what was on the server when it fails."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.server.plane import PLANE, describe, kubectl, make_plane, namespace, plane

__all__ = ["kubectl", "make_plane", "namespace", "plane"]

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.server)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    shared = item.config.stash.get(PLANE, None)
    if shared and report.when == "call" and report.failed:
        report.sections.append(("on the plane", describe(shared, getattr(item, "funcargs", {}).get("namespace", ""))))
    return report
