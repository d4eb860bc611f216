"""The command line of the bench: `make bench`, or `.venv/bin/python -m bench.run --help`.

Chooses works, controllers and planes, runs the trials one after the other with the controllers interleaved (the speed
of a shared machine drifts, so only ratios of neighbouring runs may be compared), and prints the report.
"""

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench import measure, plane, report, trial, workloads
from bench.measure import Command, Program
from bench.progress import Progress
from bench.trial import Settings, Trial
from bench.workloads import Workload
from pyjobset.cli.output import error_lines
from pyjobset.errors import JobSetError, UsageError

SMALL = 0.1


def arguments(line: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measures the controller on a real control plane.")
    add = parser.add_argument
    add("works", nargs="*", metavar="WORK", help="of a, b, c, c2, d (default: all)")
    add("--runs", type=int, default=3, help="runs of each work, each on a fresh plane (default 3)")
    add("--full", action="store_true", help="with controller-manager, scheduler and simulated nodes")
    add("--small", action="store_true", help="a tenth of each work, once: under a minute")
    add("--scaling", action="store_true", help="also one JobSet of 1,000 Jobs against one of 10,000")
    add("--cache", action="store_true", help="also a controller with 10,000 Jobs in its cache")
    add("--quiet-seconds", type=float, default=10.0, help="how long nothing may be asked at the end (default 10)")
    add("--timeout-seconds", type=float, default=600.0, help="the most that a work may take (default 600)")
    add("--controller-args", default="", metavar="ARGS", help="more flags for our controller")
    add("--controller-binary", type=Path, metavar="PATH", help="another controller, measured in turn with ours")
    add(
        "--controller-binary-args",
        default=measure.FOREIGN_ARGUMENTS,
        metavar="ARGS",
        help="its flags, with {kubeconfig} and {health} (host:port of /readyz) filled in (default: %(default)s)",
    )
    add("--profile", type=Path, metavar="DIR", help="run ours under cProfile; its figures are slow then")
    add("--bin-dir", default="", metavar="DIR", help="the Kubernetes programs (default: as `jobset up` finds them)")
    add("-o", "--output", choices=("table", "json"), default="table")
    return parser.parse_args(line)


def chosen_works(options: argparse.Namespace) -> list[Workload]:
    scale = SMALL if options.small else 1.0
    known = {work.name: work for work in workloads.standard(scale)}
    if unknown := [name for name in options.works if name not in known]:
        raise UsageError(f"there is no work {unknown[0]!r}", hint=f"choose of {', '.join(known)}")
    wanted = options.works or ([] if options.scaling or options.cache else list(known))
    jobs = round(1000 * scale)
    extra = [workloads.many_jobs("n", jobs)] if options.scaling else []
    if options.scaling or options.cache:
        extra.append(workloads.many_jobs("10n", 10 * jobs))
    return [*(known[name] for name in wanted), *extra]


def programs(options: argparse.Namespace) -> list[Program]:
    if options.profile:
        options.profile.mkdir(parents=True, exist_ok=True)
    profile = options.profile.absolute() / "{run}.prof" if options.profile else None
    found = [measure.ours(arguments=options.controller_args, profile=profile)]
    if options.controller_binary:
        found.append(measure.foreign(options.controller_binary, options.controller_binary_args))
    return found


def run_trials(options: argparse.Namespace) -> list[Trial]:
    works, measured = chosen_works(options), programs(options)
    runs = 1 if options.small else options.runs
    settings = Settings(
        quiet_seconds=min(options.quiet_seconds, 3.0) if options.small else options.quiet_seconds,
        timeout_seconds=options.timeout_seconds,
        restart=options.cache,
    )
    trials = []
    with Progress(runs * len(works) * len(measured)) as progress:
        for run in range(1, runs + 1):
            for work in works:
                for program in measured:
                    progress.step(f"run {run} of {runs}: {work.name}, {work.what}, {program.name}")
                    kind = _plane(work, full=options.full)
                    with plane.fresh(kind, options.bin_dir) as server:
                        trials.append(_in_loop(trial.run(server, kind, work, program, settings)))
    return trials


def _plane(work: Workload, *, full: bool) -> plane.Kind:
    if full:
        return "full"
    return "collecting" if work.restart_strategy else "bare"


def cold_commands(times: int) -> dict[str, list[Command]]:
    """`jobset plan` from nothing, and a Python that does nothing, to compare."""
    manifest = workloads.standard()[-1].manifests("default")[0]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "jobset.json"
        file.write_bytes(msgspec.json.encode(manifest))
        plan = [sys.executable, "-m", "pyjobset", "plan", "-f", str(file)]
        return {
            "jobset plan": measure.cold(plan, times),
            "python": measure.cold([sys.executable, "-c", "pass"], times),
        }


def machine() -> dict[str, Any]:
    return {"cpus": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}


def main(line: Sequence[str] | None = None) -> int:
    options = arguments(line)
    try:
        if not Path("/proc/self/stat").exists():
            raise UsageError("the bench reads /proc, which this system does not have", hint="run it on Linux")
        with measure.compiled_python():
            trials = run_trials(options)
            commands = cold_commands(5)
    except KeyboardInterrupt:
        return 130
    except JobSetError as error:
        return _fail(error)
    except ExceptionGroup as group:
        errors, bugs = group.split(JobSetError)
        if errors is None or bugs is not None:
            raise
        return max(_fail(error) for error in errors.exceptions if isinstance(error, JobSetError))
    if options.output == "json":
        figures = report.data(trials, machine(), commands)
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(figures), indent=2).decode() + "\n")
    else:
        sys.stdout.write(report.text(trials, commands))
    return 0


def _fail(error: JobSetError) -> int:
    sys.stderr.write("\n".join(error_lines(error)) + "\n")
    return error.exit_code


def _in_loop(one: Any) -> Trial:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result: Trial = runner.run(one)
        return result


if __name__ == "__main__":
    sys.exit(main())
