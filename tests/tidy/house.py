"""What the tidy tests look at: the tracked files of the project, read and parsed once. No rule is here.

A rule is a function from files to complaints, so that it can be shown to fail on a bad snippet as well as to hold for
the house. A ratchet is a table of exceptions, each with its reason; one that is no longer needed is a complaint too.
"""

import ast
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Ratchet = Mapping[str, str]
"""What is excepted, and why."""


@dataclass(frozen=True)
class Source:
    """One file. `path` is relative to the project's root, with slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        return tuple(ast.walk(self.tree))

    @property
    def module(self) -> str:
        """`pyjobset.kube.client` for src/pyjobset/kube/client.py; a package has the name of its folder."""
        return self.path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def at(self, node: ast.AST | int) -> str:
        return f"{self.path}:{node if isinstance(node, int) else getattr(node, 'lineno', 1)}"


@cache
def files() -> Sequence[Source]:
    """All text files that git knows, or would take with `git add`."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return tuple(Source(p, (ROOT / p).read_text("utf-8")) for p in sorted(set(listed)) if p and (ROOT / p).is_file())


def python(*folders: str) -> list[Source]:
    """The Python files below these folders."""
    return [f for f in files() if f.path.endswith(".py") and f.path.startswith(tuple(f"{name}/" for name in folders))]


def documents() -> list[Source]:
    return [f for f in files() if f.path.endswith(".md")]


def without(complaints: Iterable[tuple[str, str]], ratchet: Ratchet) -> list[str]:
    """The complaints, as (what is complained of, text), about what is not excepted; and exceptions without need."""
    found = list(complaints)
    subjects: Collection[str] = {subject for subject, _ in found}
    stale = [
        f"{subject}: the exception is no longer needed, take it out" for subject in ratchet if subject not in subjects
    ]
    return [text for subject, text in found if subject not in ratchet] + stale


def snippet(text: str, path: str = "src/pyjobset/objects/snippet.py") -> list[Source]:
    """One file that is not of the house, for the tests of the rules."""
    return [Source(path, text)]
