"""The Configuration of the controller (config.jobset.x-k8s.io/v1alpha1): its fields, and what they make of Options.

cli.controller reads the file and hands over its value with the flags that were given: flag over file over default.
Decoding is strict, and tells all problems at once. The structs say of each field what it is for and which flag sets it;
docs/configuration.md is made of them. Nothing here reads files or the environment.
"""

import dataclasses
import re
from collections.abc import Container, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, json
from msgspec.structs import replace

from pyjobset.controller import tls
from pyjobset.controller.options import (
    BURST,
    QPS,
    TLS_1_2,
    TLS_1_3,
    Address,
    Certificates,
    LeaderElection,
    Options,
    Tls,
    Webhooks,
    address,
    metrics,
)
from pyjobset.errors import InvalidSpec, Problem, UsageError
from pyjobset.objects import features, names
from pyjobset.objects.meta import Manifest, Struct
from pyjobset.rules.parse import read_as
from pyjobset.rules.rule import Rule, child

API_VERSION, KIND = "config.jobset.x-k8s.io/v1alpha1", "Configuration"
CREATE, DEFER = "Create", "Defer"

VALUE = Rule("configuration-value", "any field", "cannot be used", "see docs/configuration.md")
RENEWAL_JITTER = 1.2
"""A retry comes up to so much later than its period (client-go's JitterFactor)."""

_DURATION = re.compile(r"(?:(?:\d+(?:\.\d*)?|\.\d+)(?:h|m|s|ms|us|µs|ns))+", re.ASCII)
_DURATION_PART = re.compile(r"([\d.]+)([a-zµ]+)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_ENDPOINT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def _of(description: str, flag: str = "", **schema: object) -> Meta:
    return Meta(description=description, extra={"flag": flag}, extra_json_schema=schema or None)


class WebhookSection(Struct, frozen=True, omit_defaults=False):
    port: Annotated[int, _of("where the admission webhooks listen", "--webhook-bind-address")] = 9443
    host: Annotated[str, _of("on this address; empty is all", "--webhook-bind-address")] = ""
    cert_dir: Annotated[
        str, _of("a directory with tls.crt and tls.key; without one there are no webhooks", "--webhook-cert-dir")
    ] = ""


class LeaderElectionSection(Struct, frozen=True, omit_defaults=False):
    leader_elect: Annotated[bool, _of("of several replicas one reconciles", "--leader-elect")] = False
    resource_name: Annotated[str, _of("the Lease")] = LeaderElection().name
    resource_namespace: Annotated[str, _of("its namespace; empty is that of the pod")] = ""
    resource_lock: Annotated[str, _of("the kind of lock", enum=["leases"])] = "leases"
    lease_duration: Annotated[str, _of("others wait so long for a leader that is silent")] = "15s"
    renew_deadline: Annotated[str, _of("a leader that could not renew for so long gives up")] = "10s"
    retry_period: Annotated[str, _of("between two tries")] = "2s"


class MetricsSection(Struct, frozen=True, omit_defaults=False):
    bind_address: Annotated[str, _of("HOST:PORT of /metrics; 0 for none", "--metrics-bind-address")] = ":8443"
    cert_dir: Annotated[str, _of("a directory with tls.crt and tls.key; without one a certificate is made")] = ""


class HealthSection(Struct, frozen=True, omit_defaults=False):
    health_probe_bind_address: Annotated[
        str, _of("HOST:PORT of both endpoints; 0 for none", "--health-probe-bind-address")
    ] = ":8081"
    readiness_endpoint_name: Annotated[str, _of("the path that tells whether it is ready")] = "readyz"
    liveness_endpoint_name: Annotated[str, _of("the path that tells whether it is alive")] = "healthz"


class TlsSection(Struct, frozen=True, omit_defaults=False):
    min_version: Annotated[str, _of("the oldest TLS that is served", enum=[TLS_1_2, TLS_1_3])] = TLS_1_2
    cipher_suites: Annotated[
        tuple[str, ...], _of("suites of TLS 1.2 by their names in Go; none is the default choice of OpenSSL")
    ] = ()


class CertificateSection(Struct, frozen=True, omit_defaults=False):
    enable: Annotated[bool, _of("the controller makes and renews the certificate of its webhooks")] = False
    webhook_service_name: Annotated[str, _of("the Service of the webhooks")] = Certificates().service
    webhook_secret_name: Annotated[str, _of("the Secret that holds the certificate")] = Certificates().secret


class ClientSection(Struct, frozen=True, omit_defaults=False):
    qps: Annotated[float, _of("requests a second to the API server, on average", "--kube-api-qps")] = QPS
    burst: Annotated[int, _of("requests at once", "--kube-api-burst")] = BURST


class AdmissionSection(Struct, frozen=True, omit_defaults=False):
    dry_run_job_templates: Annotated[
        bool, _of("a JobSet is admitted once the API server would take its Jobs (asked with dryRun=All)")
    ] = True


class Configuration(Struct, frozen=True, omit_defaults=False):
    api_version: Annotated[str, _of("", enum=[API_VERSION], required=True)] = API_VERSION
    kind: Annotated[str, _of("", enum=[KIND], required=True)] = KIND
    webhook: WebhookSection = WebhookSection()
    leader_election: LeaderElectionSection = LeaderElectionSection()
    metrics: MetricsSection = MetricsSection()
    health: HealthSection = HealthSection()
    tls: TlsSection = TlsSection()
    internal_cert_management: CertificateSection = CertificateSection()
    client_connection: ClientSection = ClientSection()
    feature_gates: Annotated[dict[str, bool], _of("gates that are not as by default", "--feature-gates")] = {}
    admission: AdmissionSection = AdmissionSection()
    suspended_jobs: Annotated[
        str,
        _of(
            "Create: a suspended JobSet has its Jobs, suspended, which Kueue relies on. Defer: it has nothing before "
            "its first resume",
            enum=[CREATE, DEFER],
        ),
    ] = CREATE


def parse(manifest: Any, source: str) -> Configuration:
    """The Configuration in a file's value. Raises InvalidSpec with everything that is wrong."""
    configuration, problems = read_as(manifest, Configuration)
    paths = {problem.path for problem in problems}
    if "kind" in paths:  # something else: all of it would be wrong
        raise InvalidSpec([p for p in problems if p.path in ("apiVersion", "kind")], subject=f"{KIND} {source}")
    # The rest is looked at without what has the wrong type.
    rest = configuration or read_as(_without(manifest, paths), Configuration)[0]
    if rest is not None:
        problems += tuple(p for p in _problems(rest) if p.path not in paths)
    if problems:
        raise InvalidSpec(problems, subject=f"{KIND} {source}")
    assert configuration is not None
    return configuration


def _without(value: Any, paths: Container[str], path: str = "") -> Any:
    """The value without the fields and items of those paths."""
    if isinstance(value, dict):
        inner = {key: child(path, key) for key in value}
        return {key: _without(item, paths, inner[key]) for key, item in value.items() if inner[key] not in paths}
    if isinstance(value, list):
        return [_without(item, paths, child(path, i)) for i, item in enumerate(value) if child(path, i) not in paths]
    return value


def with_flags(configuration: Configuration, given: Mapping[str, Any]) -> Configuration:
    """`given` are the values of flags by name (`--kube-api-qps`); those of other things are ignored. Raises UsageError,
    which names the flag."""
    sections: dict[str, Any] = {}
    by_path: dict[str, str] = {}
    for section, field, path, flag in _flags():
        if flag in given and flag not in _COMPOSED:
            by_path[path] = flag
            sections[section] = replace(sections.get(section, getattr(configuration, section)), **{field: given[flag]})
    configuration = replace(configuration, **sections)
    if "--webhook-bind-address" in given:
        configuration = _with_webhook_address(configuration, given["--webhook-bind-address"])
    if "--feature-gates" in given:
        gates = configuration.feature_gates | features.chosen(given["--feature-gates"])
        configuration = replace(configuration, feature_gates=gates)
    for problem in _problems(configuration):
        where = by_path.get(problem.path, problem.path)
        raise UsageError(f"{where} {problem.value!r}: {problem.message}", hint=problem.hint)
    return configuration


def manifest(configuration: Configuration) -> Manifest:
    """As YAML has it, with every field."""
    found: Manifest = json.decode(json.encode(configuration))
    return found


def options(configuration: Configuration, *, is_metrics_secure: bool = True, **more: Any) -> Options:
    """`more` are the Options that no Configuration has. Raises UsageError for what is not built yet."""
    election, certificates, health = (
        configuration.leader_election,
        configuration.internal_cert_management,
        configuration.health,
    )
    _refuse_unbuilt(configuration)
    restrictions = Tls(configuration.tls.min_version, configuration.tls.cipher_suites)
    measured = metrics(configuration.metrics.bind_address, configuration.metrics.cert_dir, is_secure=is_metrics_secure)
    return Options(
        qps=configuration.client_connection.qps,
        burst=configuration.client_connection.burst,
        features=features.resolve(configuration.feature_gates),
        health_address=address(health.health_probe_bind_address, "--health-probe-bind-address"),
        liveness_endpoint=health.liveness_endpoint_name,
        readiness_endpoint=health.readiness_endpoint_name,
        leader_election=LeaderElection(
            enabled=election.leader_elect,
            name=election.resource_name,
            namespace=election.resource_namespace,
            lease_seconds=_seconds(election.lease_duration),
            renew_deadline_seconds=_seconds(election.renew_deadline),
            retry_seconds=_seconds(election.retry_period),
        ),
        certificates=Certificates(
            certificates.enable, certificates.webhook_service_name, certificates.webhook_secret_name
        ),
        webhooks=_webhooks(configuration.webhook, restrictions),
        metrics=measured and dataclasses.replace(measured, tls=restrictions),
        dry_runs_job_templates=configuration.admission.dry_run_job_templates,
        defers_suspended=configuration.suspended_jobs == DEFER,
        **more,
    )


def _webhooks(section: WebhookSection, restrictions: Tls) -> Webhooks | None:
    if not section.cert_dir:
        return None
    return Webhooks(Address(section.host, section.port), Path(section.cert_dir), restrictions)


def _refuse_unbuilt(configuration: Configuration) -> None:
    """Nobody may believe that it is on."""
    for path, is_on in (
        ("leaderElection.leaderElect", configuration.leader_election.leader_elect),
        ("internalCertManagement.enable", configuration.internal_cert_management.enable),
    ):
        if is_on:
            raise UsageError(f"{path}: this version of pyjobset does not have it yet", hint="set it to false")


_COMPOSED = ("--webhook-bind-address", "--feature-gates")
"""Flags whose value is not that of one field."""


def _flags() -> Iterator[tuple[str, str, str, str]]:
    """Section and field as attributes, path, flag."""
    for path, meta, attributes in fields():
        flag = (meta.extra or {}).get("flag", "")
        if flag and len(attributes) == 2:
            yield *attributes, path, flag


def fields(struct: type[Struct] = Configuration) -> Iterator[tuple[str, Meta, tuple[str, ...]]]:
    """Every field that is no section: its path, what is said of it, and its attributes from the root on."""
    for name, wire in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
        annotation = struct.__annotations__[name]
        meta = next((m for m in getattr(annotation, "__metadata__", ()) if isinstance(m, Meta)), None)
        if meta is not None:
            yield wire, meta, (name,)
            continue
        for path, inner, attributes in fields(annotation):
            yield f"{wire}.{path}", inner, (name, *attributes)


def _with_webhook_address(configuration: Configuration, text: str) -> Configuration:
    where = address(text, "--webhook-bind-address")
    webhook = configuration.webhook
    if where is None:
        return replace(configuration, webhook=replace(webhook, cert_dir=""))
    if not webhook.cert_dir:
        raise UsageError(
            "--webhook-bind-address needs --webhook-cert-dir",
            hint="webhooks are served over TLS only; give both, or webhook.certDir in the Configuration",
        )
    return replace(configuration, webhook=replace(webhook, host=where.host, port=where.port))


def _problems(configuration: Configuration) -> Iterator[Problem]:
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
    if not client.qps > 0:
        yield VALUE.at("clientConnection.qps", client.qps, "must be above 0", "the default is 500")
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
            seconds.append(_seconds(text))
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


def _seconds(text: str) -> float:
    """Go's duration: 15s, 1m30s, 1.5h. ValueError where it is none, or not above 0."""
    if not _DURATION.fullmatch(text):
        raise ValueError(text)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(text))
    if not 0 < seconds < float("inf"):
        raise ValueError(text)
    return seconds
