"""How a Request reaches the API server and its Response comes back. The only user of the HTTP library.

Called by kube.client. Keeps connections, renews credentials once after a 401, and says of every failure whether the
request can have been executed. It never interprets a body, follows no redirect, and uses no proxy.
"""

import os
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import aiohttp
from yarl import URL

from pyjobset import __version__
from pyjobset.errors import JobSetError, OutcomeUnknown, Unavailable
from pyjobset.kube import tls
from pyjobset.kube.cluster import ClusterConfig
from pyjobset.kube.credentials import Certificate, Credential
from pyjobset.kube.events import LineSplitter
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import BODY_BYTES_MAX, ERROR_BODY_BYTES_MAX, Response, error_of

CONNECT_SECONDS_MAX = 10.0
KEEP_ALIVE_SECONDS = 45.0
"""Shorter than the API server's 90 s, so that it is us who close an idle connection: no request is lost in it."""
CONNECTIONS_MAX = 256
USER_AGENT = f"jobset/{__version__} (pyjobset)"

Answers = Counter[tuple[str, int]]
"""How often the API server answered, by method and status; status 0 is no answer."""

PERMIT: ContextVar[Callable[[], None] | None] = ContextVar("permit", default=None)
"""Asked when the connection for a request is there, right before it is written. It raises where that must not be."""


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


class HttpTransport:
    def __init__(self, config: ClusterConfig, answers: Answers | None = None) -> None:
        """`answers` is counted up with each request that is sent."""
        self._config = config
        self._answers: Answers = Counter() if answers is None else answers
        self._session: aiohttp.ClientSession | None = None
        self._tls: ssl.SSLContext | None = None
        self._certificate: Certificate | None = None
        self._base = config.server
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}

    async def send(self, request: Request) -> Response:
        credential = await self._config.credentials.current()
        response = await self._exchange(request, credential)
        if response.status == 401:
            renewed = await self._config.credentials.renewed(credential)
            if renewed is not credential:
                response = await self._exchange(request, renewed)
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS_MAX, sock_read=request.timeout_seconds)
        credential = await self._config.credentials.current()
        try:
            answer = await self._open(request, credential, timeout)
            if answer.status == 401:
                renewed = await self._config.credentials.renewed(credential)
                if renewed is not credential:
                    answer.close()
                    answer = await self._open(request, renewed, timeout)
        except (aiohttp.ClientError, OSError) as error:
            raise self._failure(request, error) from error
        try:
            if answer.status != 200:
                try:
                    body = await _read(answer)
                except (aiohttp.ClientError, OSError) as error:
                    raise self._failure(request, error) from error
                raise error_of(request, Response(answer.status, body, answer.headers))
            yield self._lines(request, answer)
        finally:
            if answer.connection is not None and answer.connection.transport is not None:
                answer.connection.transport.abort()  # a TLS farewell would outlive the event loop of a short program
            answer.close()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _exchange(self, request: Request, credential: Credential) -> Response:
        timeout = self._timeouts.get(request.timeout_seconds)
        if timeout is None:
            timeout = self._timeouts[request.timeout_seconds] = aiohttp.ClientTimeout(
                total=request.timeout_seconds, connect=CONNECT_SECONDS_MAX
            )
        try:
            answer = await self._open(request, credential, timeout)
            try:
                return Response(answer.status, await _read(answer), answer.headers)
            finally:
                answer.release()
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            raise self._failure(request, error) from error

    async def _open(
        self, request: Request, credential: Credential, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = self._new_session()
        headers = {}
        if request.body:
            headers["Content-Type"] = request.content_type
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        status = 0
        try:
            answer = await self._session.request(
                request.method,
                URL(self._base + request.target, encoded=True),
                data=request.body or None,
                headers=headers,
                timeout=limits,
                ssl=self._tls_for(credential.certificate),
                server_hostname=self._config.server_name or None,
                allow_redirects=False,
            )
            status = answer.status
        finally:
            self._answers[request.method, status] += 1
        return answer

    def _tls_for(self, certificate: Certificate | None) -> ssl.SSLContext:
        if self._tls is None or certificate is not self._certificate:
            self._tls = tls.context(self._config, certificate)
            self._certificate = certificate
        return self._tls

    def _new_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=_Connector(
                limit=CONNECTIONS_MAX,
                keepalive_timeout=KEEP_ALIVE_SECONDS,
                socket_factory=lambda info: _Socket(*info[:3]),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=[("Accept", "application/json"), ("User-Agent", USER_AGENT), *self._config.headers],
            skip_auto_headers=("Accept-Encoding", "Content-Type"),
            auto_decompress=False,
            trust_env=False,
        )

    async def _lines(self, request: Request, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        splitter = LineSplitter()
        try:
            async for chunk in answer.content.iter_any():
                for line in splitter.feed(chunk):
                    yield line
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self._failure(request, error) from error

    def _failure(self, request: Request, error: Exception) -> JobSetError:
        """Whether a request without an answer can have been executed, in one place."""
        message = f"{request}: {self._base}: {_reason(error)}"
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return Unavailable(message, hint="the certificate-authority of the kubeconfig is not that of the server")
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            return Unavailable(message, hint="is the API server running and reachable?")
        if request.is_mutating and not _was_cut_off(error):
            return OutcomeUnknown(message)
        return Unavailable(message)


class _Socket(socket.socket):
    """Closed by the event loop alone. uvloop closes the descriptor of a connection that is reset at its very start and
    leaves the number in the socket; collected, the socket would close whatever has the number by then."""

    def __del__(self) -> None:
        self.detach()


class _Connector(aiohttp.TCPConnector):
    async def connect(self, *arguments: Any, **more: Any) -> Any:
        """A request may wait for its connection, or for new credentials, until it must not be sent any more."""
        connection = await super().connect(*arguments, **more)
        permit = PERMIT.get()
        if permit is not None:
            try:
                permit()
            except BaseException:
                connection.release()
                raise
        return connection


def _reason(error: Exception) -> str:
    """aiohttp's own words name a Python object, and the address a second time."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return str(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        known = (
            os.strerror(cause.errno) if cause.errno and cause.errno > 0 and not isinstance(cause, ssl.SSLError) else ""
        )
        return f"cannot connect: {known or cause.strerror or cause}"
    return str(error) or type(error).__name__


def _was_cut_off(error: BaseException) -> bool:
    """The connection was closed before all of the request was written: no server executes a part of one."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, aiohttp.ClientConnectionResetError):
            return True
        seen = seen.__cause__
    return False


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    """The body, refused when it is too long: before reading where the server tells its length."""
    limit = BODY_BYTES_MAX if answer.status < 300 else ERROR_BODY_BYTES_MAX
    length = answer.content_length
    if length is not None and length <= limit:
        return await answer.read()
    chunks: list[bytes] = []
    size = 0
    async for chunk in answer.content.iter_any():
        size += len(chunk)
        if size > limit:
            answer.close()
            raise aiohttp.ClientPayloadError(f"the answer is longer than {limit} bytes")
        chunks.append(chunk)
    return b"".join(chunks)
