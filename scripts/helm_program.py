"""Finds a Helm for the tests of the chart, or builds one into the user's cache (about two minutes, once).

`make test-server` calls it first, so that these minutes are seen and not hidden in a test fixture; tests call `ensure`.
The version is that of helm/go.mod.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pyjobset.errors import PlaneError
from pyjobset.localplane import binaries, gotool
from pyjobset.localplane.files import locked
from pyjobset.localplane.progress import Progress, for_stream

MODULE = Path(__file__).parent / "helm"
PACKAGE = "helm.sh/helm/v3/cmd/helm"


def ensure(progress: Progress) -> Path:
    """The person's own Helm, else ours. Raises PlaneError."""
    if own := shutil.which("helm"):
        return Path(own)
    digest = hashlib.sha256((MODULE / "go.mod").read_bytes() + (MODULE / "go.sum").read_bytes()).hexdigest()
    directory = binaries.cache() / f"helm-{digest[:12]}"
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory / ".lock", lambda: progress.step("another build of Helm is running; waiting for it")):
        if not (directory / "helm").exists():
            progress.step("Building Helm")
            _build(gotool.find(_go_minimum(), binaries.cache(), progress), directory / "helm")
    return directory / "helm"


def _go_minimum() -> tuple[int, int]:
    match = re.search(r"^go (\d+)\.(\d+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    assert match
    return int(match[1]), int(match[2])


def _build(go: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / "helm"
        command = [str(go), "build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o", str(made), PACKAGE]
        settings = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}
        done = subprocess.run(
            command, cwd=MODULE, env=os.environ | settings, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise PlaneError(f"Helm could not be built:\n{done.stderr[-2000:]}", hint="put a helm on the PATH instead")
        made.replace(target)


def main() -> int:
    try:
        ensure(for_stream())
    except PlaneError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
