"""A plane's directory: what it remembers, what belongs to it, and how it is forgotten. Used by `plane.py` only."""

import os
import shutil
from pathlib import Path

import msgspec
from msgspec import Struct, field

from pyjobset.errors import PlaneError
from pyjobset.localplane.files import disk_errors, make_private_directory, write_private
from pyjobset.localplane.options import PlaneOptions

DIRECTORY_VARIABLE = "JOBSET_PLANE_DIR"
STATE = "plane.json"
FOLDERS = ("pki", "run", "logs", "kubeconfigs", "kubectl-cache")
OURS = (*FOLDERS, "etcd", "kubeconfig", "scheduler.json", "stages.yaml", ".lock", STATE)
"""All that a plane writes into its directory; nothing else there is ever touched."""


class State(Struct, frozen=True):
    """What outlives a stop. `prepared`: the first nodes were made, so later starts leave nodes alone."""

    options: PlaneOptions = PlaneOptions()
    ports: dict[str, int] = field(default_factory=dict)
    version: str = ""
    prepared: bool = False


def default_directory() -> Path:
    """JOBSET_PLANE_DIR, else a directory below the user's data directory."""
    if named := os.environ.get(DIRECTORY_VARIABLE, ""):
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "share"
    return root / "jobset" / "plane"


def load(directory: Path) -> State | None:
    """The state of the plane that lives there; None when there is none."""
    path = directory / STATE
    try:
        return msgspec.json.decode(path.read_bytes(), type=State)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise PlaneError(
            f"{path} cannot be read: {error}", hint=f"jobset reset --dir {directory} forgets it"
        ) from error


def save(directory: Path, state: State) -> None:
    write_private(directory / STATE, msgspec.json.format(msgspec.json.encode(state), indent=2))


def prepare(directory: Path) -> None:
    """Makes the directory and its folders. Refuses a directory that holds something else or is somebody else's."""
    if any(c in str(directory) for c in ",\n\r\t\0"):
        raise PlaneError(
            f"{str(directory)!r} cannot be a plane's directory: kwok takes no such path",
            hint="choose one without commas, tabs and line breaks with --dir",
        )
    with disk_errors(directory):
        found = list(directory.iterdir()) if directory.exists() else []
        if directory.exists() and directory.stat().st_uid != os.getuid():
            raise PlaneError(f"{directory} belongs to another user", hint="choose another directory with --dir")
        if found and not any(p.name in OURS for p in found):
            raise PlaneError(
                f"{directory} holds other things, such as {found[0].name}: it is no plane's directory",
                hint="choose an empty or a new directory with --dir",
            )
        make_private_directory(directory)
        directory.chmod(0o700)
        for folder in FOLDERS:
            make_private_directory(directory / folder)


def forget(directory: Path) -> None:
    """Removes what belongs to the plane, and the directory when nothing else is in it."""
    with disk_errors(directory):
        for name in OURS:
            path = directory / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        if directory.exists() and not any(directory.iterdir()):
            directory.rmdir()
