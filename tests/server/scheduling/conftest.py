"""A lab for each test of gangs: a namespace of the shared plane with nodes that only it uses."""

from collections.abc import Iterator

import pytest

from pyjobset.localplane.plane import Plane
from tests.server.scheduling.lab import Lab


@pytest.fixture
def lab(plane: Plane, namespace: str) -> Iterator[Lab]:
    made = Lab(plane, namespace)
    yield made
    made.close()
