"""What is always true of the webhooks: each request is answered, and what was defaulted and judged stays so."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyjobset.controller.webhook import admission
from pyjobset.controller.webhook.review import MalformedReview, decode
from pyjobset.controller.webhook.server import answer
from pyjobset.errors import InvalidSpec
from pyjobset.objects.jobset import API_VERSION, KIND
from pyjobset.objects.meta import Manifest
from pyjobset.rules.defaults import with_defaults
from pyjobset.rules.parse import read
from pyjobset.rules.validation import check
from tests.laws.strategies import jobset_manifests
from tests.manifests import ALL_GATES, JOBSET
from tests.reviews import body, on_the_wire, patched, review

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)
FIELDS = st.sampled_from(sorted(review(JOBSET)["request"]))


def manifests() -> st.SearchStrategy[Manifest]:
    return jobset_manifests().map(lambda manifest: {"apiVersion": API_VERSION, "kind": KIND} | manifest)


@st.composite
def damaged(draw: st.DrawFn) -> Manifest:
    """A review with up to three of its fields, or of those of its objects, replaced."""
    fields = {draw(FIELDS): draw(JSON) for _ in range(draw(st.integers(0, 2)))}
    objects = [JOBSET | {draw(st.sampled_from(["spec", "metadata", "kind", "x"])): draw(JSON)} for _ in range(2)]
    return review(objects[0], draw(st.sampled_from([None, objects[1]]))) | (
        {"request": review(*objects)["request"] | fields} if fields else {}
    )


@given(JSON | damaged())
def test_every_request_gets_an_answer_and_none_is_a_bug(sent: Any) -> None:
    content = json.dumps(sent).encode()
    for judge in (admission.mutate, lambda asked: admission.validate(asked, ALL_GATES)):
        response = asyncio.run(answer(content, judge))
        assert isinstance(response.body, bytes)
        assert response.status in (200, 400)
        assert b"InternalError" not in response.body
        json.loads(response.body)


@given(st.binary(max_size=200))
def test_bytes_that_nobody_meant_are_malformed(content: bytes) -> None:
    with pytest.raises(MalformedReview, match=r"."):
        decode(content)


@given(manifests())
def test_the_patch_is_what_the_rules_call_defaults(manifest: Manifest) -> None:
    complete = patched(manifest, on_the_wire(admission.mutate(decode(body(manifest)))))
    (before, _), (after, _) = read(manifest), read(complete)
    assert before is not None
    assert after is not None
    assert after == with_defaults(before)
    assert with_defaults(after) is after
    assert "patch" not in on_the_wire(admission.mutate(decode(body(complete))))


@given(manifests())
def test_a_verdict_is_that_of_lint_and_a_stored_jobset_may_stay(manifest: Manifest) -> None:
    response = on_the_wire(admission.validate(decode(body(manifest)), ALL_GATES))
    try:
        check(manifest, ALL_GATES)
        problems = []
    except InvalidSpec as invalid:
        problems = [problem.path for problem in invalid.problems]
    causes = response.get("status", {}).get("details", {}).get("causes", [])
    assert [cause["field"] for cause in causes] == problems
    assert response["allowed"] == (not problems)
    assert on_the_wire(admission.validate(decode(body(manifest, manifest)), ALL_GATES))["allowed"]
