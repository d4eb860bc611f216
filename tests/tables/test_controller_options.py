"""The controller's flags: what is accepted, what is refused and how it is told; the command's hand-over."""

from pathlib import Path

import pytest

from pyjobset.cli.main import main
from pyjobset.controller import manager
from pyjobset.controller.options import (
    Address,
    Metrics,
    Options,
    Webhooks,
    address,
    boolean,
    has_stack_traces,
    log_format,
    log_level,
    metrics,
)
from pyjobset.errors import UsageError
from pyjobset.objects import features as gates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8081", Address("", 8081)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:8081", Address("::1", 8081)),
        ("localhost:1", Address("localhost", 1)),
        ("0", None),
        ("", None),
    ],
)
def test_addresses(text: str, expected: Address | None) -> None:
    assert address(text, "--flag") == expected


@pytest.mark.parametrize("text", ["8081", "host:", "host:port", ":65536", ":-1", ":²"])
def test_a_wrong_address_names_the_flag_and_the_value(text: str) -> None:
    with pytest.raises(UsageError, match="--flag") as caught:
        address(text, "--flag")
    assert repr(text) in caught.value.message


@pytest.mark.parametrize(
    ("text", "expected"), [("debug", "debug"), ("error", "error"), ("0", "info"), ("1", "debug"), ("5", "debug")]
)
def test_log_levels(text: str, expected: str) -> None:
    assert log_level(text) == expected


@pytest.mark.parametrize(
    ("encoder", "own", "is_devel", "expected"),
    [
        ("", "", None, "text"),
        ("json", "", None, "json"),
        ("console", "", False, "text"),
        ("", "json", True, "json"),
        ("", "", False, "json"),
        ("", "", True, "text"),
        ("json", "json", None, "json"),
    ],
)
def test_log_formats(encoder: str, own: str, is_devel: bool | None, expected: str) -> None:
    assert log_format(encoder, own, is_devel=is_devel) == expected


@pytest.mark.parametrize(("encoder", "own"), [("xml", ""), ("json", "text")])
def test_a_wrong_encoder(encoder: str, own: str) -> None:
    with pytest.raises(UsageError, match=f"--zap-encoder .*{encoder}"):
        log_format(encoder, own, is_devel=None)


def test_stack_traces() -> None:
    assert [has_stack_traces(level) for level in ("info", "error", "panic")] == [True, True, False]
    with pytest.raises(UsageError, match="--zap-stacktrace-level 'x'"):
        has_stack_traces("x")


@pytest.mark.parametrize(
    ("flags", "level", "form"),
    [
        ([], "info", "text"),
        (["--zap-devel"], "debug", "text"),
        (["--zap-devel=true", "--zap-log-level=error"], "error", "text"),
        (["--zap-devel=false"], "info", "json"),
        (["--zap-log-level=panic"], "error", "text"),
    ],
)
def test_the_flags_of_zap(monkeypatch: pytest.MonkeyPatch, flags: list[str], level: str, form: str) -> None:
    given: list[Options] = []
    monkeypatch.setattr(manager, "main", given.append)
    more = ["--zap-time-encoding=epoch", "--zap-stacktrace-level=panic"]
    assert main(["controller", *flags, *more]) == 0
    (options,) = given
    assert (options.log_level, options.log_format) == (level, form)
    assert (options.log_time_format, options.log_stack_traces) == ("epoch", False)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], "info"),
        (["--v=2"], "info"),
        (["--v", "4"], "debug"),
        (["--v=9", "--zap-log-level=error"], "error"),
        (["--v=0", "--zap-devel"], "debug"),
    ],
)
def test_verbosity_is_that_of_klog(monkeypatch: pytest.MonkeyPatch, flags: list[str], expected: str) -> None:
    started: list[Options] = []
    monkeypatch.setattr(manager, "main", started.append)
    assert main(["controller", *flags]) == 0
    assert [options.log_level for options in started] == [expected]


def test_a_wrong_log_level() -> None:
    with pytest.raises(UsageError, match="loud"):
        log_level("loud")


@pytest.mark.parametrize(
    ("wrong", "flag"),
    [
        ({"concurrent_reconciles": 0}, "--concurrent-reconciles"),
        ({"qps": 0.0}, "--kube-api-qps"),
        ({"qps": float("nan")}, "--kube-api-qps"),
        ({"burst": 0}, "--kube-api-burst"),
        ({"log_format": "xml"}, "--log-format"),
        ({"log_time_format": "local"}, "--zap-time-encoding"),
    ],
)
def test_wrong_options_name_the_flag(wrong: dict[str, object], flag: str) -> None:
    with pytest.raises(UsageError, match=flag):
        Options(**wrong)  # type: ignore[arg-type]


def test_webhooks_need_a_certificate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    given: list[Options] = []
    monkeypatch.setattr(manager, "main", given.append)
    for flags in (["--webhook-cert-dir=/certs"], ["--webhook-cert-dir=/certs", "--webhook-bind-address=0"], []):
        assert main(["controller", *flags]) == 0
    assert [options.webhooks for options in given] == [Webhooks(Address("", 9443), Path("/certs")), None, None]
    assert main(["controller", "--webhook-bind-address", ":9443"]) == 2
    assert "--webhook-bind-address needs --webhook-cert-dir" in capsys.readouterr().err


def test_metrics_without_a_question_stay_on_the_machine() -> None:
    assert metrics(":8443") == Metrics(Address("", 8443))
    assert metrics("127.0.0.1:1", "/certs", is_secure=False) == Metrics(Address("127.0.0.1", 1), Path("/certs"), False)
    assert metrics("0", is_secure=False) is None
    with pytest.raises(UsageError, match=r"^--metrics-bind-address :8443: .* --metrics-secure"):
        metrics(":8443", is_secure=False)


def test_booleans() -> None:
    assert boolean("true", "--flag")
    assert not boolean("false", "--flag")
    with pytest.raises(UsageError, match=r"^--flag 'yes': must be true or false"):
        boolean("yes", "--flag")


def test_the_command_hands_its_flags_over(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Options] = []
    monkeypatch.setattr(manager, "main", given.append)
    flags = (
        "--kubeconfig /k --context c --namespace ns --feature-gates JobSetWorkloadAwareSchedulingAPI=true "
        "--concurrent-reconciles 3 --kube-api-qps 7 --kube-api-burst 8 --health-probe-bind-address 127.0.0.1:9 "
        "--webhook-bind-address 127.0.0.1:10 --webhook-cert-dir /certs "
        "--metrics-bind-address 127.0.0.1:11 --metrics-secure false --zap-log-level 1 --log-format json"
    )
    assert main(["controller", *flags.split()]) == 0
    assert given == [
        Options(
            kubeconfig="/k",
            context="c",
            namespace="ns",
            features=gates.resolve({gates.WORKLOAD_AWARE_SCHEDULING: True}),
            concurrent_reconciles=3,
            qps=7.0,
            burst=8,
            health_address=Address("127.0.0.1", 9),
            webhooks=Webhooks(Address("127.0.0.1", 10), Path("/certs")),
            metrics=Metrics(Address("127.0.0.1", 11), None, False),
            log_level="debug",
            log_format="json",
        )
    ]


def test_without_flags_it_runs_like_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Options] = []
    monkeypatch.setattr(manager, "main", given.append)
    assert main(["controller"]) == 0
    assert given == [Options(metrics=Metrics(Address("", 8443)))]
    assert (given[0].qps, given[0].burst, given[0].health_address) == (500.0, 500, Address("", 8081))
