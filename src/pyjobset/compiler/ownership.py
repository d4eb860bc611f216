"""What every object that a JobSet owns carries: the one ownerReference, and apiVersion and kind when it is written.

Used by the rest of the compiler. It never decides which objects there are.
"""

from msgspec import json

from pyjobset.objects import labels
from pyjobset.objects.jobset import API_VERSION, KIND, JobSet
from pyjobset.objects.meta import Manifest, ObjectMeta, OwnerReference, Struct
from pyjobset.objects.resources import Resource


def owner_manifest(jobset: JobSet) -> Manifest:
    """For objects that we write as plain JSON. `uid` is there even before the API server gave one."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": jobset.metadata.name,
        "uid": jobset.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned_metadata(jobset: JobSet, name: str) -> ObjectMeta:
    """For objects that we write as structs."""
    owner = OwnerReference(
        api_version=API_VERSION,
        kind=KIND,
        name=jobset.metadata.name,
        uid=jobset.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    return ObjectMeta(
        name=name,
        namespace=jobset.metadata.namespace,
        labels={labels.JOBSET_NAME: jobset.metadata.name},
        owner_references=(owner,),
    )


def manifest(resource: Resource[Struct], struct: Struct) -> Manifest:
    """A struct as the object that the API server takes, in JSON values only: apiVersion and kind first."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **json.decode(json.encode(struct))}
