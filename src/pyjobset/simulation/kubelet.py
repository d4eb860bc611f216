"""The model kubelet: pods that have a node run, become ready, and end as they were told; deleted ones terminate.

How a pod ends is asked of `fate`: it is given the pod and says after how many seconds it ends and how, or that it never
does.
"""

import asyncio
from collections.abc import Callable
from typing import Literal, NamedTuple

from pyjobset.objects.meta import Manifest
from pyjobset.simulation import clock
from pyjobset.simulation.jobs import ENDED
from pyjobset.simulation.server import Server
from pyjobset.simulation.store import Change, Name
from pyjobset.simulation.worker import Worker


class Fate(NamedTuple):
    seconds: float | None
    """None: it never ends."""
    phase: Literal["Succeeded", "Failed"] = "Succeeded"


FOREVER = Fate(None)


class Kubelet(Worker):
    def __init__(
        self,
        server: Server,
        fate: Callable[[Manifest], Fate] = lambda _: FOREVER,
        *,
        start_seconds: float = 0.5,
        terminate_seconds: float = 0.3,
    ) -> None:
        super().__init__(server, delay_seconds=0.01)
        self.fate = fate
        self.start_seconds = start_seconds
        self.terminate_seconds = terminate_seconds
        self._since: dict[str, float] = {}
        """By uid: when the pod got its node, and when it was seen deleted."""

    def wakes(self, change: Change) -> tuple[Name, ...]:
        if change.name.plural != "pods":
            return ()
        if change.type == "DELETED":
            uid = change.object["metadata"]["uid"]
            for key in (uid, f"{uid} deleted"):
                self._since.pop(key, None)
            return ()
        return (change.name,) if change.object["spec"].get("nodeName") else ()

    def look(self, key: Name) -> None:
        pod = self.server.store.get(key)
        if pod is None or not pod["spec"].get("nodeName"):
            return
        now, uid = asyncio.get_running_loop().time(), pod["metadata"]["uid"]
        if "deletionTimestamp" in pod["metadata"]:
            gone_at = self._since.setdefault(f"{uid} deleted", now) + self.terminate_seconds
            if now >= gone_at or pod["status"].get("phase") in ENDED:
                self.server.terminated(key)
            else:
                self.wake(key, after_seconds=gone_at - now)
            return
        if pod["status"].get("phase") in ENDED:
            return
        ready_at = self._since.setdefault(uid, now) + self.start_seconds
        if now < ready_at:
            self.wake(key, after_seconds=ready_at - now)
            return
        if pod["status"].get("phase") != "Running":
            self.server.set_status(key, phase="Running", conditions=[_ready("True")])
        fate = self.fate(pod)
        if fate.seconds is None:
            return
        if now >= ready_at + fate.seconds:
            self.server.set_status(key, phase=fate.phase, conditions=[_ready("False")])
        else:
            self.wake(key, after_seconds=ready_at + fate.seconds - now)


def _ready(status: str) -> Manifest:
    return {"type": "Ready", "status": status, "lastTransitionTime": clock.timestamp()}
