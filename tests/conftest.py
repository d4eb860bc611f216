"""What all tests share. Hypothesis: no deadlines (a loaded machine is no fault), the same examples for everyone in CI."""

import os

from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
