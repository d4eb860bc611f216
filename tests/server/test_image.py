"""The image, without a container engine: what the Containerfile says is done in a directory, and started from there.

A server test because it needs what a build needs: the packages, over a network or from a cache.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyjobset import __version__
from tests.containerfile import read, replay

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return replay(read((ROOT / "Containerfile").read_text()), ROOT, tmp_path_factory.mktemp("image"))


def start(image: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The entry point, with the environment of the image and nothing of ours."""
    stage = read((ROOT / "Containerfile").read_text())[-1]
    program, *words = stage.entrypoint()
    assert program == "python"
    environment = {name: value.replace("/opt/", f"{image}/opt/") for name, value in stage.environment().items()}
    command = [sys.executable, "-S", *words, *arguments]  # -S: not the packages of this environment
    return subprocess.run(
        command, cwd=image, env={"PATH": os.defpath, **environment}, capture_output=True, text=True, check=False
    )


def test_the_manager_starts_from_the_image(image: Path) -> None:
    assert start(image, "--version").stdout.strip().endswith(__version__)
    shown = start(image, "controller", "--help")
    assert (shown.returncode, "--leader-elect" in shown.stdout) == (0, True), shown.stderr
    printed = start(image, "controller", "--print-config")
    assert "kind: Configuration" in printed.stdout, printed.stderr
    alone = start(image, "controller", "--metrics-bind-address=0", "--health-probe-bind-address=0")
    assert "no cluster" in alone.stderr, "it is complete, but for a cluster"


def test_it_holds_the_packages_of_the_lock_and_nothing_for_development(image: Path) -> None:
    packages = image / "opt" / "jobset"
    pinned = set(re.findall(r"^([\w-]+)==([^\s;]+)", (ROOT / "requirements.image.lock").read_text(), re.MULTILINE))
    there = {tuple(p.name.removesuffix(".dist-info").rsplit("-", 1)) for p in packages.glob("*.dist-info")}
    assert {(name.lower().replace("_", "-"), version) for name, version in there} <= pinned
    assert {"aiohttp", "msgspec", "pyjobset", "re2"} <= {p.name.removesuffix(".py") for p in packages.iterdir()}
    assert not {"pytest", "mypy", "hypothesis", "ruff"} & {p.name for p in packages.iterdir()}
    assert list((packages / "pyjobset").rglob("*.pyc")), "compiled: the root is read-only"
