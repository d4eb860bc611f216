"""volumeClaimPolicies: the templates' names, and that containers mount them. Called by rules.validation.

KEP-572. Whether a claim of that name already exists is not known here: the reconciler looks at it.
"""

from collections.abc import Iterator

from pyjobset.errors import Problem
from pyjobset.objects import names
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.template import mapping_at, pod_spec
from pyjobset.rules import registry


def breaches(jobset: JobSet) -> Iterator[Problem]:
    if not jobset.spec.volume_claim_policies:
        return
    mounted = {name for job in jobset.spec.replicated_jobs for name in _mounts(job.template)}
    claims: set[str] = set()
    for i, policy in enumerate(jobset.spec.volume_claim_policies):
        for j, template in enumerate(policy.templates):
            metadata = mapping_at(template, "metadata")
            name = metadata.get("name") or ""
            path = f"spec.volumeClaimPolicies[{i}].templates[{j}].metadata"
            if metadata.get("namespace"):
                yield registry.CLAIM_TEMPLATE_NAMESPACE.at(f"{path}.namespace", metadata["namespace"])
            yield from _name_problems(jobset, f"{path}.name", name)
            if name in claims:
                yield registry.DUPLICATE.at(f"{path}.name", name, hint="claim templates of all policies differ in name")
            elif name not in mounted:
                yield registry.CLAIM_NOT_MOUNTED.at(f"{path}.name", name)
            claims.add(name)
    for i, job in enumerate(jobset.spec.replicated_jobs):
        for j, volume in enumerate(pod_spec(job.template).get("volumes") or ()):
            if volume.get("name") in claims:
                path = f"spec.replicatedJobs[{i}].template.spec.template.spec.volumes[{j}].name"
                yield registry.CLAIM_VOLUME_TAKEN.at(path, volume["name"])


def _name_problems(jobset: JobSet, path: str, name: str) -> Iterator[Problem]:
    if not names.is_dns_label(name):
        yield registry.CLAIM_TEMPLATE_NAME.at(path, name)
        return
    claim = names.claim_name(name, jobset.metadata.name)
    if len(claim) > names.LABEL_LENGTH_MAX:
        yield registry.CLAIM_NAME.at(path, name, f"makes the claim name {claim!r} of {len(claim)} characters")


def _mounts(template: dict[str, object]) -> Iterator[str]:
    pod = pod_spec(template)
    for kind in ("containers", "initContainers"):
        for container in pod.get(kind) or ():
            for how in ("volumeMounts", "volumeDevices"):
                for mount in container.get(how) or ():
                    yield mount.get("name") or ""
