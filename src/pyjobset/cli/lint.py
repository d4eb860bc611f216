"""`jobset lint`: everything that is wrong with the JobSets of some files, without a cluster.

The rules and the verdict are those of the admission webhook. It says nothing about JobSets that are fine, and passes
over other objects, so that a hook can hand it every manifest of a repository. It prints no object and compiles none.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyjobset.cli.files import Found, Place
    from pyjobset.errors import InvalidSpec
    from pyjobset.objects.features import Features

    Finding = tuple[Place, str, InvalidSpec]
    """Where, which object ("" where there is none), and all that is wrong there."""

Format = Literal["text", "yaml", "json"]


def register(root: typer.Typer) -> None:
    root.command("lint")(lint)


def lint(
    filename: Annotated[
        list[str],
        typer.Option("--filename", "-f", help="A manifest, a directory of manifests, or - for stdin. May be repeated."),
    ],
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print what is wrong.")] = "text",
    feature_gates: Annotated[
        str, typer.Option(help="NAME=true,NAME=false over the defaults; JobSetWorkloadAwareSchedulingAPI is on here.")
    ] = "",
) -> None:
    """Report every problem of every JobSet: path, value, what to do. Needs no cluster; says nothing when all is well.

    \b
    Examples:
      jobset lint -f train.yaml
      jobset lint -f manifests/ -o json
      helm template my-chart | jobset lint -f -
    """
    from pyjobset.cli.output import error_lines, note, printable, say, to_json, to_yaml
    from pyjobset.errors import InvalidSpec
    from pyjobset.objects.features import WORKLOAD_AWARE_SCHEDULING, parse

    features = parse(f"{WORKLOAD_AWARE_SCHEDULING}=true,{feature_gates}")
    findings = list(find(filename, features))
    if output == "text":
        for _, _, error in findings:
            say("\n".join(printable(line) for line in error_lines(error)))
        if any(problem.code.endswith("-gate") for _, _, error in findings for problem in error.problems):
            note("note: --feature-gates NAME=true judges as if that gate were on")
    else:
        items = [item for finding in findings for item in _items(finding)]
        say(to_json(items) if output == "json" else to_yaml(items))
    if findings:
        raise typer.Exit(InvalidSpec.exit_code)


def find(names: "Sequence[str]", features: "Features") -> "Iterator[Finding]":
    """The documents that are wrong, unreadable ones first. Raises UsageError for a file that cannot be read."""
    from pyjobset.cli.files import read
    from pyjobset.cli.plan import checked
    from pyjobset.errors import InvalidSpec

    found, misfits = read(names)
    for misfit in misfits:
        yield misfit.place, "", InvalidSpec([misfit.problem], subject=misfit.place.file)
    for one in found:
        if _is_meant_to_be_a_jobset(one):
            try:
                checked(one, "", features)
            except InvalidSpec as error:
                yield one.place, one.name, error


def _is_meant_to_be_a_jobset(found: "Found") -> bool:
    """One with a slip in its kind or its apiVersion must not be passed over: the API server would not take it."""
    from pyjobset.objects.jobset import GROUP, KIND

    return found.kind.casefold() == KIND.casefold() or str(found.manifest["apiVersion"]).startswith(f"{GROUP}/")


def _items(finding: "Finding") -> Iterator[dict[str, Any]]:
    place, name, error = finding
    for problem in error.problems:
        yield {
            "file": place.file,
            "line": place.line,
            "object": name,
            "code": problem.code,
            "path": problem.path,
            "value": problem.value,
            "message": problem.message,
            "hint": problem.hint,
        }
