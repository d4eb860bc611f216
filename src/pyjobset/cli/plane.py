"""`jobset up`, `down`, `status`, `reset`, `logs`, `kubeconfig`, `nodes`: the local control plane at the terminal.

A shell around localplane: it turns flags into options and a status into text. What it imports beyond typer it imports
when a command runs. Results go to stdout, progress to stderr.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from pyjobset.localplane.contents import NodeStatus
    from pyjobset.localplane.options import NodeLayout, PlaneOptions
    from pyjobset.localplane.plane import Plane, PlaneStatus

Format = Literal["table", "json", "yaml"]
Directory = Annotated[
    Path | None,
    typer.Option("--dir", help="Where the plane lives. Default: $JOBSET_PLANE_DIR, or the user's data directory."),
]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print it.")]

_NODES_HELP = """The simulated nodes of the local plane.

\b
Examples:
  jobset nodes list
  jobset nodes add --count 2
"""
nodes = typer.Typer(no_args_is_help=True, help=_NODES_HELP)


def register(root: typer.Typer) -> None:
    for command in (up, down, status, reset, logs, kubeconfig):
        root.command()(command)
    root.add_typer(nodes, name="nodes")


def up(
    directory: Directory = None,
    count: Annotated[int | None, typer.Option("--nodes", min=0, max=10_000, help="How many nodes. Default: 8.")] = None,
    cpu: Annotated[str | None, typer.Option(help="CPUs of each node. Default: 4.")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory of each node. Default: 16Gi.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="KEY=VALUE, a label of every node. May be repeated.")] = None,
    resource: Annotated[
        list[str] | None, typer.Option(help="NAME=QUANTITY, such as nvidia.com/gpu=8, of every node. May be repeated.")
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(help="KEY=COUNT,…: spread the nodes over COUNT domains of a label. Default: rack=4,slice=2."),
    ] = None,
    kubernetes_feature_gates: Annotated[
        str | None, typer.Option(help="NAME=true,NAME=false for Kubernetes, over the gates that gangs need.")
    ] = None,
    kubernetes_runtime_config: Annotated[
        str | None, typer.Option(help="GROUP/VERSION=true,… for the API server, over what gangs need.")
    ] = None,
    feature_gates: Annotated[
        str | None, typer.Option(help="NAME=true,NAME=false for the JobSet controller, over scheduling and elastic.")
    ] = None,
    controller: Annotated[
        bool | None, typer.Option("--controller/--no-controller", help="Run the JobSet controller. Default: yes.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="The API server's port. Default: 0, any free one.")
    ] = None,
    fsync: Annotated[
        bool | None, typer.Option("--fsync/--no-fsync", help="Survive a power cut; slower. Default: no.")
    ] = None,
    bin_dir: Annotated[
        str | None, typer.Option(help="Programs to use instead of building them. Also: $JOBSET_PLANE_BIN.")
    ] = None,
) -> None:
    """Start the local Kubernetes, or repair what is down. Without flags it is the plane that it was.

    The first time builds Kubernetes with Go, which takes some minutes; after that a start takes seconds.

    \b
    Examples:
      jobset up
      jobset up --nodes 16 --cpu 8 --topology rack=8
      jobset up --kubernetes-feature-gates TopologyAwareWorkloadScheduling=false
    """
    import shlex

    from pyjobset.cli.output import note, say
    from pyjobset.localplane.options import parse_gates, parse_pairs

    plane = open_plane(directory)
    known = plane.options
    layout = _layout(known.layout, count, cpu, memory, label, resource, topology)
    gates = None if feature_gates is None else _controller_gates(feature_gates)
    cluster = kubernetes_feature_gates
    runtime = kubernetes_runtime_config
    options = _replaced(
        known,
        layout=layout,
        kubernetes_feature_gates=None if cluster is None else parse_gates(cluster, "--kubernetes-feature-gates"),
        kubernetes_runtime_config=None if runtime is None else parse_pairs(runtime, "--kubernetes-runtime-config"),
        feature_gates=gates,
        controller=controller,
        port=port,
        fsync=fsync,
        bin_dir=str(Path(bin_dir).expanduser().absolute()) if bin_dir else bin_dir,
    )
    existed = plane.exists
    if existed:
        _say_gates(known, options)
    plane = open_plane(directory, options)
    try:
        plane.start()
        if existed and layout != known.layout:
            _say_created(plane.ensure_nodes(layout), layout)
    except KeyboardInterrupt:
        where = f" --dir {shlex.quote(str(directory))}" if directory else ""
        note(f"interrupted: `jobset up{where}` goes on, `jobset down{where}` stops the rest")
        raise typer.Exit(130) from None
    say(coloured(summary(plane.status())))


def down(directory: Directory = None) -> None:
    """Stop the local Kubernetes. What is in it stays for the next `jobset up`.

    \b
    Examples:
      jobset down
    """
    from pyjobset.cli.output import say

    stopped = open_plane(directory).stop()
    say(f"Stopped {', '.join(stopped)}" if stopped else "Nothing was running")


def reset(
    directory: Directory = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Stop the local Kubernetes and forget everything in it. The built programs stay.

    \b
    Examples:
      jobset reset --yes
    """
    from pyjobset.cli.output import say

    plane = open_plane(directory)
    if not plane.directory.exists():
        say(f"There is no local plane in {plane.directory}")
        return
    if not (yes or _agrees(f"forget the local plane in {plane.directory} and everything in it")):
        raise typer.Exit(1)
    plane.reset()
    say(f"The local plane in {plane.directory} is gone")


def status(directory: Directory = None, output: Output = "table") -> None:
    """Show what runs, on which ports, and where the kubeconfig is.

    \b
    Examples:
      jobset status
      jobset status -o json
    """
    from pyjobset.cli.output import say

    found = open_plane(directory).status()
    if output == "table":
        say(coloured(summary(found)))
    else:
        _print(found, output)


def logs(
    component: Annotated[str, typer.Argument(help="etcd, apiserver, controller-manager, scheduler, kwok, controller.")],
    directory: Directory = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more until Ctrl-C.")] = False,
    tail: Annotated[int, typer.Option(min=0, help="How many lines from the end.")] = 100,
) -> None:
    """Show the log of a component.

    \b
    Examples:
      jobset logs controller -f
      jobset logs apiserver --tail 20
    """
    import sys

    from pyjobset.errors import PlaneError
    from pyjobset.localplane.logs import follow as follow_log
    from pyjobset.localplane.processes import last_lines

    path = open_plane(directory).log(component)
    if not path.exists():
        raise PlaneError(f"{component} has no log yet ({path})", hint="jobset up starts the local plane")
    for line in follow_log(path, tail) if follow else last_lines(path, tail):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def kubeconfig(directory: Directory = None) -> None:
    """Print the path of the kubeconfig.

    \b
    Examples:
      export KUBECONFIG=$(jobset kubeconfig)
    """
    from pyjobset.cli.output import say
    from pyjobset.errors import PlaneError

    plane = open_plane(directory)
    if not plane.kubeconfig.exists():
        raise PlaneError(f"there is no local plane in {plane.directory}", hint="jobset up starts one")
    say(str(plane.kubeconfig))


@nodes.command("list")
def list_nodes(directory: Directory = None, output: Output = "table") -> None:
    """List the nodes with their racks and slices.

    \b
    Examples:
      jobset nodes list
    """
    from pyjobset.cli.output import say, table

    found = open_plane(directory).nodes()
    if output == "table":
        say("\n".join(table(("NAME", "STATUS", "CPU", "MEMORY", "RACK", "SLICE"), (_row(n) for n in found))))
    else:
        _print(found, output)


@nodes.command("add")
def add_nodes(
    directory: Directory = None,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="How many.")] = 1,
    cpu: Annotated[str, typer.Option(help="CPUs of each.")] = "4",
    memory: Annotated[str, typer.Option(help="Memory of each.")] = "16Gi",
    rack: Annotated[str, typer.Option(help="The rack they stand in, such as rack-0.")] = "",
    slice_: Annotated[str, typer.Option("--slice", help="The TPU slice they belong to, such as slice-0.")] = "",
    label: Annotated[list[str] | None, typer.Option(help="KEY=VALUE, a label of each. May be repeated.")] = None,
    resource: Annotated[list[str] | None, typer.Option(help="NAME=QUANTITY of each. May be repeated.")] = None,
) -> None:
    """Add nodes to the running plane, so that a gang fits.

    \b
    Examples:
      jobset nodes add --count 2 --cpu 8 --rack rack-0
    """
    from pyjobset.localplane.options import TOPOLOGY_KEYS, NodeLayout, parse_labels

    domains = [f"{TOPOLOGY_KEYS[key]}={value}" for key, value in (("rack", rack), ("slice", slice_)) if value]
    for key, value in (("rack", rack), ("slice", slice_)):
        parse_labels([f"{TOPOLOGY_KEYS[key]}={value}"], f"--{key}")  # said of the flag that was given
    layout = _layout(NodeLayout(topology={}), count, cpu, memory, [*domains, *(label or [])], resource, None)
    _say_created(open_plane(directory).add_nodes(layout), layout)


@nodes.command("remove")
def remove_nodes(
    names: Annotated[list[str], typer.Argument(help="The names of the nodes.")], directory: Directory = None
) -> None:
    """Remove nodes. Their pods are lost, as with a machine that dies.

    \b
    Examples:
      jobset nodes remove node-0 node-1
    """
    from pyjobset.cli.output import say

    open_plane(directory).remove_nodes(names)
    say(f"Removed {', '.join(names)}")


def _agrees(what: str) -> bool:
    """Asks the person. Raises UsageError where nobody can be asked."""
    import sys

    from pyjobset.cli.output import note
    from pyjobset.errors import UsageError

    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(f"this would {what}, and there is no terminal to ask", hint="with --yes nobody is asked")
    agreed = typer.confirm(f"{what[0].upper()}{what[1:]}?", err=True)
    if not agreed:
        note("Nothing was changed")
    return agreed


def open_plane(directory: Path | None, options: "PlaneOptions | None" = None) -> "Plane":
    """The plane of a directory, telling its progress on stderr."""
    from pyjobset.localplane.plane import Plane
    from pyjobset.localplane.progress import for_stream

    return Plane(directory, options, progress=for_stream())


def _say_gates(before: "PlaneOptions", after: "PlaneOptions") -> None:
    """Gates that are given take the place of all that were given before: nobody may lose one without a word."""
    from pyjobset.cli.output import note

    for whose, old, new in (
        ("gates", before.feature_gates, after.feature_gates),
        ("Kubernetes' gates", before.kubernetes_feature_gates, after.kubernetes_feature_gates),
    ):
        if changes := _gate_changes(old, new):
            note(f"{whose}: {'; '.join(changes)}")


def _gate_changes(before: dict[str, bool], after: dict[str, bool]) -> list[str]:
    """Of gates that were given and that are given now, in words."""
    given = [f"{name} {'on' if on else 'off'}" for name, on in sorted(after.items()) if before.get(name) is not on]
    gone = [f"{name}{'' if on else '=false'} no longer" for name, on in sorted(before.items()) if name not in after]
    return given + gone


def summary(found: "PlaneStatus") -> str:
    """A status for people."""
    import shlex

    from pyjobset.cli.output import table

    state = "runs" if found.running else "is stopped" if not any(c.running for c in found.components) else "is damaged"
    lines = [f"The local plane {state}"]
    if found.running:
        lines[0] += f": Kubernetes {found.version} at {found.server}"
        assert found.nodes is not None
        lines.append(f"nodes        {sum(n.ready for n in found.nodes)} of {len(found.nodes)} ready")
    lines += [
        f"directory    {found.directory}",
        f"kubeconfig   {found.kubeconfig}",
        f"kubectl      {found.kubectl}",
        *([f"metrics      {found.metrics}"] if found.metrics else []),
        *([f"gates        {gates}"] if (gates := _gates_given(found)) else []),
        "",
    ]
    rows = [
        (c.name, "running" if c.running else "stopped", c.pid or "-", c.port or "-", c.log) for c in found.components
    ]
    lines += table(("COMPONENT", "STATE", "PID", "PORT", "LOG"), rows)
    hint = f"export KUBECONFIG={shlex.quote(found.kubeconfig)}" if found.running else "jobset up starts it"
    return "\n".join([*lines, "", hint])


def _gates_given(found: "PlaneStatus") -> str:
    parts = [
        whose + ",".join(f"{name}={str(on).lower()}" for name, on in sorted(gates.items()))
        for whose, gates in (("", found.feature_gates), ("of Kubernetes: ", found.kubernetes_feature_gates))
        if gates
    ]
    return "; ".join(parts)


def coloured(text: str) -> str:
    """The states of a summary in colour, when it goes to a terminal that wants it."""
    import os
    import sys

    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    for word, colour in (("running", typer.colors.GREEN), ("stopped", typer.colors.RED)):
        text = text.replace(f" {word} ", f" {typer.style(word, fg=colour)} ")
    return text


def _layout(
    base: "NodeLayout",
    count: int | None,
    cpu: str | None,
    memory: str | None,
    label: list[str] | None,
    resource: list[str] | None,
    topology: str | None,
) -> "NodeLayout":
    from pyjobset.localplane.options import parse_labels, parse_pairs, parse_quantity, parse_topology

    resources = {k: v for item in resource or () for k, v in parse_pairs(item, "--resource").items()}
    layout: NodeLayout = _replaced(
        base,
        count=count,
        cpu=None if cpu is None else parse_quantity(cpu, "--cpu"),
        memory=None if memory is None else parse_quantity(memory, "--memory"),
        labels=None if label is None else parse_labels(label, "--label"),
        resources=None if resource is None else {k: parse_quantity(v, "--resource") for k, v in resources.items()},
        topology=None if topology is None else parse_topology(topology),
    )
    return layout


def _controller_gates(text: str) -> dict[str, bool]:
    from pyjobset.localplane.options import parse_gates
    from pyjobset.objects import features

    features.parse(text)  # says which gates there are
    return parse_gates(text, "--feature-gates")


def _replaced(base: Any, **given: object) -> Any:
    """The struct with the values that were given."""
    import msgspec

    return msgspec.structs.replace(base, **{name: value for name, value in given.items() if value is not None})


def _print(value: object, output: Format) -> None:
    import msgspec

    from pyjobset.cli.output import say, to_json, to_yaml

    plain = msgspec.to_builtins(value)
    say(to_json(plain) if output == "json" else to_yaml(plain))


def _row(node: "NodeStatus") -> tuple[str, ...]:
    from pyjobset.localplane.options import TOPOLOGY_KEYS

    domains = [node.labels.get(TOPOLOGY_KEYS[key], "-") for key in ("rack", "slice")]
    return (node.name, "Ready" if node.ready else "NotReady", node.cpu, node.memory, *domains)


def _say_created(names: list[str], layout: "NodeLayout") -> None:
    from pyjobset.cli.output import note

    if names:
        note(f"Created {names[0]}" + (f" to {names[-1]}" if len(names) > 1 else ""))
    else:
        note(f"The {layout.count} nodes are there already and stay as they are; see jobset nodes add and remove")
