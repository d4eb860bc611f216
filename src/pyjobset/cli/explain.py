"""`jobset explain`: in what state a JobSet is, what it waits for, and what would help.

The shell around `explaining`: it fetches what that reads, and prints. Where the controller seems to owe something it
looks twice, because a controller that runs does it within a moment. What the person may not read is left out, and said.
"""

from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from pyjobset.cli.explaining.facts import Event, Facts
    from pyjobset.cli.explaining.reasons import Explanation
    from pyjobset.cli.view import Family
    from pyjobset.kube.client import Client
    from pyjobset.objects.meta import Struct
    from pyjobset.objects.resources import Resource

T = TypeVar("T", bound="Struct")
Format = Literal["text", "json", "yaml"]
SECOND_LOOK_SECONDS = 2.0
FORBIDDEN = 403


def register(root: typer.Typer) -> None:
    root.command("explain")(explain)


def explain(
    name: Annotated[
        str | None, typer.Argument(help="The name of the JobSet. Without it, a list.", show_default=False)
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Its namespace. Default: that of the kubeconfig's context.")
    ] = "",
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List the JobSets of all namespaces.")
    ] = False,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print it.")] = "text",
    kubeconfig: Annotated[
        str | None, typer.Option(help="Default: $KUBECONFIG, ~/.kube/config, or the local plane.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="The context of the kubeconfig to use.")] = None,
) -> None:
    """Say what a JobSet waits for, who says so, and what would help.

    \b
    Examples:
      jobset explain gang-training
      jobset explain gang-training -n training -o json | jq .findings[].code
    """
    import asyncio

    import msgspec

    from pyjobset.cli.cluster import hinting
    from pyjobset.cli.explaining.text import lines
    from pyjobset.cli.listing import check_words, list_jobsets, show
    from pyjobset.cli.output import note, say, to_json, to_yaml

    check_words(name, everywhere=everywhere, namespace=namespace)
    with hinting(kubeconfig):
        if name is None:
            look_around = list_jobsets(namespace, everywhere=everywhere, kubeconfig=kubeconfig, context=context)
            where, listed = asyncio.run(look_around)
            show(listed, output, everywhere=everywhere)
            if listed:
                first = listed[0]
                place = f" -n {first.namespace}" if where is None or namespace else ""
                note(f"hint: name one of them, such as: jobset explain {first.name}{place}")
            return
        found = asyncio.run(_explain(name, namespace, kubeconfig, context))
    if output == "text":
        say("\n".join(lines(found)))
    else:
        plain = msgspec.to_builtins(found)
        say(to_json(plain) if output == "json" else to_yaml(plain))


async def _explain(name: str, namespace: str, kubeconfig: str | None, context: str | None) -> "Explanation":
    from dataclasses import replace

    from pyjobset.cli.cluster import bounded, open_client, plane_flag, plane_of
    from pyjobset.cli.explaining.explanation import explain

    async with open_client(kubeconfig, context) as client, bounded():
        facts = await look(client, namespace or client.namespace, name)
    directory = plane_of(kubeconfig)
    return explain(replace(facts, plane=plane_flag(directory) if directory is not None else None))


async def look(client: "Client", namespace: str, name: str) -> "Facts":
    """The facts, with what the controller owes and still owes after a moment. Raises NotFound."""
    import asyncio
    from dataclasses import replace

    from pyjobset.cli.explaining.obstacles import pending

    facts = await _look_once(client, namespace, name)
    owed = pending(facts)
    if not owed:
        return facts
    await asyncio.sleep(SECOND_LOOK_SECONDS)
    again = await _look_once(client, namespace, name)
    still = frozenset(pending(again))
    return replace(again, pending=tuple(what for what in owed if what in still))


async def _look_once(client: "Client", namespace: str, name: str) -> "Facts":
    """Nodes and other people's pods only where something waits for room: on large clusters these are long lists."""
    from datetime import UTC, datetime

    from pyjobset.cli.cluster import fetch
    from pyjobset.cli.explaining.facts import NODES, PODS, PRIORITY_CLASSES, Facts, Pod
    from pyjobset.cli.waiting import is_waiting

    family = await fetch(client, namespace, name, pods=PODS)
    jobset = family.jobset
    pods = tuple(p for p in family.pods if isinstance(p, Pod))
    reader = _Reader(client)
    is_active = not (jobset.spec.suspend or jobset.status.terminal_state or jobset.metadata.deletion_timestamp)
    facts = Facts(family, datetime.now(UTC), pods, nodes=await reader.all(NODES))
    if not is_active:
        return facts
    occupants = None
    if any(map(is_waiting, pods)):
        occupants = await reader.all(PODS, "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")
    events = await _events(reader, family, namespace)
    classes = await reader.all(PRIORITY_CLASSES)
    return Facts(
        family,
        facts.now,
        pods,
        nodes=facts.nodes,
        occupants=occupants,
        events=tuple(events),
        priority_classes=frozenset(c.metadata.name for c in classes) if classes is not None else None,
        unreadable=tuple(reader.unreadable),
    )


async def _events(reader: "_Reader", family: "Family", namespace: str) -> "list[Event]":
    """What was said of its Jobs and groups, and of those that a preemption or a restart has removed."""
    from pyjobset.cli.explaining.facts import EVENTS
    from pyjobset.cli.explaining.policy import REASONS
    from pyjobset.cli.explaining.waits import preempted_condition
    from pyjobset.cli.restarts import restarts

    async def read(selector: str) -> "tuple[Event, ...]":
        return await reader.all(EVENTS, selector, namespace) or ()

    jobset = family.jobset
    uids = {j.metadata.uid for j in family.jobs} | {g.metadata.uid for g in family.pod_groups} | {jobset.metadata.uid}
    found = [*await read("involvedObject.kind=Job,reason=FailedCreate")]
    found += await read("involvedObject.kind=PodGroup,type=Warning")
    made = restarts(jobset)
    if made.of_jobset or made.of_jobs:
        found += await read(f"involvedObject.kind=JobSet,involvedObject.name={jobset.metadata.name}")
    found = [e for e in found if e.involved_object.uid in uids]
    if preempted_condition(jobset) is not None:
        begins = tuple(f"{j.metadata.name}-" for j in family.jobs)  # the pods themselves are gone
        of_pods = await read("involvedObject.kind=Pod,reason=Preempted")
        found += [e for e in of_pods if e.involved_object.name.startswith(begins)]
    if made.of_jobset or made.of_jobs:
        of_jobs = await read("involvedObject.kind=Job,type=Warning")
        found += [e for e in of_jobs if e.reason in REASONS and e.involved_object.name.startswith(jobset.metadata.name)]
    return found


class _Reader:
    """Lists what the person may read, and remembers what not."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self.unreadable: dict[str, None] = {}

    async def all(
        self, resource: "Resource[T]", field_selector: str = "", namespace: str | None = None
    ) -> "tuple[T, ...] | None":
        from pyjobset.errors import Refused

        try:
            return tuple(await self._client.list(resource, namespace, field_selector=field_selector))
        except Refused as error:
            if error.code != FORBIDDEN:
                raise
            self.unreadable[resource.plural] = None
            return None
