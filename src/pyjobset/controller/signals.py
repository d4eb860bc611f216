"""What signals do to the running controller. Installed by manager.main.

SIGTERM and SIGINT end it in order, a second one at once, also when the event loop does not turn. SIGUSR1 makes the log
say more, SIGUSR2 less: whoever may send a signal is in the container already, so no port has to ask who comes.
"""

import asyncio
import os
import signal

from pyjobset.controller import log as logs

log = logs.Log(__name__)


def install(stop: asyncio.Event) -> None:
    """In a running event loop, in the main thread."""
    loop = asyncio.get_running_loop()
    endings = (signal.SIGTERM, signal.SIGINT)

    def end() -> None:
        stop.set()
        for number in endings:
            loop.remove_signal_handler(number)
            # A handler, not the default: process 1 of a container does not get a signal that has none.
            signal.signal(number, lambda *_: os._exit(1))

    for number in endings:
        loop.add_signal_handler(number, end)
    for number, steps in ((signal.SIGUSR1, 1), (signal.SIGUSR2, -1)):
        loop.add_signal_handler(number, _change_level, steps)


def _change_level(steps: int) -> None:
    log.info("Log level changed", level=logs.more(steps))
