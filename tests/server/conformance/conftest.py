"""An API server with no controllers: what is asked of it is all that happens there."""

import os
import signal
from collections.abc import Iterator

import pytest

from pyjobset.localplane.components import CONTROLLER_MANAGER, KWOK, SCHEDULER
from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import Plane


@pytest.fixture(scope="module")
def bare_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    plane = Plane(tmp_path_factory.mktemp("bare") / "plane", PlaneOptions(controller=False, layout=NodeLayout(count=1)))
    try:
        status = plane.start()
        for component in status.components:
            if component.name in (CONTROLLER_MANAGER, SCHEDULER, KWOK):
                os.kill(component.pid, signal.SIGKILL)
        yield plane
    finally:
        plane.reset()
