"""Keeps the webhooks' certificates: the Secret good, the webhook configurations trusting it, the server using it.

Every replica runs one; whoever is first writes, with preconditions, and the others read what it wrote. Before a write
the Secret is read from the server: a watch that lags must not undo what another replica has done. Without news it
sleeps until a certificate is due, and asks nothing. Made and run by the manager; a private key is never logged.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pyjobset.controller.certificate import HeldCertificate
from pyjobset.controller.certificates import plan as plans
from pyjobset.controller.certificates import trust
from pyjobset.controller.certificates.content import Content, encode, read
from pyjobset.controller.certificates.plan import Plan, Served, Terms
from pyjobset.controller.log import Log
from pyjobset.controller.options import Certificates, Tls
from pyjobset.controller.queue import nth_delay
from pyjobset.errors import JobSetError, NotFound, Raced
from pyjobset.kube.cache import Cache
from pyjobset.kube.client import Client
from pyjobset.objects.admission import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from pyjobset.objects.certificates import Secret, WebhookConfiguration
from pyjobset.objects.meta import Struct
from pyjobset.objects.resources import MUTATING_CONFIGURATIONS, SECRETS, VALIDATING_CONFIGURATIONS, Resource
from pyjobset.pki import Certificate

T = TypeVar("T", bound=Struct)

LOOK_SECONDS_MAX = 600.0
"""In memory: the clock of the machine may have been set."""
WRITES_FREE = 5
WRITES_SECONDS = (0.0, 0.5, 60.0)
"""Pauses between writes in a row, after some that are free: two programs that do not agree must not be a storm."""
CALM_SECONDS = 30.0
"""In so long a write is forgotten."""
FAILURE_SECONDS = (0.5, 1.0, 60.0)

log = Log(__name__)


class Keeper:
    def __init__(
        self,
        client: Client,
        options: Certificates,
        namespace: str,
        tls: Tls,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        terms: Terms = Terms(),  # noqa: B008 it is frozen
    ) -> None:
        self._client = client
        self._namespace, self._secret, self._service = namespace, options.secret, options.service
        self._now, self._terms = now, terms
        self._held = HeldCertificate(tls)
        self.served: Served | None = None
        """What the server uses."""
        self._trusted: tuple[Certificate, datetime] | None = None
        """The issuer that the Secret offers, and since when every webhook configuration trusts it."""
        self._unusable: Certificate | None = None
        self._has_been_trusted = False
        self._followed_at = now()
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._writes, self._wrote_at = 0.0, self._loop.time()
        self._failures, self._said = 0, ""
        self._secrets = self._cache(SECRETS, options.secret, namespace)
        self._configurations = (
            (MUTATING_CONFIGURATION, self._cache(MUTATING_CONFIGURATIONS, MUTATING_CONFIGURATION)),
            (VALIDATING_CONFIGURATION, self._cache(VALIDATING_CONFIGURATIONS, VALIDATING_CONFIGURATION)),
        )

    @property
    def context(self) -> ssl.SSLContext:
        """For the server. No handshake succeeds before there is a certificate."""
        return self._held.context

    def is_ready(self) -> bool:
        """The API server can trust what is served. Not so when the Secret was out of sight for long: then others may
        have replaced it, and what is served here may soon be trusted no more."""
        now = self._now()
        if self._secrets.is_following:
            self._followed_at = now
        return self._has_been_trusted and now < self._followed_at + self._terms.retire / 2

    async def run(self) -> None:
        """Until cancelled. Nothing that the server or somebody else does ends it."""
        caches: list[Cache[Any]] = [self._secrets, *(cache for _, cache in self._configurations)]
        async with asyncio.TaskGroup() as parts:
            for cache in caches:
                parts.create_task(cache.run())
            for cache in caches:
                await cache.wait_synced()
            while True:
                self._news.clear()
                pause_seconds = await self._turn()
                try:
                    async with asyncio.timeout(pause_seconds):
                        await self._news.wait()
                except TimeoutError:
                    continue

    async def _turn(self) -> float:
        """The seconds until the next one, if there is no news."""
        try:
            look_at = await self._look()
        except Raced as error:
            # Somebody else did the same thing. The watch tells soon what.
            log.debug("Certificates: lost a race", error=error.message)
            return self._failed("")
        except JobSetError as error:
            return self._failed(error.message)
        except Exception as error:
            log.bug("Certificates failed", error)
            return self._failed(type(error).__name__)
        self._failures, self._said = 0, ""
        return min(max((look_at - self._now()).total_seconds(), 0.1), LOOK_SECONDS_MAX)

    def _failed(self, problem: str) -> float:
        """What keeps us waiting is said when it changes, not each time."""
        if problem and problem != self._said:
            log.warning("Certificates of the webhooks not kept", problem=problem, secret=self._secret)
            self._said = problem
        self._failures += 1
        return nth_delay(FAILURE_SECONDS, self._failures - 1)

    async def _look(self) -> datetime:
        """Makes everything as it should be. Returns when to look again."""
        content = self._content(self._secrets.get(self._namespace, self._secret))
        look_at = self._serve(content)
        plan = self._plan(content)
        if not plan.changes and self._is_injected(content):
            return min(look_at, plan.look_at)
        pause_seconds = self._pause_seconds()
        if pause_seconds > 0:
            return min(look_at, self._now() + timedelta(seconds=pause_seconds))
        found = await self._read()
        content = self._content(found)
        plan = self._plan(content)
        if plan.changes:
            content = await self._store(found, plan)
            plan = self._plan(content)
        look_at = min(plan.look_at, self._serve(content))
        await self._inject(content)
        return min(look_at, self._serve(content))

    def _content(self, secret: Secret | None) -> Content:
        content = read(secret.data if secret is not None else {})
        is_unusable = content.serving is not None and content.serving.certificate == self._unusable
        return replace(content, serving=None, issuer=None) if is_unusable else content

    def _plan(self, content: Content) -> Plan:
        found, served = trust.authorities(self._found()), self.served.issuer if self.served else None
        return plans.decide(content, self._hosts(), self._now(), self._terms, found=found, served=served)

    def _is_injected(self, content: Content) -> bool:
        return not any(trust.injection(found, content.trusted) for found in self._found())

    async def _read(self) -> Secret | None:
        try:
            return await self._client.get(SECRETS, self._namespace, self._secret)
        except NotFound:
            return None

    async def _store(self, secret: Secret | None, plan: Plan) -> Content:
        content = plans.carry_out(plan, self._hosts(), self._now(), self._terms)
        assert content.serving is not None
        data = encode(content)
        if secret is None:
            metadata = {"name": self._secret, "namespace": self._namespace}
            body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls"}
            stored = await self._client.create(SECRETS, self._namespace, body | {"data": data})
        else:
            metadata = {"uid": secret.metadata.uid, "resourceVersion": secret.metadata.resource_version}
            patch = {"metadata": metadata, "data": data}
            stored = await self._client.patch(SECRETS, self._namespace, self._secret, patch, kind="merge")
        self._secrets.wrote(stored)
        log.info(
            "Certificates of the webhooks renewed",
            secret=f"{self._namespace}/{self._secret}",
            authority="new" if plan.authority is None else "kept",
            serving="new" if plan.serving is None else "kept",
            until=content.serving.certificate.period.end,
        )
        return content

    async def _inject(self, content: Content) -> None:
        """One that fails does not keep the other."""
        problems: list[JobSetError] = []
        for name, cache in self._configurations:
            found = cache.get("", name)
            patch = [] if found is None else trust.injection(found, content.trusted)
            if not patch:
                continue
            try:
                cache.wrote(await self._client.patch(cache.resource, None, name, patch, kind="json"))
                log.info("Webhook configuration trusts the authority", name=name, kind=cache.resource.kind)
            except JobSetError as error:
                problems.append(error)
        if problems:
            raise problems[0]

    def _serve(self, content: Content) -> datetime:
        """Takes what is to be served. Returns when it may be something else."""
        now, found, issuer = self._now(), self._found(), content.issuer
        if issuer is None or not trust.trusts(found, issuer):
            self._trusted = None
        elif self._trusted is None or self._trusted[0] != issuer:
            self._trusted = issuer, now
        served = plans.choose(
            self.served,
            content,
            is_current_trusted=self.served is not None and trust.trusts(found, self.served.issuer),
            offered_trusted_since=None if self._trusted is None else self._trusted[1],
            now=now,
            terms=self._terms,
        )
        if served is not None and served != self.served:
            self._use(served)
        if self.served is not None and trust.trusts(found, self.served.issuer):
            self._has_been_trusted = True
        if self._trusted is not None and self.served is not None and self.served.issuer != issuer:
            return self._trusted[1] + self._terms.settle
        return now + timedelta(seconds=LOOK_SECONDS_MAX)

    def _use(self, served: Served) -> None:
        certificate = served.pair.certificate
        try:
            self._held.use(certificate.pem + served.pair.key_pem)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            log.warning("Serving certificate cannot be used", problem=type(error).__name__)
            self._unusable = certificate
            self._news.set()
            return
        self.served = served
        log.info("Serving certificate taken", until=certificate.period.end, hosts=",".join(sorted(certificate.hosts)))

    def _pause_seconds(self) -> float:
        """Until the next write may be, the longer the more there were in a row. Zero counts as one."""
        since = self._loop.time() - self._wrote_at
        writes = max(self._writes - since / CALM_SECONDS, 0.0)
        pause = nth_delay(WRITES_SECONDS, max(int(writes) - WRITES_FREE, 0)) - since
        if pause <= 0:
            self._writes, self._wrote_at = writes + 1, self._loop.time()
        return pause

    def _found(self) -> list[WebhookConfiguration]:
        return [found for name, cache in self._configurations if (found := cache.get("", name)) is not None]

    def _hosts(self) -> frozenset[str]:
        return frozenset((f"{self._service}.{self._namespace}.svc",)) | trust.hosts(self._found())

    def _cache(self, resource: Resource[T], name: str, namespace: str | None = None) -> Cache[T]:
        def changed(_old: T | None, _new: T | None) -> None:
            self._news.set()

        return Cache(
            self._client,
            resource,
            namespace=namespace,
            field_selector=f"metadata.name={name}",
            on_change=changed,
        )
