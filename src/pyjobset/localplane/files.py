"""Files of the local plane: private, written whole or not at all, and locks between our own processes.

Everything that the plane writes goes through here, so that an interruption or a full disk leaves the old file.
"""

import errno
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyjobset.errors import PlaneError


def make_private_directory(path: Path) -> None:
    """The directory and its missing parents; the directory itself is 0700."""
    with disk_errors(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_private(path: Path, data: bytes | str) -> None:
    """Replaces the file in one step, mode 0600."""
    content = data.encode() if isinstance(data, str) else data
    with disk_errors(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Says in our words what the system refuses below `path`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise PlaneError(f"the disk is full: cannot write {path}", hint="free some space and try again") from error
        hint = "choose another directory with --dir" if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else ""
        raise PlaneError(f"cannot write {path}: {error.strerror}", hint=hint) from error


@contextmanager
def locked(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Holds a lock that other processes of ours respect. `on_wait` is called once when another one has it."""
    with disk_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
