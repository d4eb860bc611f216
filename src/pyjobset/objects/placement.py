"""Exclusive placement: who asks for it, in annotations, and which pod leads. Constants and reading only, pure.

A topology domain (a rack) for each Job, and no other Job of its priority in it. The pod of index 0 leads, the other
pods of its Job follow to where it is. With the node-selector strategy the nodes were labelled before, and no pod waits.
Rules, compiler, reconciler and the pod webhooks read the annotations with these functions.
"""

from collections.abc import Iterable, Mapping

from pyjobset.objects import labels
from pyjobset.objects.batch import Pod
from pyjobset.objects.jobset import JobSet, ReplicatedJob
from pyjobset.objects.template import mapping_at

LEADER_INDEX = "0"
"""The completion index of the pod that leads."""


def annotations_of(jobset: JobSet, replicated_job: ReplicatedJob) -> dict[str, str]:
    """The annotations of exclusive placement that the ReplicatedJob's Jobs and pods get, none where nobody asks for
    it. The template's own win over those of the whole JobSet."""
    of_jobset = jobset.metadata.annotations if labels.EXCLUSIVE_TOPOLOGY in jobset.metadata.annotations else {}
    own = mapping_at(replicated_job.template, "metadata", "annotations")
    chosen = {**of_jobset, **own}
    return {key: chosen[key] for key in (labels.EXCLUSIVE_TOPOLOGY, labels.NODE_SELECTOR) if key in chosen}


def has_leader(annotations: Mapping[str, str]) -> bool:
    """The pods follow a leader: exclusive placement is asked for, and not by node selector."""
    return labels.EXCLUSIVE_TOPOLOGY in annotations and labels.NODE_SELECTOR not in annotations


def leaders(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Those that lead. More than one while a pod is being replaced, or after a wrong one was made by hand."""
    return tuple(pod for pod in pods if pod.is_live and pod.metadata.annotations.completion_index == LEADER_INDEX)


def has_finished_leader(pods: Iterable[Pod]) -> bool:
    """One led until it succeeded: its Job makes no other."""
    of_index = (pod for pod in pods if pod.metadata.annotations.completion_index == LEADER_INDEX)
    return any(pod.status.phase == "Succeeded" for pod in of_index)
