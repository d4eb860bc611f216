"""The bench without a plane: what it asks for, what it reads from the API server and /proc, and how it reports."""

import io
import os
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench import measure, metrics, report, run, workloads
from bench.measure import Command, Usage
from bench.metrics import Call
from bench.progress import Progress
from bench.trial import Loop, Start, Trial
from bench.workloads import Workload
from pyjobset.errors import UsageError

METRICS = """\
# HELP apiserver_request_total Counter of requests
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",group="batch",resource="jobs",subresource="",verb="POST",version="v1"} 1000
apiserver_request_total{code="201",group="batch",resource="jobs",subresource="",verb="POST",version="v2"} 2
apiserver_request_total{code="409",group="batch",resource="jobs",subresource="",verb="POST",version="v1"} 1e+01
apiserver_request_total{code="200",group="x",resource="jobsets",subresource="status",verb="PATCH",version="v1"} 3
apiserver_request_total{code="200",group="y",resource="leases",subresource="",verb="PUT",version="v1"} 7
apiserver_request_total_other{code="200",resource="jobs",subresource="",verb="POST"} 9
apiserver_request_duration_seconds_bucket{resource="jobs",subresource="",verb="POST",le="0.05"} 5
"""
POSTED = Call("POST", "jobs", "", "201")
WROTE_STATUS = Call("PATCH", "jobsets", "status", "200")
START = Start(ready_seconds=0.5, cpu_seconds=0.3, rss_peak_mib=44.0)
WORK = Workload("b", "one JobSet of 10 Jobs", 1, 1, 10, cpu_ratio_target=0.18, loop_ratio_target=1.15)


def trial(**changes: Any) -> Trial:
    values: dict[str, Any] = {
        "workload": WORK,
        "plane": "bare",
        "controller": "pyjobset",
        "start": START,
        "objects": 11,
        "seconds": 2.0,
        "cpu_seconds": 1.0,
        "api_cpu_seconds": 4.0,
        "rss_peak_mib": 60.4,
        "calls": Counter({POSTED: 11, WROTE_STATUS: 2, Call("POST", "jobsets", "", "201"): 1}),
        "quiet_calls": Counter(),
        "loop": Loop(seconds=1.6, cpu_seconds=0.5, api_cpu_seconds=5.0),
        **changes,
    }
    return Trial(**values)


def rows(text: str, header: str) -> list[list[str]]:
    """The cells of the table that has this header."""
    tables = [block.splitlines() for block in text.split("\n\n")]
    lines = next(lines for lines in tables if header in lines[0])
    return [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in lines[1:]]


def test_requests_are_counted_for_the_resources_of_a_jobset() -> None:
    calls = metrics.parse(METRICS)
    assert calls == {POSTED: 1002, Call("POST", "jobs", "", "409"): 10, WROTE_STATUS: 3}
    assert metrics.total(calls) == 1015
    assert metrics.total(calls, "POST") == 1012
    assert metrics.total(calls, code="409") == 10
    assert metrics.total(calls, "PATCH", "PUT", subresource="status") == 3
    assert str(WROTE_STATUS) == "PATCH jobsets/status 200"


def test_works_say_what_must_come_of_them() -> None:
    works = {work.name: work for work in workloads.standard()}
    assert works["a"].expected() == {"Job": 800, "Service": 200}
    assert works["b"].expected() == {"Job": 1000, "Service": 1}
    assert works["d"].expected() == {"Workload": 200, "PodGroup": 200, "Job": 800, "Service": 200}
    assert works["c"].jobs == works["c2"].jobs == 500


@pytest.mark.parametrize("work", workloads.standard(0.02), ids=lambda work: work.name)
def test_the_loop_writes_what_the_controller_writes(work: Workload) -> None:
    children = work.children("loop")
    assert Counter(child["kind"] for child in children) == work.expected()
    assert {child["metadata"]["namespace"] for child in children} == {"loop"}
    assert len({(child["kind"], child["metadata"]["name"]) for child in children}) == len(children)


def test_usage_is_that_of_the_process() -> None:
    usage = Usage.of(os.getpid())
    times = os.times()
    assert 0 < usage.cpu_seconds <= times.user + times.system + 0.02
    assert usage.rss_peak_mib > 5
    assert measure.rss_peak_kib("Name:\tx\nVmPeak:\t  9000 kB\nVmHWM:\t   4321 kB\n") == 4321


def test_the_report_has_minimum_and_median_and_what_is_wanted() -> None:
    trials = [trial(seconds=s, cpu_seconds=c) for s, c in ((2.0, 1.0), (3.0, 2.0), (9.0, 0.4))]
    text = report.text(trials, {"jobset plan": [Command(0.2, 0.1), Command(0.4, 0.1)]})
    assert rows(text, "TIME s") == [
        ["b", "bare", "pyjobset", "2.00 / 3.00", "0.40 / 1.00", "60 / 60", "4.00 / 4.00", "0.25 (0.18)"]
    ]
    assert rows(text, "LOOP TIME s")[0][3:] == ["1.60 / 1.60", "0.50 / 0.50", "0.10", "1.88 (1.15)", "2.00"]
    assert rows(text, "WALL s") == [["jobset plan", "0.20 / 0.30", "0.10 / 0.10", "0.30"]]


def test_the_report_counts_requests_of_the_worst_run() -> None:
    conflict, read = Call("POST", "jobs", "", "409"), Call("GET", "jobs", "", "200")
    worse = Counter({POSTED: 11, conflict: 3, read: 2, WROTE_STATUS: 5, Call("POST", "jobsets", "", "201"): 1})
    text = report.text([trial(), trial(calls=worse, quiet_calls=Counter({read: 4}))], {})
    assert rows(text, "POSTS")[0][3:] == ["11", "14", "3", "5", "5.00 (2)", "2", "4"]


def test_controllers_and_planes_are_rows_of_their_own_and_have_no_empty_tables() -> None:
    full = trial(plane="full", loop=None)
    text = report.text([trial(), trial(controller="other"), full, trial()], {})
    assert [row[1:3] for row in rows(text, "TIME s")] == [
        ["bare", "pyjobset"],
        ["bare", "other"],
        ["full", "pyjobset"],
    ]
    assert [row[1:3] for row in rows(text, "LOOP TIME s")] == [["bare", "pyjobset"], ["bare", "other"]]
    assert "LOOP TIME" not in report.text([full], {})
    assert "CPU GROWTH" not in text
    assert "WALL" not in text


def test_ten_times_the_jobs_are_compared_by_cpu() -> None:
    small = trial(workload=workloads.many_jobs("n", 100), cpu_seconds=0.5)
    big = trial(workload=workloads.many_jobs("10n", 1000), cpu_seconds=5.5, restart=START)
    text = report.text([small, big], {})
    assert rows(text, "CPU GROWTH") == [["pyjobset", "100 -> 1,000", "11.0 (12)"]]
    assert [row[3] for row in rows(text, "READY s")] == ["empty", "empty", "among its objects"]


def test_too_little_work_has_no_ratio() -> None:
    assert rows(report.text([trial(api_cpu_seconds=0.0)], {}), "TIME s")[0][-1] == report.NONE


def test_the_json_report_has_every_run() -> None:
    data = msgspec.json.decode(msgspec.json.encode(report.data([trial(), trial()], run.machine(), {})))
    assert len(data["trials"]) == 2
    first = data["trials"][0]
    assert first["requests"] == {"PATCH jobsets/status 200": 2, "POST jobs 201": 11, "POST jobsets 201": 1}
    assert (first["cpuRatio"], first["loopRatio"], first["workload"]["name"]) == (0.25, 1.25, "b")
    assert first["loop"] == {"seconds": 1.6, "cpu_seconds": 0.5, "api_cpu_seconds": 5.0}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("", ["a", "b", "c", "c2", "d"]),
        ("d b", ["d", "b"]),
        ("--scaling", ["n", "10n"]),
        ("--cache", ["10n"]),
        ("a --cache", ["a", "10n"]),
    ],
)
def test_works_are_chosen_by_name(line: str, names: list[str]) -> None:
    assert [work.name for work in run.chosen_works(run.arguments(line.split()))] == names


def test_an_unknown_work_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["e"]) == 2
    assert "there is no work 'e'" in (error := capsys.readouterr().err)
    assert "choose of a, b, c, c2, d" in error


def test_another_controller_gets_its_flags(tmp_path: Path) -> None:
    binary = tmp_path / "manager"
    binary.touch(mode=0o755)
    program = measure.foreign(binary, "--kubeconfig={kubeconfig} --probe={health} --x='a b'")
    filled = program.arguments(Path("/k"), "127.0.0.1:1", "run")
    assert filled == [str(binary), "--kubeconfig=/k", "--probe=127.0.0.1:1", "--x=a b"]
    with pytest.raises(UsageError, match="not a program"):
        measure.foreign(tmp_path / "none")


def test_steps_are_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with Progress(2, stream) as progress:
        progress.step("one")
        progress.step("two")
    assert stream.getvalue() == "[1/2] one\n[2/2] two\n"
