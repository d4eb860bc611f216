"""spec.volumeClaimPolicies -> PersistentVolumeClaims, and the volumes of the Jobs that mount them.

Called by the reconciler, `jobset plan` and `jobs`. It never looks at the claims that exist. Mirrors KEP-572.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pyjobset.compiler.ownership import owner_manifest
from pyjobset.objects import labels, names
from pyjobset.objects.jobset import JobSet, RetentionPolicy
from pyjobset.objects.meta import Manifest
from pyjobset.objects.template import mapping_at


def compile_claims(jobset: JobSet) -> tuple[Manifest, ...]:
    """Every claim, in spec order. Only those that go with the JobSet have it as their owner; all say who made them."""
    claims: list[Manifest] = []
    for policy in jobset.spec.volume_claim_policies:
        retention = policy.retention_policy or RetentionPolicy()
        owners = {"ownerReferences": [owner_manifest(jobset)]} if retention.when_deleted == "Delete" else {}
        claims.extend(_claim(jobset, template, owners) for template in policy.templates)
    return tuple(claims)


def claim_names(jobset: JobSet) -> tuple[str, ...]:
    """The names of the claims, in spec order."""
    return tuple(
        names.claim_name(_template_name(template), jobset.metadata.name)
        for policy in jobset.spec.volume_claim_policies
        for template in policy.templates
    )


def claim_volumes(jobset: JobSet, pod_spec: Mapping[str, Any]) -> list[Manifest]:
    """The volumes that a pod gets: of the claims that one of its containers mounts. A volume of its own stays."""
    mounted = set(_mounted(pod_spec)) - {volume.get("name") for volume in pod_spec.get("volumes") or ()}
    return [
        {"name": name, "persistentVolumeClaim": {"claimName": names.claim_name(name, jobset.metadata.name)}}
        for policy in jobset.spec.volume_claim_policies
        for name in map(_template_name, policy.templates)
        if name in mounted
    ]


def _claim(jobset: JobSet, template: Manifest, owners: Manifest) -> Manifest:
    given = mapping_at(template, "metadata")
    metadata = {
        "name": names.claim_name(_template_name(template), jobset.metadata.name),
        "namespace": jobset.metadata.namespace,
        "labels": {**mapping_at(given, "labels"), labels.JOBSET_NAME: jobset.metadata.name},
        "annotations": {**mapping_at(given, "annotations"), labels.JOBSET_UID: jobset.metadata.uid},
    }
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata | owners}
    return claim | {key: value for key, value in template.items() if key not in claim and key != "status"}


def _template_name(template: Manifest) -> str:
    return str(mapping_at(template, "metadata").get("name") or "")


def _mounted(pod_spec: Mapping[str, Any]) -> Iterator[str]:
    for kind in ("initContainers", "containers"):
        for container in pod_spec.get(kind) or ():
            for how in ("volumeMounts", "volumeDevices"):
                for mount in container.get(how) or ():
                    yield mount.get("name", "")
