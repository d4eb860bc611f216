"""What signals do to the running controller. Installed by manager.main.

SIGTERM and SIGINT end it in order, a second one at once, also when the event loop does not turn. SIGUSR1 makes the log
say more, SIGUSR2 less: whoever may send a signal is in the container already, so no port has to ask who comes.
"""

import asyncio
import os
import signal

from pyjobset.controller import log as logs

EXIT_CODE = 1
"""Of a controller that was not given the time to end."""

log = logs.Log(__name__)


def install(stop: asyncio.Event) -> None:
    """In a running event loop, in the main thread."""
    loop = asyncio.get_running_loop()
    is_told = False

    def end(*_: object) -> None:
        # Not loop.add_signal_handler, which a blocked loop does not call. Python calls this one between two bytecodes.
        nonlocal is_told
        if is_told:
            os._exit(EXIT_CODE)
        is_told = True
        loop.call_soon_threadsafe(stop.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    for number, steps in ((signal.SIGUSR1, 1), (signal.SIGUSR2, -1)):
        loop.add_signal_handler(number, _change_level, steps)


def _change_level(steps: int) -> None:
    log.info("Log level changed", level=logs.more(steps))
