"""`jobset lint`: silent when all is well, else everything that is wrong, for people and for programs."""

import copy
import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pyjobset.cli.main import main
from pyjobset.errors import InvalidSpec
from pyjobset.objects.features import WORKLOAD_AWARE_SCHEDULING, resolve
from pyjobset.rules.validation import check
from tests.cli.conftest import EXAMPLES, Run
from tests.laws.strategies import jobset_manifests
from tests.manifests import JOBSET, edited

MANIFESTS = sorted(EXAMPLES.parent.rglob("*.yaml"))
FEATURES = resolve({WORKLOAD_AWARE_SCHEDULING: True})
BAD = edited(JOBSET, {"spec.replicatedJobs[0].replicas": -1, "spec.replicatedJob": []})
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


def written(tmp_path: Path, *documents: Any) -> Path:
    file = tmp_path / "m.yaml"
    file.write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return file


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_the_examples_are_fine(run: Run, file: Path) -> None:
    ended = run("lint", "-f", file, "--feature-gates", "InPlaceRestart=true,RestartJob=true")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_the_problems_are_the_result(run: Run, tmp_path: Path) -> None:
    file = written(tmp_path, CONFIG_MAP, BAD)
    ended = run("lint", "-f", file)
    assert (ended.code, ended.err) == (3, "")
    assert ended.out.splitlines() == [
        f"error: JobSet js in {file} line 6 is invalid: 2 problems",
        "  spec.replicatedJobs[0].replicas   must be 0 or more (got -1) [too-small]",
        "                                    hint: write a larger number",
        "  spec.replicatedJob                is not a field of the API [unknown-field]",
        "                                    hint: did you mean replicatedJobs?",
    ]


def test_programs_get_a_list(run: Run, tmp_path: Path) -> None:
    file = written(tmp_path, CONFIG_MAP, BAD, "text")
    ended = run("lint", "-f", file, "-o", "json")
    assert (ended.code, ended.err) == (3, "")
    misfit, small, unknown = json.loads(ended.out)
    assert (misfit["object"], misfit["code"], misfit["path"]) == ("", "manifest-object", f"{file}:{misfit['line']}")
    assert unknown["code"] == "unknown-field"
    assert small == {
        "file": str(file),
        "line": 6,
        "object": "JobSet js",
        "code": "too-small",
        "path": "spec.replicatedJobs[0].replicas",
        "value": -1,
        "message": "must be 0 or more",
        "hint": "write a larger number",
    }
    assert yaml.safe_load(run("lint", "-f", file, "-o", "yaml").out) == [misfit, small, unknown]


def test_programs_get_an_empty_list_when_all_is_well(run: Run, gang: Path) -> None:
    ended = run("lint", "-f", gang, "-o", "json")
    assert (ended.code, json.loads(ended.out)) == (0, [])


def test_other_objects_are_passed_over(run: Run, tmp_path: Path) -> None:
    ended = run("lint", "-f", written(tmp_path, CONFIG_MAP))
    assert (ended.code, ended.out, ended.err) == (0, "", "")


@pytest.mark.parametrize(
    ("slip", "code"), [({"kind": "Jobset"}, "wrong-kind"), ({"apiVersion": "batch/v1"}, "wrong-api-version")]
)
def test_a_slip_in_the_first_lines_is_not_passed_over(run: Run, tmp_path: Path, slip: Any, code: str) -> None:
    ended = run("lint", "-f", written(tmp_path, JOBSET | slip))
    assert ended.code == 3
    assert f"[{code}]" in ended.out


def test_warnings_are_said_and_change_nothing(run: Run, tmp_path: Path) -> None:
    ended = run("lint", "-f", written(tmp_path, edited(JOBSET, {"spec.replicatedJobs": []})))
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("warning: JobSet js in ")
    assert ended.err.endswith("[no-jobs]; hint: add a ReplicatedJob with replicas of 1 or more\n")


def test_a_gate_that_is_off_can_be_judged_as_on(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path, edited(JOBSET, {"spec.activeDeadlineSeconds": 5}))
    ended = run("lint", "-f", path)
    assert (ended.code, ended.err) == (3, "note: --feature-gates NAME=true judges as if that gate were on\n")
    assert "needs the feature gate JobSetActiveDeadlineSeconds" in ended.out
    assert "(local plane: jobset up --feature-gates JobSetActiveDeadlineSeconds=true)" in ended.out
    ended = run("lint", "-f", path, "--feature-gates", "JobSetActiveDeadlineSeconds=true")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_gates(run: Run, gang: Path) -> None:
    ended = run("lint", "-f", gang, "--feature-gates", "JobSetWorkloadAwareSchedulingAPI=false")
    assert ended.code == 3
    assert "[scheduling-gate]" in ended.out


def test_a_file_that_is_not_there_is_wrong_usage(run: Run) -> None:
    ended = run("lint", "-f", "nowhere.yaml")
    assert (ended.code, ended.out) == (2, "")
    assert "nowhere.yaml" in ended.err


SCALARS = [None, True, -1, 0, 1.5, 2**31, 2**63, "", "a", "A b", "1", "(?=x)", "x" * 70, "\x85\x1b[31mé"]
VALUES = st.sampled_from([*SCALARS, [], [None], ["x"], {}, {"a": None}, {"": {"b": []}}, [[{}]]])
KEYS = st.sampled_from(["a", "A b", "", "replica", "minCount", "name", "job", "x" * 90, "é\n"])


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a value."""
    for key, item in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from places(item)


EXAMPLE_JOBSETS = [
    document
    for file in MANIFESTS
    for document in yaml.safe_load_all(file.read_text())
    if document and document["kind"] == "JobSet"
]


@st.composite
def bad_manifests(draw: st.DrawFn) -> Any:
    """A JobSet that was valid, with something lost, replaced, doubled or added in up to three places."""
    head = {"apiVersion": JOBSET["apiVersion"], "kind": "JobSet"}
    manifest = copy.deepcopy(
        draw(st.one_of(jobset_manifests().map(lambda m: head | m), st.sampled_from(EXAMPLE_JOBSETS)))
    )
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from(list(places(manifest)) or [(manifest, "a")]))
        match draw(st.sampled_from(["lose", "replace", "double", "add"])):
            case "lose" if key not in ("kind", "apiVersion"):
                del container[key]
            case "double" if isinstance(container, list):
                container.append(copy.deepcopy(container[key]))
            case "add" if isinstance(container, dict):
                container[draw(KEYS)] = copy.deepcopy(draw(VALUES))
            case _ if key not in ("kind", "apiVersion"):
                container[key] = copy.deepcopy(draw(VALUES))
    return manifest


STEP = re.compile(r"\[(\d+)\]|\[([^\]]+)\]|([^.\[\]]+)")


def at(manifest: Any, path: str) -> Any:
    """What the manifest has at a problem's path; None where it has nothing."""
    for index, key, name in STEP.findall(path):
        try:
            manifest = manifest[int(index) if index else key or name]
        except (LookupError, TypeError):
            return None
    return manifest


def is_bad(manifest: Any) -> bool:
    try:
        check(manifest, FEATURES)
    except InvalidSpec:
        return True
    return False


@settings(max_examples=200)
@given(bad_manifests().filter(is_bad))
def test_whatever_is_wrong_is_said_with_path_value_and_what_to_do(manifest: Any) -> None:
    out, err = io.StringIO(), io.StringIO()
    with TemporaryDirectory() as directory, redirect_stdout(out), redirect_stderr(err):
        file = Path(directory, "m.yaml")
        file.write_text(yaml.safe_dump(manifest, sort_keys=False))
        code = main(["lint", "-f", str(file), "-o", "json"])
    assert (code, err.getvalue()) == (3, "")
    found = json.loads(out.getvalue())
    assert found
    for problem in found:
        assert problem["path"].isprintable()
        assert problem["message"]
        assert problem["hint"]
        there = at(manifest, problem["path"])
        if there and isinstance(there, str | int | float) and problem["code"] != "unknown-field":
            assert problem["value"] is not None
