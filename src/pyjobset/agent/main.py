"""The console script jobset-in-place-restart-agent. Takes signals from its first moment, then loads the rest.

As process 1 of a container it would not get a signal that it has no handler for: a pod that is deleted while its agent
starts would linger for its whole grace period.
"""

import os
import signal
import sys


def run() -> None:
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    from pyjobset.agent.program import main  # a quarter of a second

    sys.exit(main(sys.argv[1:], os.environ))


if __name__ == "__main__":
    run()
