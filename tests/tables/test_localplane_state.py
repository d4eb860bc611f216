"""A plane's directory, its files and its ports: what is remembered, refused and removed. Starts no process."""

import errno
import fcntl
import json
import os
import socket
import stat
from contextlib import closing
from pathlib import Path

import pytest

from pyjobset.errors import PlaneError, UsageError
from pyjobset.localplane import files, ports, processes, state
from pyjobset.localplane.components import PORTS, Places, components
from pyjobset.localplane.logs import follow
from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import Plane
from pyjobset.localplane.processes import Daemon
from pyjobset.localplane.state import State


def test_state_survives(tmp_path: Path) -> None:
    kept = State(PlaneOptions(layout=NodeLayout(count=3), port=7), {"etcd": 1}, "v1", prepared=True)
    assert state.load(tmp_path) is None
    state.save(tmp_path, kept)
    assert state.load(tmp_path) == kept


@pytest.mark.parametrize("text", ["", "{", "[]", '{"ports": {"etcd": "x"}}', '{"options": null}'])
def test_a_damaged_state_says_how_to_get_out(text: str, tmp_path: Path) -> None:
    (tmp_path / state.STATE).write_text(text)
    with pytest.raises(PlaneError, match=r"plane\.json cannot be read") as caught:
        state.load(tmp_path)
    assert f"jobset reset --dir {tmp_path}" in caught.value.hint


def test_prepare_makes_private_directories(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "plane"
    state.prepare(directory)
    state.prepare(directory)
    assert {p.name for p in directory.iterdir()} == set(state.FOLDERS)
    assert {stat.S_IMODE(p.stat().st_mode) for p in (directory, *directory.iterdir())} == {0o700}


def test_a_directory_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(PlaneError, match=r"holds other things, such as thesis\.tex"):
        state.prepare(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("name", ["a,b", "a\nb"])
def test_a_directory_that_kwok_cannot_take_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(PlaneError, match="cannot be a plane's directory"):
        state.prepare(tmp_path / name)


def test_forget_leaves_what_is_not_ours(tmp_path: Path) -> None:
    state.prepare(tmp_path)
    state.save(tmp_path, State())
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "kept").touch()
    (tmp_path / "etcd").symlink_to(outside)
    (tmp_path / "mine").touch()
    state.forget(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]
    assert (outside / "kept").exists()
    (tmp_path / "mine").unlink()
    state.forget(tmp_path)
    assert not tmp_path.exists()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"JOBSET_PLANE_DIR": "/p", "XDG_DATA_HOME": "/d"}, "/p"),
        ({"XDG_DATA_HOME": "/d"}, "/d/jobset/plane"),
        ({"XDG_DATA_HOME": "relative", "HOME": "/h"}, "/h/.local/share/jobset/plane"),
        ({"HOME": "/h"}, "/h/.local/share/jobset/plane"),
    ],
)
def test_default_directory(environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JOBSET_PLANE_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert state.default_directory() == Path(expected)


def test_write_private_replaces_whole_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    files.write_private(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("number", "message"),
    [(errno.ENOSPC, "the disk is full: cannot write"), (errno.EDQUOT, "the disk is full"), (errno.EROFS, "Read-only")],
)
def test_a_write_that_fails_leaves_the_old_file(
    number: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PlaneError, match=message):
        files.write_private(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_says_that_it_waits_and_waits(tmp_path: Path) -> None:
    other = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(other, fcntl.LOCK_EX)
    told: list[str] = []

    def other_is_done() -> None:
        told.append("waiting")
        os.close(other)

    with files.locked(tmp_path / "lock", other_is_done):
        assert told == ["waiting"]
        late = os.open(tmp_path / "lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(late, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(late, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(late)
    with files.locked(tmp_path / "lock", other_is_done):
        assert told == ["waiting"]


def test_ports_are_kept_while_they_are_free_or_ours() -> None:
    first = ports.assign(["a", "b"], {}, [])
    assert len(set(first.values())) == 2
    assert ports.assign(["a", "b"], first, []) == first
    with closing(socket.create_server(("127.0.0.1", first["a"]))):
        assert ports.assign(["a", "b"], first, ["a"]) == first
        moved = ports.assign(["a", "b"], first, [])
    assert moved["a"] not in first.values()
    assert moved["b"] == first["b"]


def test_two_names_never_share_a_port() -> None:
    port = ports.draw(())
    found = ports.assign(["a", "b"], {"a": port, "b": port}, [])
    assert found["a"] == port != found["b"]


def test_no_port_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda _: False)
    with pytest.raises(PlaneError, match="no free TCP port"):
        ports.draw(())


def test_command_lines_bind_to_loopback_only_and_name_no_secret(tmp_path: Path) -> None:
    known = {name: 20_000 + i for i, name in enumerate(PORTS)}
    made = {c.name: c for c in components(PlaneOptions(), known, Places(tmp_path, Path("/bin")))}
    flags = [a for c in made.values() for a in c.command if "address" in a or "listen" in a]
    allowed = ("127.0.0.1", "192.0.2.1")
    assert flags
    assert [f for f in flags if not any(a in f for a in allowed)] == []
    assert "--unsafe-no-fsync" in made["etcd"].command
    durable = components(PlaneOptions(fsync=True, controller=False), known, Places(tmp_path, Path("/bin")))
    assert "--unsafe-no-fsync" not in durable[0].command
    assert [c.name for c in durable] == [n for n in made if n != "jobset-controller"]


def daemon(tmp_path: Path) -> Daemon:
    return Daemon("x", tmp_path, tmp_path / "x.log")


@pytest.mark.parametrize(
    ("pid", "command", "found"),
    [
        (str(os.getpid()), processes.command_line(os.getpid()), True),
        (str(os.getpid()), ["another", "program"], False),
        ("1", processes.command_line(1), False),
        ("", processes.command_line(os.getpid()), False),
        ("-5", processes.command_line(os.getpid()), False),
        ("999999999", processes.command_line(os.getpid()), False),
    ],
    ids=["ours", "pid-used-again", "init", "empty", "negative", "gone"],
)
def test_a_pid_is_believed_only_with_its_command(pid: str, command: list[str], found: bool, tmp_path: Path) -> None:
    (tmp_path / "x.pid").write_text(pid)
    (tmp_path / "x.json").write_text(json.dumps(command))
    assert bool(daemon(tmp_path).pid()) == found


@pytest.mark.parametrize("text", ["", "{}", '"x"', "[1]", "[]"])
def test_a_damaged_command_record_is_no_process(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.pid").write_text(str(os.getpid()))
    (tmp_path / "x.json").write_text(text)
    assert daemon(tmp_path).pid() == 0


def test_a_process_that_is_becoming_another_program_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel shows no command line during execve. `jobset up` took that for the end of kube-apiserver."""
    monkeypatch.setattr(processes, "command_line", lambda _: [])
    assert not processes.has_ended(os.getpid())
    assert processes.has_ended(999_999_999)


def test_logs_are_rotated(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    for run in range(6):
        processes.rotate(log)
        log.write_text(f"run {run}")
    processes.rotate(log)
    log.touch()
    processes.rotate(log)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {
        "x.log": "",
        "x.log.1": "run 5",
        "x.log.2": "run 4",
        "x.log.3": "run 3",
    }


@pytest.mark.parametrize("count", [0, 1, 3, 5000, 20_000])
def test_last_lines(count: int, tmp_path: Path) -> None:
    lines = [f"line {i} " + "x" * (i % 50) for i in range(10_000)]
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    assert processes.last_lines(tmp_path / "log", count) == lines[len(lines) - min(count, len(lines)) :]
    assert processes.last_lines(tmp_path / "no-log", count) == []


def test_follow_goes_on_in_the_next_file(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("old\none\n")
    lines = follow(log, 1)
    assert next(lines) == "one"
    with log.open("a") as file:
        file.write("two\n")
    assert next(lines) == "two"
    processes.rotate(log)
    log.write_text("three\n")
    assert next(lines) == "three"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("kube-apiserver", "kube-apiserver"),
        ("apiserver", "kube-apiserver"),
        ("controller", "jobset-controller"),
        ("controller-manager", "kube-controller-manager"),
        ("kwok", "kwok"),
    ],
)
def test_short_names_of_logs(name: str, file: str, tmp_path: Path) -> None:
    assert Plane(tmp_path).log(name) == tmp_path / "logs" / f"{file}.log"


def test_an_unknown_log(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no component is called '\.\./x'"):
        Plane(tmp_path).log("../x")


def test_a_plane_that_never_was(tmp_path: Path) -> None:
    plane = Plane(tmp_path / "nothing")
    assert plane.status().running is False
    assert {c.running for c in plane.status().components} == {False}
    assert plane.stop() == []
    plane.reset()
    with pytest.raises(PlaneError, match="there is no local plane"):
        plane.nodes()
    assert not plane.directory.exists()
