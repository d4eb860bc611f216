"""A bad network: a TCP proxy that delays, stalls, truncates, cuts and resets connections until it is told to be calm.

It passes bytes, so TLS is between the two ends. Faults are drawn for each piece that passes, both ways. It runs in a
thread of its own; `calm()` ends all faults, and stalled pieces go on then, as when a cable is plugged in again.
"""

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections import Counter
from typing import Self

FAULTS = {"delay": 0.15, "stall": 0.02, "truncate": 0.03, "cut": 0.03, "reset": 0.03}
"""How probable each is for a piece."""
REFUSED = 0.1
"""Of new connections."""
DELAY_SECONDS_MAX = 1.5
STALL_SECONDS_MAX = 20.0
PIECE_BYTES = 64 * 1024
_DROP_ALL = struct.pack("ii", 1, 0)  # SO_LINGER: close means reset


class Proxy:
    def __init__(self, target_port: int, seed: int) -> None:
        self.port = 0
        self.faults: Counter[str] = Counter()
        """What happened."""
        self._target_port = target_port
        self._random = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._is_listening = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._is_listening.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    def calm(self) -> None:
        self._loop.call_soon_threadsafe(self._calmed.set)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._calmed, self._over = asyncio.Event(), asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._is_listening.set()
        await self._over.wait()
        server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._calmed.is_set() and self._random.random() < REFUSED:
            self.faults["refuse"] += 1
            _reset(writer)
            return
        try:
            from_target, to_target = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            _reset(writer)
            return
        ways = ((reader, to_target), (from_target, writer))
        passing = [asyncio.ensure_future(self._pass(*way)) for way in ways]
        try:
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
            is_reset = any(task.result() for task in passing if task.done())
        finally:
            for task in passing:
                task.cancel()
        for end in (writer, to_target):
            if is_reset:
                _reset(end)
            else:
                end.close()

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> bool:
        """Until one end closes or a fault ends the connection. True: it ends with a reset."""
        with contextlib.suppress(OSError):
            while piece := await source.read(PIECE_BYTES):
                fault = self._draw()
                match fault:
                    case "cut":
                        return False
                    case "reset":
                        return True
                    case "truncate":
                        piece = piece[: self._random.randrange(len(piece))]
                    case "delay":
                        await self._wait(self._random.uniform(0, DELAY_SECONDS_MAX))
                    case "stall":
                        await self._wait(self._random.uniform(DELAY_SECONDS_MAX, STALL_SECONDS_MAX))
                sink.write(piece)
                await sink.drain()
                if fault == "truncate":
                    return False
        return False

    def _draw(self) -> str:
        if self._calmed.is_set():
            return ""
        drawn = self._random.random()
        for fault, probability in FAULTS.items():
            drawn -= probability
            if drawn < 0:
                self.faults[fault] += 1
                return fault
        return ""

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._calmed.wait(), seconds)


def _reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DROP_ALL)
    writer.transport.abort()
