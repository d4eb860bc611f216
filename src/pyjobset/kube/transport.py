"""How a Request reaches the API server and its Response comes back. The only user of the HTTP library."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response


class Transport(Protocol):
    """One method for a call, one for a watch. Faults in tests are injected here, below the real client."""

    async def send(self, request: Request) -> Response:
        """The answer, whatever its status. Raises Unavailable if nothing was sent or nothing was asked to change,
        OutcomeUnknown if a mutating request was sent and no answer came."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The lines of a watch. Entering raises the error that a status other than 200 means (responses.error_of);
        iterating ends when the server ends the watch and raises Unavailable when the connection breaks or is silent
        for longer than the request's timeout."""
        ...

    async def close(self) -> None: ...
