"""Trials as tables for people, or as JSON for programs. Pure.

A cell of several runs is `minimum / median`, as figures of shared machines are to be read: the minimum is what the
program can do, the median what it did. A ratio is the median of the runs' ratios, since both of its parts come from
the same run; what we want it to be stands in brackets. Nothing here passes or fails.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import median
from typing import Any

import msgspec

from bench import metrics
from bench.measure import Command
from bench.trial import Trial
from bench.workloads import CHILDREN
from pyjobset.cli.output import table

Row = list[str]
NONE = "-"
SCALING_TARGET = 12
COMMAND_TARGETS = {"jobset plan": "0.30"}


@dataclass(frozen=True, slots=True)
class Group:
    """The runs of one controller at one work on one kind of plane; at least one."""

    trials: Sequence[Trial]

    @property
    def first(self) -> Trial:
        return self.trials[0]

    @property
    def labels(self) -> Row:
        return [self.first.workload.name, self.first.plane, self.first.controller]

    def spread(self, figure: Callable[[Trial], float], digits: int = 2) -> str:
        return _spread([figure(trial) for trial in self.trials], digits)

    def ratio(self, figure: Callable[[Trial], float | None], target: float | None) -> str:
        values = [value for trial in self.trials if (value := figure(trial)) is not None]
        if not values:
            return NONE
        return f"{median(values):.2f}" + ("" if target is None else f" ({target:.2f})")


def _spread(values: Sequence[float], digits: int = 2) -> str:
    """`minimum / median`; of one run only its figure."""
    shown = [min(values)] if len(values) == 1 else [min(values), median(values)]
    return " / ".join(f"{value:.{digits}f}" for value in shown)


def groups(trials: Iterable[Trial]) -> list[Group]:
    """In the order in which each first came."""
    found: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in trials:
        found.setdefault((trial.workload.name, trial.plane, trial.controller), []).append(trial)
    return [Group(tuple(runs)) for runs in found.values()]


def text(trials: Sequence[Trial], commands: Mapping[str, Sequence[Command]]) -> str:
    """The whole report."""
    found = groups(trials)
    works = {g.first.workload.name: g.first.workload.what for g in found}
    parts = [
        [f"{name}: {what}" for name, what in works.items()],
        _time_and_cpu(found),
        _against_the_loop(found),
        _requests(found),
        _starts(found),
        _scaling(found),
        _commands(commands),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _time_and_cpu(found: Sequence[Group]) -> list[str]:
    headers = ["WORK", "PLANE", "CONTROLLER", "TIME s", "CPU s", "PEAK RSS MiB", "API SERVER CPU s", "CPU RATIO"]
    rows = [
        [
            *g.labels,
            g.spread(lambda t: t.seconds),
            g.spread(lambda t: t.cpu_seconds),
            g.spread(lambda t: t.rss_peak_mib, 0),
            g.spread(lambda t: t.api_cpu_seconds),
            g.ratio(lambda t: t.cpu_ratio, _cpu_target(g.first)),
        ]
        for g in found
    ]
    return table(headers, rows)


def _against_the_loop(found: Sequence[Group]) -> list[str]:
    headers = ["WORK", "PLANE", "CONTROLLER", "LOOP TIME s", "LOOP CPU s", "ITS CPU RATIO", "TIME / LOOP", "CPU / LOOP"]
    rows = [
        [
            *g.labels,
            g.spread(lambda t: t.loop.seconds if t.loop else 0.0),
            g.spread(lambda t: t.loop.cpu_seconds if t.loop else 0.0),
            g.ratio(lambda t: t.loop.cpu_ratio if t.loop else None, None),
            g.ratio(lambda t: t.loop_ratio, g.first.workload.loop_ratio_target),
            g.ratio(lambda t: t.cpu_seconds / t.loop.cpu_seconds if t.loop else None, None),
        ]
        for g in found
        if g.first.loop is not None
    ]
    return table(headers, rows) if rows else []


def _requests(found: Sequence[Group]) -> list[str]:
    """Of the worst run."""
    headers = ["WORK", "PLANE", "CONTROLLER", "OBJECTS", "POSTS", "409", "STATUS WRITES", "A JOBSET", "OTHER", "QUIET"]
    rows = []
    for g in found:
        worst = max(g.trials, key=lambda t: metrics.total(t.calls))
        counts = counted(worst)
        each = f"{counts.status_writes / worst.workload.jobsets:.2f} (2)"
        figures = (counts.objects, counts.posts, counts.conflicts, counts.status_writes)
        quiet = max(metrics.total(t.quiet_calls) for t in g.trials)
        rows.append([*g.labels, *map(str, figures), each, str(counts.other), str(quiet)])
    return table(headers, rows)


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests of one trial. With a full plane the cluster's own controllers are among `other`."""

    objects: int
    posts: int
    """On the kinds of these objects."""
    conflicts: int
    status_writes: int
    """On JobSets."""
    other: int
    """All the rest but our own: a JobSet's creation, or its Job's failure."""


def counted(trial: Trial) -> Counts:
    plurals = {resource.plural for resource in CHILDREN.values()}
    posts = metrics.total(Counter({c: n for c, n in trial.calls.items() if c.resource in plurals}), "POST")
    statuses = Counter({c: n for c, n in trial.calls.items() if (c.resource, c.subresource) == ("jobsets", "status")})
    status_writes = metrics.total(statuses, "PATCH", "PUT", "APPLY")
    return Counts(
        objects=trial.objects,
        posts=posts,
        conflicts=metrics.total(trial.calls, code="409"),
        status_writes=status_writes,
        other=metrics.total(trial.calls) - posts - status_writes - trial.workload.jobsets,
    )


def _starts(found: Sequence[Group]) -> list[str]:
    headers = ["WORK", "PLANE", "CONTROLLER", "START", "READY s", "CPU s", "PEAK RSS MiB"]
    rows = []
    for g in found:
        starts = {"empty": [t.start for t in g.trials], "among its objects": [t.restart for t in g.trials if t.restart]}
        for name, measured in starts.items():
            if measured:
                figures = (
                    _spread([s.ready_seconds for s in measured]),
                    _spread([s.cpu_seconds for s in measured]),
                    _spread([s.rss_peak_mib for s in measured], 0),
                )
                rows.append([*g.labels, name, *figures])
    return table(headers, rows)


def _scaling(found: Sequence[Group]) -> list[str]:
    """Works called `n` and `10n`: how much more CPU the bigger one took."""
    by_name = {(g.first.workload.name, g.first.plane, g.first.controller): g for g in found}
    rows = []
    for (name, plane, controller), big in by_name.items():
        small = by_name.get((name.removeprefix("10"), plane, controller))
        if not name.startswith("10") or small is None:
            continue
        cpu = [median(t.cpu_seconds for t in g.trials) for g in (small, big)]
        jobs = [g.first.workload.jobs for g in (small, big)]
        rows.append([controller, f"{jobs[0]:,} -> {jobs[1]:,}", f"{cpu[1] / cpu[0]:.1f} ({SCALING_TARGET})"])
    return table(["CONTROLLER", "JOBS", "CPU GROWTH"], rows) if rows else []


def _commands(commands: Mapping[str, Sequence[Command]]) -> list[str]:
    rows = [
        [
            name,
            _spread([r.seconds for r in runs]),
            _spread([r.cpu_seconds for r in runs]),
            COMMAND_TARGETS.get(name, NONE),
        ]
        for name, runs in commands.items()
    ]
    return table(["COMMAND", "WALL s", "CPU s", "WANTED s"], rows) if rows else []


def _cpu_target(trial: Trial) -> float | None:
    work = trial.workload
    return work.cpu_ratio_target_full if trial.plane == "full" else work.cpu_ratio_target


def data(
    trials: Sequence[Trial], machine: Mapping[str, Any], commands: Mapping[str, Sequence[Command]]
) -> dict[str, Any]:
    """Everything that was measured, one entry a run, as plain JSON values."""
    runs = {name: msgspec.to_builtins(list(found)) for name, found in commands.items()}
    return {"machine": machine, "commands": runs, "trials": [_plain(trial) for trial in trials]}


def _plain(trial: Trial) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(
        {field.name: getattr(trial, field.name) for field in fields(trial) if not field.name.endswith("calls")}
    )
    plain["cpuRatio"], plain["loopRatio"] = trial.cpu_ratio, trial.loop_ratio
    plain["requests"] = {str(call): count for call, count in sorted(trial.calls.items())}
    plain["quietRequests"] = {str(call): count for call, count in sorted(trial.quiet_calls.items())}
    return plain
