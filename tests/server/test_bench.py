"""What JobSets cost the API server, by the bench. Counts hold on every machine; times do not and are not looked at."""

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench import measure, run
from pyjobset.errors import PlaneError

STATUS_WRITES_MAX = 2


@pytest.mark.parametrize("work", ["a", "b", "c", "d"])
def test_requests_of_a_work(work: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--small", work, "--quiet-seconds", "2", "-o", "json"]) == 0
    trial: dict[str, Any] = msgspec.json.decode(capsys.readouterr().out)["trials"][0]
    requests = trial["requests"]
    children = ("jobs", "services", "workloads", "podgroups")
    assert sum(requests.get(f"POST {plural} 201", 0) for plural in children) == trial["objects"]
    assert [request for request in requests if request.endswith(" 409")] == []
    assert requests.get("PATCH jobsets/status 200", 0) <= STATUS_WRITES_MAX * trial["workload"]["jobsets"]
    assert trial["seconds"] > 0
    assert trial["cpu_seconds"] > 0


def test_a_controller_that_ends_shows_its_log(tmp_path: Path) -> None:
    program = measure.Program("broken", [sys.executable, "-c", "import sys; sys.exit('no such flag')"])
    with (
        pytest.raises(PlaneError, match=r"(?s)broken ended with 1\..*no such flag"),
        measure.running(program, tmp_path / "kubeconfig", tmp_path / "log"),
    ):
        pass
