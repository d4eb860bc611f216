"""All examples as one piece of work on a plane, and where each comes to rest. Each has a namespace of its own.

`Work.do` is the person: applies, scales, suspends and resumes, again and again until the API server takes it.
Pods run shorter than the examples say. Beside the examples there is a JobSet that restarts until it has failed.
"""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from pyjobset.errors import PlaneError
from pyjobset.localplane.plane import Plane
from pyjobset.localplane.stages import RUN_FOR
from pyjobset.objects import labels
from tests.server.test_controller import Object, manifest, replicated_job

EXAMPLES = Path(__file__).parents[3] / "examples"
PREFIX = "ex-"
PATIENCE_SECONDS = 300
RUN_SECONDS_MAX = 20
ENDLESS = ("elastic-gang", "suspend-resume")
"""A person changes these while they run: they must not end before."""
RESTING = {"elastic-gang": 4, "dra-resource-claims": 0}
"""Examples that do not end, with the pods that run then. Nobody here allocates devices."""
FAILING = {"restart-job", "rules"}
"""Examples whose end depends on what fails first."""
LATER = {"elastic-gang-scale-patch", "service-account", "volume"}
"""Files that belong to another example."""
TOGETHER = {"single-pvc": ("volume",), "sidecar": ("service-account",), "main-container": ("service-account",)}
GATES = {"InPlaceRestart": True}


def _restarting() -> Object:
    failing = replicated_job("driver", "sleep 3; exit 3")
    workers = replicated_job("workers", "sleep infinity", 2)
    gang = {"schedulingPolicy": {"gang": {}}}
    return manifest("restarting", failing, workers, failurePolicy={"maxRestarts": 3}, scheduling=gang)


class Work:
    """The examples on a plane. `do` takes as long as the person takes, `state` may be asked at any time."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._files = {path.stem: path for path in sorted(EXAMPLES.rglob("*.yaml"))}
        self.names = sorted({*self._files.keys() - LATER - FAILING, "restarting"})

    def do(self) -> None:
        for node, job in enumerate(("workers-0", "workers-1")):  # as the script of that way of placing does
            label = f"{labels.NAMESPACED_JOB}={PREFIX}node-selector_node-selector-{job}"
            self._ask("label", "node", f"node-{node}", label, "--overwrite")
        for name in self.names:
            self._ask("create", "namespace", PREFIX + name, taken="AlreadyExists")
            objects = [_restarting()] if name == "restarting" else self._objects(name)
            self._apply(name, [o for o in objects if o["metadata"].get("labels", {}).get("step") != "second"])
        self._until_runs("preemption", 8)
        self._apply("preemption", self._objects("preemption"))
        self._until_runs("elastic-gang", 2)
        self._apply("elastic-gang", self._objects("elastic-gang-scale-patch", "elastic-gang"))
        self._until_runs("suspend-resume", 2)
        self._patch_gang_suspend({"suspend": True})
        self._until("a suspended example", self._is_suspended)
        (gang,) = self._objects("suspend-resume")
        _shorten(gang, "5s")
        self._patch_gang_suspend({"suspend": False, "replicatedJobs": gang["spec"]["replicatedJobs"]})

    def is_at_rest(self) -> bool:
        """All have ended, but those that never do; they run what they will."""
        for name in self.names:
            jobsets = self._list(name, "jobsets")
            assert jobsets, name
            for jobset in jobsets:
                shown = f"{name}: {jobset.get('status')}"
                if name not in RESTING:
                    assert jobset.get("status", {}).get("terminalState"), shown
                elif RESTING[name]:
                    assert self._running(name) == RESTING[name], shown
        return True

    def all(self, kinds: str) -> list[Object]:
        """The objects in the namespaces of the work."""
        done = self._plane.run_kubectl("get", kinds, "-A", "-o", "json")
        assert done.returncode == 0, done.stderr
        items: list[Object] = json.loads(done.stdout)["items"]
        return [item for item in items if item["metadata"]["namespace"].startswith(PREFIX)]

    def _objects(self, name: str, namespace: str = "") -> list[Object]:
        found: list[Object] = []
        for stem in (*TOGETHER.get(name, ()), name):
            text = self._files[stem].read_text()
            found += yaml.safe_load_all(text.replace("namespace: default", f"namespace: {PREFIX}{namespace or name}"))
        for jobset in (o for o in found if o["kind"] == "JobSet"):
            _shorten(jobset, "forever" if (namespace or name) in ENDLESS else "")
        return found

    def _apply(self, name: str, objects: list[Object]) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self._ask("apply", "--server-side", "-f", "-", "-n", PREFIX + name, stdin=text)

    def _patch_gang_suspend(self, spec: Object) -> None:
        where = ("-n", f"{PREFIX}suspend-resume")
        self._ask("patch", "jobset", "gang-suspend", *where, "--type=merge", "-p", json.dumps({"spec": spec}))

    def _is_suspended(self) -> bool:
        """Told and done."""
        (jobset,) = self._list("suspend-resume", "jobsets")
        told = [c["status"] for c in jobset.get("status", {}).get("conditions", []) if c["type"] == "Suspended"]
        return told == ["True"] and not self._list("suspend-resume", "workloads,podgroups,pods")

    def _until_runs(self, name: str, number: int) -> None:
        """Or has run."""
        self._until(f"{number} pods of {name}", lambda: self._running(name, "Succeeded") >= number)

    def _running(self, name: str, *more: str) -> int:
        return sum(pod["status"].get("phase") in ("Running", *more) for pod in self._list(name, "pods"))

    def _list(self, name: str, kinds: str) -> list[Any]:
        return list(json.loads(self._ask("get", kinds, "-n", PREFIX + name, "-o", "json"))["items"])

    def _ask(self, *arguments: str, stdin: str = "", taken: str = "nothing of the kind") -> str:
        """What kubectl says once it succeeds."""
        said = ""

        def is_done() -> bool:
            nonlocal said
            try:
                done = self._plane.run_kubectl(*arguments, stdin=stdin, timeout_seconds=60)
            except PlaneError:
                return False
            said = done.stdout if done.returncode == 0 else done.stderr
            return done.returncode == 0 or taken in said

        self._until(f"kubectl {' '.join(arguments)}", is_done, lambda: said)
        return said

    @staticmethod
    def _until(what: str, condition: Callable[[], object], shown: Callable[[], str] = str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"{what}: {shown()}"
            time.sleep(0.3)


def _shorten(jobset: Object, run_for: str) -> None:
    """At most the time that a test has. Programs that simulated pods do not know end after it, too."""
    for shape in jobset["spec"]["replicatedJobs"]:
        template = shape["template"]["spec"]["template"]
        said = [int(n) for c in template["spec"]["containers"] for n in re.findall(r"(\d+)s?$", c["command"][-1])]
        seconds = f"{min([*said, RUN_SECONDS_MAX])}s"
        template.setdefault("metadata", {}).setdefault("annotations", {})[RUN_FOR] = run_for or seconds
