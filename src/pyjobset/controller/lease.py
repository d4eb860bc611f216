"""Takes, renews and releases the Lease by which one replica leads. Run by the manager; controller.election decides.

Every write of the leader asks `permit` at the last moment (kube.client): after the deadline none is sent, whatever the
process was stopped by. Requests about the Lease have a client of their own, so that no burst of writes holds up a
renewal. A leader that loses the Lease raises NotLeading for good: the manager ends, and with it all that it knew.
"""

import asyncio
import random
import socket
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NoReturn

from pyjobset.controller.election import Election
from pyjobset.controller.log import Log
from pyjobset.controller.options import LeaderElection
from pyjobset.errors import JobSetError, NotFound, NotLeading, Raced
from pyjobset.kube.client import Client
from pyjobset.kube.cluster import SERVICE_ACCOUNT
from pyjobset.objects.resources import LEASES

NAMESPACE = "jobset-system"
"""Outside of a pod, as that of an installation."""
JITTER = 0.2
"""Followers wait up to so much longer than the retry period, so that they do not come together."""
RELEASE_SECONDS = 2.0

log = Log(__name__)


def steady_seconds() -> float:
    """A clock that nobody sets, and that goes on while the machine sleeps where the system has such a one (Linux)."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def new_identity() -> str:
    """Unlike any other, also after a restart in the same pod: what a predecessor holds is not ours."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Leadership:
    """`acquire`, then `keep`, then `release`. Its wall clock is only written, never compared."""

    def __init__(
        self, client: Client, options: LeaderElection, *, clock: Callable[[], float], now: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._options = options
        self._namespace = options.namespace or _namespace()
        self._clock = clock
        self._now = now
        self._election = Election(new_identity(), options)
        self._said = ""

    @property
    def identity(self) -> str:
        return self._election.identity

    @property
    def is_leading(self) -> bool:
        return self._election.is_leading(self._clock())

    def permit(self) -> None:
        """Returns if a write may be sent now. Raises NotLeading."""
        if not self.is_leading:
            raise NotLeading("this replica does not lead: nothing is written")

    async def acquire(self) -> None:
        """Returns once we lead, however long that takes."""
        log.info("Waiting for leadership", lease=self._lease, identity=self.identity)
        while True:
            await self._try(self._options.renew_deadline_seconds)
            if self.is_leading:
                log.info("Leading", lease=self._lease, identity=self.identity)
                return
            wait = self._options.retry_seconds * random.uniform(1.0, 1.0 + JITTER)  # noqa: S311
            free_in = self._election.free_in_seconds(self._clock())
            await asyncio.sleep(min(wait, free_in) if free_in > 0 else wait)

    async def keep(self) -> NoReturn:
        """Renews. Raises NotLeading when the Lease is lost, at the latest when the deadline is over."""
        while (left := self._election.seconds_left(self._clock())) > 0:
            await asyncio.sleep(min(self._options.retry_seconds, left))
            left = self._election.seconds_left(self._clock())
            if left > 0:  # half of the deadline: an answer that hangs leaves time for another try
                await self._try(min(left, self._options.renew_deadline_seconds / 2))
        holder = self._election.holder
        reason = f"{holder} has it" if holder != self.identity else self._said or "it was not renewed in time"
        raise NotLeading(f"leadership lost: Lease {self._lease}: {reason}")

    async def release(self) -> None:
        """For the next one to take at once, if it may be ours. To be called after the last write. Raises only bugs."""
        election = self._election
        if not election.has_claimed:
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                if not election.is_known:
                    await self._look()
                patch = election.release(self._time())
                if patch is None:
                    return
                await self._client.patch(LEASES, self._namespace, self._options.name, patch, kind="merge")
        except (JobSetError, TimeoutError) as error:
            log.warning("Lease not released: the next leader waits for its end", lease=self._lease, error=str(error))
        else:
            log.info("Lease released", lease=self._lease)

    @property
    def _lease(self) -> str:
        return f"{self._namespace}/{self._options.name}"

    async def _try(self, seconds: float) -> None:
        """One look and one claim, of which the first may have been out of date. Problems are said when they change."""
        problem = ""
        try:
            async with asyncio.timeout(seconds):
                if not await self._claim():
                    await self._claim()
        except TimeoutError:
            problem = "the API server does not answer"
        except JobSetError as error:
            problem = error.message
        if problem and problem != self._said:
            log.warning("Lease neither taken nor renewed", lease=self._lease, problem=problem)
        self._said = problem

    async def _claim(self) -> bool:
        """False: the Lease was another one than was seen, and the question is open.

        Until the answer is there the Lease is not known: it may be lost, or not waited for.
        """
        election, name = self._election, self._options.name
        if not election.is_known:
            await self._look()
        claim = election.claim(self._clock(), self._time())
        if claim is None:
            return True
        sent_at = self._clock()
        try:
            if election.exists:
                stored = await self._client.patch(LEASES, self._namespace, name, claim, kind="merge")
            else:
                body = {"metadata": {"name": name, "namespace": self._namespace}, **claim}
                stored = await self._client.create(LEASES, self._namespace, body)
        except (Raced, NotFound):
            return False
        election.hold(stored, sent_at)
        return True

    async def _look(self) -> None:
        try:
            found = await self._client.get(LEASES, self._namespace, self._options.name)
        except NotFound:
            self._election.see(None, self._clock())
        else:
            self._election.see(found, self._clock())

    def _time(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _namespace() -> str:
    """That of our service account."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip() or NAMESPACE
    except OSError:
        return NAMESPACE
