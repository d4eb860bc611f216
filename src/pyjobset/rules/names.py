"""Names, given and generated: the JobSet's, its children's, labels and annotations. Called by rules.validation.

Job and pod names grow with the number of replicas and completions, so that the longest is looked at. A JobSet with only
a generateName is judged by a name of the length that it will get (decision 15).
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from pyjobset.errors import Problem
from pyjobset.objects import names
from pyjobset.objects.jobset import JobSet, ReplicatedJob
from pyjobset.objects.template import completions, is_indexed, mapping_at
from pyjobset.rules import registry
from pyjobset.rules.rule import child

GENERATED_SUFFIX = "xxxxx"
"""As long as the random part that the API server appends to a generateName, and that of a pod's name."""


def named(jobset: JobSet) -> JobSet:
    """The JobSet with a name in place of its generateName."""
    metadata = jobset.metadata
    if metadata.name or not metadata.generate_name:
        return jobset
    return replace(jobset, metadata=replace(metadata, name=metadata.generate_name + GENERATED_SUFFIX))


def breaches(jobset: JobSet) -> Iterator[Problem]:
    yield from _own_names(jobset)
    yield from _label_problems("metadata", jobset.metadata.labels, jobset.metadata.annotations)
    for i, replicated_job in enumerate(jobset.spec.replicated_jobs):
        path = f"spec.replicatedJobs[{i}]"
        yield from _names_of(jobset, replicated_job, path)
        for place in (("metadata",), ("spec", "template", "metadata")):
            metadata = mapping_at(replicated_job.template, *place)
            where = ".".join((path, "template", *place))
            yield from _label_problems(where, mapping_at(metadata, "labels"), mapping_at(metadata, "annotations"))


def _own_names(jobset: JobSet) -> Iterator[Problem]:
    metadata, network = jobset.metadata, jobset.spec.network
    if not names.is_rfc1035_label(metadata.name):
        generated = metadata.generate_name and metadata.name == metadata.generate_name + GENERATED_SUFFIX
        path, value = ("generateName", metadata.generate_name) if generated else ("name", metadata.name)
        yield registry.JOBSET_NAME.at(f"metadata.{path}", value)
    if metadata.namespace and not names.is_dns_label(metadata.namespace):
        yield registry.NAMESPACE_NAME.at("metadata.namespace", metadata.namespace)
    if network is not None and network.subdomain and not names.is_rfc1035_label(network.subdomain):
        yield registry.SUBDOMAIN.at("spec.network.subdomain", network.subdomain)


def _names_of(jobset: JobSet, replicated_job: ReplicatedJob, path: str) -> Iterator[Problem]:
    name = replicated_job.name
    if not names.is_rfc1035_label(replicated_job.group_name):
        yield registry.GROUP_NAME.at(f"{path}.groupName", replicated_job.group_name)
    if not names.is_dns_label(name):
        yield registry.REPLICATED_JOB_NAME.at(f"{path}.name", name)
        return
    job = names.job_name(jobset.metadata.name, name, max(0, replicated_job.replicas - 1))
    if len(job) > names.LABEL_LENGTH_MAX:
        yield registry.JOB_NAME.at(f"{path}.name", name, _too_long("the Job name", job))
        return
    if is_indexed(replicated_job.template):
        what, pod = _longest_pod(job, completions(replicated_job.template))
        if len(pod) > names.LABEL_LENGTH_MAX:
            yield registry.POD_NAME.at(f"{path}.name", name, _too_long(what, pod))


def _longest_pod(job: str, count: int | None) -> tuple[str, str]:
    """What must fit into a label of an Indexed Job's last pod. Without completions batch/v1 looks at the hostname."""
    hostname = names.pod_hostname(job, max(0, (count or 1) - 1))
    return ("the hostname", hostname) if count is None else ("the pod name", f"{hostname}-{GENERATED_SUFFIX}")


def _too_long(what: str, name: str) -> str:
    return f"makes {what} {name!r} of {len(name)} characters; at most {names.LABEL_LENGTH_MAX} are allowed"


def _label_problems(path: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Iterator[Problem]:
    for what, mapping in (("labels", labels), ("annotations", annotations)):
        for key in mapping:
            if not names.is_label_key(key):
                yield registry.LABEL_KEY.at(child(f"{path}.{what}", key), key)
    for key, value in labels.items():
        if not names.is_label_value(value):
            yield registry.LABEL_VALUE.at(child(f"{path}.labels", key), value)
