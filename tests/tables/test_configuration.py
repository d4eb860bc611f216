"""The Configuration: strict, all problems at once, flag over file over default; the options it makes; its docs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pyjobset.cli.main import main
from pyjobset.controller import manager
from pyjobset.controller.configuration import Configuration, fields, manifest
from pyjobset.controller.configured import options, parse, with_flags
from pyjobset.controller.options import Address, Certificates, LeaderElection, Metrics, Options, Tls, Webhooks
from pyjobset.errors import InvalidSpec, UsageError
from pyjobset.objects import features as gates
from tests.manifests import ABSENT, edited, seen

ROOT = Path(__file__).parents[2]
HEAD = {"apiVersion": "config.jobset.x-k8s.io/v1alpha1", "kind": "Configuration"}
GCM, CHACHA = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"

Run = Callable[..., Options]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """`run(configuration, *flags)` are the options with which the controller would start."""
    given: list[Options] = []
    monkeypatch.setattr(manager, "main", given.append)

    def run(content: Any, *flags: str) -> Options:
        file = tmp_path / "config.yaml"
        file.write_text(content if isinstance(content, str) else yaml.safe_dump(HEAD | content))
        assert main(["controller", "--config", str(file), *flags]) == 0
        return given.pop()

    return run


def problems(edits: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSpec) as caught:
        parse(edited(HEAD, edits), "config.yaml")
    return seen(caught.value.problems)


# Fields


def test_without_fields_it_is_the_default() -> None:
    assert parse(HEAD, "f") == Configuration()
    assert parse(HEAD | {"webhook": None, "featureGates": None}, "f") == Configuration()
    assert options(Configuration()) == Options(metrics=Metrics(Address("", 8443)))


def test_what_is_printed_can_be_read_again() -> None:
    changed = parse(edited(HEAD, {"tls.cipherSuites": [GCM], "featureGates.ElasticJobSet": True}), "f")
    for configuration in (Configuration(), changed):
        assert parse(json.loads(json.dumps(manifest(configuration))), "f") == configuration


MOUNTED = Path("/tmp/k8s-webhook-server/serving-certs")


@pytest.mark.parametrize(
    ("enable", "cert_dir", "in_a_pod", "elsewhere"),
    [
        (None, "", "internal", None),
        (None, "/certs", Path("/certs"), Path("/certs")),
        (True, "", "internal", "internal"),
        (True, "/certs", "internal", "internal"),
        (False, "", MOUNTED, None),
        (False, "/certs", Path("/certs"), Path("/certs")),
    ],
)
def test_where_certificates_of_webhooks_come_from(enable: Any, cert_dir: str, in_a_pod: Any, elsewhere: Any) -> None:
    content = {"webhook": {"certDir": cert_dir}, "internalCertManagement": {"enable": enable}}
    read = parse(HEAD | content, "f")
    for is_in_pod, expected in ((True, in_a_pod), (False, elsewhere)):
        webhooks = options(read, is_in_pod=is_in_pod).webhooks
        assert (webhooks and (webhooks.certificates or "internal")) == expected
        assert options(read, is_in_pod=is_in_pod, wants_webhooks=False).webhooks is None
        if expected is None:
            with pytest.raises(UsageError, match="--webhook-cert-dir"):
                options(read, is_in_pod=is_in_pod, wants_webhooks=True)
    flag = with_flags(read, {"--webhook-cert-dir": "/flag"})
    assert options(flag, is_in_pod=True).webhooks == Webhooks(Address("", 9443), Path("/flag"))


def test_every_field_reaches_the_options(run: Run) -> None:
    made = run(
        {
            "webhook": {"port": 1, "host": "127.0.0.1", "certDir": "/certs"},
            "leaderElection": {
                "leaderElect": False,
                "resourceName": "lease",
                "resourceNamespace": "ns",
                "resourceLock": "leases",
                "leaseDuration": "1m",
                "renewDeadline": "1.5s",
                "retryPeriod": "500ms",
            },
            "metrics": {"bindAddress": "127.0.0.1:2", "certDir": "/metrics"},
            "health": {
                "healthProbeBindAddress": ":3",
                "readinessEndpointName": "ready",
                "livenessEndpointName": "alive",
            },
            "tls": {"minVersion": "VersionTLS12", "cipherSuites": [GCM]},
            "internalCertManagement": {"enable": False, "webhookServiceName": "s", "webhookSecretName": "c"},
            "clientConnection": {"qps": 4, "burst": 5},
            "featureGates": {"ElasticJobSet": True},
            "admission": {"dryRunJobTemplates": False},
            "suspendedJobs": "Defer",
        }
    )
    tls = Tls("VersionTLS12", (GCM,))
    assert made == Options(
        webhooks=Webhooks(Address("127.0.0.1", 1), Path("/certs"), tls),
        leader_election=LeaderElection(False, "lease", "ns", 60.0, 1.5, 0.5),
        metrics=Metrics(Address("127.0.0.1", 2), Path("/metrics"), tls=tls),
        health_address=Address("", 3),
        readiness_endpoint="ready",
        liveness_endpoint="alive",
        certificates=Certificates("s", "c"),
        qps=4.0,
        burst=5,
        features=gates.resolve({gates.ELASTIC_JOBSET: True}),
        dry_runs_job_templates=False,
        defers_suspended=True,
    )


@pytest.mark.parametrize(
    ("path", "wrong", "code"),
    [
        ("webhook.port", "9443", "wrong-type"),
        ("webhook.port", 65536, "configuration-value"),
        ("webhook.host", 5, "wrong-type"),
        ("leaderElection", [], "wrong-type"),
        ("leaderElection.resourceLock", "configmaps", "unsupported-value"),
        ("leaderElection.resourceName", "A_b", "configuration-value"),
        ("leaderElection.resourceNamespace", "a.b", "configuration-value"),
        ("leaderElection.leaseDuration", 15, "wrong-type"),
        ("leaderElection.leaseDuration", "15", "configuration-value"),
        ("leaderElection.leaseDuration", "-15s", "configuration-value"),
        ("leaderElection.leaseDuration", "0s", "configuration-value"),
        ("leaderElection.leaseDuration", "9" * 400 + "s", "configuration-value"),
        ("leaderElection.leaseDuration", "10s", "configuration-value"),
        ("leaderElection.renewDeadline", "2.4s", "configuration-value"),
        ("metrics.bindAddress", "8443", "configuration-value"),
        ("health.healthProbeBindAddress", ":x", "configuration-value"),
        ("health.readinessEndpointName", "a/b", "configuration-value"),
        ("health.livenessEndpointName", "readyz", "configuration-value"),
        ("tls.minVersion", "VersionTLS11", "unsupported-value"),
        ("tls.cipherSuites[0]", "ECDHE-RSA-AES128-GCM-SHA256", "configuration-value"),
        ("tls.cipherSuites[0]", "TLS_RSA_WITH_RC4_128_SHA", "configuration-value"),
        ("internalCertManagement.webhookServiceName", "1a", "configuration-value"),
        ("internalCertManagement.webhookSecretName", "A", "configuration-value"),
        ("clientConnection.qps", "500", "wrong-type"),
        ("clientConnection.qps", True, "wrong-type"),
        ("clientConnection.qps", 0, "configuration-value"),
        ("clientConnection.qps", float("inf"), "wrong-type"),
        ("clientConnection.burst", 1.5, "wrong-type"),
        ("clientConnection.burst", 0, "configuration-value"),
        ("featureGates.InPlaceRestart", "true", "wrong-type"),
        ("featureGates.InPlaceRestarts", True, "configuration-value"),
        ("featureGates.TLSOptions", False, "configuration-value"),
        ("admission.dryRunJobTemplates", "yes", "wrong-type"),
        ("suspendedJobs", "create", "unsupported-value"),
        ("apiVersion", "config.jobset.x-k8s.io/v1", "unsupported-value"),
        ("apiVersion", ABSENT, "required-field"),
        ("kind", "JobSet", "unsupported-value"),
        ("webhooks", {}, "unknown-field"),
        ("webhook.certdir", "/x", "unknown-field"),
    ],
)
def test_a_wrong_value_is_told_with_its_path(path: str, wrong: Any, code: str) -> None:
    edits = {"tls.cipherSuites": [], path: wrong} if path.startswith("tls.c") else {path: wrong}
    assert problems(edits) == [(code, path)]


@pytest.mark.parametrize("value", ["15s", "1m30s", "1.5h", ".5h", "90000ms", "1h0m0.5s", "20000000µs"])
def test_durations_are_those_of_go(value: str) -> None:
    assert parse(edited(HEAD, {"leaderElection.leaseDuration": value}), "f").leader_election.lease_duration == value


def test_cipher_suites_are_not_for_tls_1_3() -> None:
    edits = {"tls.cipherSuites": [GCM], "tls.minVersion": "VersionTLS13"}
    assert problems(edits) == [("configuration-value", "tls.cipherSuites")]
    assert parse(edited(HEAD, {"tls.minVersion": "VersionTLS13"}), "f")
    assert parse(edited(HEAD, {"tls.cipherSuites": [GCM, CHACHA, "TLS_AES_128_GCM_SHA256"]}), "f")


def test_all_problems_come_at_once_whatever_their_kind() -> None:
    edits = {
        "apiVersion": "v1",
        "metrics": 5,
        "bindAddress": ":1",
        "webhook": {"port": "x", "cert": "/x"},
        "clientConnection": {"qps": 0, "burst": "1"},
        "tls.cipherSuites": ["TLS_FOO", 5, GCM],
        "featureGates": {"Nonsense": True, "ElasticJobSet": 1},
    }
    assert set(problems(edits)) == {
        ("unsupported-value", "apiVersion"),
        ("wrong-type", "metrics"),
        ("unknown-field", "bindAddress"),
        ("wrong-type", "webhook.port"),
        ("unknown-field", "webhook.cert"),
        ("configuration-value", "clientConnection.qps"),
        ("wrong-type", "clientConnection.burst"),
        ("configuration-value", "tls.cipherSuites[0]"),
        ("wrong-type", "tls.cipherSuites[1]"),
        ("configuration-value", "featureGates.Nonsense"),
        ("wrong-type", "featureGates.ElasticJobSet"),
    }


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("bindAddress", "it is a field of metrics"),
        ("leaderElections", "did you mean leaderElection?"),
        ("suspendedJobSets", "did you mean suspendedJobs?"),
    ],
)
def test_an_unknown_key_has_the_one_that_was_meant(key: str, hint: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse(HEAD | {key: True}, "f")
    assert [problem.hint for problem in caught.value.problems] == [hint]


def test_of_another_object_only_that_is_said() -> None:
    other = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {}, "spec": {}}
    with pytest.raises(InvalidSpec) as caught:
        parse(other, "f")
    assert [problem.path for problem in caught.value.problems] == ["apiVersion", "kind"]


@pytest.mark.parametrize("value", [None, [], "text", 5, {}, {"kind": []}, HEAD | {"tls": {"cipherSuites": [[[]]]}}])
def test_anything_else_is_refused_and_no_bug(value: Any) -> None:
    with pytest.raises(InvalidSpec):
        parse(value, "f")


# The file


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("", 2, "no objects in"),
        ("kind: Configuration\nkind: Configuration\n", 3, "key 'kind' appears twice"),
        ("apiVersion: a\nkind: b\n---\napiVersion: c\nkind: d\n", 2, "has 2 documents: b, d"),
        ("kind: Configuration\n", 3, "begin with apiVersion: config.jobset.x-k8s.io/v1alpha1"),
        ("- 1\n", 3, "expected an object, found a list"),
        ("a: *b\n", 3, "alias"),
        ("a: !!python/object:os.system x\n", 3, "unknown tag"),
    ],
)
def test_a_file_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, said: str
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    assert main(["controller", "--config", str(file)]) == code
    assert said in capsys.readouterr().err


def test_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["controller", "--config", "/no/such/file"]) == 2
    assert "/no/such/file" in capsys.readouterr().err


# Flags


def test_a_flag_goes_before_the_file_and_the_file_before_the_default(run: Run) -> None:
    file = {"clientConnection": {"qps": 7}, "featureGates": {"ElasticJobSet": True, "RestartJob": True}}
    made = run(file, "--kube-api-burst", "9", "--feature-gates", "RestartJob=false,InPlaceRestart=true")
    assert (made.qps, made.burst) == (7.0, 9)
    assert made.features == gates.resolve({gates.ELASTIC_JOBSET: True, gates.IN_PLACE_RESTART: True})
    assert run(file, "--kube-api-qps", "500").qps == 500.0, "given, also where it is the default"


def test_webhook_flags_go_before_the_file(run: Run) -> None:
    file = {"webhook": {"certDir": "/file", "port": 5}}
    assert run(file).webhooks == Webhooks(Address("", 5), Path("/file"))
    address = run(file, "--webhook-bind-address", "[::1]:6").webhooks
    assert address == Webhooks(Address("::1", 6), Path("/file"))
    assert run(file, "--webhook-cert-dir", "/flag").webhooks == Webhooks(Address("", 5), Path("/flag"))
    assert run(file, "--webhook-bind-address", "0").webhooks is None


def test_addresses_may_be_switched_off(run: Run) -> None:
    made = run({"metrics": {"bindAddress": "0"}, "health": {"healthProbeBindAddress": "0"}})
    assert (made.metrics, made.health_address) == (None, None)


@pytest.mark.parametrize(
    "flags",
    [
        {"--kube-api-qps": 0.0},
        {"--kube-api-qps": float("inf")},
        {"--kube-api-qps": float("nan")},
        {"--kube-api-burst": -1},
        {"--metrics-bind-address": "8443"},
        {"--health-probe-bind-address": "x"},
        {"--webhook-bind-address": "x"},
    ],
    ids=str,
)
def test_a_wrong_flag_is_named(flags: dict[str, Any]) -> None:
    (flag,) = flags
    with pytest.raises(UsageError, match=f"^{flag} "):
        with_flags(Configuration(), flags)


@pytest.mark.parametrize(
    ("content", "flags", "expected"),
    [
        ({}, [], (False, "")),
        ({"leaderElection": {"leaderElect": True}}, [], (True, "")),
        ({"leaderElection": {"leaderElect": True}}, ["--leader-elect=false"], (False, "")),
        ({}, ["--leader-elect"], (True, "")),
        ({}, ["--leader-elect=true", "--leader-election-namespace", "ns"], (True, "ns")),
        ({"leaderElection": {"resourceNamespace": "a"}}, ["--leader-election-namespace=b"], (False, "b")),
    ],
)
def test_leaders_are_elected_where_file_or_flag_says_so(
    run: Run, content: Any, flags: list[str], expected: tuple[bool, str]
) -> None:
    election = run(content, *flags).leader_election
    assert (election.enabled, election.namespace) == expected


def test_print_config_shows_what_would_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.json"
    file.write_text(json.dumps(HEAD | {"suspendedJobs": "Defer"}))
    assert main(["controller", "--config", str(file), "--print-config", "--kube-api-burst=3"]) == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert parse(printed, "f") == parse(edited(HEAD, {"suspendedJobs": "Defer", "clientConnection.burst": 3}), "f")


# What is written of it


def test_the_example_has_every_field_with_its_default() -> None:
    example = yaml.safe_load((ROOT / "deploy/manager/controller_manager_config.yaml").read_text())
    assert example == manifest(Configuration())
    assert parse(example, "f") == Configuration()


def test_every_flag_of_a_field_is_one_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["controller", "--help"]) == 0
    shown = capsys.readouterr().out
    flags = {meta.extra["flag"] for _, meta, _ in fields() if meta.extra and meta.extra["flag"]}
    assert len(flags) == 9
    assert [flag for flag in flags if f"{flag} " not in shown and f"{flag}/" not in shown] == []
