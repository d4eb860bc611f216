"""Whatever a person hands to -f: a clear error, the right exit code, nothing on stdout, never a traceback."""

import io
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import EXAMPLES, Run

JOBSET = (EXAMPLES / "no-scheduling-baseline.yaml").read_text()
UNKNOWN_FIELD = JOBSET.replace("replicatedJobs:", "replicatedJob:")
BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 10}]\n" for n in range(1, 8))
TWO_BAD = f"{JOBSET}---\nkind: [\n---\n{UNKNOWN_FIELD}"

CASES = {
    "not YAML": ("a: b: c\n", 3, ":1:5", "mapping values are not allowed"),
    "text": ("this is no manifest\n", 3, ":1", "expected an object, found text"),
    "a list": ("- a\n- b\n", 3, ":1", "expected an object, found a list"),
    "no kind": ("apiVersion: v1\n", 3, ":1", "kind is missing"),
    "no apiVersion": ("kind: JobSet\n", 3, ":1", "apiVersion is missing"),
    "a kind that is no text": ("apiVersion: v1\nkind: 7\n", 3, ":1", "kind must be text"),
    "another kind": ("apiVersion: v1\nkind: ConfigMap\n", 2, "v1 ConfigMap", "kind: JobSet"),
    "a misspelt kind": (JOBSET.replace("kind: JobSet", "kind: Jobset"), 2, "Jobset", "did you mean kind: JobSet"),
    "another version": (JOBSET.replace("v1alpha2", "v1"), 3, "apiVersion", "v1alpha2"),
    "no spec": ("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n", 3, "metadata ", "must be set"),
    "an unknown field": (UNKNOWN_FIELD, 3, "spec.replicatedJob ", "replicatedJobs"),
    "a wrong type": (JOBSET.replace("replicas: 2", "replicas: two"), 3, "spec.replicatedJobs[0].replicas", "two"),
    "several documents, one bad": (f"{JOBSET}---\nkind: [\n", 3, ":", "did not find expected"),
    "several bad ones, the first": (TWO_BAD, 3, ":", "did not find expected"),
    "several bad ones, the second": (TWO_BAD, 3, "spec.replicatedJob ", "replicatedJobs"),
    "empty": ("", 2, "no objects", "empty"),
    "only comments": ("# nothing\n---\n", 2, "no objects", "empty"),
    "deep": ("a: " + "[" * 50_000, 3, ":1:", "nested deeper"),
    "an alias bomb": (BOMB, 3, ":", "aliases expanded"),
    "Python": ("a: !!python/object/apply:os.system [id]\n", 3, ":1:4", "unknown tag"),
    "terminal escapes": ('apiVersion: v1\nkind: "\\e[2J"\n', 2, "\\x1b[2J", "kind: JobSet"),
}


@pytest.mark.parametrize(("text", "code", "place", "message"), CASES.values(), ids=CASES.keys())
def test_a_bad_manifest_is_explained(run: Run, tmp_path: Path, text: str, code: int, place: str, message: str) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(text)
    ended = run("plan", "-f", file)
    assert ended.code == code
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert place in ended.err
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert "\x1b" not in ended.err


BYTES = {
    "binary": (bytes(range(256)) * 10, "is not text"),
    "zero bytes": (b"a: 1\n\0\0\0", "is a binary file"),
    "half of UTF-16": (b"\xff\xfea", "is not text"),
    "too large": (b"a" * 10_000_000, "larger than 3 MB"),
}


@pytest.mark.parametrize(("content", "message"), BYTES.values(), ids=BYTES.keys())
def test_what_is_no_manifest_at_all_is_wrong_usage(run: Run, tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "m.yaml"
    file.write_bytes(content)
    ended = run("plan", "-f", file)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert "hint: " in ended.err


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_a_byte_order_mark_is_understood(run: Run, tmp_path: Path, encoding: str) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    file = tmp_path / "m.yaml"
    file.write_bytes(mark + JOBSET.encode(encoding))
    assert run("plan", "-f", file).code == 0


def test_names_of_files_that_are_none(run: Run, tmp_path: Path) -> None:
    missing = run("plan", "-f", tmp_path / "none.yaml")
    assert missing.code == 2
    assert "none.yaml: no such file" in missing.err
    web = run("plan", "-f", "https://example.com/m.yaml")
    assert web.code == 2
    assert "curl" in web.err
    strange = run("plan", "-f", "a\0b")
    assert strange.code == 2
    assert "not the name of a file" in strange.err
    endless = run("plan", "-f", "x" * 5000)
    assert endless.code == 2
    assert "too long" in endless.err


def test_an_unreadable_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(JOBSET)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(Path, "open", denied)  # the superuser may read everything
    ended = run("plan", "-f", file)
    assert ended.code == 2
    assert "m.yaml: permission denied" in ended.err
    assert "hint: check its permissions" in ended.err


def test_no_file_is_wrong_usage(run: Run) -> None:
    ended = run("plan")
    assert ended.code == 2
    assert "Missing option '--filename'" in ended.err
    assert "hint: jobset plan --help" in ended.err


def test_a_directory_is_its_manifests(run: Run, tmp_path: Path) -> None:
    empty = run("plan", "-f", tmp_path)
    assert empty.code == 2
    assert ".json, .yaml, .yml" in empty.err
    for name, file in (("one", "b.yaml"), ("two", "a.yml"), ("three", "c.json")):
        (tmp_path / file).write_text(JOBSET.replace("no-sched-baseline", name))
    (tmp_path / "notes.txt").write_text("not: [read")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "d.yaml").write_text("not: [read")
    names = [line.split()[1] for line in run("plan", "-f", tmp_path).out.splitlines() if line.startswith("JobSet")]
    assert names == ["default/two", "default/one", "default/three"]


def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(JOBSET.encode())))
    assert "no-sched-baseline" in run("plan", "-f", "-").out
    twice = run("plan", "-f", "-", "-f", "-")
    assert twice.code == 2
    assert "twice" in twice.err


def test_several_files_in_order(run: Run) -> None:
    files = [EXAMPLES / "single-gang.yaml", EXAMPLES / "gang-scheduling.yaml"]
    out = run("plan", "-f", files[0], "-f", files[1]).out
    assert out.index("single-gang") < out.index("gang-training")


def test_a_list_of_objects_is_taken_apart(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text(run("plan", "-f", EXAMPLES / "single-gang.yaml", "-o", "json").out)
    ended = run("plan", "-f", file)
    assert ended.code == 2
    assert "batch/v1 Job, scheduling.k8s.io/v1beta1 PodGroup" in ended.err


def test_other_kinds_next_to_a_jobset_are_noted(run: Run) -> None:
    ended = run("plan", "-f", EXAMPLES / "dra-resource-claims.yaml")
    assert ended.code == 0
    assert "skipped resource.k8s.io/v1 ResourceClaimTemplate" in ended.err
    assert "skipped" not in ended.out


def test_a_number_of_jobs_that_must_be_a_slip(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(JOBSET.replace("replicas: 2", "replicas: 2000000000"))
    ended = run("plan", "-f", file)
    assert ended.code == 3
    assert "more than 20000 Jobs" in ended.err


def test_a_number_of_jobs_that_are_too_many_to_show(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    many = JOBSET.replace("replicas: 2", "replicas: 15000")
    file.write_text(f"{many}\n---\n{many}")
    ended = run("plan", "-f", file)
    assert ended.code == 2
    assert "30,000 Jobs" in ended.err


def test_the_problems_of_all_documents_are_listed(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(TWO_BAD)
    ended = run("plan", "-f", file)
    titles = [line for line in ended.err.splitlines() if line.startswith("error")]
    line = TWO_BAD[: TWO_BAD.rindex("apiVersion")].count("\n") + 1
    assert titles == [
        f"error: {file} is invalid: 1 problem",
        f"error: JobSet no-sched-baseline in {file} line {line} is invalid: 1 problem",
    ]


def test_a_broken_document_among_other_kinds_is_the_news(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\n---\nkind: [\n")
    ended = run("plan", "-f", file)
    assert ended.code == 3
    assert "did not find expected" in ended.err
