"""Whom the webhook configurations trust, which hosts they ask, and the patch that makes them trust others.

Called by certificates.keeper. A configuration that is not there trusts everybody: nobody is asked through it. Pure.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from pyjobset import pki
from pyjobset.controller.certificates.content import AUTHORITIES_MAX
from pyjobset.objects.certificates import Webhook, WebhookConfiguration
from pyjobset.objects.meta import Manifest
from pyjobset.pki import Certificate

HOSTS_MAX = 32
"""Of one certificate. We have four webhooks."""


def trusts(configurations: Iterable[WebhookConfiguration], authority: Certificate) -> bool:
    """Every webhook of every configuration does."""
    return all(authority in _bundle(webhook) for found in configurations for webhook in found.webhooks)


def authorities(configurations: Iterable[WebhookConfiguration]) -> tuple[Certificate, ...]:
    """All that some webhook trusts, each once."""
    found = (c for configuration in configurations for webhook in configuration.webhooks for c in _bundle(webhook))
    return tuple(dict.fromkeys(found))


def hosts(configurations: Iterable[WebhookConfiguration]) -> frozenset[str]:
    """The names and addresses by which the API server will ask."""
    found = (host for configuration in configurations for webhook in configuration.webhooks for host in _hosts(webhook))
    return frozenset(sorted(host for host in set(found) if pki.can_be_host(host))[:HOSTS_MAX])


def injection(configuration: WebhookConfiguration, trusted: tuple[Certificate, ...]) -> list[Manifest]:
    """A JSON patch for that version of the object, after which each webhook trusts exactly these; empty if it does."""
    bundle = b64encode(b"".join(certificate.pem for certificate in trusted)).decode()
    changes: list[Manifest] = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
        for index, webhook in enumerate(configuration.webhooks)
        if set(_bundle(webhook)) != set(trusted)
    ]
    version = configuration.metadata.resource_version
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": version}, *changes] if changes else []


def _hosts(webhook: Webhook) -> Iterator[str]:
    asked = webhook.client_config
    if asked.service is not None:
        yield f"{asked.service.name}.{asked.service.namespace}.svc"
    if asked.url is not None:
        try:
            yield urlsplit(asked.url).hostname or ""
        except ValueError:
            return


def _bundle(webhook: Webhook) -> tuple[Certificate, ...]:
    try:
        pem = b64decode(webhook.client_config.ca_bundle, validate=True)
    except (binascii.Error, ValueError):
        return ()
    # One more than there may be, to see that there are too many.
    return pki.read_certificates(pem, AUTHORITIES_MAX + 1)
