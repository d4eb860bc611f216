"""Following a log file as it grows, also when a restart puts a new file in its place. Used by `jobset logs -f`."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from pyjobset.localplane.processes import last_lines

POLL_SECONDS = 0.2


def follow(path: Path, tail: int) -> Iterator[str]:
    """The last lines, then every new one, without end."""
    with path.open(errors="replace") as first:
        first.seek(0, 2)
        yield from last_lines(path, tail)
        inode = path.stat().st_ino
        yield from _grow(first, path, inode)
    while True:
        with path.open(errors="replace") as current:
            yield from _grow(current, path, path.stat().st_ino)


def _grow(file: TextIO, path: Path, inode: int) -> Iterator[str]:
    """Complete lines as they are written, until another file has the path."""
    partial = ""
    while True:
        if chunk := file.readline():
            partial += chunk
            if partial.endswith("\n"):
                yield partial.rstrip("\n")
                partial = ""
        elif path.exists() and path.stat().st_ino != inode:
            return
        else:
            time.sleep(POLL_SECONDS)
