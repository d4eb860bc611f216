"""Compares scheduling objects as stored with those that we want: what differs, and whose doing it is. Pure.

Values that the API server decides are no drift: what it fills in where we leave out (priority, disruptionMode single,
a global default priority class) and what it drops because a cluster gate is off. A dropped field is told apart by
being absent in the stored object: all of these fields are immutable, so absence means that they never got in. Once the
gate is back (`accepts`), the object is made anew; one that was made after that is not, so that there is no loop.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyjobset.objects.meta import Struct
from pyjobset.objects.scheduling import (
    DisruptionMode,
    PodGroup,
    PodGroupSpec,
    PodGroupTemplate,
    SchedulingConstraints,
    SchedulingPolicy,
    Workload,
)

GATE_OF_FIELD = {
    "schedulingConstraints": "TopologyAwareWorkloadScheduling",
    "resourceClaims": "DRAWorkloadResourceClaims",
}
"""The cluster gate without which the API server drops the field silently (Kubernetes 1.37)."""


@dataclass(frozen=True, slots=True)
class Drift:
    """`dropped` and `returned` are wire names of fields; `returned` ones were dropped and the cluster keeps them now.
    `other` says that something else differs that only a new object cures. `has_other_groups`: it is that a group of the
    Workload got its first pods or lost its last ones, and its templates are fixed (decision 21)."""

    dropped: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    other: bool = False
    has_other_groups: bool = False
    min_counts: tuple[tuple[int, int, int], ...] = ()
    """(template index, stored, wanted); index 0 for a PodGroup."""


Accepts = Mapping[str, str]
"""The fields that the cluster keeps, and since when."""


def pod_group_drift(stored: PodGroup, wanted: PodGroup, accepts: Accepts) -> Drift:
    if stored.spec.workload_ref != wanted.spec.workload_ref:
        return Drift(other=True)
    return _with_returned(stored, _leaf_drift(stored.spec, wanted.spec, 0), accepts)


def workload_drift(stored: Workload, wanted: Workload, accepts: Accepts) -> Drift:
    old, new = stored.spec.pod_group_templates, wanted.spec.pod_group_templates
    if stored.spec.controller_ref != wanted.spec.controller_ref:
        return Drift(other=True)
    has, wants = [t.name for t in old], [t.name for t in new]
    if has != wants:
        return Drift(other=True, has_other_groups=set(has) < set(wants) or set(wants) < set(has))
    parts = [_leaf_drift(a, b, i) for i, (a, b) in enumerate(zip(old, new, strict=True))]
    drift = Drift(
        dropped=tuple(sorted({field for part in parts for field in part.dropped})),
        other=any(part.other for part in parts),
        min_counts=tuple(count for part in parts for count in part.min_counts),
    )
    return _with_returned(stored, drift, accepts)


def _with_returned(stored: PodGroup | Workload, drift: Drift, accepts: Accepts) -> Drift:
    made = stored.metadata.creation_timestamp or ""
    returned = tuple(field for field in drift.dropped if made < accepts.get(field, ""))
    dropped = tuple(field for field in drift.dropped if field not in returned)
    return replace(drift, dropped=dropped, returned=returned)


Leaf = PodGroupTemplate | PodGroupSpec


def _leaf_drift(stored: Leaf, wanted: Leaf, index: int) -> Drift:
    dropped: list[str] = []
    other = _policy_kind(stored.scheduling_policy) != _policy_kind(wanted.scheduling_policy)
    other |= _mode(stored.disruption_mode) != _mode(wanted.disruption_mode)
    other |= wanted.priority_class_name is not None and stored.priority_class_name != wanted.priority_class_name
    pairs: tuple[tuple[str, object, object], ...] = (
        ("schedulingConstraints", _keys(stored.scheduling_constraints), _keys(wanted.scheduling_constraints)),
        ("resourceClaims", stored.resource_claims, wanted.resource_claims),
    )
    for field, has, wants in pairs:
        if has == wants:
            continue
        if has:
            other = True
        else:
            dropped.append(field)
    return Drift(tuple(dropped), other=other, min_counts=() if other else _counts(stored, wanted, index))


def _counts(stored: Leaf, wanted: Leaf, index: int) -> tuple[tuple[int, int, int], ...]:
    if wanted.scheduling_policy.gang is None:
        return ()
    wants = wanted.scheduling_policy.gang.min_count
    has = stored.scheduling_policy.gang.min_count if stored.scheduling_policy.gang else None
    return () if has == wants else ((index, has or 0, wants or 0),)


def _policy_kind(policy: SchedulingPolicy) -> str:
    return "gang" if policy.gang is not None else "basic"


def _mode(mode: DisruptionMode | None) -> str:
    """Unset is stored as `single` in a PodGroup and stays unset in a Workload."""
    return "all" if mode is not None and mode.all is not None else "single"


def _keys(constraints: SchedulingConstraints | None) -> tuple[Struct, ...]:
    return constraints.topology if constraints is not None else ()
