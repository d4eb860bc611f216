"""Others in the namespace: they edit and delete what is ours, have names that we want, and set quotas.

Made by a world, which says when. Each of them asks the chooser what to touch. When the storm is over all of them leave:
names are free, and nothing is refused any more.
"""

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from pyjobset.compiler.scheduling import compile_scheduling
from pyjobset.compiler.volumes import claim_names
from pyjobset.objects import names
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.simulation.chooser import Choices
from pyjobset.simulation.server import Refusal, Server, admit_all
from pyjobset.simulation.store import Name
from pyjobset.simulation.users import JOBSET

KEPT = "bystander"
"""What has this name nobody touches."""
EDITED = ("pods", "jobs", "podgroups", "workloads", "services", "persistentvolumeclaims")
WANTED = ("jobs", "podgroups", "workloads", "services", "persistentvolumeclaims")
GANG: Manifest = {"schedulingPolicy": {"gang": {"minCount": 1}}}
JOB: Manifest = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
BODIES: dict[str, Manifest] = {
    "jobs": {"suspend": True, "completionMode": "Indexed", "completions": 1, "backoffLimit": 0, "template": JOB},
    "podgroups": GANG,
    "workloads": {"podGroupTemplates": [{"name": "g", **GANG}]},
    "services": {"clusterIP": "None"},
    "persistentvolumeclaims": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}},
}
"""The smallest of each kind. The claim is none that a JobSet of a world could use."""


def refused(name: Name, code: int) -> Refusal:
    """As a quota says no (403), or a policy of the cluster (422)."""
    if code == 403:
        return Refusal(403, "Forbidden", f'{name.plural} "{name.name}" is forbidden: exceeded quota', name.name)
    return Refusal(422, "Invalid", f'{name.plural} "{name.name}" is forbidden: denied request', name.name)


class Strangers:
    def __init__(self, server: Server, choices: Choices) -> None:
        self._server = server
        self._choices = choices
        self._squatters: list[Name] = []
        self._refused: dict[str, int] = {}
        """By kind: what is answered to who creates one."""

    def edit(self) -> None:
        """Somebody with rights and no idea. Nothing of it may do lasting harm."""
        plural = self._choices.one_of(EDITED, "what is edited")
        found = (_name(plural, obj) for obj in self._server.store.of(plural))
        touchable = [name for name in found if name.name != KEPT]
        if not touchable:
            return
        name = self._choices.one_of(touchable, "which one")
        is_deleted = self._choices.happens(70, "deleted")
        with suppress(Refusal), self._server.store.acting("stranger"):
            if is_deleted:
                self._server.delete(name, {"propagationPolicy": "Background"})
            else:
                self._server.patch(name, {"metadata": {"labels": {"stranger": "was-here"}}})

    def refuse(self) -> None:
        """From now on one of a kind cannot be created, or can again."""
        plural = self._choices.one_of(WANTED, "what is refused")
        if self._refused.pop(plural, None) is None:
            self._refused[plural] = self._choices.one_of((403, 422), "how it is refused")
        self._server.admit = self._admit if self._refused else admit_all

    def take(self) -> None:
        """Somebody has a name that we want, where it is free. The next one gives it back."""
        plural = self._choices.one_of(WANTED, "what is taken")
        taken = [name for name in self._squatters if name.plural == plural]
        if taken:
            self._leave(taken[0])
            return
        free = [name for name in self._wanted(plural) if self._server.store.get(name) is None]
        if not free:
            return
        name = self._choices.one_of(free, "which name")
        self._squatters.append(name)
        with self._server.store.acting("squatter"):
            self._server.create(plural, name.namespace, {"metadata": {"name": name.name}, "spec": BODIES[plural]})

    def leave(self) -> None:
        self._refused.clear()
        self._server.admit = admit_all
        for name in tuple(self._squatters):
            self._leave(name)

    def _leave(self, name: Name) -> None:
        self._squatters.remove(name)
        obj = self._server.store.get(name)
        if obj is not None and not obj["metadata"].get("ownerReferences"):
            with self._server.store.acting("squatter"):
                self._server.delete(name, {"propagationPolicy": "Background"})

    def _admit(self, name: Name, _: Manifest, is_new: bool) -> None:
        code = self._refused.get(name.plural)
        if code is not None and is_new:
            raise refused(name, code)

    def _wanted(self, plural: str) -> Iterator[Name]:
        """The names that the JobSet will have for its children."""
        stored = self._server.store.get(JOBSET)
        if stored is None:
            return iter(())
        jobset = msgspec.convert(stored, JobSet)
        return (Name(plural, JOBSET.namespace, name) for name in _names(plural, jobset))


def _names(plural: str, jobset: JobSet) -> tuple[str, ...]:
    match plural:
        case "jobs":
            jobs = ((rj.name, index) for rj in jobset.spec.replicated_jobs for index in range(rj.replicas))
            return tuple(names.job_name(jobset.metadata.name, name, index) for name, index in jobs)
        case "services":
            return (names.subdomain(jobset),)
        case "persistentvolumeclaims":
            return claim_names(jobset)
    groups = compile_scheduling(jobset)
    if groups is None:
        return ()
    if plural == "workloads":
        return (groups.workload.metadata.name,)
    return tuple(group.metadata.name for group in groups.pod_groups)


def _name(plural: str, obj: Manifest) -> Name:
    return Name(plural, obj["metadata"]["namespace"], obj["metadata"]["name"])
