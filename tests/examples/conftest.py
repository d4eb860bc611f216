"""The examples on the shared plane. What runs in namespace `default` has it for itself, one test after the other."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pyjobset.localplane.files import locked
from pyjobset.localplane.plane import Plane
from pyjobset.localplane.stages import RUN_FOR
from tests.server.plane import Kubectl, kubectl, make_plane, namespace, plane, wait_for

__all__ = ["kubectl", "make_plane", "namespace", "plane"]

EXAMPLES = Path(__file__).parents[2] / "examples" / "scheduling"
LABEL = "jobset.sigs.k8s.io/jobset-name"


@dataclass
class Shell:
    """A person with a terminal at the examples. Commands are those of the documentation, word for word."""

    kubectl: Kubectl
    applied: list[str] = field(default_factory=list)

    def apply(self, example: str, *flags: str) -> None:
        path = str(EXAMPLES / f"{example}.yaml")
        self.applied.append(path)
        done = self.kubectl("apply", "-f", path, *flags)
        assert done.returncode == 0, done.stderr

    def run(self, command: str) -> str:
        program, *arguments = shlex.split(command)
        assert program == "kubectl"
        done = self.kubectl(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def look(self) -> None:
        """Runs the commands that the comments of the applied examples give for looking."""
        for line in "\n".join(Path(path).read_text() for path in self.applied).splitlines():
            if line.startswith(("#   kubectl get ", "#   kubectl describe ")):
                self.run(line.removeprefix("#").partition("   # ")[0].strip())

    def objects(self, kind: str, jobset: str) -> list[dict[str, Any]]:
        """The objects of a kind that belong to a JobSet."""
        listed = json.loads(self.run(f"kubectl get {kind} -n default -l {LABEL}={jobset} -o json"))
        items: list[dict[str, Any]] = listed["items"]
        return items

    def pods_running(self, jobset: str, count: int) -> dict[str, str]:
        """The node of each pod, once all of them run."""

        def running() -> dict[str, str]:
            pods = [p for p in self.objects("pods", jobset) if p["status"]["phase"] == "Running"]
            nodes = {p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods}
            assert len(nodes) == count, nodes
            return nodes

        found = wait_for(running, f"{count} running pods of {jobset}")
        # They would end while we look at them.
        self.run(f"kubectl annotate pod {' '.join(found)} -n default {RUN_FOR}=forever --overwrite")
        return found

    def clean(self) -> None:
        for path in self.applied:
            self.kubectl("delete", "-f", path, "--ignore-not-found", "--cascade=foreground")


@pytest.fixture
def default(plane: Plane, kubectl: Kubectl) -> Iterator[Shell]:
    """The namespace `default` of the shared plane, empty, until the test ends."""
    with locked(plane.directory.parent / "default-namespace.lock", lambda: None):
        shell = Shell(kubectl)
        yield shell
        shell.clean()
        left = wait_for(
            lambda: kubectl("get", "pods,jobs,podgroups,workloads", "-n", "default", "-o", "name").stdout == "",
            "an empty namespace default",
        )
        assert left
