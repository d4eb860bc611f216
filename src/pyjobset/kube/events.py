"""The lines of a watch, decoded: changes of objects, bookmarks, and objects that do not fit their type. No I/O."""

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from pyjobset.objects.meta import Struct

T = TypeVar("T", bound=Struct)


class WatchEvent(Struct, Generic[T], frozen=True):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: T


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All changes up to `resource_version` have been sent."""

    resource_version: str
    ends_initial_list: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An event whose object we cannot decode. The watch goes on."""

    type: str
    namespace: str
    name: str
    resource_version: str
    problem: str
