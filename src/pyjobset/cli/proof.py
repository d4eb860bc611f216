"""What the demo saw while its JobSet ran, and whether that is what a gang must look like. Pure.

`demo` shows it every picture of the JobSet and asks for the verdict at the end, when the Workload and the PodGroup are
gone again.
"""

from dataclasses import dataclass, field

from pyjobset.cli.view import Family, view
from pyjobset.cli.waiting import quorum
from pyjobset.objects import conditions

RAN = ("Running", "Succeeded")


@dataclass(slots=True)
class Proof:
    """`pods` is how many pods the gang has."""

    pods: int
    state: str = "not there yet"
    reason: str = ""
    workloads: set[str] = field(default_factory=set)
    quorums: dict[str, int | None] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    """Of each pod that ran."""

    def see(self, family: Family) -> None:
        picture = view(family)
        self.state = picture.state
        self.reason = "; ".join(
            [*picture.notes, *(f"{group.name} {group.why}" for group in picture.groups if group.why)]
        )
        self.workloads |= {workload.metadata.name for workload in family.workloads}
        self.quorums |= {group.metadata.name: quorum(group) for group in family.pod_groups}
        self.nodes |= {
            pod.metadata.name: pod.spec.node_name
            for pod in family.pods
            if pod.status.phase in RAN and pod.spec.node_name
        }

    def line(self) -> str:
        """Where things are, on one line."""
        reason = f": {self.reason}" if self.reason else ""
        return f"JobSet {self.state}, {len(self.nodes)} of {self.pods} pods have run{reason}"

    def failures(self) -> list[str]:
        """What was not as it must be; empty when all was."""
        quorums = list(self.quorums.values())
        wrong = {
            f"the JobSet is {self.state}, not Completed": self.state != conditions.TERMINAL_COMPLETED,
            f"there were {len(self.workloads)} Workloads, not 1": len(self.workloads) != 1,
            f"there were PodGroups with minCount {quorums}, not one with {self.pods}": quorums != [self.pods],
            f"{len(self.nodes)} pods ran on nodes, not {self.pods}": len(self.nodes) != self.pods,
        }
        return [what for what, is_wrong in wrong.items() if is_wrong]

    def summary(self, seconds: float) -> list[str]:
        """The good end, in three lines."""
        nodes = sorted(set(self.nodes.values()))
        return [
            f"JobSet {self.state} after {seconds:.0f} s.",
            f"Workload {', '.join(self.workloads)} had one PodGroup with minCount {self.pods}: all pods or none.",
            f"{len(self.nodes)} pods ran on {len(nodes)} nodes: {', '.join(nodes)}.",
        ]
