"""The Containerfile: pinned, from hashes, nobody's root, and everything that it copies is there."""

import re
from pathlib import Path

import pytest
import yaml

from tests.containerfile import read

ROOT = Path(__file__).resolve().parents[2]
STAGES = read((ROOT / "Containerfile").read_text())
FINAL = STAGES[-1]
PINNED = re.compile(r"[a-z]+:\d+\.\d+\.\d+-[a-z]+-[a-z]+")
PIN = re.compile(r"^(\S+==[^\s;]+)[^\n]*((?:\n    --hash=\S+(?: \\)?)+)", re.MULTILINE)


def test_bases_are_pinned_and_the_same() -> None:
    bases = {stage.base for stage in STAGES}
    assert len(bases) == 1, "what is compiled in one must run in the other"
    assert all(PINNED.fullmatch(base) for base in bases)


def test_it_runs_as_nobody() -> None:
    """By number: the kubelet cannot tell whether a name is root."""
    user, group = FINAL.last("USER").split(":")
    assert int(user) > 10_000
    assert int(group) > 10_000
    assert "USER" in [instruction.name for instruction in FINAL.instructions][-3:]


def test_what_is_copied_is_there_and_is_sent_to_the_build() -> None:
    taken = {i.words[0] for stage in STAGES for i in stage.instructions if i.name == "COPY" and "--" not in i.text}
    assert taken == {"requirements.image.lock", "src/pyjobset"}
    assert all((ROOT / source).exists() for source in taken)
    ignored = (ROOT / ".containerignore").read_text().split()
    assert ignored[0] == "*"
    assert {line.removeprefix("!") for line in ignored if line.startswith("!")} == taken
    assert (ROOT / ".dockerignore").resolve() == ROOT / ".containerignore"


def test_packages_come_by_their_hashes() -> None:
    (install,) = (i for stage in STAGES for i in stage.instructions if i.name == "RUN" and "pip" in i.text)
    assert {"--require-hashes", "--only-binary=:all:", "--no-deps"} <= set(install.words)
    tested = dict(PIN.findall((ROOT / "requirements.lock").read_text()))
    shipped = dict(PIN.findall((ROOT / "requirements.image.lock").read_text()))
    assert len(shipped) > 10
    assert shipped.items() <= tested.items(), "what was tested is what is shipped: make lock"
    assert not any(name.startswith(("pytest", "mypy", "ruff", "hypothesis")) for name in shipped)


def test_the_deployment_fits_the_image() -> None:
    (deployment,) = yaml.safe_load_all((ROOT / "deploy" / "manager" / "manager.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert "command" not in container
    assert FINAL.entrypoint()[-1] == "pyjobset"
    assert container["args"][0] == "controller"
    assert FINAL.environment()["PYTHONDONTWRITEBYTECODE"] == "1"


@pytest.mark.parametrize("text", ["FROM x\nADD a b\n", "FROM x\nVOLUME /v\n"])
def test_other_instructions_are_not_guessed(text: str) -> None:
    with pytest.raises(ValueError, match="instruction"):
        read(text)
