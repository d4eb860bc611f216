"""All examples, while any component is killed at any moment, or on a bad network: they end as on a calm day, and
nothing is made twice.

A seed says what is killed when and which bytes are lost, not what the machine does between: JOBSET_TEST_SEED sets it.
"""

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyjobset.errors import PlaneError
from pyjobset.localplane.components import CONTROLLER, NAMES
from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import ComponentStatus, Plane
from pyjobset.localplane.processes import command_line
from tests.server.chaos.ending import difference, ending
from tests.server.chaos.history import creations
from tests.server.chaos.proxy import FAULTS, Proxy
from tests.server.chaos.work import GATES, Work
from tests.server.plane import PATIENCE_SECONDS, wait_for

CHAOS_SECONDS = 60
CONTROLLER_SHARE = 4
"""It is killed so many times as often as each of the others."""
KILLED_MIN = 3
"""So often the controller, and so many components: on a slow machine the chaos lasts until then."""
REST_SECONDS = 3
"""So long nothing may change any more."""


@dataclass(frozen=True)
class Run:
    """How the work ended, and how often each object was made on the way."""

    ending: dict[str, Any]
    creations: Counter[tuple[str, ...]]


@contextmanager
def plane_of_its_own(directory: Path) -> Iterator[Plane]:
    """With room for all at once: the Job controller lets the pods of a preempted Job wait for ten minutes."""
    plane = Plane(directory, PlaneOptions(feature_gates=GATES, layout=NodeLayout(cpu="16")))
    try:
        plane.start()
        yield plane
    finally:
        plane.reset()


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same work where nothing happens."""
    with plane_of_its_own(tmp_path_factory.mktemp("calm")) as plane:
        work = Work(plane)
        began = time.monotonic()
        work.do()
        wait_for(work.is_at_rest, "the end of the work")
        seen: list[dict[str, Any]] = []

        def rests() -> bool:
            seen.append(ending(work))
            time.sleep(REST_SECONDS)  # rest is that nothing changes meanwhile: there is no event to wait for
            return seen[-1] == ending(work)

        wait_for(rests, "rest")
        print(f"calm: {time.monotonic() - began:.0f} s")
        return Run(seen[-1], creations(plane))


@pytest.fixture
def seed() -> int:
    chosen = int(os.environ.get("JOBSET_TEST_SEED", "1"))
    print(f"JOBSET_TEST_SEED={chosen}")
    return chosen


def component(plane: Plane, name: str) -> ComponentStatus:
    return next(c for c in plane.status().components if c.name == name)


def ends_like(calm: Run, plane: Plane, work: Work) -> None:
    """And stays so, and nothing was made more often than there."""

    def is_same() -> bool:
        assert not (found := difference(calm.ending, ending(work))), found
        return True

    wait_for(is_same, "the ending of a calm run")
    time.sleep(REST_SECONDS)
    assert difference(calm.ending, ending(work)) == ""
    assert difference(dict(calm.creations), dict(creations(plane))) == ""


def repair(plane: Plane, is_over: threading.Event) -> None:
    """Again and again, as whoever watches over the processes of a real control plane."""
    while not is_over.wait(0.5):
        with contextlib.suppress(PlaneError):  # what it waited for was killed
            plane.start()


def errors(log: str) -> list[str]:
    """What a controller logged as such: faults of its own. A network that fails is none."""
    return [line for line in log.splitlines() if " ERROR " in line]


def kill(plane: Plane, chance: random.Random) -> None:
    """For a while, also what has only begun to start."""
    killed: Counter[str] = Counter()
    deadline = time.monotonic() + CHAOS_SECONDS
    # Who is down at the moment cannot be killed.
    while time.monotonic() < deadline or killed[CONTROLLER] < KILLED_MIN or len(killed) <= KILLED_MIN:
        time.sleep(chance.uniform(1, 3))
        name = chance.choices(NAMES, [CONTROLLER_SHARE if name == CONTROLLER else 1 for name in NAMES])[0]
        with contextlib.suppress(ProcessLookupError):
            if pid := component(plane, name).pid:
                os.kill(pid, signal.SIGKILL)
                killed[name] += 1
                print(f"{time.strftime('%H:%M:%S')} killed {name}")


def test_whoever_is_killed_the_end_is_the_same(calm: Run, tmp_path: Path, seed: int) -> None:
    with plane_of_its_own(tmp_path / "plane") as plane, ThreadPoolExecutor() as threads:
        work = Work(plane)
        is_over = threading.Event()
        try:
            working, repairing = threads.submit(work.do), threads.submit(repair, plane, is_over)
            kill(plane, random.Random(seed))
            working.result()
        finally:
            is_over.set()
        repairing.result()
        plane.start()
        ends_like(calm, plane, work)
        log = plane.log(CONTROLLER)
        assert not errors("".join(kept.read_text() for kept in log.parent.glob(f"{log.name}*")))


def test_on_a_bad_network_the_end_is_the_same(calm: Run, tmp_path: Path, seed: int) -> None:
    with plane_of_its_own(tmp_path / "plane") as plane:
        command = command_line(component(plane, CONTROLLER).pid)
        server = plane.status().server
        with Proxy(int(server.rpartition(":")[2]), seed) as proxy, ThreadPoolExecutor() as threads:
            own = plane.directory / "kubeconfigs" / CONTROLLER
            rerouted = tmp_path / "kubeconfig"
            rerouted.touch(0o600)
            rerouted.write_text(own.read_text().replace(server, f"https://127.0.0.1:{proxy.port}"))
            os.kill(component(plane, CONTROLLER).pid, signal.SIGKILL)
            wait_for(lambda: not component(plane, CONTROLLER).running, "the end of the plane's controller")
            log = tmp_path / "log"
            words = [word.replace(str(own), str(rerouted)) for word in command]
            with log.open("wb") as output:
                controller = subprocess.Popen(words, stderr=output)
            try:
                began = time.monotonic()
                work = Work(plane)
                working = threads.submit(work.do)
                working.result()
                time.sleep(max(0.0, began + CHAOS_SECONDS - time.monotonic()))
                wait_for(lambda: proxy.faults.keys() == {*FAULTS, "refuse"}, f"each fault; {proxy.faults}")
                proxy.calm()
                print(dict(proxy.faults))
                ends_like(calm, plane, work)
                assert controller.poll() is None, "it has ended"
                assert not errors(log.read_text())
            finally:
                controller.kill()
                controller.wait(PATIENCE_SECONDS)
                print(log.read_text()[-3000:])
