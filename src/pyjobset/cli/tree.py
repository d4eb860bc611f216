"""`jobset tree`: a JobSet with its groups, Jobs and pods, and in plain words why a gang waits.

The shell around view and treetext: it fetches, and prints once or at every change. On a terminal --watch is one live
picture, on a pipe one after the other.
"""

import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from pyjobset.cli.view import Family, JobSetView

Format = Literal["table", "json", "yaml"]
Show = Callable[["JobSetView"], None]


def register(root: typer.Typer) -> None:
    root.command("tree")(tree)


def tree(
    name: Annotated[
        str | None, typer.Argument(help="The name of the JobSet. Without it, a list.", show_default=False)
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Its namespace. Default: that of the kubeconfig's context.")
    ] = "",
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List the JobSets of all namespaces.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show every change, until the JobSet has finished.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="A row for each group, Job and pod, also where many are alike.")
    ] = False,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print it.")] = "table",
    kubeconfig: Annotated[
        str | None, typer.Option(help="Default: $KUBECONFIG, ~/.kube/config, or the local plane.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="The context of the kubeconfig to use.")] = None,
) -> None:
    """Show a JobSet with its groups, Jobs and pods, or list JobSets.

    \b
    Examples:
      jobset tree
      jobset tree gang-training
      jobset tree gang-training -n training --watch
      jobset tree gang-training --all
      jobset tree gang-training -o json | jq .groups[].why
    """
    import asyncio

    from pyjobset.cli.cluster import hinting
    from pyjobset.cli.listing import check_words, list_jobsets, show
    from pyjobset.errors import UsageError

    check_words(name, everywhere=everywhere, namespace=namespace)
    if name is None and watch:
        raise UsageError("--watch needs the name of a JobSet", hint="jobset tree lists them")
    with hinting(kubeconfig):
        if name is None:
            look = list_jobsets(namespace, everywhere=everywhere, kubeconfig=kubeconfig, context=context)
            _, found = asyncio.run(look)
            show(found, output, everywhere=everywhere)
            return
        asyncio.run(_tree(name, namespace, watch, output, not everything, kubeconfig, context))


async def _tree(
    name: str,
    namespace: str,
    watch: bool,
    output: Format,
    is_folded: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    from pyjobset.cli.cluster import bounded, fetch, follow, open_client
    from pyjobset.cli.output import note
    from pyjobset.cli.view import view

    async with open_client(kubeconfig, context) as client:
        namespace = namespace or client.namespace
        if not watch:
            async with bounded():
                family = await fetch(client, namespace, name)
            with printer(output, is_folded=is_folded) as show:
                show(view(family))
            return
        with printer(output, live=True, is_folded=is_folded) as show:
            last = await show_changes(follow(client, namespace, name), show)
        if last is not None and not last.is_finished:
            note(f"JobSet {namespace}/{name} was deleted")


async def show_changes(families: AsyncGenerator["Family", None], show: Show) -> "JobSetView | None":
    """Shows each view that differs from the one before, until the JobSet has finished. Returns the last."""
    from pyjobset.cli.view import view

    last = None
    async with aclosing(families):
        async for family in families:
            now = view(family)
            if now != last:
                show(now)
            last = now
            if now.is_finished:
                break
    return last


@contextmanager
def printer(output: Format, *, live: bool = False, is_folded: bool = True) -> Iterator[Show]:
    """How to show a view: once, or again and again while the context is open."""
    if output != "table":
        yield partial(_print_data, output, live)
    elif not sys.stdout.isatty():
        yield partial(_print_snapshot if live else _print_lines, is_folded)
    elif live:
        from pyjobset.cli.terminal import Picture

        with Picture(is_folded=is_folded) as picture:
            yield picture.show
    else:
        from pyjobset.cli.terminal import print_view

        yield partial(print_view, is_folded=is_folded)


def _print_data(output: Literal["json", "yaml"], live: bool, view: "JobSetView") -> None:
    import msgspec

    from pyjobset.cli.output import say, to_json, to_yaml

    if output == "json":
        say(to_json(view))
    else:
        say(("---\n" if live else "") + to_yaml(msgspec.to_builtins(view)))
    sys.stdout.flush()


def _print_lines(is_folded: bool, view: "JobSetView") -> None:
    from pyjobset.cli.output import say
    from pyjobset.cli.treetext import lines, rows

    say("\n".join(lines(rows(view, is_folded=is_folded))))


def _print_snapshot(is_folded: bool, view: "JobSetView") -> None:
    from datetime import datetime

    from pyjobset.cli.output import say

    say(f"# {datetime.now().astimezone():%H:%M:%S}")
    _print_lines(is_folded, view)
    say("")
    sys.stdout.flush()
