"""Names that must be those of ReplicatedJobs. Called by the topic modules."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from pyjobset.errors import Problem
from pyjobset.objects.jobset import JobSet
from pyjobset.rules import registry
from pyjobset.rules.rule import SHOWN_LENGTH_MAX

_LISTED_MAX = 10
_COMPARED_MAX = 100


def known(jobset: JobSet) -> dict[str, None]:
    """The names that there are, in order."""
    return dict.fromkeys(replicated_job.name for replicated_job in jobset.spec.replicated_jobs)


def unknown(path: str, targets: Iterable[str], there: Mapping[str, object]) -> Iterator[Problem]:
    """A problem for each item of the list at `path` that is not the name of a ReplicatedJob."""
    for i, name in enumerate(targets):
        yield from unknown_one(f"{path}[{i}]", name, there)


def unknown_one(path: str, name: str, there: Mapping[str, object]) -> Iterator[Problem]:
    if name in there:
        return
    near = get_close_matches(name[:SHOWN_LENGTH_MAX], there, n=1) if len(there) <= _COMPARED_MAX else ()
    if near:
        hint = f"did you mean {near[0]}?"
    elif len(there) <= _LISTED_MAX:
        hint = f"there are: {', '.join(there) or 'none'}"
    else:
        hint = ""
    yield registry.UNKNOWN_REPLICATED_JOB.at(path, name, hint=hint)
