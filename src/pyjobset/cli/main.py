"""`jobset`, also `kubectl jobset`: the root of the command line, and what a person sees when something goes wrong.

Each module of commands has `register(root)`. Only typer and its click are imported at the top of any of them; a command
imports what it needs when it runs, so that `jobset plan` and every `--help` start at once. Exit codes are those of the
error tree: 2 wrong usage, 3 an invalid spec, 4 refused, 5 unavailable; 130 after Ctrl-C. A bug shows its traceback.
"""

import errno
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import click
import typer

from pyjobset import __version__
from pyjobset.errors import JobSetError

_HELP = """JobSet for Kubernetes, with gangs: plan it, run it, see why it waits.

\b
Examples:
  jobset demo                          a local Kubernetes and a gang, from nothing to Completed
  jobset plan -f train.yaml            what a JobSet becomes, without a cluster
  jobset lint -f manifests/            what is wrong with JobSets, all of it at once
  jobset explain gang-training         what a JobSet waits for, and what would help
  jobset tree gang-training --watch    a JobSet with its groups, Jobs and pods, live
"""


def app() -> typer.Typer:
    """All commands. Made on demand: tests and the reference of the docs walk it too."""
    from pyjobset.cli import controller, demo, explain, lint, plan, plane, tree

    root = typer.Typer(
        rich_markup_mode=None,
        suggest_commands=False,  # click does it
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    )
    root.callback(invoke_without_command=True, help=_HELP)(_root)
    for module in (plan, lint, explain, tree, demo, plane, controller):
        module.register(root)
    return root


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"jobset {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a name still gets the rest
    command = typer.main.get_command(app())
    try:
        code = command.main(arguments, prog_name=program(), standalone_mode=False)
        sys.stdout.flush()
    except click.Abort:
        return 130
    except click.ClickException as error:
        return _usage(error, command, sys.argv[1:] if arguments is None else arguments)
    except JobSetError as error:
        return _fail([error])
    except ExceptionGroup as group:
        errors, bugs = group.split(JobSetError)
        if errors is None or bugs is not None:
            raise
        return _fail([e for e in errors.exceptions if isinstance(e, JobSetError)])
    except OSError as error:
        return _cannot_write(error)
    return code if isinstance(code, int) else 0


def run() -> None:
    """The entry point of the console scripts."""
    sys.exit(main())


def program() -> str:
    """How the person called us, for usage lines."""
    return "kubectl jobset" if Path(sys.argv[0]).name.startswith("kubectl-") else "jobset"


def _cannot_write(error: OSError) -> int:
    """Nobody reads the output any more, which is no news, or the disk is full. Other errors are bugs."""
    if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT):
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still in the buffer goes there
    if error.errno != errno.EPIPE:
        sys.stderr.write(f"error: cannot write the output: {os.strerror(error.errno).lower()}\n")
    return 1


def _usage(error: click.ClickException, root: click.Command, arguments: Sequence[str]) -> int:
    from pyjobset.cli.output import note

    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # a group such as `nodes` without its command
        typer.echo(error.format_message(), err=True)
        return 2
    note(f"error: {error.format_message()}")
    called = list(_called(root, arguments))
    words = [word for word in arguments[len(called) :] if not word.startswith("-")]
    is_file = isinstance(error, click.MissingParameter) and error.param is not None and error.param.name == "filename"
    if is_file and words:  # a file without its flag
        note(f"hint: {' '.join([program(), *called])} -f {shlex.quote(words[0])}")
    else:
        note(f"hint: {' '.join([program(), *called])} --help")
    return 2


def _called(command: click.Command, arguments: Sequence[str]) -> Iterator[str]:
    """The names of the commands that the arguments begin with."""
    for word in arguments:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            return
        command = inner
        yield word


def _fail(errors: Sequence[JobSetError]) -> int:
    from pyjobset.cli.output import fail

    for error in errors:
        fail(error)
    return max(error.exit_code for error in errors)


if __name__ == "__main__":
    run()
