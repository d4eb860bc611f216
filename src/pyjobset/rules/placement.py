"""Exclusive placement that could never place a pod: a topology that is no node label, Jobs whose pods have no index.

Called by rules.validation. That a gang deadlocks with it is a rule of rules.groups.
"""

from collections.abc import Iterator

from pyjobset.errors import Problem
from pyjobset.objects import labels, names, placement
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.template import is_indexed, mapping_at
from pyjobset.rules import registry
from pyjobset.rules.rule import child


def breaches(jobset: JobSet) -> Iterator[Problem]:
    sources = [("metadata", jobset.metadata.annotations)]
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        path = f"spec.replicatedJobs[{i}].template"
        sources.append((f"{path}.metadata", dict(mapping_at(replicated_job.template, "metadata", "annotations"))))
        has_leader = placement.has_leader(placement.annotations_of(jobset, replicated_job))
        if has_leader and not is_indexed(replicated_job.template):
            mode = mapping_at(replicated_job.template, "spec").get("completionMode")
            yield registry.EXCLUSIVE_PLACEMENT_INDEX.at(f"{path}.spec.completionMode", mode)
    for path, annotations in sources:
        key = annotations.get(labels.EXCLUSIVE_TOPOLOGY)
        if key is not None and not names.is_label_key(key):
            yield registry.TOPOLOGY_KEY.at(child(f"{path}.annotations", labels.EXCLUSIVE_TOPOLOGY), key)
