"""The Configuration of the controller (config.jobset.x-k8s.io/v1alpha1): its fields and their defaults.

Each field says what it is for and which flag sets it: docs/configuration.md and the example in deploy/ are made of
that. controller.configured reads one and makes Options of it, controller.configuration_checks knows what its values
may be. Nothing is done here.
"""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta, json

from pyjobset.controller.options import BURST, QPS, TLS_1_2, TLS_1_3, Certificates, LeaderElection
from pyjobset.objects.meta import Manifest, Struct

API_VERSION, KIND = "config.jobset.x-k8s.io/v1alpha1", "Configuration"
CREATE, DEFER = "Create", "Defer"


def _of(description: str, flag: str = "", **schema: object) -> Meta:
    return Meta(description=description, extra={"flag": flag}, extra_json_schema=schema or None)


class WebhookSection(Struct, frozen=True, omit_defaults=False):
    port: Annotated[int, _of("where the admission webhooks listen", "--webhook-bind-address")] = 9443
    host: Annotated[str, _of("on this address; empty is all", "--webhook-bind-address")] = ""
    cert_dir: Annotated[
        str, _of("a directory with tls.crt and tls.key, where internalCertManagement is off", "--webhook-cert-dir")
    ] = ""


class LeaderElectionSection(Struct, frozen=True, omit_defaults=False):
    leader_elect: Annotated[bool, _of("of several replicas one reconciles", "--leader-elect")] = False
    resource_name: Annotated[str, _of("the Lease")] = LeaderElection().name
    resource_namespace: Annotated[
        str, _of("its namespace; empty is that of the pod", "--leader-election-namespace")
    ] = ""
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
    enable: Annotated[
        bool | None,
        _of("the controller makes and renews the certificate of its webhooks; null: in a pod, if there is no certDir"),
    ] = None
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


def manifest(configuration: Configuration) -> Manifest:
    """As YAML has it, with every field."""
    found: Manifest = json.decode(json.encode(configuration))
    return found


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
