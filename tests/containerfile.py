"""Reads a Containerfile and does what it says in a directory, without a container engine. For tests.

It knows the few instructions that ours has, and complains of others. Absolute paths of the image become paths below
the directory of its stage; pip is whatever installer this Python has.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyjobset.localplane import gotool

KNOWN = ("ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "ENTRYPOINT")


@dataclass(frozen=True)
class Instruction:
    name: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)


@dataclass
class Stage:
    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)

    def last(self, name: str) -> str:
        return next(i.text for i in reversed(self.instructions) if i.name == name)

    def environment(self) -> dict[str, str]:
        pairs = (i.text.partition("=") for i in self.instructions if i.name == "ENV")
        return {name: value for name, _, value in pairs}

    def entrypoint(self) -> list[str]:
        words: list[str] = json.loads(self.last("ENTRYPOINT"))
        return words


def read(text: str) -> list[Stage]:
    """Stages in order, with arguments put in. Raises ValueError for what is not known."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for line in text.replace("\\\n", " ").splitlines():
        name, _, rest = line.strip().partition(" ")
        if not name or name.startswith("#"):
            continue
        if name not in KNOWN:
            raise ValueError(f"instruction {name}")
        for argument, value in arguments.items():
            rest = rest.replace(f"${{{argument}}}", value)
        if name == "ARG":
            argument, _, value = rest.partition("=")
            arguments[argument] = value
        elif name == "FROM":
            base, _, alias = rest.partition(" AS ")
            stages.append(Stage(base, alias))
        else:
            stages[-1].instructions.append(Instruction(name, rest))
    return stages


def replay(stages: Sequence[Stage], context: Path, scratch: Path) -> Path:
    """Does all stages. Returns the root of the last one."""
    roots: dict[str, Path] = {}
    for number, stage in enumerate(stages):
        root = roots[stage.name] = scratch / f"stage-{number}"
        directory = root
        directory.mkdir()
        for instruction in stage.instructions:
            match instruction.name:
                case "WORKDIR":
                    directory = root / instruction.text.lstrip("/")
                    directory.mkdir(parents=True, exist_ok=True)
                case "COPY":
                    _copy(instruction.words, context, roots, root, directory)
                case "RUN":
                    _run(instruction.words, root, directory, stage.environment())
    return root


def _copy(words: Sequence[str], context: Path, roots: Mapping[str, Path], root: Path, directory: Path) -> None:
    *flags, source, target = words
    origin = context
    for flag in flags:
        option, _, value = flag.partition("=")
        if option != "--from":
            raise ValueError(f"COPY {flag}")
        origin = roots[value]
    place = root / target.lstrip("/") if target.startswith("/") else directory / target
    copied = origin / source.lstrip("/")
    if copied.is_dir():
        is_ignored = shutil.ignore_patterns("__pycache__") if origin is context else None  # .containerignore
        shutil.copytree(copied, place, dirs_exist_ok=True, ignore=is_ignored)
    else:
        shutil.copy(copied, place)


def _run(words: Sequence[str], root: Path, directory: Path, environment: Mapping[str, str]) -> None:
    placed = [word.replace("/opt/", f"{root}/opt/") for word in words]
    if placed[:4] == ["python", "-m", "pip", "install"]:
        installer = list(gotool.installers(root)[0])
        options = [
            word for word in placed[4:] if word not in ("--no-deps", "--no-cache-dir")
        ]  # it has them, or a cache
        command = [*installer, *options]
    else:
        command = [sys.executable if word == "python" else word for word in placed]
    subprocess.run(command, cwd=directory, env=os.environ | dict(environment), check=True)
