"""What the values of a Configuration may be, beyond the schema of one field. Pure; called by controller.configured.

Every problem comes with the path, the value and what to do. A duration is read here, because whether it is one is the
same question.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from math import inf

from pyjobset.controller import tls
from pyjobset.controller.configuration import (
    CertificateSection,
    Configuration,
    HealthSection,
    LeaderElectionSection,
    TlsSection,
)
from pyjobset.controller.options import TLS_1_3, address
from pyjobset.errors import Problem, UsageError
from pyjobset.objects import features, names
from pyjobset.rules.rule import Rule, child

VALUE = Rule("configuration-value", "any field", "cannot be used", "see docs/configuration.md")
RENEWAL_JITTER = 1.2
"""A retry comes up to so much later than its period (client-go's JitterFactor)."""

_DURATION = re.compile(r"(?:(?:\d+(?:\.\d*)?|\.\d+)(?:h|m|s|ms|us|µs|ns))+", re.ASCII)
_DURATION_PART = re.compile(r"([\d.]+)([a-zµ]+)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_ENDPOINT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def problems(configuration: Configuration) -> Iterator[Problem]:
    """What the schema of one field cannot say."""
    webhook, client = configuration.webhook, configuration.client_connection
    if not 0 <= webhook.port <= 65535:
        yield VALUE.at("webhook.port", webhook.port, "must be a port number", "0 is any free port; at most 65535")
    for path, text in (
        ("metrics.bindAddress", configuration.metrics.bind_address),
        ("health.healthProbeBindAddress", configuration.health.health_probe_bind_address),
    ):
        try:
            address(text, path)
        except UsageError as error:
            yield VALUE.at(path, text, "must be HOST:PORT", error.hint)
    if not 0 < client.qps < inf:
        yield VALUE.at("clientConnection.qps", client.qps, "must be a number above 0", "the default is 500")
    if client.burst < 1:
        yield VALUE.at("clientConnection.burst", client.burst, "must be at least 1", "the default is 500")
    yield from _problems_of_health(configuration.health)
    yield from _problems_of_election(configuration.leader_election)
    yield from _problems_of_tls(configuration.tls)
    yield from _problems_of_certificates(configuration.internal_cert_management)
    for gate, is_on in configuration.feature_gates.items():
        try:
            features.resolve({gate: is_on})
        except UsageError as error:
            yield VALUE.at(child("featureGates", gate), is_on, error.message, error.hint or "leave it out")


def _problems_of_health(health: HealthSection) -> Iterator[Problem]:
    for path, name in (
        ("health.readinessEndpointName", health.readiness_endpoint_name),
        ("health.livenessEndpointName", health.liveness_endpoint_name),
    ):
        if not _ENDPOINT.fullmatch(name):
            yield VALUE.at(
                path, name, "must be one part of a path", "letters, digits, '-', '_' and '.', for example readyz"
            )
    if health.readiness_endpoint_name == health.liveness_endpoint_name:
        name, hint = health.liveness_endpoint_name, "a controller that waits for its caches is alive, and not ready"
        yield VALUE.at("health.livenessEndpointName", name, "must not be that of readiness", hint)


def _problems_of_election(election: LeaderElectionSection) -> Iterator[Problem]:
    path = "leaderElection"
    seconds: list[float] = []
    for name, text in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        try:
            seconds.append(duration_seconds(text))
        except ValueError:
            yield VALUE.at(f"{path}.{name}", text, "must be a duration above 0", "for example 15s, 1m30s or 500ms")
    if len(seconds) == 3:
        lease, renew, retry = seconds
        if lease <= renew:
            hint = f"renewDeadline is {election.renew_deadline}"
            yield VALUE.at(f"{path}.leaseDuration", election.lease_duration, "must be above renewDeadline", hint)
        if renew <= retry * RENEWAL_JITTER:
            message, hint = f"must be above {RENEWAL_JITTER:g} x retryPeriod", f"retryPeriod is {election.retry_period}"
            yield VALUE.at(f"{path}.renewDeadline", election.renew_deadline, message, hint)
    if not names.is_dns_subdomain(election.resource_name):
        hint = "lower-case letters, digits, '-' and '.'"
        yield VALUE.at(f"{path}.resourceName", election.resource_name, "must be a DNS subdomain", hint)
    if election.resource_namespace and not names.is_dns_label(election.resource_namespace):
        hint = "leave it empty for the namespace of the pod"
        yield VALUE.at(f"{path}.resourceNamespace", election.resource_namespace, "must be a DNS label", hint)


def _problems_of_tls(section: TlsSection) -> Iterator[Problem]:
    if section.cipher_suites and section.min_version == TLS_1_3:
        message = "cannot be chosen with minVersion VersionTLS13"
        yield VALUE.at("tls.cipherSuites", None, message, "remove it: the suites of TLS 1.3 are always on")
        return
    for index, name in enumerate(section.cipher_suites):
        path = f"tls.cipherSuites[{index}]"
        near = get_close_matches(name, tls.SUITES, n=1)
        meant = f"did you mean {near[0]}?" if near else "leave cipherSuites out for the default choice"
        if name in tls.INSECURE:
            yield VALUE.at(path, name, "is not secure", meant)
        elif name not in tls.SUITES and name not in tls.ALWAYS_ON:
            yield VALUE.at(path, name, "is no cipher suite of Go's crypto/tls", meant)
        elif not tls.is_available(name):
            yield VALUE.at(path, name, "is not in the OpenSSL of this machine", "remove it")


def _problems_of_certificates(section: CertificateSection) -> Iterator[Problem]:
    path = "internalCertManagement"
    if not names.is_rfc1035_label(section.webhook_service_name):
        hint = "lower-case letters, digits and '-', starting with a letter"
        yield VALUE.at(f"{path}.webhookServiceName", section.webhook_service_name, "must be an RFC 1035 label", hint)
    if not names.is_dns_subdomain(section.webhook_secret_name):
        hint = "lower-case letters, digits, '-' and '.'"
        yield VALUE.at(f"{path}.webhookSecretName", section.webhook_secret_name, "must be a DNS subdomain", hint)


def duration_seconds(text: str) -> float:
    """Go's duration: 15s, 1m30s, 1.5h. ValueError where it is none, or not above 0."""
    if not _DURATION.fullmatch(text):
        raise ValueError(text)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(text))
    if not 0 < seconds < inf:
        raise ValueError(text)
    return seconds
