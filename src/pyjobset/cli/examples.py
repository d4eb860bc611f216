"""Where the example manifests are: inside an installed package, or at the root of the checkout. Reads nothing."""

from pathlib import Path

import pyjobset
from pyjobset.errors import UsageError


def example(name: str) -> Path:
    """`scheduling/gang-scheduling.yaml` as a file. Raises UsageError where the examples are not installed."""
    package = Path(pyjobset.__file__).parent
    for root in (package / "examples", package.parents[1] / "examples"):
        if (root / name).is_file():
            return root / name
    raise UsageError(
        f"the example {name} is not installed with pyjobset", hint="install pyjobset again, or use a checkout"
    )
