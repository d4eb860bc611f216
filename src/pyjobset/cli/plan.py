"""`jobset plan`: what a manifest becomes on a cluster, without a cluster.

Reads manifests, checks every JobSet against the admission rules, and prints what the compiler makes of them: a table,
or objects that kubectl takes. One invalid document and nothing goes to stdout, so that a pipe never applies a half.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from pyjobset.cli.files import Found
    from pyjobset.objects.features import Features
    from pyjobset.objects.jobset import JobSet
    from pyjobset.objects.meta import Manifest

Format = Literal["table", "yaml", "json"]

JOBS_MAX = 20_000
"""Of all JobSets together. More is a slip of the finger, and would take minutes to print."""


def register(root: typer.Typer) -> None:
    root.command("plan")(plan)


def plan(
    filename: Annotated[
        list[str],
        typer.Option("--filename", "-f", help="A manifest, a directory of manifests, or - for stdin. May be repeated."),
    ],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="For JobSets that name none. Default: default.")
    ] = "",
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print it.")] = "table",
    feature_gates: Annotated[
        str, typer.Option(help="NAME=true,NAME=false over the defaults; JobSetWorkloadAwareSchedulingAPI is on here.")
    ] = "",
) -> None:
    """Show the objects that a JobSet becomes. Needs no cluster.

    \b
    Examples:
      jobset plan -f train.yaml
      jobset plan -f manifests/ -o yaml
      helm template my-chart | jobset plan -f -
    """
    from pyjobset.cli.output import dump, say, table
    from pyjobset.cli.plantable import HEADERS, rows
    from pyjobset.compiler.jobset import compile_jobset
    from pyjobset.objects.features import WORKLOAD_AWARE_SCHEDULING, parse

    features = parse(f"{WORKLOAD_AWARE_SCHEDULING}=true,{feature_gates}")
    compiled = [(jobset, compile_jobset(jobset, features)) for jobset in load(filename, namespace, features)]
    if output == "table":
        say("\n".join(table(HEADERS, (row for one in compiled for row in rows(*one)))))
    else:
        say(dump([_without_owner(o) for _, objects in compiled for o in objects], output))


def load(names: Sequence[str], namespace: str, features: "Features") -> list["JobSet"]:
    """The valid JobSets of all files. Raises UsageError, or an ExceptionGroup with every InvalidSpec."""
    from pyjobset.cli.files import kinds, no_jobset, read
    from pyjobset.cli.output import note
    from pyjobset.errors import InvalidSpec

    found, misfits = read(names)
    bad = [InvalidSpec([misfit.problem for misfit in misfits], subject=", ".join(names))] if misfits else []
    good: list[JobSet] = []
    for one in filter(lambda f: f.is_jobset, found):
        try:
            good.append(checked(one, namespace, features))
        except InvalidSpec as error:
            bad.append(error)
    if bad:
        raise ExceptionGroup("invalid manifests", bad)
    if not good:
        raise no_jobset(found)
    if others := [f for f in found if not f.is_jobset]:
        note(f"note: only JobSets are planned; skipped {kinds(others)}")
    _check_size(good)
    return good


def checked(found: "Found", namespace: str, features: "Features") -> "JobSet":
    """The JobSet of an object, as it would be admitted; warnings are said. Raises InvalidSpec."""
    from pyjobset.cli.output import note, problem_text
    from pyjobset.cli.template_fields import field_problems
    from pyjobset.errors import InvalidSpec, Problem
    from pyjobset.rules.names import named
    from pyjobset.rules.validation import check, warnings

    problems: tuple[Problem, ...] = ()
    try:
        jobset = check(_in_namespace(found.manifest, namespace or "default"), features)
    except InvalidSpec as error:
        problems = error.problems
    known = {problem.path for problem in problems}
    problems += tuple(p for p in field_problems(found.manifest) if p.path not in known)
    if problems:
        raise InvalidSpec(problems, subject=found.title)
    jobset = named(jobset)
    for problem in warnings(jobset, features):
        note(f"warning: {found.title}: {problem.path} {problem_text(problem)}; hint: {problem.hint}")
    return jobset


def _in_namespace(manifest: "Manifest", namespace: str) -> "Manifest":
    """As kubectl does it: a JobSet that names no namespace goes to the one of the command line."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace") not in (None, ""):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}


def _check_size(jobsets: Sequence["JobSet"]) -> None:
    from pyjobset.errors import UsageError

    jobs = sum(job.replicas for jobset in jobsets for job in jobset.spec.replicated_jobs)
    if jobs > JOBS_MAX:
        raise UsageError(f"that would be {jobs:,} Jobs", hint=f"plan shows up to {JOBS_MAX:,}: check replicas")


def _without_owner(manifest: "Manifest") -> "Manifest":
    """Without the reference to a JobSet that has no uid yet: the API server would refuse it."""
    owners = manifest["metadata"].get("ownerReferences") or []
    if all(owner.get("uid") for owner in owners):
        return manifest
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "ownerReferences"}
    return {**manifest, "metadata": metadata}
