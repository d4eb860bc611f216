"""Options out of a Configuration and flags: flag over file over default. Called by cli.controller.

Decoding is strict, and all problems of a file are told at once. Nothing here reads files or the environment.
"""

import dataclasses
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pyjobset.controller.configuration import DEFER, KIND, Configuration, fields
from pyjobset.controller.configuration_checks import duration_seconds, problems
from pyjobset.controller.options import (
    Address,
    Certificates,
    LeaderElection,
    Options,
    Tls,
    Webhooks,
    address,
    metrics,
)
from pyjobset.errors import InvalidSpec, UsageError
from pyjobset.objects import features
from pyjobset.rules.parse import read_as
from pyjobset.rules.rule import child


def parse(manifest: Any, source: str) -> Configuration:
    """The Configuration in a file's value. Raises InvalidSpec with everything that is wrong."""
    configuration, found = read_as(manifest, Configuration)
    paths = {problem.path for problem in found}
    if "kind" in paths:  # something else: all of it would be wrong
        raise InvalidSpec([p for p in found if p.path in ("apiVersion", "kind")], subject=f"{KIND} {source}")
    # The rest is looked at without what has the wrong type.
    rest = configuration or read_as(_without(manifest, paths), Configuration)[0]
    if rest is not None:
        found += tuple(problem for problem in problems(rest) if problem.path not in paths)
    if found:
        raise InvalidSpec(found, subject=f"{KIND} {source}")
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
    if given.get("--webhook-cert-dir"):
        own = replace(configuration.internal_cert_management, enable=False)
        configuration = replace(configuration, internal_cert_management=own)
    if "--webhook-bind-address" in given:
        configuration = _with_webhook_address(configuration, given["--webhook-bind-address"])
    if "--feature-gates" in given:
        chosen = features.chosen(given["--feature-gates"])
        features.resolve(chosen)  # says it in the words of the flag
        configuration = replace(configuration, feature_gates=configuration.feature_gates | chosen)
    for problem in problems(configuration):
        where = by_path.get(problem.path, problem.path)
        raise UsageError(f"{where} {problem.value!r}: {problem.message}", hint=problem.hint)
    return configuration


def options(
    configuration: Configuration,
    *,
    is_metrics_secure: bool = True,
    is_in_pod: bool = False,
    wants_webhooks: bool | None = None,
    **more: Any,
) -> Options:
    """`more` are the Options that no Configuration has. `wants_webhooks` None: where there are certificates for them.
    Raises UsageError."""
    election, certificates, health = (
        configuration.leader_election,
        configuration.internal_cert_management,
        configuration.health,
    )
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
            lease_seconds=duration_seconds(election.lease_duration),
            renew_deadline_seconds=duration_seconds(election.renew_deadline),
            retry_seconds=duration_seconds(election.retry_period),
        ),
        certificates=Certificates(certificates.webhook_service_name, certificates.webhook_secret_name),
        webhooks=_webhooks(configuration, restrictions, wanted=wants_webhooks, is_in_pod=is_in_pod),
        metrics=measured and dataclasses.replace(measured, tls=restrictions),
        dry_runs_job_templates=configuration.admission.dry_run_job_templates,
        defers_suspended=configuration.suspended_jobs == DEFER,
        **more,
    )


def _webhooks(
    configuration: Configuration, restrictions: Tls, *, wanted: bool | None, is_in_pod: bool
) -> Webhooks | None:
    """Certificates of our own where it says so; by default in a pod, unless there is a directory."""
    section, is_own = configuration.webhook, configuration.internal_cert_management.enable
    directory = section.cert_dir
    if is_own is None:
        is_own = is_in_pod and not directory
    elif not is_own and is_in_pod:
        directory = directory or MOUNTED
    if wanted is False or not (is_own or directory):
        if wanted:
            raise UsageError(
                "--webhook-bind-address needs --webhook-cert-dir",
                hint="webhooks are served over TLS only; give both, or internalCertManagement.enable: true in a file",
            )
        return None
    return Webhooks(Address(section.host, section.port), None if is_own else Path(directory), restrictions)


MOUNTED = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 a mount of a pod
"""Where the original controller, and installations made for it, have the certificates of somebody else."""

_COMPOSED = ("--webhook-bind-address", "--feature-gates")
"""Flags whose value is not that of one field."""


def _flags() -> Iterator[tuple[str, str, str, str]]:
    """Section and field as attributes, path, flag."""
    for path, meta, attributes in fields():
        flag = (meta.extra or {}).get("flag", "")
        if flag and len(attributes) == 2:
            yield *attributes, path, flag


def _with_webhook_address(configuration: Configuration, text: str) -> Configuration:
    where = address(text, "--webhook-bind-address")
    if where is None:
        return configuration
    return replace(configuration, webhook=replace(configuration.webhook, host=where.host, port=where.port))
