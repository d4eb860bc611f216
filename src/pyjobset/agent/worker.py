"""The worker of the main-container mode: a shell command that the agent starts, signals and waits for.

Used by agent.program. It has a process group of its own, so that a signal reaches all of it. As process 1 of a
container the agent also buries orphans, which nobody else would. Its exit code is the command's, or 128 + the signal
that killed it.
"""

import asyncio
import contextlib
import os
import signal

from pyjobset.agent.settings import SHELL
from pyjobset.errors import UsageError

_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores them, and a program that it starts would too."""


class Worker:
    """A barrier whose `lift` starts the command. Made inside a running event loop."""

    def __init__(self, shell: str, command: str) -> None:
        self.exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._shell = shell
        self._command = command
        self._pid = 0

    @property
    def is_running(self) -> bool:
        return self._pid != 0 and not self.exit_code.done()

    def lift(self) -> None:
        """Starts the worker, once. Raises UsageError if there is no such shell."""
        if self._pid:
            return
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._bury)
        try:
            self._pid = os.posix_spawnp(
                self._shell,
                [self._shell, "-c", self._command],
                os.environ,
                setpgroup=0,
                setsigdef=_IGNORED_BY_PYTHON,
            )
        except OSError as error:
            raise UsageError(
                f"{SHELL}={self._shell!r}: {error.strerror or error}: set {SHELL} to a shell of this image, "
                "for example /bin/sh"
            ) from error

    def send(self, number: int) -> None:
        """A signal to all of the worker."""
        if self._pid:
            with contextlib.suppress(ProcessLookupError):  # nobody is left
                os.killpg(self._pid, number)

    def close(self) -> None:
        """Nothing of the worker outlives the agent: in a container the kernel sees to it, elsewhere this does."""
        self.send(signal.SIGKILL)

    def _bury(self) -> None:
        whom = -1 if os.getpid() == 1 else self._pid
        while True:
            try:
                pid, status = os.waitpid(whom, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._pid and not self.exit_code.done():
                code = os.waitstatus_to_exitcode(status)
                self.exit_code.set_result(code if code >= 0 else 128 - code)
