"""The API client: one method a verb, typed by the Resource, with rate limiting and the retries that are safe.

Used by the controller, the CLI and the caches. Retries reads, and anything answered 429 (it was not executed).
Never retries a write whose outcome is unknown, and never decides what an error means for a JobSet.
"""

import asyncio
import copy
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from pyjobset.errors import Refused, Unavailable
from pyjobset.kube import cluster, requests, responses
from pyjobset.kube.events import Bookmark, EventDecoder, Unreadable, WatchEvent
from pyjobset.kube.limiter import RateLimiter
from pyjobset.kube.requests import JSON, PatchBody, PatchKind, Propagation, Request
from pyjobset.kube.responses import AlreadyExists as AlreadyExists
from pyjobset.kube.responses import APIResourceList, Page, Response, Status, checked, decoded
from pyjobset.kube.responses import Expired as Expired
from pyjobset.kube.transport import PERMIT, Answers, HttpTransport, Transport
from pyjobset.objects.meta import Manifest, Struct
from pyjobset.objects.resources import Resource

T = TypeVar("T", bound=Struct)

ATTEMPTS_MAX = 4
BACKOFF_SECONDS = 0.1
SILENCE_SECONDS_MAX = 150.0
"""A watch without a line for so long is dead: the API server sends a bookmark about once a minute."""


class Client:
    """`namespace` is the default namespace of the kubeconfig context; the methods never use it by themselves.

    All methods raise the errors of responses.error_of, and Unavailable or OutcomeUnknown when no answer came.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        qps: float = 500.0,
        burst: int = 500,
        namespace: str = "default",
        server: str = "",
        answers: Answers | None = None,
    ) -> None:
        self.namespace = namespace
        self.server = server
        self.answers: Answers = Counter() if answers is None else answers
        """What the transport counts: it sees each answer, those to repetitions and to watches too."""
        self._transport = transport
        self._limiter = RateLimiter(qps, burst)
        self._permit: Callable[[], None] | None = None

    def permitted(self, permit: Callable[[], None]) -> "Client":
        """The same client (connections, limits), whose writes ask `permit` at the last moment, repetitions too. What it
        raises comes out of the call, and nothing was sent. Whoever has the original closes it."""
        made = copy.copy(self)
        made._permit = permit
        return made

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def get(self, resource: Resource[T], namespace: str | None, name: str) -> T:
        return await self._call(requests.get(resource, namespace, name), resource.type)

    async def list(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = 500,
    ) -> list[T]:
        """All objects, read page by page from one state of the server. `namespace` None: of all namespaces."""
        items: list[T] = []
        request = requests.list_(resource, namespace)
        async for page in self.pages(
            resource, namespace, label_selector=label_selector, field_selector=field_selector, page_size=page_size
        ):
            items.extend([decoded(request, item, resource.type) for item in page.items or ()])
        return items

    async def pages(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = 500,
    ) -> AsyncGenerator[Page, None]:
        """The pages of a list. Raises Expired when the server forgot the state that the first page showed."""
        token = ""
        while True:
            request = requests.list_(
                resource,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=page_size,
                continue_token=token,
            )
            page = await self._call(request, Page)
            yield page
            token = page.metadata.continue_
            if not token:
                return

    async def create(
        self, resource: Resource[T], namespace: str | None, body: Manifest | Struct, *, dry_run: bool = False
    ) -> T:
        """POST. A struct gets its apiVersion and kind from the resource. Raises AlreadyExists if the name is taken."""
        return await self._call(requests.create(resource, namespace, body, dry_run=dry_run), resource.type)

    async def patch(
        self,
        resource: Resource[T],
        namespace: str | None,
        name: str,
        body: PatchBody,
        *,
        kind: PatchKind,
        subresource: str | None = None,
        field_manager: str = "jobset",
        force: bool = False,
    ) -> T:
        """`force` is for `apply` only. Raises Raced for a stale uid or resourceVersion in the body, and for a JSON
        patch that does not fit the object."""
        request = requests.patch(
            resource,
            namespace,
            name,
            body,
            kind=kind,
            subresource=subresource,
            field_manager=field_manager,
            force=force,
        )
        return await self._call(request, resource.type)

    async def delete(
        self,
        resource: Resource[T],
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation = "Background",
    ) -> T | None:
        """The object when it still exists and waits for its finalizers, None when it is gone. Raises Raced if it was
        gone before, or is another one than `uid` or `resource_version` say."""
        request = requests.delete(
            resource, namespace, name, uid=uid, resource_version=resource_version, propagation=propagation
        )
        body = checked(request, await self._send(request))
        if responses.status_of(body).kind == "Status":
            return None
        deleted = decoded(request, body, resource.type)
        # Some resources (Service, PodGroup) answer with the last state of an object that is gone already.
        metadata: Any = getattr(deleted, "metadata", None)
        return deleted if getattr(metadata, "deletion_timestamp", None) else None

    async def watch(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        is_streaming_list: bool = False,
    ) -> AsyncGenerator[WatchEvent[T] | Bookmark | Unreadable, None]:
        """Changes after `resource_version`; with `is_streaming_list` first all objects as ADDED, then a Bookmark that
        `ends_initial_list`. Ends when the server ends it (some minutes), raises Expired if the version is too old,
        Unavailable if the connection breaks. Use `contextlib.aclosing` if you stop before the end."""
        request = requests.watch(
            resource,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            resource_version=resource_version,
            is_streaming_list=is_streaming_list,
            timeout_seconds=int(requests.WATCH_TIMEOUT_SECONDS * random.uniform(1.0, 1.5)),  # noqa: S311
            silence_seconds_max=SILENCE_SECONDS_MAX,
        )
        # Not rate limited: a burst of writes must not delay the news of what they do.
        decode = EventDecoder(request, resource.type).decode
        async with self._transport.stream(request) as lines:
            async for line in lines:
                yield decode(line)

    async def serves(self, api_version: str, plural: str) -> bool:
        """The server has that resource (discovery)."""
        prefix = "/apis/" if "/" in api_version else "/api/"
        request = Request("GET", prefix + api_version, subject=f"discovery of {api_version}")
        try:
            found = await self._call(request, APIResourceList)
        except Refused as error:
            if error.code == 404:
                return False
            raise
        return any(resource.name == plural for resource in found.resources)

    async def raw(self, method: str, path: str, body: bytes = b"", content_type: str = JSON) -> bytes:
        """The body of the answer to any request. `path` is percent-encoded and may have a query."""
        path, _, query = path.partition("?")
        request = Request(method.upper(), path, query, body, content_type)
        return checked(request, await self._send(request))

    async def _call(self, request: Request, type_: type[T]) -> T:
        return decoded(request, checked(request, await self._send(request)), type_)

    async def _send(self, request: Request) -> Response:
        """Sends until the answer is one that a repetition cannot change, at most ATTEMPTS_MAX times."""
        attempt = 0
        while True:
            attempt += 1
            await self._limiter.wait()
            wish: float | None = None
            try:
                response = await self._send_once(request)
            except Unavailable as error:
                if request.is_mutating or attempt == ATTEMPTS_MAX:
                    raise
                wish = error.retry_after_seconds
            else:
                is_transient = response.status >= 500 and not request.is_mutating
                if not (is_transient or response.status == 429) or attempt == ATTEMPTS_MAX:
                    return response
                wish = responses.retry_after_seconds(response.headers, Status())
            backoff = BACKOFF_SECONDS * 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311
            await asyncio.sleep(max(wish or 0.0, backoff))

    async def _send_once(self, request: Request) -> Response:
        if self._permit is None or not request.is_mutating:
            return await self._transport.send(request)
        self._permit()
        token = PERMIT.set(self._permit)  # for the time until the connection is there
        try:
            return await self._transport.send(request)
        finally:
            PERMIT.reset(token)


def connect(
    *, kubeconfig: str | None = None, context: str | None = None, qps: float = 500.0, burst: int = 500
) -> Client:
    """A client for a kubeconfig (the given file, $KUBECONFIG, ~/.kube/config) or, without one, for the cluster that
    this process runs in. Reads files only; connects at the first request. Raises UsageError."""
    config = cluster.load(kubeconfig, context)
    answers: Answers = Counter()
    return Client(
        HttpTransport(config, answers),
        qps=qps,
        burst=burst,
        namespace=config.namespace,
        server=config.server,
        answers=answers,
    )
