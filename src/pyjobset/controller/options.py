"""How the controller runs: every flag of `jobset controller` as one frozen value. Made by cli.controller.

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
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. An empty host is every interface, port 0 any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Webhooks:
    """`certificates` is a directory with tls.crt and tls.key."""

    address: Address
    certificates: Path


@dataclass(frozen=True, slots=True)
class Metrics:
    """`certificates` is a directory with tls.crt and tls.key; None: a certificate that we make and sign ourselves.

    `is_secure` False is plain HTTP without a question of who asks, on a loopback address only.
    """

    address: Address
    certificates: Path | None = None
    is_secure: bool = True

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
    webhooks: Webhooks | None = None
    metrics: Metrics | None = None
    """None: metrics are not served."""
    dry_runs_job_templates: bool = True
    """Where webhooks are served: a JobSet is admitted once the API server would take its Jobs."""
    defers_suspended: bool = False
    """A JobSet that is suspended from the start has no Jobs before its first resume."""
    log_level: str = "info"
    log_format: str = "text"

    def __post_init__(self) -> None:
        if self.concurrent_reconciles < 1:
            raise UsageError(f"--concurrent-reconciles {self.concurrent_reconciles}: must be at least 1")
        if not self.qps > 0:
            raise UsageError(f"--kube-api-qps {self.qps:g}: must be above 0")
        if self.burst < 1:
            raise UsageError(f"--kube-api-burst {self.burst}: must be at least 1")
        if self.log_format not in LOG_FORMATS:
            raise UsageError(f"--log-format {self.log_format!r}: must be one of {', '.join(LOG_FORMATS)}")


def address(text: str, flag: str) -> Address | None:
    """`:8081`, `127.0.0.1:8081`, `[::1]:8081`; `0` or nothing is None."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{flag} {text!r}: expected HOST:PORT", hint="for example :8081, or 0 to switch it off")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def webhooks(bind_address: str, cert_dir: str) -> Webhooks | None:
    """Both flags or none of them."""
    where = address(bind_address, "--webhook-bind-address")
    if where is not None and cert_dir:
        return Webhooks(where, Path(cert_dir))
    if where is not None or cert_dir:
        given, lacking = ("--webhook-bind-address", "--webhook-cert-dir")[:: 1 if where else -1]
        raise UsageError(f"{given} needs {lacking}", hint="webhooks are served over TLS only; give both, or none")
    return None


def metrics(bind_address: str, cert_dir: str = "", *, is_secure: bool = True) -> Metrics | None:
    where = address(bind_address, "--metrics-bind-address")
    return None if where is None else Metrics(where, Path(cert_dir) if cert_dir else None, is_secure)


def boolean(text: str, flag: str) -> bool:
    """`--flag=false`, as the original controller's flags are written."""
    if text not in ("true", "false"):
        raise UsageError(f"{flag} {text!r}: must be true or false")
    return text == "true"


def log_level(text: str) -> str:
    """A level's name, or the original controller's number: 0 is info, above is more."""
    if text.isdecimal():
        return "debug" if int(text) > 0 else "info"
    if text not in LOG_LEVELS:
        raise UsageError(f"--zap-log-level {text!r}: must be one of {', '.join(LOG_LEVELS)} or a number")
    return text
