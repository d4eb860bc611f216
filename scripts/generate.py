"""Rewrites every generated file of the project, or with --check says which one is not up to date.

A generator is a function without arguments that returns {path from the project's root: content}.
"""

import argparse
import difflib
import sys
from collections.abc import Callable
from pathlib import Path

import docs_configuration
import docs_metrics
import docs_rules
from crd import definition, names

ROOT = Path(__file__).resolve().parent.parent

Generator = Callable[[], dict[str, str]]


def generators() -> list[Generator]:
    return [definition.files, names.files, docs_metrics.generate, docs_rules.generate, docs_configuration.generate]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file would change")
    check = parser.parse_args().check
    stale = 0
    for generator in generators():
        for name, content in generator().items():
            path = ROOT / name
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            if before == content:
                continue
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
                print(f"wrote {name}")
                continue
            stale += 1
            print(f"{name} is not up to date; run `make generate`")
            diff = difflib.unified_diff(before.splitlines(), content.splitlines(), "stored", "generated", lineterm="")
            print("\n".join(list(diff)[:20]))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
