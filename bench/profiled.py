"""`jobset` under cProfile by the CPU clock: a busy machine makes calls longer, not dearer. Run by `measure.ours`.

python -m bench.profiled FILE ARGUMENT…
"""

import cProfile
import sys
import time

from pyjobset.cli.main import main


def run() -> int:
    profile = cProfile.Profile(time.process_time)
    try:
        return profile.runcall(main, sys.argv[2:])
    finally:
        profile.dump_stats(sys.argv[1])


if __name__ == "__main__":
    sys.exit(run())
