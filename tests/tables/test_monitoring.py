"""The alerts and the dashboard speak of metrics and labels that the controller has, and of no others."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pyjobset.controller.metrics import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
PROCESS = ("cpu_seconds_total", "resident_memory_bytes", "virtual_memory_bytes", "start_time_seconds", "open_fds")
OF_PROMETHEUS = {"job", "namespace", "pod", "instance", "le"}
"""Labels that a scrape adds, and that of buckets."""
WORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "bool"}

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_MATCHERS = re.compile(r"\{([^{}]*)\}")
_BY = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^()]*)\)")
_RANGE = re.compile(r"\[[^\]]*\]")
_NAME = re.compile(r"\b[a-zA-Z_][a-zA-Z0-9_]*\b(?!\s*\()")
_WORD = re.compile(r"[a-zA-Z_]\w*")


def known() -> dict[str, set[str]]:
    """Labels of every series that there is."""
    series: dict[str, set[str]] = {f"process_{name}": set() for name in PROCESS} | {"up": set()}
    for family in FAMILIES:
        ends = ("_bucket", "_sum", "_count") if family.kind == "histogram" else ("",)
        series |= {family.name + end: set(family.labels) for end in ends}
    return series


def unknown(expression: str) -> set[str]:
    """Names of metrics and labels in a query that are none of ours."""
    text = _RANGE.sub("", _STRING.sub("", expression))
    labels = {word for part in _BY.findall(text) for word in _WORD.findall(part)}
    labels |= {word for part in _MATCHERS.findall(text) for word in _WORD.findall(part)}
    names = set(_NAME.findall(_BY.sub("", _MATCHERS.sub("", text)))) - WORDS
    series = known()
    allowed = OF_PROMETHEUS.union(*(series[name] for name in names if name in series))
    return {name for name in names if name not in series} | (labels - allowed)


def alerts() -> list[Any]:
    rule = yaml.safe_load((MONITORING / "alerts.yaml").read_text())
    return [alert for group in rule["spec"]["groups"] for alert in group["rules"]]


def panels() -> Iterator[tuple[str, str]]:
    for panel in json.loads((MONITORING / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ('sum by (le) (rate(workqueue_queue_duration_seconds_bucket{name="jobset"}[5m])) > 10', set()),
        ('jobset_failed_total{jobset_name="x"} and up == 1', set()),
        ("jobset_failures_total > 0", {"jobset_failures_total"}),
        ("workqueue_queue_duration_seconds > 0", {"workqueue_queue_duration_seconds"}),
        ('workqueue_depth{queue="jobset"}', {"queue"}),
        ("sum by (webhook) (workqueue_depth)", {"webhook"}),
    ],
)
def test_unknown_names_are_found(expression: str, found: set[str]) -> None:
    assert unknown(expression) == found


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_watches_what_there_is_and_says_what_to_do(alert: Any) -> None:
    assert unknown(alert["expr"]) == set()
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert alert["annotations"].keys() == {"summary", "description"}
    texts = " ".join(alert["annotations"].values())
    shown = set(re.findall(r"\$labels\.(\w+)", texts))
    grouped = {word for part in _BY.findall(alert["expr"]) for word in _WORD.findall(part)}
    assert shown <= grouped, "a label that the sum drops cannot be shown"


@pytest.mark.parametrize(("title", "expression"), list(panels()))
def test_a_panel_shows_what_there_is(title: str, expression: str) -> None:
    assert unknown(expression.replace("$job", "x")) == set()


def test_what_there_is_is_shown() -> None:
    shown = " ".join(expression for _, expression in panels())
    names = {f.name for f in FAMILIES} - {"pyjobset_build_info", "workqueue_adds_total"}
    assert {name for name in names if name not in shown} == {"controller_runtime_reconcile_errors_total"}


def test_the_monitor_finds_the_service() -> None:
    service = yaml.safe_load((MONITORING / "service.yaml").read_text())
    monitor = yaml.safe_load((MONITORING / "service-monitor.yaml").read_text())["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["endpoints"][0]["port"] in [port["name"] for port in service["spec"]["ports"]]
    jobs = {job for alert in alerts() for job in re.findall(r'job="([^"]*)"', alert["expr"])}
    assert jobs == {service["metadata"]["name"]}, "the operator names a job after its Service"


def test_the_kustomization_has_every_file() -> None:
    made = yaml.safe_load((MONITORING / "kustomization.yaml").read_text())
    named = {*made["resources"], *(name for maps in made["configMapGenerator"] for name in maps["files"])}
    assert named == {p.name for p in MONITORING.iterdir()} - {"kustomization.yaml"}
