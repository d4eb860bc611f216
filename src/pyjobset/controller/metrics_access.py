"""Who may read the metrics. Asks the API server whose token it is (TokenReview) and whether that user may get /metrics
(SubjectAccessReview). Called by metrics_server for each request.

Answers are remembered for a short time, by a digest of the token, so that a scraper costs few requests. One question
is asked at a time and few may wait: a flood of wrong tokens is no flood for the API server. Without an answer nobody
may read.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from pyjobset.controller.log import Log
from pyjobset.errors import JobSetError
from pyjobset.kube.client import Client
from pyjobset.kube.responses import BAD_JSON
from pyjobset.objects.meta import Manifest, Struct

PATH = "/metrics"
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ALLOWED_SECONDS = 60.0
DENIED_SECONDS = 10.0
REMEMBERED_MAX = 128
WAITING_MAX = 16
ASK_SECONDS_MAX = 10.0

log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Denial:
    code: int
    message: str


NO_TOKEN = Denial(401, "Send a bearer token: Authorization: Bearer TOKEN")
BAD_TOKEN = Denial(401, "The API server does not accept this token")
NO_ANSWER = Denial(503, "The API server did not say whether you may read this; the controller's log says why")
CROWDED = Denial(503, "Too many requests wait for an answer of the API server")


class _User(Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _TokenStatus(Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()


class _TokenReview(Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(Struct, frozen=True):
    allowed: bool = False


class _AccessReview(Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


T = TypeVar("T", bound=Struct)


class Access:
    """`now` is in seconds, by any clock."""

    def __init__(self, client: Client, now: Callable[[], float]) -> None:
        self._client = client
        self._now = now
        self._asking = asyncio.Lock()
        self._waiting = 0
        self._problem = ""
        self._remembered: dict[bytes, tuple[float, Denial | None]] = {}
        """Until when, and what; the oldest first."""

    async def denial(self, authorization: str) -> Denial | None:
        """For the Authorization header of a request; None lets it pass. Raises nothing but bugs."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return NO_TOKEN
        if not token.isascii():
            return BAD_TOKEN
        digest = sha256(token.encode()).digest()
        remembered = self._recall(digest)
        if remembered is not None:
            return remembered[1]
        if self._waiting >= WAITING_MAX:
            return CROWDED
        self._waiting += 1
        try:
            async with asyncio.timeout(ASK_SECONDS_MAX), self._asking:
                remembered = self._recall(digest)  # whoever was before us may have asked the same
                if remembered is not None:
                    return remembered[1]
                answer = await self._ask(token)
                self._problem = ""
        except (JobSetError, *BAD_JSON, TimeoutError) as error:
            self._say(str(error) or "no answer in time")
            return NO_ANSWER
        finally:
            self._waiting -= 1
        self._remember(digest, answer)
        return answer

    async def _ask(self, token: str) -> Denial | None:
        spec: Manifest = {"token": token}
        asked = await self._create(TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", spec, _TokenReview)
        if not asked.status.authenticated:
            return BAD_TOKEN
        user = asked.status.user
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": {"path": PATH, "verb": "get"},
        }
        access = await self._create(
            ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", spec, _AccessReview
        )
        if access.status.allowed:
            return None
        return Denial(
            403, f"User {user.username!r} may not get {PATH}: a ClusterRole with this nonResourceURL allows it"
        )

    async def _create(self, path: str, api_version: str, kind: str, spec: Manifest, answer: type[T]) -> T:
        body: Any = {"apiVersion": api_version, "kind": kind, "spec": spec}
        return msgspec.json.decode(await self._client.raw("POST", path, msgspec.json.encode(body)), type=answer)

    def _recall(self, digest: bytes) -> tuple[float, Denial | None] | None:
        found = self._remembered.get(digest)
        return found if found is not None and self._now() < found[0] else None

    def _remember(self, digest: bytes, answer: Denial | None) -> None:
        self._remembered.pop(digest, None)
        while len(self._remembered) >= REMEMBERED_MAX:
            # A denial first: guessed tokens must not make us forget those that are right.
            oldest = next((d for d, (_, a) in self._remembered.items() if a is not None), None)
            del self._remembered[next(iter(self._remembered)) if oldest is None else oldest]
        seconds = ALLOWED_SECONDS if answer is None else DENIED_SECONDS
        self._remembered[digest] = (self._now() + seconds, answer)

    def _say(self, problem: str) -> None:
        """When it changes, not each time."""
        if problem != self._problem:
            self._problem = problem
            log.warning("The API server does not say who may read the metrics", problem=problem)
