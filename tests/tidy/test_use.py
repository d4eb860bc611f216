"""Nothing lies around: every module is reachable from a way in, every public function and every constant is used."""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache

import pytest

from tests.tidy.house import Ratchet, Source, python, without

WAYS_IN = (
    "pyjobset",
    "pyjobset.__main__",
    "pyjobset.cli.main",
    "pyjobset.agent.main",
    # Tests play it: tests/world.
    "pyjobset.simulation.checkers",
    "pyjobset.simulation.ending",
    "pyjobset.simulation.story",
)
PURE = ("errors", "objects", "rules", "compiler", "reconciler")
VOCABULARY = ("src/pyjobset/objects/labels.py", "src/pyjobset/objects/conditions.py")

UNREACHED_MODULES: Ratchet = {}
UNUSED_FUNCTIONS: Ratchet = {}
UNUSED_WORDS: Ratchet = {}


def dead_modules(sources: Sequence[Source], ways_in: Collection[str]) -> Iterator[tuple[str, str]]:
    """Modules that no chain of imports reaches; a module's full name in a string counts as an import."""
    by_name = {source.module: source for source in sources}
    reached: set[str] = set()
    pending = [name for name in by_name if name in ways_in or not name.startswith("pyjobset")]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += [found for found in _imports(by_name[name]) if found in by_name]
    for name, source in by_name.items():
        if name not in reached:
            yield source.path, f"{source.path}: no way in reaches it; use it or delete it"


def _imports(source: Source) -> set[str]:
    names: set[str] = set()
    for node in source.nodes:
        match node:
            case ast.Import():
                names.update(alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                names.update({module, *(f"{module}.{alias.name}" for alias in node.names)})
            case ast.Constant(value=str(text)):
                names.add(text)
    parts = [name.split(".") for name in names]
    return {".".join(p[:i]) for p in parts for i in range(1, len(p) + 1)}


def unused_functions(sources: Sequence[Source], users: Sequence[Source]) -> Iterator[tuple[str, str]]:
    """Public functions that only their own module uses. A decorator is a use: it puts a function into a table."""
    used = _uses(users)
    for source in sources:
        for node in source.tree.body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or node.decorator_list:
                continue
            if not used.get(node.name, set()) - {source.path}:
                why = "nobody else uses it; begin its name with _ or delete it"
                yield f"{source.path} {node.name}", f"{source.at(node)} {node.name}: {why}"


def unused_words(sources: Sequence[Source], users: Sequence[Source]) -> Iterator[tuple[str, str]]:
    used = _uses(users)
    for source in sources:
        for node in source.tree.body:
            for name in _assigned(node):
                if name.isupper() and not used.get(name, set()) - {source.path} and name not in _own_uses(source):
                    yield name, f"{source.at(node)} {name}: no code says it; delete it, or list it here with the reason"


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _own_uses(source: Source) -> set[str]:
    loads = (n for n in source.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return {node.id for node in loads}


def _uses(users: Iterable[Source]) -> Mapping[str, set[str]]:
    """Every identifier, and in which files it stands."""
    found: dict[str, set[str]] = {}
    for source in users:
        for name in _identifiers(source):
            found.setdefault(name, set()).add(source.path)
    return found


@cache
def _identifiers(source: Source) -> frozenset[str]:
    names: set[str] = set()
    for node in source.nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                names.add(name)
    return frozenset(names)


def _pure() -> list[Source]:
    return [f for f in python("src") if f.module.split(".")[1:2] and f.module.split(".")[1] in PURE]


def test_every_module_is_reached() -> None:
    assert without(dead_modules(python("src", "bench", "scripts"), WAYS_IN), UNREACHED_MODULES) == []


def test_every_public_function_has_a_user() -> None:
    users = python("src", "bench", "scripts", "tests")
    assert without(unused_functions(_pure(), users), UNUSED_FUNCTIONS) == []


def test_every_word_of_the_vocabulary_is_said() -> None:
    words = [f for f in python("src") if f.path in VOCABULARY]
    assert len(words) == len(VOCABULARY)
    assert without(unused_words(words, python("src", "bench", "scripts")), UNUSED_WORDS) == []


def _package(**texts: str) -> list[Source]:
    return [Source(f"src/pyjobset/{name}.py", text) for name, text in texts.items()]


@pytest.mark.parametrize(
    "main",
    [
        "from pyjobset import used\n",
        "def f():\n    import pyjobset.used\n",
        "from pyjobset.used import x\n",
        "command = 'pyjobset.used'\n",
    ],
)
def test_imports_reach(main: str) -> None:
    assert list(dead_modules(_package(main=main, used="x = 1\n"), ["pyjobset.main"])) == []


def test_dead_modules_are_found_also_when_they_import_each_other() -> None:
    sources = _package(main="import os\n", one="import pyjobset.two\n", two="import pyjobset.one\n")
    assert [path for path, _ in dead_modules(sources, ["pyjobset.main"])] == [
        "src/pyjobset/one.py",
        "src/pyjobset/two.py",
    ]


def test_unused_functions_are_found() -> None:
    own = "def a(): return _b()\ndef _b(): ...\ndef c(): return a()\n@rule\ndef d(): ...\n"
    sources = _package(one=own, two="from pyjobset.one import c\n")
    assert [subject for subject, _ in unused_functions(sources[:1], sources)] == ["src/pyjobset/one.py a"]


def test_unused_words_are_found() -> None:
    sources = _package(words='BASE = "x"\nSAID = f"{BASE}/y"\nUNSAID: str = "z"\n', two="print(words.SAID)\n")
    assert [subject for subject, _ in unused_words(sources[:1], sources)] == ["UNSAID"]
