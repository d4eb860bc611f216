"""JobSet -> all objects that the controller creates for a fresh one, in creation order.

Called by `jobset plan` and by programs. It never asks a cluster: what a running JobSet has may differ.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pyjobset.compiler.jobs import child_jobs, compile_job
from pyjobset.compiler.ownership import manifest
from pyjobset.compiler.scheduling import compile_scheduling
from pyjobset.compiler.service import compile_service
from pyjobset.compiler.volumes import compile_claims
from pyjobset.objects.features import DEFAULTS, WORKLOAD_AWARE_SCHEDULING, Features
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import POD_GROUPS, WORKLOADS
from pyjobset.rules.defaults import with_defaults


@dataclass(frozen=True, slots=True)
class Compiled:
    """Manifests, read-only: siblings share their parts."""

    workload: Manifest | None
    pod_groups: tuple[Manifest, ...]
    service: Manifest | None
    claims: tuple[Manifest, ...]
    jobs: tuple[Manifest, ...]

    def __iter__(self) -> Iterator[Manifest]:
        """In creation order: no pod ever names a PodGroup that was not created before it."""
        if self.workload is not None:
            yield self.workload
        yield from self.pod_groups
        if self.service is not None:
            yield self.service
        yield from self.claims
        yield from self.jobs


def compile_jobset(jobset: JobSet, features: Features = DEFAULTS) -> Compiled:
    """Suspended, a JobSet has no Workload and no PodGroups, but its Jobs name them already: that field is immutable.

    With the gate JobSetWorkloadAwareSchedulingAPI off, spec.scheduling counts as unset.
    """
    jobset = with_defaults(jobset)
    suspend = bool(jobset.spec.suspend)
    scheduling = compile_scheduling(jobset) if WORKLOAD_AWARE_SCHEDULING in features else None
    exist = scheduling if not suspend else None
    return Compiled(
        workload=manifest(WORKLOADS, exist.workload) if exist else None,
        pod_groups=tuple(manifest(POD_GROUPS, group) for group in exist.pod_groups) if exist else (),
        service=compile_service(jobset),
        claims=compile_claims(jobset),
        jobs=tuple(
            compile_job(
                jobset,
                child,
                placement=scheduling.placement(*child.key) if scheduling else None,
                features=features,
                suspend=suspend,
            )
            for child in child_jobs(jobset)
        ),
    )
