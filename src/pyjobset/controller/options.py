"""How the controller runs: Configuration and flags as one frozen value. Made by controller.configuration.

Names and defaults are those of the original controller where it has the flag. Bad values raise UsageError.
"""

from dataclasses import dataclass
from pathlib import Path

from pyjobset.errors import UsageError
from pyjobset.objects.features import DEFAULTS, Features

QPS = 500.0
BURST = 500
CONCURRENT_RECONCILES = 16
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")
LEVELS_OF_ZAP = {"warn": "warning", "dpanic": "error", "panic": "error", "fatal": "error"}
"""Those that have another name here. We log nothing above error."""
ENCODERS = {"console": "text", "json": "json"}
"""The original's names of log formats, and ours."""
KLOG_DEBUG = 4
STACK_TRACE_LEVELS = ("info", "error", "panic")
TIME_FORMATS = ("iso8601", "rfc3339", "rfc3339nano", "epoch", "millis", "nano")
TLS_1_2, TLS_1_3 = "VersionTLS12", "VersionTLS13"
NAMESPACE = "jobset-system"
"""Where we are installed, unless we run in a pod, which knows."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. An empty host is every interface, port 0 any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Tls:
    """Of all our servers. Cipher suites have Go's names; none are the library's own choice."""

    min_version: str = TLS_1_2
    cipher_suites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """By a Lease. An empty namespace is that of our pod."""

    enabled: bool = False
    name: str = "6d4f6a47.jobset.x-k8s.io"
    namespace: str = ""
    lease_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class Certificates:
    """Of the webhooks, made by the controller itself: for that Service, kept in that Secret of our namespace."""

    service: str = "jobset-webhook-service"
    secret: str = "jobset-webhook-server-cert"  # noqa: S105 it is a name


@dataclass(frozen=True, slots=True)
class Webhooks:
    """`certificates` is a directory with tls.crt and tls.key; None: those that we make (Options.certificates)."""

    address: Address
    certificates: Path | None
    tls: Tls = Tls()


@dataclass(frozen=True, slots=True)
class Metrics:
    """`certificates` is a directory with tls.crt and tls.key; None: a certificate that we make and sign ourselves.

    `is_secure` False is plain HTTP without a question of who asks, on a loopback address only.
    """

    address: Address
    certificates: Path | None = None
    is_secure: bool = True
    tls: Tls = Tls()

    def __post_init__(self) -> None:
        if not self.is_secure and self.address.host not in LOOPBACK:
            raise UsageError(
                f"--metrics-bind-address {self.address}: anybody could read it without --metrics-secure",
                hint=f"insecure metrics are for one machine: bind to 127.0.0.1:{self.address.port}",
            )


@dataclass(frozen=True, slots=True)
class Options:
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    """Only this namespace; None is all of them."""
    qps: float = QPS
    burst: int = BURST
    features: Features = DEFAULTS
    concurrent_reconciles: int = CONCURRENT_RECONCILES
    health_address: Address | None = Address("", 8081)
    """None: no health endpoint."""
    liveness_endpoint: str = "healthz"
    readiness_endpoint: str = "readyz"
    leader_election: LeaderElection = LeaderElection()
    certificates: Certificates = Certificates()
    webhooks: Webhooks | None = None
    metrics: Metrics | None = None
    """None: metrics are not served."""
    dry_runs_job_templates: bool = True
    """Where webhooks are served: a JobSet is admitted once the API server would take its Jobs."""
    defers_suspended: bool = False
    """A JobSet that is suspended from the start has no Jobs before its first resume."""
    log_level: str = "info"
    log_format: str = "text"
    log_time_format: str = TIME_FORMATS[0]
    log_stack_traces: bool = True

    def __post_init__(self) -> None:
        if self.concurrent_reconciles < 1:
            raise UsageError(f"--concurrent-reconciles {self.concurrent_reconciles}: must be at least 1")
        if not self.qps > 0:
            raise UsageError(f"--kube-api-qps {self.qps:g}: must be above 0")
        if self.burst < 1:
            raise UsageError(f"--kube-api-burst {self.burst}: must be at least 1")
        if self.log_format not in LOG_FORMATS:
            raise UsageError(f"--log-format {self.log_format!r}: must be one of {', '.join(LOG_FORMATS)}")
        if self.log_time_format not in TIME_FORMATS:
            raise UsageError(f"--zap-time-encoding {self.log_time_format!r}: must be one of {', '.join(TIME_FORMATS)}")


def address(text: str, flag: str) -> Address | None:
    """`:8081`, `127.0.0.1:8081`, `[::1]:8081`; `0` or nothing is None."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{flag} {text!r}: expected HOST:PORT", hint="for example :8081, or 0 to switch it off")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def metrics(bind_address: str, cert_dir: str = "", *, is_secure: bool = True) -> Metrics | None:
    where = address(bind_address, "--metrics-bind-address")
    return None if where is None else Metrics(where, Path(cert_dir) if cert_dir else None, is_secure)


def log_format(encoder: str, own: str, *, is_devel: bool | None) -> str:
    """From --zap-encoder and --log-format, which say the same, and --zap-devel, which has a default for it."""
    if encoder and encoder not in ENCODERS:
        raise UsageError(f"--zap-encoder {encoder!r}: must be {' or '.join(ENCODERS)}")
    if encoder and own and ENCODERS[encoder] != own:
        raise UsageError(
            f"--zap-encoder {encoder} and --log-format {own} contradict each other", hint="give one of them"
        )
    return own or (ENCODERS[encoder] if encoder else "json" if is_devel is False else "text")


def has_stack_traces(level: str) -> bool:
    """Our tracebacks are those of bugs, which are errors."""
    if level not in STACK_TRACE_LEVELS:
        raise UsageError(f"--zap-stacktrace-level {level!r}: must be one of {', '.join(STACK_TRACE_LEVELS)}")
    return level != "panic"


def boolean(text: str, flag: str) -> bool:
    """`--flag=false`, as the original controller's flags are written."""
    if text not in ("true", "false"):
        raise UsageError(f"{flag} {text!r}: must be true or false")
    return text == "true"


def klog_level(verbosity: int, *, is_devel: bool | None) -> str:
    """Where no level is named. Kubernetes' own components say at 2 what operators read, and from 4 on what they do."""
    return "debug" if is_devel or verbosity >= KLOG_DEBUG else "info"


def log_level(text: str) -> str:
    """A level's name, or the original controller's number: 0 is info, above is more."""
    if text.isdecimal():
        return "debug" if int(text) > 0 else "info"
    text = LEVELS_OF_ZAP.get(text, text)
    if text not in LOG_LEVELS:
        raise UsageError(f"--zap-log-level {text!r}: must be one of {', '.join(LOG_LEVELS)} or a number")
    return text
