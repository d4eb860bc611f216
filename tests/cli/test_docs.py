"""docs/cli.md says what is there: its commands exist, its table is what plan prints, its exit codes are the errors'."""

import re
from pathlib import Path

from pyjobset import errors
from tests.cli.conftest import Run
from tests.cli.test_help import ALL

TEXT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def test_every_command_exists() -> None:
    known = {path[0] for path in ALL if path}
    assert set(re.findall(r"(?:`|^    |\| )jobset ([a-z]+)", TEXT, re.MULTILINE)) <= known


def test_the_table_is_what_plan_prints(run: Run, gang: Path) -> None:
    printed = run("plan", "-f", gang).out.splitlines()
    assert "\n".join(f"    {line}" for line in printed) in TEXT


def test_exit_codes() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)}
    every = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.JobSetError)]
    assert {e.exit_code for e in every} <= codes


def test_reasons_are_those_of_the_code() -> None:
    """Each phrase of the table is one that waiting.py or view.py can say."""
    source = "".join((Path(errors.__file__).parent / "cli" / f"{m}.py").read_text() for m in ("waiting", "view"))
    for phrase in ("finished pods do not count", "but no node has that label", "the scheduler has not tried yet",
                   "the scheduler cannot place it", "it does not exist"):  # fmt: skip
        assert phrase in TEXT
        assert phrase in source
