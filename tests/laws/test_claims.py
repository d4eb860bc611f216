"""A claim that was made of a template fits that template for ever; one that lacks something of it never does."""

from typing import Any

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from pyjobset.compiler.volumes import compile_claims
from pyjobset.objects.batch import Claim
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.reconciler.claims import obstacle
from tests.builders import jobset

MODES = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
EXPRESSION = st.fixed_dictionaries(
    {"key": st.sampled_from("abc"), "operator": st.just("In"), "values": st.lists(st.sampled_from("xyz"), min_size=1)}
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "accessModes": st.lists(st.sampled_from(MODES), min_size=1, unique=True),
        "storageClassName": st.sampled_from(["", "fast"]),
        "volumeMode": st.sampled_from(["Block", "Filesystem"]),
        "selector": st.fixed_dictionaries({"matchExpressions": st.lists(EXPRESSION, min_size=1, max_size=3)}),
        "resources": st.sampled_from([{"requests": {"storage": "1Gi"}}, {"limits": {"storage": "2Gi"}}]),
        "dataSource": st.just({"kind": "PersistentVolumeClaim", "name": "p"}),
    },
)
ADDED = {"volumeName": "pv-1", "volumeMode": "Filesystem", "storageClassName": "standard", "accessModes": MODES}
"""By the API server and by the binding, where the template says nothing."""
SPELLINGS = {"1Gi": ["1024Mi", "1073741824", "2Gi"], "2Gi": ["2048Mi", "2147483648"]}


def retaining(spec: Manifest) -> JobSet:
    template = {"metadata": {"name": "data"}, "spec": spec}
    return jobset(volumeClaimPolicies=[{"templates": [template], "retentionPolicy": {"whenDeleted": "Retain"}}])


def kept(spec: Manifest) -> Claim:
    metadata = {"name": "data-js", "labels": {"jobset.sigs.k8s.io/jobset-name": "js"}}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Claim)


def respelled(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: respelled(draw, each) for key, each in value.items()}
    if isinstance(value, list):
        return [respelled(draw, each) for each in draw(st.permutations(value))]
    return draw(st.sampled_from([value, *SPELLINGS.get(value, ())]))


@given(SPECS, st.data())
def test_what_was_made_of_the_template_fits_it(spec: Manifest, data: st.DataObject) -> None:
    js = retaining(spec)
    (wanted,) = compile_claims(js)
    stored = {**ADDED, **respelled(data.draw, spec)}
    assert obstacle(js, wanted, kept(stored)) is None


@given(SPECS, st.data())
def test_what_lacks_a_field_of_the_template_does_not_fit_and_the_field_is_named(
    spec: Manifest, data: st.DataObject
) -> None:
    assume(spec)
    field = data.draw(st.sampled_from(sorted(spec)))
    js = retaining(spec)
    (wanted,) = compile_claims(js)
    found = obstacle(js, wanted, kept({**ADDED, **spec, field: None}))
    assert found is not None
    assert f"spec.{field}" in found.message
    assert found.owner == ""
