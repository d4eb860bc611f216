"""A mirror of one resource of the API server, kept by a list and a watch, with our own writes shown at once.

The controller reads it instead of the server. `on_change` tells exactly what the server told, in its order; a write
of our own is visible to readers before the watch tells it. Not a store of truth: preconditions guard every write.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from pyjobset.kube.client import Client
from pyjobset.objects.meta import Struct
from pyjobset.objects.resources import Resource

T = TypeVar("T", bound=Struct)


class Cache(Generic[T]):
    is_synced: bool = False
    is_unserved: bool = False

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        on_change: Callable[[T | None, T | None], None] | None = None,
        indexes: Mapping[str, Callable[[T], Iterable[str]]] = {},
    ) -> None:
        self.resource = resource

    async def run(self) -> None:
        """Mirrors until cancelled. No error of the server ends it."""
        raise NotImplementedError

    async def wait_synced(self) -> None:
        raise NotImplementedError

    def get(self, namespace: str, name: str) -> T | None:
        raise NotImplementedError

    def by_owner(self, uid: str) -> Collection[T]:
        """Objects whose controller ownerReference has that uid."""
        raise NotImplementedError

    def by_index(self, index: str, value: str) -> Collection[T]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def wrote(self, obj: T) -> None:
        """Shows the answer to our own create, patch or delete-with-object, unless the watch told something newer."""
        raise NotImplementedError

    def deleted(self, namespace: str, name: str, uid: str) -> None:
        """Hides the object: our own delete was answered without one."""
        raise NotImplementedError
