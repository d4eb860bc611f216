"""The model scheduler: slots instead of nodes, and gangs that are placed as a whole or not at all.

A pod takes one slot. A gang is placed when its PodGroup is there and its pods, those that hold a slot and those that
wait, reach minCount and fit; a pod that has ended does not count, one that is terminating does (Kubernetes 1.37). It
also keeps the protection finalizer of PodGroups, which is another controller's work in a real cluster.
"""

from collections.abc import Iterable

from pyjobset.objects.meta import Manifest
from pyjobset.simulation import clock
from pyjobset.simulation.jobs import ENDED
from pyjobset.simulation.kinds import POD_GROUP_FINALIZER
from pyjobset.simulation.server import Server
from pyjobset.simulation.store import Change, Name
from pyjobset.simulation.worker import Worker

NODE = "node-0"
SCHEDULER = "default-scheduler"
ALL = Name("", "", "all")
SCHEDULED = "PodGroupInitiallyScheduled"


class Scheduler(Worker):
    def __init__(self, server: Server, *, slots: int = 100, delay_seconds: float = 0.03) -> None:
        super().__init__(server, delay_seconds=delay_seconds)
        self.slots = slots

    def wakes(self, change: Change) -> tuple[Name, ...]:
        return (ALL,) if change.name.plural in ("pods", "podgroups") else ()

    def look(self, key: Name) -> None:
        assert key is ALL
        pods = list(self.server.store.of("pods"))
        free = self.slots - sum(_holds_slot(pod) for pod in pods)
        waiting: dict[tuple[str, str], list[Manifest]] = {}
        for pod in pods:
            if _is_waiting(pod):
                waiting.setdefault((pod["metadata"]["namespace"], _group(pod)), []).append(pod)
        for (namespace, group), members in waiting.items():
            free -= self._place(namespace, group, members, pods, free)
        self._release(pods)

    def _place(self, namespace: str, group: str, members: list[Manifest], pods: Iterable[Manifest], free: int) -> int:
        """How many were bound."""
        least = 1
        name = Name("podgroups", namespace, group)
        if group:
            stored = self.server.store.get(name)
            if stored is None:
                return 0  # silently, as the real one does
            gang = (stored["spec"].get("schedulingPolicy") or {}).get("gang")
            if gang:
                placed = sum(
                    _holds_slot(p) for p in pods if _group(p) == group and p["metadata"]["namespace"] == namespace
                )
                least = max(1, gang["minCount"] - placed)
        if len(members) < least:
            return 0
        if free < least:
            if group:
                self._say(name, "False", "Unschedulable", f"needs {least} free slots, there are {free}")
            return 0
        chosen = members[:free]
        for pod in chosen:
            metadata = pod["metadata"]
            self.server.bind(Name("pods", metadata["namespace"], metadata["name"]), NODE)
        if group:
            self._say(name, "True", "Scheduled", "")
        return len(chosen)

    def _say(self, name: Name, status: str, reason: str, message: str) -> None:
        stored = self.server.store.get(name)
        assert stored is not None
        old = next(iter(stored["status"].get("conditions") or ()), None)
        if old is not None and (old["status"] == "True" or old["message"] == message):
            return
        condition = {
            "type": SCHEDULED,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": clock.timestamp(),
        }
        self.server.set_status(name, conditions=[condition])

    def _release(self, pods: Iterable[Manifest]) -> None:
        """A PodGroup that is being deleted goes with its last live pod."""
        held = {(p["metadata"]["namespace"], _group(p)) for p in pods if p["status"].get("phase") not in ENDED}
        for group in list(self.server.store.of("podgroups")):
            metadata = group["metadata"]
            is_held = (metadata["namespace"], metadata["name"]) in held
            if "deletionTimestamp" in metadata and not is_held and POD_GROUP_FINALIZER in metadata["finalizers"]:
                rest = [f for f in metadata["finalizers"] if f != POD_GROUP_FINALIZER]
                name = Name("podgroups", metadata["namespace"], metadata["name"])
                self.server.patch(name, {"metadata": {"finalizers": rest}})


def _group(pod: Manifest) -> str:
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


def _is_waiting(pod: Manifest) -> bool:
    spec = pod["spec"]
    is_ours = spec.get("schedulerName", SCHEDULER) == SCHEDULER
    return is_ours and not spec.get("nodeName") and "deletionTimestamp" not in pod["metadata"]


def _holds_slot(pod: Manifest) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in ENDED
