"""Commands run in process: what they print and what they end with."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyjobset.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "scheduling"


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("plan", "-f", path)` is the command line `jobset plan -f path`."""

    def run(*arguments: object) -> Ended:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Ended(code, out, err)

    return run


@pytest.fixture
def gang() -> Path:
    return EXAMPLES / "gang-scheduling.yaml"
