"""A lab for each test of gangs: a namespace of the shared plane with nodes that only it uses."""

from collections.abc import Iterator

import pytest

from tests.server.plane import Kubectl
from tests.server.scheduling.lab import Lab


@pytest.fixture
def lab(kubectl: Kubectl, namespace: str) -> Iterator[Lab]:
    made = Lab(kubectl, namespace)
    yield made
    made.close()
