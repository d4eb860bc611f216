"""The v1 Secret, and the two configurations of admission webhooks: as far as the webhooks' certificates need them.

The configurations have the same form, so one struct is both. A Secret never shows what it holds.
"""

from pyjobset.objects.meta import ObjectMeta, Struct


class Secret(Struct, frozen=True):
    metadata: ObjectMeta
    data: dict[str, str] = {}
    """Base64."""

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name})"


class ServiceReference(Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class ClientConfig(Struct, frozen=True):
    ca_bundle: str = ""
    """Base64 of PEM."""
    url: str | None = None
    service: ServiceReference | None = None


class Webhook(Struct, frozen=True):
    name: str = ""
    client_config: ClientConfig = ClientConfig()


class WebhookConfiguration(Struct, frozen=True):
    """Mutating or validating."""

    metadata: ObjectMeta
    webhooks: tuple[Webhook, ...] = ()
