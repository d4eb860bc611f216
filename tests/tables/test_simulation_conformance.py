"""What the model cluster is held to is written down: each script and each scene, and nothing that is none."""

from pathlib import Path

from tests.server.conformance import scenes, scripts
from tests.server.conformance.generated import generated

README = Path(__file__).parents[1] / "server/conformance/README.md"


def test_the_readme_lists_every_behaviour() -> None:
    listed = [line.removeprefix("- ") for line in README.read_text().partition("## Requests")[2].splitlines()]
    shown = [line for line in listed if line and not line.startswith("#")]
    assert shown == [*scripts.SCRIPTS, *scenes.SCENES]


def test_no_two_groups_have_a_behaviour_of_the_same_name() -> None:
    assert len(scripts.SCRIPTS) == sum(len(group) for group in scripts.GROUPS.values())
    assert len(scenes.SCENES) == sum(len(group) for group in scenes.GROUPS.values())


def test_a_seed_makes_the_same_script_each_time() -> None:
    assert generated(7) == generated(7) != generated(8)
