"""The API client: one method a verb, typed by the Resource, with rate limiting and the retries that are safe.

Used by the controller, the CLI and the caches. Retries reads, and anything answered 429 (it was not executed).
Never retries a write whose outcome is unknown, and never decides what an error means for a JobSet.
"""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self, TypeVar

from pyjobset.kube.events import Bookmark, Unreadable, WatchEvent
from pyjobset.kube.requests import PatchBody, PatchKind, Propagation
from pyjobset.kube.responses import AlreadyExists as AlreadyExists
from pyjobset.kube.responses import Expired as Expired
from pyjobset.kube.transport import Transport
from pyjobset.objects.meta import Manifest, Struct
from pyjobset.objects.resources import Resource

T = TypeVar("T", bound=Struct)


class Client:
    """`namespace` is the default namespace of the kubeconfig context; methods never use it by themselves."""

    def __init__(
        self, transport: Transport, *, qps: float = 500.0, burst: int = 500, namespace: str = "default"
    ) -> None:
        self.transport = transport
        self.namespace = namespace

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.transport.close()

    async def get(self, resource: Resource[T], namespace: str | None, name: str) -> T:
        raise NotImplementedError

    async def list(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = 500,
    ) -> list[T]:
        raise NotImplementedError

    async def create(
        self, resource: Resource[T], namespace: str | None, body: Manifest | Struct, *, dry_run: bool = False
    ) -> T:
        raise NotImplementedError

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
        raise NotImplementedError

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
        raise NotImplementedError

    def watch(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str = "",
        resource_version: str = "",
        is_streaming_list: bool = False,
    ) -> AsyncIterator[WatchEvent[T] | Bookmark | Unreadable]:
        raise NotImplementedError

    async def serves(self, api_version: str, plural: str) -> bool:
        """The server has that resource (discovery)."""
        raise NotImplementedError

    async def raw(self, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
        """The body of the answer to any request; `path` is encoded and may have a query."""
        raise NotImplementedError


def connect(
    *, kubeconfig: str | None = None, context: str | None = None, qps: float = 500.0, burst: int = 500
) -> Client:
    """A client for a kubeconfig (the given file, $KUBECONFIG, ~/.kube/config) or, without one, for the cluster that
    this process runs in. Reads files only. Raises UsageError."""
    raise NotImplementedError
