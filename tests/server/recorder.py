"""Every change of a kind of object in a namespace, for as long as a test lasts: the API server remembers for a minute.

Used by the lab. It does not come back after a restart of the API server; who asks then is told so.
"""

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any


class Recorder:
    """`path` is that of the collection. Told from version `since` on, until `close` or the end of the API server."""

    def __init__(self, port: int, context: ssl.SSLContext, path: str, since: int) -> None:
        self._told: list[Any] = []
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)
        self._connection.request("GET", f"{path}?watch=1&resourceVersion={since}&timeoutSeconds=3600")
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def told(self) -> list[Any]:
        """The events until now."""
        errors = [event for event in self._told if event["type"] == "ERROR"]
        assert not errors, errors
        return list(self._told)

    def close(self) -> None:
        with suppress(OSError, AttributeError):  # it has ended by itself
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _follow(self) -> None:
        with closing(self._connection), suppress(OSError, http.client.HTTPException, ValueError):
            for line in self._lines():
                self._told.append(json.loads(line))

    def _lines(self) -> Iterator[bytes]:
        with self._connection.getresponse() as response:
            if response.status == http.client.OK:  # else this cluster does not serve the kind
                yield from response
