"""Admission of a JobSet: what a create or an update breaks, and what is only worth a warning.

`jobset plan`, the webhooks and the SDK call it. Pure: no cluster is asked. The schema (enumerations, limits, what must
be set) is checked by rules.parse, and by the API server before it calls a webhook; here are the rules between fields.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import msgspec

from pyjobset.errors import InvalidSpec, Problem
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import JobSet
from pyjobset.rules import (
    coordinator,
    groups,
    immutability,
    names,
    placement,
    policies,
    scheduling,
    startup,
    templates,
    volumes,
)
from pyjobset.rules import warnings as cautions
from pyjobset.rules.defaults import with_defaults
from pyjobset.rules.parse import PROBLEMS_MAX, read


def check(manifest: Any, features: Features) -> JobSet:
    """The JobSet of a manifest, defaults set, fit to be created. Raises InvalidSpec with everything that is wrong."""
    jobset, problems = read(manifest)
    if jobset is not None:
        paths = {problem.path for problem in problems}
        problems += tuple(p for p in validate_create(jobset, features) if p.path not in paths)
    if problems:
        raise InvalidSpec(problems)
    assert jobset is not None
    return with_defaults(jobset)


def check_update(old: Any, new: Any, features: Features) -> JobSet | None:
    """The same for a change of a stored JobSet. What was broken before is let pass; None: so much that it has no type.

    A field that the old and the new manifest have wrong in the same way is one of a JobSet from before a rule.
    """
    after, found = read(new)
    # Of a stored object the problems are asked for only when there is something to compare them with: it takes longest.
    before, known = read(old) if found else (_typed(old, after), ())
    problems = tuple(problem for problem in found if problem not in known)
    if after is not None:
        paths = {problem.path for problem in problems}
        fresh = validate_create(after, features) if before is None else validate_update(before, after, features)
        problems += tuple(problem for problem in fresh if problem.path not in paths)
    if problems:
        raise InvalidSpec(problems)
    return None if after is None else with_defaults(after)


def _typed(stored: Any, after: JobSet | None) -> JobSet | None:
    """The stored JobSet. Its templates were looked into if they are those of `after`; msgspec does not do that."""
    try:
        before = msgspec.convert(stored, JobSet)
    except msgspec.ValidationError:
        return read(stored)[0]
    return before if after is not None and _carried(before) == _carried(after) else read(stored)[0]


def _carried(jobset: JobSet) -> list[Any]:
    jobs = [replicated_job.template for replicated_job in jobset.spec.replicated_jobs]
    return [jobs, [policy.templates for policy in jobset.spec.volume_claim_policies]]


def validate_create(jobset: JobSet, features: Features) -> tuple[Problem, ...]:
    """What is wrong with a new JobSet, in the order of its fields' topics; at most PROBLEMS_MAX."""
    return tuple(islice(_breaches(names.named(with_defaults(jobset)), features), PROBLEMS_MAX))


def validate_update(old: JobSet, new: JobSet, features: Features) -> tuple[Problem, ...]:
    """What is wrong with a change. A breach that the stored JobSet already has does not stand in the way of others."""
    before, after = names.named(with_defaults(old)), names.named(with_defaults(new))
    found = tuple(_breaches(after, features))
    known = set(_breaches(before, features)) if found else ()
    fresh = (problem for problem in found if problem not in known)
    return tuple(islice(chain(immutability.breaches(before, after, features), fresh), PROBLEMS_MAX))


def warnings(jobset: JobSet, features: Features) -> tuple[Problem, ...]:
    """What is admitted and worth a look, for a JobSet without problems."""
    return tuple(islice(cautions.breaches(with_defaults(jobset), features), PROBLEMS_MAX))


def _breaches(jobset: JobSet, features: Features) -> Iterator[Problem]:
    yield from names.breaches(jobset)
    yield from templates.breaches(jobset)
    yield from startup.breaches(jobset)
    yield from policies.breaches(jobset, features)
    yield from coordinator.breaches(jobset)
    yield from volumes.breaches(jobset)
    yield from scheduling.breaches(jobset, features)
    yield from groups.breaches(jobset)
    yield from placement.breaches(jobset)
