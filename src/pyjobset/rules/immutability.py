"""What may change in a stored JobSet. Called by rules.validation for updates, with the defaults of both sides set.

Some fields never change: setting or removing one is a change too (decision 1). Of replicatedJobs only parts of the
templates change: what Kueue sets while a JobSet is suspended, and the pod counts of an elastic one (KEP-463, KEP-1150).
"""

from collections.abc import Iterator
from itertools import islice

from msgspec import to_builtins

from pyjobset.errors import Problem
from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import JobSet, JobSetSpec, ReplicatedJob
from pyjobset.objects.template import is_indexed, mapping_at
from pyjobset.rules import registry
from pyjobset.rules.difference import Difference, Path, differences

_IMMUTABLE = (
    "network",
    "success_policy",
    "failure_policy",
    "startup_policy",
    "coordinator",
    "managed_by",
    "volume_claim_policies",
    "scheduling",
)
_WIRE_NAMES = dict(zip(JobSetSpec.__struct_fields__, JobSetSpec.__struct_encode_fields__, strict=True))
_PLAIN = ("volume_claim_policies",)
"""Fields with parts that we only carry, in whatever spelling."""
_NAMED_MAX = 3

_POD: Path = ("template", "spec", "template")
_WHILE_SUSPENDED: tuple[Path, ...] = (
    (*_POD, "metadata", "labels"),
    (*_POD, "metadata", "annotations"),
    (*_POD, "spec", "nodeSelector"),
    (*_POD, "spec", "tolerations"),
    (*_POD, "spec", "schedulingGates"),
)
_COUNTS: tuple[Path, ...] = (("template", "spec", "parallelism"), ("template", "spec", "completions"))


def breaches(old: JobSet, new: JobSet, features: Features) -> Iterator[Problem]:
    for name in _IMMUTABLE:
        yield from _immutable(name, old.spec, new.spec)
    before, after = ([r.name for r in jobset.spec.replicated_jobs] for jobset in (old, new))
    if before != after:
        hint = f"they were {', '.join(before) or 'none'}" if len(before) <= 10 else ""
        message = "field is immutable: ReplicatedJobs cannot be added, removed, renamed or reordered"
        yield registry.IMMUTABLE_REPLICATED_JOB.at("spec.replicatedJobs", None, message, hint)
        return
    for i, (was, now) in enumerate(zip(old.spec.replicated_jobs, new.spec.replicated_jobs, strict=True)):
        if was != now:
            yield from _replicated_job(f"spec.replicatedJobs[{i}]", (old, was), (new, now), features)


def _immutable(name: str, old: JobSetSpec, new: JobSetSpec) -> Iterator[Problem]:
    before, after = getattr(old, name), getattr(new, name)
    if before == after:
        return
    path = f"spec.{_WIRE_NAMES[name]}"
    found = differences(to_builtins(before), to_builtins(after), is_exact=name not in _PLAIN)
    differing = [f"{difference.under(path)} {difference.change()}" for difference in islice(found, _NAMED_MAX)]
    if differing:
        yield registry.IMMUTABLE.at(path, hint=f"{'; '.join(differing)}. To change it, {registry.IMMUTABLE.hint}")


def _replicated_job(
    path: str, was: tuple[JobSet, ReplicatedJob], now: tuple[JobSet, ReplicatedJob], features: Features
) -> Iterator[Problem]:
    (old, old_job), (new, new_job) = was, now
    is_suspended = bool(old.spec.suspend or new.spec.suspend)
    is_elastic = gates.ELASTIC_JOBSET in features and is_indexed(old_job.template) and is_indexed(new_job.template)
    has_new_counts = False
    for difference in differences(to_builtins(old_job), to_builtins(new_job)):
        if is_elastic and difference.path in _COUNTS:
            has_new_counts = True
        elif not (is_suspended and _may_change_while_suspended(difference.path, features)):
            yield _refusal(path, difference, features)
    if has_new_counts:
        yield from _elastic(path, old, new_job)


def _may_change_while_suspended(path: Path, features: Features) -> bool:
    if any(path[: len(prefix)] == prefix for prefix in _WHILE_SUSPENDED):
        return True
    return gates.MUTABLE_POD_RESOURCES in features and _is_resources(path)


def _is_resources(path: Path) -> bool:
    match path:
        case ("template", "spec", "template", "spec", "containers" | "initContainers", int(), "resources", *_):
            return True
    return False


def _refusal(path: str, difference: Difference, features: Features) -> Problem:
    hint = ""
    if _may_change_while_suspended(difference.path, features):
        hint = "it may change while the JobSet is suspended"
    elif _is_resources(difference.path):
        hint = f"it may change while the JobSet is suspended, with the feature gate {gates.MUTABLE_POD_RESOURCES}"
    elif difference.path in _COUNTS and gates.ELASTIC_JOBSET not in features:
        hint = f"it may change with the feature gate {gates.ELASTIC_JOBSET}, for Indexed Jobs"
    elif difference.path in _COUNTS:
        hint = "it may change for Indexed Jobs only"
    message = f"field is immutable: {difference.change()}"
    return registry.IMMUTABLE_REPLICATED_JOB.at(difference.under(path), None, message, hint)


def _elastic(path: str, old: JobSet, job: ReplicatedJob) -> Iterator[Problem]:
    """New pod counts: both the same, at least 1, and only while there is something to run."""
    spec = mapping_at(job.template, "spec")
    counts = (spec.get("parallelism"), spec.get("completions"))
    if counts[0] != counts[1] or not counts[0] or counts[0] < 1:
        message = f"must change parallelism and completions to the same number, 1 or more; they are {_pair(counts)}"
        yield registry.ELASTIC_COUNTS.at(f"{path}.template.spec.parallelism", counts[0], message)
    for condition in old.status.conditions:
        if condition.type in (words.COMPLETED, words.FAILED) and condition.status == "True":
            message = f"cannot change: the JobSet is {condition.type}"
            yield registry.ELASTIC_FINISHED.at(f"{path}.template.spec.parallelism", counts[0], message)


def _pair(counts: tuple[object, object]) -> str:
    return " and ".join("unset" if count is None else str(count) for count in counts)
