"""A mirror of one resource of the API server, kept by a list and a watch, with our own writes shown at once.

The controller reads it instead of the server. `on_change` tells exactly what the server told, in its order; a write
of our own is visible to readers before the watch tells it. Not a store of truth: preconditions guard every write.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import Generic, TypeVar

from pyjobset.errors import JobSetError, Refused, Unavailable
from pyjobset.kube import requests
from pyjobset.kube.client import SILENCE_SECONDS_MAX, Client
from pyjobset.kube.events import Bookmark, EventDecoder, Unreadable, WatchEvent
from pyjobset.kube.mirror import Mirror, OnChange
from pyjobset.kube.responses import Expired
from pyjobset.kube.store import OWNER, Key, Store, key_of, owner_key, version, version_of
from pyjobset.objects.meta import Struct
from pyjobset.objects.resources import Resource

T = TypeVar("T", bound=Struct)

BACKOFF_SECONDS = 0.2
BACKOFF_SECONDS_MAX = 30.0
PROBE_SECONDS = 30.0
"""How often an API that is not served is looked for."""
SHORT_WATCH_SECONDS = 1.0
"""A watch that the server ends sooner, without a line, counts as failed: else we would ask in a loop."""

log = logging.getLogger(__name__)


class Cache(Generic[T]):
    """Safe on one event loop. Collections that it returns are snapshots. Index functions are pure.

    `on_change(old, new)`: old None is added, new None is deleted; another object of the same name is a deletion and an
    addition. It is called on the event loop and may read the cache, not wait. `on_served()`: `is_unserved` has changed.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        on_change: OnChange[T] | None = None,
        on_served: Callable[[], None] = lambda: None,
        indexes: Mapping[str, Callable[[T], Iterable[str]]] = {},
    ) -> None:
        self.resource = resource
        self.is_synced = False
        """The cache has once shown all objects of the server (none if the API is not served)."""
        self.is_unserved = False
        """The API server does not have the resource."""
        self.problem: JobSetError | None = None
        """Why the cache does not follow the server at the moment."""
        self.watches = 0
        """How many were begun."""
        self._client = client
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._on_change = on_change
        self._on_served = on_served
        self._store: Store[T] = Store({name: _guarded(name, function) for name, function in indexes.items()})
        self._mirror: Mirror[T] = Mirror(self._store, self._report)
        self._synced = asyncio.Event()
        self._is_listed = False  # the next turn can resume the watch
        self._is_listing = False
        self._uses_pages = False  # the last streaming list failed
        self._failures = 0
        self._absences = 0

    async def run(self) -> None:
        """Mirrors until cancelled. No error ends it."""
        while True:
            started = _now()
            try:
                await self._turn()
                # The server ended the watch, as it does every few minutes.
                pause = 0.0 if _now() - started > SHORT_WATCH_SECONDS else self._backoff()
            except Expired as error:
                # Listed anew at once, whatever failed before; only if that list is too old as well it waits.
                pause = BACKOFF_SECONDS * random.uniform(0.5, 1.0) if self._is_listed else self._backoff()  # noqa: S311
                self._is_listed = False
                self._note(error, pause, logging.INFO)
            except Refused as error:
                pause = self._refused(error)
                self._note(error, pause, logging.INFO if error.code == 404 else logging.WARNING)
            except JobSetError as error:
                self._absences = 0
                pause = self._backoff()
                if isinstance(error, Unavailable):
                    pause = max(pause, error.retry_after_seconds or 0.0)
                self._note(error, pause, logging.WARNING)
            except Exception:
                # Ours: a fault of this package. All other caches live on, and so does this one.
                pause = self._backoff()
                self._is_listed = False
                log.exception("cache failed resource=%s retry_seconds=%.1f", self.resource, pause)
            await asyncio.sleep(pause)

    @property
    def is_following(self) -> bool:
        """It shows what the server has. A resource that the server does not have is known to be absent."""
        return self.is_synced and (self.problem is None or self.is_unserved)

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def get(self, namespace: str, name: str) -> T | None:
        return self._store.get(Key(namespace, name))

    def by_owner(self, namespace: str, uid: str) -> Collection[T]:
        """Objects of the namespace whose controller ownerReference has that uid, oldest in the cache first."""
        return self._store.by_index(OWNER, owner_key(namespace, uid))

    def by_index(self, index: str, value: str) -> Collection[T]:
        return self._store.by_index(index, value)

    def __iter__(self) -> Iterator[T]:
        return iter(self._store)

    def __len__(self) -> int:
        return len(self._store)

    def wrote(self, obj: T) -> None:
        """Shows the answer to our own create, patch or delete-with-object, unless the watch told something newer."""
        if self._namespace is None or key_of(obj).namespace == self._namespace:
            self._mirror.wrote(obj)

    def deleted(self, namespace: str, name: str, uid: str) -> None:
        """Hides the object: our own delete was answered without one."""
        self._mirror.deleted(Key(namespace, name), uid)

    async def _turn(self) -> None:
        """One watch, from where the last one ended or after a new list."""
        if self._is_listed:
            await self._watch()
            return
        self._is_listing = True
        self._mirror.begin_list()
        blames_the_way = True
        try:
            if self._uses_pages:
                await self._list_pages()
            else:
                await self._watch(is_streaming_list=True)
        except Refused as error:
            blames_the_way = error.code not in (401, 403, 404)
            raise
        except Unavailable as error:
            blames_the_way = error.retry_after_seconds is None
            raise
        finally:
            if self._is_listing and blames_the_way:
                # Not every server can stream a list, and not every one says so clearly: the other way next.
                self._uses_pages = not self._uses_pages

    async def _watch(self, *, is_streaming_list: bool = False) -> None:
        self.watches += 1
        events = self._client.watch(
            self.resource,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            resource_version="" if is_streaming_list else str(self._mirror.version),
            is_streaming_list=is_streaming_list,
        )
        opened = _now()
        is_silent = True
        try:
            async with aclosing(events):
                async for event in events:
                    self._apply(event)
                    self._succeeded()
                    is_silent = False
        finally:
            # Not even a bookmark: the server may wait for a version that it will not reach (restored from a backup).
            if is_silent and _now() - opened >= SILENCE_SECONDS_MAX:
                self._is_listed = False

    def _apply(self, event: WatchEvent[T] | Bookmark | Unreadable) -> None:
        match event:
            case WatchEvent(type="DELETED", object=obj):
                self._expect(version_of(obj))
                self._mirror.told_deleted(key_of(obj), version_of(obj))
            case WatchEvent(object=obj):
                self._expect(version_of(obj))
                self._mirror.told(obj)
            case Bookmark(text, ends_initial_list):
                self._expect(version(text))
                if ends_initial_list:
                    self._end_list(version(text))
                else:
                    self._mirror.told_version(version(text))
            case Unreadable():
                self._skip(event)

    def _expect(self, version: int) -> None:
        """A watch never goes back, unless the server was restored from a backup."""
        if not self._is_listing and version < self._mirror.version:
            raise Expired(f"watch of {self.resource}: resourceVersion {version} came after {self._mirror.version}")

    async def _list_pages(self) -> None:
        request = requests.list_(self.resource, self._namespace)
        decode = EventDecoder(request, self.resource.type).decode_item
        pages = self._client.pages(
            self.resource,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        )
        listed = 0
        async with aclosing(pages):
            async for page in pages:
                listed = listed or version(page.metadata.resource_version)
                for item in page.items or ():
                    obj = decode(item)
                    if isinstance(obj, Unreadable):
                        self._skip(obj)
                    else:
                        self._mirror.told(obj)
        self._end_list(listed)

    def _end_list(self, version: int) -> None:
        self._mirror.end_list(version)
        self._is_listing = False
        self._is_listed = True
        self._uses_pages = False
        self._succeeded()
        self._sync()
        if self.is_unserved:
            self.is_unserved = False
            self._report_served()

    def _skip(self, bad: Unreadable) -> None:
        key = Key(bad.namespace, bad.name)
        log.warning("object unreadable resource=%s object=%s problem=%s", self.resource, "/".join(key), bad.problem)
        if not bad.name:
            return
        if bad.type == "DELETED":
            self._mirror.told_deleted(key, version(bad.resource_version))
        else:
            self._mirror.told_unreadable(key, version(bad.resource_version))

    def _refused(self, error: Refused) -> float:
        """How long to wait. A 404 twice in a row means that the server does not have the resource: no objects."""
        if error.code != 404:
            self._absences = 0
            return self._backoff()
        self._absences += 1
        if self._absences == 1:  # a starting server may not know all of its resources yet
            return self._backoff()
        if not self.is_unserved:
            self.is_unserved = True
            self._mirror.begin_list()
            self._mirror.end_list(self._mirror.version)
            self._is_listed = False
            self._sync()
            self._report_served()
        return PROBE_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311

    def _backoff(self) -> float:
        self._failures += 1
        seconds = min(BACKOFF_SECONDS * 2 ** min(self._failures, 16), BACKOFF_SECONDS_MAX)
        return float(seconds * random.uniform(0.5, 1.0))  # noqa: S311

    def _note(self, error: JobSetError, pause: float, level: int) -> None:
        """Says a problem once: a right that lacks may lack for months."""
        is_known = self.problem is not None and self.problem.message == error.message
        self.problem = error
        log.log(
            logging.DEBUG if is_known else level,
            "watch ended resource=%s retry_seconds=%.1f error=%s",
            self.resource,
            pause,
            error,
        )

    def _succeeded(self) -> None:
        self._failures = self._absences = 0
        self.problem = None

    def _sync(self) -> None:
        self.is_synced = True
        self._synced.set()

    def _report(self, old: T | None, new: T | None) -> None:
        if self._on_change is None:
            return
        try:
            self._on_change(old, new)
        except Exception:
            log.exception("on_change failed resource=%s", self.resource)

    def _report_served(self) -> None:
        try:
            self._on_served()
        except Exception:
            log.exception("on_served failed resource=%s", self.resource)


def _guarded(name: str, function: Callable[[T], Iterable[str]]) -> Callable[[T], Iterable[str]]:
    """An object that an index function fails on is not in that index; it must not keep the others out of the cache."""

    def values(obj: T) -> Iterable[str]:
        try:
            return tuple(function(obj))
        except Exception:
            log.exception("index failed index=%s object=%s", name, "/".join(key_of(obj)))
            return ()

    return values


def _now() -> float:
    return asyncio.get_running_loop().time()
