"""Builds the Kubernetes programs that tests and the bench run on, where they are not there yet, showing how far it is.

`make test-server` calls it first, so that the minutes of a first build are seen and not hidden in a test fixture.
"""

import sys

from pyjobset.errors import PlaneError
from pyjobset.localplane import binaries
from pyjobset.localplane.progress import for_stream


def main() -> int:
    try:
        binaries.ensure("", for_stream())
    except PlaneError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
