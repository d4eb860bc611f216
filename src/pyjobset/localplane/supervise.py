"""Brings the components of a plane up and down: who waits for whom, what a failure means. Used by `plane.py` only.

What runs as it should is left alone; what runs otherwise or not at all is started again. No fixed sleeps: readiness is
asked for every few milliseconds, and a component that ends while it starts fails at once with the end of its log.
"""

import contextlib
import os
import ssl
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from pyjobset.errors import PlaneError
from pyjobset.localplane import api
from pyjobset.localplane.components import API_SERVER, ETCD, NAMES, Component, Places
from pyjobset.localplane.processes import Daemon, find, kill, stop, wait_until

START_SECONDS = 120
GRACE_SECONDS = 15
API_SERVER_GRACE_SECONDS = 3
"""An API server waits for those who watch it, such as a `kubectl get -w` that somebody left. It keeps no state."""
_TAIL_LINES = 12
_KEPT_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LC_ALL", "GOMAXPROCS", "GOMEMLIMIT")
_KEPT_PREFIXES = ("PYTHON", "COVERAGE")
PATIENCE_SECONDS = 5.0
"""After so long without a word, people are told what is waited for."""
Say = Callable[[str], None]


def _silent(_text: str) -> None:
    """Nobody listens."""


class PortTaken(Exception):
    """Another program took a component's port between our look and its start."""

    def __init__(self, component: str) -> None:
        super().__init__(component)
        self.component = component


class Supervisor:
    """The daemons of one plane."""

    def __init__(self, places: Places) -> None:
        run, logs = places.directory / "run", places.directory / "logs"
        self._places = places
        self.daemons = {name: Daemon(name, run, logs / f"{name}.log") for name in NAMES}

    def running(self) -> set[str]:
        """The names of the components that have a live process."""
        return {name for name, daemon in self.daemons.items() if daemon.pid()}

    def settled(self) -> set[str]:
        """`running`, after those that are just ending have ended."""
        for daemon in self.daemons.values():
            daemon.settle()
        return self.running()

    def end_strays(self) -> None:
        """Ends components of this directory that no pid file names any more: somebody removed the directory."""
        known = {daemon.pid() for daemon in self.daemons.values()}
        kill([pid for pid in find(self._is_ours) if pid not in known])

    def _is_ours(self, command: Sequence[str]) -> bool:
        programs = command[1:4] == ["-m", "pyjobset.cli.main", "controller"] or Path(command[0]).name in NAMES
        private = (f"={self._places.kubeconfig('')}/", f"={self._places.pki}/", f"={self._places.directory}/etcd")
        return programs and any(p in argument for argument in command[1:] for p in private)

    def stop_outdated(self, wanted: Sequence[Component], renewed: Collection[str]) -> None:
        """Ends what runs with another command line than it should, and what reads a file that was `renewed`."""
        commands = {c.name: list(c.command) for c in wanted}
        self.stop([n for n in self.running() if self.daemons[n].command() != commands.get(n) or n in renewed])

    def start(self, component: Component) -> bool:
        """Starts the component unless it runs. True when it was started."""
        daemon = self.daemons[component.name]
        if daemon.pid():
            return False
        environment = {k: v for k, v in os.environ.items() if k in _KEPT_VARIABLES or k.startswith(_KEPT_PREFIXES)}
        daemon.start(component.command, environment)
        return True

    def ready(self, component: Component) -> bool:
        """Does the component answer that it is ready? One without a port is ready when it runs."""
        if not component.ready_path:
            return bool(self.daemons[component.name].pid())
        return api.healthy(component.port, component.ready_path, self._context(component))

    def wait(self, waited: Sequence[Component], also: Callable[[], bool] = lambda: True, *, say: Say = _silent) -> None:
        """Returns when all are ready and `also` holds. Raises when one of them has ended, or at the time limit."""
        left = list(waited)
        next_word = time.monotonic() + PATIENCE_SECONDS

        def all_ready() -> bool:
            for component in list(left):
                if not self.daemons[component.name].pid():
                    raise self._ended(component)
                if self.ready(component):
                    left.remove(component)
            is_done = not left and also()
            nonlocal next_word
            if not is_done and time.monotonic() >= next_word:
                next_word += PATIENCE_SECONDS
                say(f"Still waiting for {', '.join(c.name for c in left) or 'the nodes'}")
            return is_done

        if not wait_until(all_ready, START_SECONDS):
            slow = left[0] if left else waited[-1]
            daemon = self.daemons[slow.name]
            raise PlaneError(
                f"{slow.name} was not ready after {START_SECONDS} seconds. The end of {daemon.log}:\n"
                f"{daemon.tail(_TAIL_LINES)}",
                hint="jobset up tries again; jobset reset starts from nothing",
            )

    def stop(self, names: Collection[str]) -> None:
        """Ends components in the order that lets each finish: first those that use the API server, etcd last."""
        users = [self.daemons[n] for n in NAMES if n in names and n not in (ETCD, API_SERVER)]
        stop(users, grace_seconds=GRACE_SECONDS)
        for name, seconds in ((API_SERVER, API_SERVER_GRACE_SECONDS), (ETCD, GRACE_SECONDS)):
            if name in names:
                stop([self.daemons[name]], grace_seconds=seconds)

    def _context(self, component: Component) -> ssl.SSLContext | None:
        return context(self._places.pki, component.name)

    def _ended(self, component: Component) -> Exception:
        daemon = self.daemons[component.name]
        tail = daemon.tail(_TAIL_LINES)
        if "address already in use" in daemon.tail(60).lower():
            return PortTaken(component.name)
        return PlaneError(
            f"{component.name} ended while it started. The end of {daemon.log}:\n{tail}", hint=_hint(tail.lower())
        )


def context(pki: Path, name: str) -> ssl.SSLContext | None:
    """How to ask a component for its health: etcd trusts its own authority only, our controller speaks plain HTTP."""
    if name == ETCD:
        return api.tls(pki, "etcd-ca", "apiserver-etcd-client")
    with contextlib.suppress(KeyError):
        return api.tls(pki, "ca", "admin") if name in NAMES[:-1] else None
    return None


def _hint(tail: str) -> str:
    if "no space left on device" in tail:
        return "the disk is full: free some space and run jobset up again"
    if "unrecognized feature gate" in tail or "invalid value" in tail or "unknown flag" in tail:
        return "look at the gates and other values that you gave"
    if "depends on features that are disabled" in tail:
        return "switch the gate that is named there on too, or leave both as they are"
    return "jobset up tries again; jobset reset starts from nothing, for example after a power cut"
