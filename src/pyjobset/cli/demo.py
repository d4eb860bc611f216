"""`jobset demo`: from nothing to a completed gang on a local Kubernetes, with a proof of what happened.

Starts the plane, applies the gang example with kubectl, shows it live and checks while it runs that the five pods were
one gang and ran on nodes. It deletes only the JobSet that an earlier demo made, and leaves the plane running.
"""

import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pyjobset.cli.proof import Proof
    from pyjobset.cli.tree import Show
    from pyjobset.cli.view import Family
    from pyjobset.kube.client import Client
    from pyjobset.localplane.plane import Plane
    from pyjobset.objects.meta import Manifest

EXAMPLE = "scheduling/gang-scheduling.yaml"
MARK = "jobset.sigs.k8s.io/made-by-demo"
SECONDS_MAX = 240.0


def register(root: typer.Typer) -> None:
    root.command("demo")(demo)


def demo(
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Where the local plane lives. Default: the user's own.")
    ] = None,
    timeout_seconds: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds after which the JobSet must be Completed.")
    ] = SECONDS_MAX,
) -> None:
    """Run a gang of five pods on a local Kubernetes, to its end.

    \b
    Examples:
      jobset demo
      jobset demo --dir /tmp/plane
    """
    import asyncio

    from pyjobset.cli.examples import example
    from pyjobset.cli.output import say
    from pyjobset.localplane.plane import Plane
    from pyjobset.localplane.progress import for_stream

    path = example(EXAMPLE)
    plane = Plane(directory, progress=for_stream())
    plane.start()
    summary = asyncio.run(_run(plane, path, timeout_seconds))
    say("\n".join(["", *summary, "", *_farewell(plane, path, directory)]))


async def _run(plane: "Plane", path: Path, timeout_seconds: float) -> list[str]:
    """The summary. Raises PlaneError where the JobSet does not complete, or was not one gang."""
    import asyncio
    import time

    from pyjobset.cli.cluster import follow
    from pyjobset.cli.proof import Proof
    from pyjobset.cli.tree import show_changes
    from pyjobset.errors import PlaneError
    from pyjobset.kube.client import connect
    from pyjobset.objects.template import pods

    manifest = _marked(path)
    namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
    proof = Proof(pods=sum(job["replicas"] * pods(job["template"]) for job in manifest["spec"]["replicatedJobs"]))
    hint = f"look at: {how_called()} logs controller"
    async with connect(kubeconfig=str(plane.kubeconfig)) as client:
        try:
            async with asyncio.timeout(timeout_seconds):
                await _clear(client, namespace, name)
                started = time.monotonic()
                _apply(plane, manifest, path)
                with _display(proof) as show:
                    await show_changes(_witnessed(follow(client, namespace, name), proof), show)
        except TimeoutError as error:
            raise PlaneError(f"not Completed after {timeout_seconds:.0f} s: {proof.line()}", hint=hint) from error
    if failures := proof.failures():
        raise PlaneError("; ".join(failures), hint=hint)
    return proof.summary(time.monotonic() - started)


def _marked(path: Path) -> "Manifest":
    """The example, with the mark by which the next demo knows that it may delete it."""
    from pyjobset.cli.files import read

    found, _ = read([str(path)])
    manifest = found[0].manifest
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {MARK: "true"}}}


async def _clear(client: "Client", namespace: str, name: str) -> None:
    """Deletes what an earlier demo left, and waits until it is gone."""
    from pyjobset.cli.cluster import follow
    from pyjobset.errors import NotFound, UsageError
    from pyjobset.objects.resources import JOBSETS

    try:
        old = await client.get(JOBSETS, namespace, name)
        if MARK not in old.metadata.annotations:
            raise UsageError(
                f"there is a JobSet {namespace}/{name} that the demo did not make",
                hint=f"delete it first: kubectl delete jobset {name} -n {namespace}",
            )
        await client.delete(JOBSETS, namespace, name, uid=old.metadata.uid, propagation="Foreground")
        async for _ in follow(client, namespace, name):
            pass
    except NotFound:
        return


def _apply(plane: "Plane", manifest: "Manifest", path: Path) -> None:
    from pyjobset.cli.output import dump, note
    from pyjobset.errors import PlaneError

    note(f"kubectl apply -f {_short(path)}")
    done = plane.run_kubectl("apply", "-f", "-", stdin=dump([manifest], "yaml"))
    if done.returncode != 0:
        raise PlaneError(f"kubectl could not apply {path}: {done.stderr.strip()}", hint="look at the message above")
    note(done.stdout.strip())


async def _witnessed(families: AsyncGenerator["Family", None], proof: "Proof") -> AsyncGenerator["Family", None]:
    from contextlib import aclosing

    async with aclosing(families):
        async for family in families:
            proof.see(family)
            yield family


@contextmanager
def _display(proof: "Proof") -> Iterator["Show"]:
    """A live tree on a terminal; elsewhere a line at each change."""
    from pyjobset.cli.output import note

    if sys.stdout.isatty():
        from pyjobset.cli.terminal import Picture

        with Picture() as picture:
            yield picture.show
        return
    said: list[str] = []

    def show(_: object) -> None:
        if proof.line() not in said[-1:]:
            said.append(proof.line())
            note(said[-1])

    yield show


def how_called() -> str:
    """The program as the person can type it: `jobset` where it is on the PATH, else its path from here."""
    import os
    import shutil

    mine = Path(sys.argv[0])
    found = shutil.which("jobset")
    if mine.name != "jobset":
        return "jobset" if found else f"{_short(Path(sys.executable))} -m pyjobset"
    if found and os.path.realpath(found) == os.path.realpath(mine):
        return "jobset"
    return _short(mine)


def _short(path: Path) -> str:
    """From the current directory, where that is shorter."""
    import os

    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) or not path.is_absolute() else str(path)


def _farewell(plane: "Plane", path: Path, directory: Path | None) -> list[str]:
    import shutil
    from shlex import quote

    program = how_called()
    where = f" --dir {quote(str(directory))}" if directory else ""
    kubectl = "kubectl" if shutil.which("kubectl") else quote(str(plane.kubectl))
    return [
        "The local Kubernetes keeps running. Use it:",
        f"  export KUBECONFIG=$({program} kubeconfig{where})",
        f"  {kubectl} get jobsets,jobs,pods",
        f"  {kubectl} apply -f {_short(path.parent / 'topology-constrained.yaml')}",
        f"  {program} tree topo-training --watch",
        "Stop it:",
        f"  {program} down{where}",
    ]
