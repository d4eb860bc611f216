"""The objects that -f names: files, directories and standard input, as kubectl takes them.

`plan` and the commands that read manifests call it. It bounds what it reads, and says for every object where it came
from. What cannot be read at all is a UsageError; a document that is read and is not an object becomes a Misfit, next
to the good ones. It decides nothing about the content of a JobSet.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO

from pyjobset.cli.documents import Fault, load
from pyjobset.errors import Problem, UsageError
from pyjobset.objects.jobset import API_VERSION, GROUP, KIND
from pyjobset.objects.meta import Manifest

BYTES_MAX = 3_000_000
"""Of one file. The API server takes no object above 1.5 MB."""
SUFFIXES = (".json", ".yaml", ".yml")
_ENCODINGS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document begins. `item` is the rest of the way to an item of a list: ` item 2`."""

    file: str
    line: int
    item: str = ""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A document that is no object. The problem's path is a place for editors: `train.yaml:12`."""

    place: Place
    problem: Problem


@dataclass(frozen=True, slots=True)
class Found:
    """One object, and where it was read."""

    manifest: Manifest
    place: Place

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def name(self) -> str:
        """`JobSet train`, or only the kind where there is no name."""
        metadata = self.manifest.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return f"{self.kind} {name}" if isinstance(name, str) else self.kind

    @property
    def title(self) -> str:
        """`JobSet train in train.yaml line 12`."""
        return f"{self.name} in {self.place.file} line {self.place.line}{self.place.item}"

    @property
    def is_jobset(self) -> bool:
        return self.kind == KIND and str(self.manifest["apiVersion"]).split("/")[0] == GROUP


def read(names: Sequence[str], stdin: BinaryIO | None = None) -> tuple[list[Found], list[Misfit]]:
    """All objects in order, lists taken apart, and a misfit for each document that is none. Raises UsageError."""
    if list(names).count("-") > 1:
        raise UsageError("-f - is given twice: standard input can be read once", hint="give it once")
    found: list[Found] = []
    misfits: list[Misfit] = []
    for name in names:
        for source, content in _contents(name, stdin or sys.stdin.buffer):
            for item in _objects(source, _decode(source, content)):
                if isinstance(item, Found):
                    found.append(item)
                else:
                    misfits.append(item)
    if not found and not misfits:
        raise UsageError(f"no objects in {', '.join(names)}", hint="is the file empty, or all comments?")
    return found, misfits


def no_jobset(found: Sequence[Found]) -> UsageError:
    """What to say when none of the objects is a JobSet."""
    near = get_close_matches(KIND.lower(), [f.kind.lower() for f in found], n=1)
    hint = f"did you mean kind: {KIND}?" if near else f"a JobSet has apiVersion: {API_VERSION} and kind: {KIND}"
    return UsageError(f"no JobSet among the objects; there is: {kinds(found)}", hint=hint)


def kinds(found: Sequence[Found]) -> str:
    """`v1 ConfigMap, batch/v1 Job`, each once."""
    return ", ".join(sorted({f"{f.manifest['apiVersion']} {f.kind}" for f in found}))


def _contents(name: str, stdin: BinaryIO) -> Iterator[tuple[str, bytes]]:
    if name == "-":
        yield "standard input", _bounded("standard input", stdin)
        return
    if name.startswith(("http://", "https://")):
        raise UsageError(f"{name}: web addresses are not read", hint=f"curl -fsSL {name} | jobset plan -f -")
    path = Path(name)
    try:
        if not path.is_dir():
            yield name, _open(path)
            return
        inside = sorted(p for p in path.iterdir() if p.suffix in SUFFIXES and p.is_file())
    except OSError as error:
        raise _unreadable(name, error) from error
    except ValueError as error:
        raise UsageError(f"{name!r} is not the name of a file: {error}") from error
    if not inside:
        raise UsageError(f"directory {name} has no manifest", hint=f"manifests end with {', '.join(SUFFIXES)}")
    for file in inside:
        try:
            yield str(file), _open(file)
        except OSError as error:
            raise _unreadable(str(file), error) from error


def _open(path: Path) -> bytes:
    with path.open("rb") as file:
        return _bounded(str(path), file)


def _unreadable(name: str, error: OSError) -> UsageError:
    hint = "check the path; - reads standard input" if isinstance(error, FileNotFoundError) else "check its permissions"
    return UsageError(f"cannot read {name}: {(error.strerror or str(error)).lower()}", hint=hint)


def _bounded(source: str, file: BinaryIO) -> bytes:
    content = file.read(BYTES_MAX + 1)
    if len(content) > BYTES_MAX:
        raise UsageError(
            f"{source} is larger than {BYTES_MAX // 1_000_000} MB",
            hint="is it a manifest? No API server takes an object above 1.5 MB; split a file of many objects",
        )
    return content


def _decode(source: str, content: bytes) -> str:
    encoding = next((name for mark, name in _ENCODINGS if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{source} is not text: byte {error.start} is {content[error.start]:#04x}",
            hint="a manifest is YAML or JSON in UTF-8",
        ) from error
    if "\0" in text:
        raise UsageError(f"{source} is a binary file", hint="a manifest is YAML or JSON in UTF-8")
    return text


def _objects(source: str, text: str) -> Iterator[Found | Misfit]:
    for document in load(text):
        place = Place(source, document.line)
        if isinstance(document, Fault):
            path = f"{source}:{document.line}:{document.column}"
            yield Misfit(place, Problem("manifest-syntax", path, None, document.message, document.hint))
        else:
            yield from _flatten(document.value, place)


def _flatten(value: object, place: Place) -> Iterator[Found | Misfit]:
    """The object, or the items of a list as `kubectl get -o yaml` prints it."""
    path = f"{place.file}:{place.line}{place.item}"
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else "text" if isinstance(value, str) else repr(value)
        message = f"expected an object, found {kind}"
        yield Misfit(place, Problem("manifest-object", path, None, message, "begin with apiVersion: ..."))
        return
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            example = API_VERSION if field == "apiVersion" else KIND
            message = f"{field} is missing" if value.get(field) in (None, "") else f"{field} must be text"
            hint = f"for a JobSet: {field}: {example}"
            yield Misfit(place, Problem("manifest-kind", path, value.get(field), message, hint))
            return
    items = value.get("items")
    if value["kind"].endswith("List") and isinstance(items, list):
        for number, item in enumerate(items, start=1):
            yield from _flatten(item, replace(place, item=f"{place.item} item {number}"))
        return
    yield Found(value, place)
