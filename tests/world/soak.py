"""Plays worlds for hours: `make soak HOURS=1`. Or one: `python -m tests.world.soak --seed 7` tells its story.

`--replay` plays one that was recorded, given as its answers or as a file of regressions/; `--mutant` finds one that a
planted fault spoils.

Seeds begin after those of the tests. The first bad world of each process ends the soak, with its report.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

import pytest

from pyjobset.simulation.chooser import Replayed, Seeded
from pyjobset.simulation.story import story
from tests.world.mutants import MUTANTS
from tests.world.reports import play_seeds
from tests.world.worlds import Tally, play, quiet

FIRST_SEED = 1_000_000
BATCH = 200
MUTANT_SEEDS = 20_000


def main(line: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="soak", description="Plays worlds with faults until the time is up.")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="the first seed (default %(default)s)")
    parser.add_argument("--seed", type=int, help="only this world, with its story")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--replay", help="only this world, with its story: answers in JSON, or a file with them")
    parser.add_argument("--mutant", help="the first world that this planted fault spoils, made small", choices=MUTANTS)
    options = parser.parse_args(line)
    if options.mutant:
        with pytest.MonkeyPatch.context() as patch:
            MUTANTS[options.mutant].plant(patch)
            _, problem = play_seeds(range(MUTANT_SEEDS))
        print(problem or f"none of {MUTANT_SEEDS} worlds")
        return 0 if problem else 1
    if options.seed is not None or options.replay:
        with quiet():
            outcome = play(Replayed(_recorded(options.replay)) if options.replay else Seeded(options.seed))
        print("\n".join(story(outcome)))
        return 1 if outcome.violations else 0
    return soak(options.hours, options.first, options.processes)


def soak(hours: float, first: int, processes: int) -> int:
    until, tally, told = time.monotonic() + hours * 3600, Tally(), 0.0
    with ProcessPoolExecutor(processes) as pool:
        running: set[Future[tuple[Tally, str]]] = set()
        while running or time.monotonic() < until:
            while len(running) < processes and time.monotonic() < until:
                running.add(pool.submit(play_seeds, range(first, first + BATCH)))
                first += BATCH
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                batch, problem = future.result()
                tally.merge(batch)
                if problem:
                    pool.shutdown(cancel_futures=True)
                    print(problem)
                    return 1
            if time.monotonic() - told > 30:
                told = time.monotonic()
                sys.stderr.write(f"{tally.worlds:,} worlds, {max(0.0, until - told) / 60:.0f} minutes to go\n")
    print("\n".join(tally.lines()))
    return 0


def _recorded(given: str) -> Sequence[tuple[str, int, int]]:
    found: Sequence[tuple[str, int, int]] = (
        json.loads(given) if given.startswith("[") else json.loads(Path(given).read_text())["answers"]
    )
    return found


if __name__ == "__main__":
    sys.exit(main())
