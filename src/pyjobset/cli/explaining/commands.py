"""Command lines for advice, quoted for a shell. Those for the local plane are empty where the cluster is none. Pure."""

from shlex import quote

from pyjobset.cli.explaining.facts import Facts
from pyjobset.cli.explaining.reasons import Advice, advice
from pyjobset.cli.explaining.room import MoreNodes
from pyjobset.localplane.options import TOPOLOGY_KEYS


def nodes_command(facts: Facts, more: MoreNodes) -> str:
    """For the local plane."""
    flags = {key: name for name, key in TOPOLOGY_KEYS.items()}
    words = ["jobset", "nodes", "add", "--count", str(more.count)]
    for name, value in more.resources.items():
        if name in ("cpu", "memory"):
            words += [f"--{name}", value]
        elif name != "pods":
            words += ["--resource", f"{name}={value}"]
    for key, value in more.labels.items():
        words += [f"--{flags[key]}", value] if key in flags else ["--label", f"{key}={value}"]
    return facts.of_plane(*words)


def controller_log(facts: Facts) -> Advice:
    """Also for what is no matter of groups."""
    return advice("look-at-controller", facts.of_plane("jobset", "logs", "controller"))


def turn_on_controller(facts: Facts, gate: str) -> Advice:
    """A gate of our controller."""
    command = facts.of_plane("jobset", "up", "--feature-gates", f"{gate}=true")
    where = "" if command else ", in the manager's Configuration or with its flag --feature-gates"
    return advice("turn-on-controller", command, gate=gate, where=where)


def namespace_of(facts: Facts) -> str:
    return quote(facts.jobset.metadata.namespace)
