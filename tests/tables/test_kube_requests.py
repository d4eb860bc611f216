"""What each verb sends: method, path, query, body and type."""

import json
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest

from pyjobset.errors import UsageError
from pyjobset.kube import requests
from pyjobset.kube.requests import Request
from pyjobset.objects.batch import ChildMeta, Job, JobSpec
from pyjobset.objects.resources import JOBS, JOBSETS, PODS
from pyjobset.objects.scheduling import Empty

JOB = Job(metadata=ChildMeta(name="a", namespace="ns"), spec=JobSpec(parallelism=2))
DELETE: dict[str, Any] = {"uid": None, "resource_version": None, "propagation": "Background"}
PATCH: dict[str, Any] = {"kind": "merge", "subresource": None, "field_manager": "me", "force": False}


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (requests.get(JOBS, "ns", "a"), "GET /apis/batch/v1/namespaces/ns/jobs/a"),
        (requests.get(PODS, "ns", "a"), "GET /api/v1/namespaces/ns/pods/a"),
        (requests.get(JOBS, "ns", "a/../b?x=%y z"), "GET /apis/batch/v1/namespaces/ns/jobs/a%2F..%2Fb%3Fx%3D%25y%20z"),
        (requests.get(JOBS, "n/s", "ä"), "GET /apis/batch/v1/namespaces/n%2Fs/jobs/%C3%A4"),
        (requests.list_(JOBS, None), "GET /apis/batch/v1/jobs"),
        (
            requests.list_(JOBSETS, "ns", limit=500),
            "GET /apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets?limit=500",
        ),
        (
            requests.list_(JOBS, "ns", label_selector="a=b,c in (d)", field_selector="b!=f"),
            "GET /apis/batch/v1/namespaces/ns/jobs?labelSelector=a%3Db%2Cc%20in%20%28d%29&fieldSelector=b%21%3Df",
        ),
        (requests.list_(JOBS, None, continue_token="a+/="), "GET /apis/batch/v1/jobs?continue=a%2B%2F%3D"),
        (
            requests.create(JOBS, "ns", {"metadata": {"name": "a"}}, dry_run=False),
            "POST /apis/batch/v1/namespaces/ns/jobs?fieldManager=jobset",
        ),
        (
            requests.create(JOBS, "ns", JOB, dry_run=True),
            "POST /apis/batch/v1/namespaces/ns/jobs?fieldManager=jobset&dryRun=All",
        ),
        (
            requests.patch(JOBS, "ns", "a", {}, **PATCH),
            "PATCH /apis/batch/v1/namespaces/ns/jobs/a?fieldManager=me",
        ),
        (
            requests.patch(JOBS, "ns", "a", {}, **PATCH | {"subresource": "status", "kind": "apply", "force": True}),
            "PATCH /apis/batch/v1/namespaces/ns/jobs/a/status?fieldManager=me&force=true",
        ),
        (requests.delete(JOBS, "ns", "a", **DELETE), "DELETE /apis/batch/v1/namespaces/ns/jobs/a"),
    ],
)
def test_method_path_and_query(request_: Request, line: str) -> None:
    assert f"{request_.method} {request_.target}" == line


@pytest.mark.parametrize("bad", ["", ".", ".."])
@pytest.mark.parametrize("place", ["namespace", "name"])
def test_a_name_that_would_mean_another_resource_is_refused(place: str, bad: str) -> None:
    names = {"namespace": "ns", "name": "a"} | {place: bad}
    with pytest.raises(UsageError, match=r"jobs\.batch"):
        requests.delete(JOBS, names["namespace"], names["name"], **DELETE)


@pytest.mark.parametrize("place", ["namespace", "label_selector"])
def test_bytes_that_are_not_utf_8_are_refused(place: str) -> None:
    """As Python has them from a command line."""
    given = {"namespace": "ns", "label_selector": "x"} | {place: "a\udcff"}
    with pytest.raises(UsageError, match=r"'a\\udcff' is no text"):
        requests.list_(JOBS, given["namespace"], label_selector=given["label_selector"])


@pytest.mark.parametrize("odd", ["a/b", "a?b", "a#b", "a%2e", "ü", "a\n", "a b", "a&b=c+d", "\0"])
def test_odd_characters_stay_where_they_are(odd: str) -> None:
    request = requests.list_(JOBS, odd, label_selector=odd)
    assert unquote(request.path.split("/")[5]) == odd
    assert parse_qs(request.query, keep_blank_values=True) == {"labelSelector": [odd]}
    assert request.target.isascii()
    assert request.target.isprintable()


@pytest.mark.parametrize(
    ("parameters", "query"),
    [
        ({"resource_version": "7"}, {"resourceVersion": ["7"]}),
        ({"resource_version": "7", "label_selector": "a"}, {"resourceVersion": ["7"], "labelSelector": ["a"]}),
        ({"field_selector": "metadata.name=a"}, {"fieldSelector": ["metadata.name=a"]}),
        (
            {"is_streaming_list": True},
            {"sendInitialEvents": ["true"], "resourceVersionMatch": ["NotOlderThan"]},
        ),
    ],
)
def test_a_watch(parameters: dict[str, Any], query: dict[str, list[str]]) -> None:
    request = requests.watch(JOBS, None, timeout_seconds=9, silence_seconds_max=5.0, **parameters)
    always = {"watch": ["true"], "allowWatchBookmarks": ["true"], "timeoutSeconds": ["9"]}
    assert (request.method, request.path) == ("GET", "/apis/batch/v1/jobs")
    assert parse_qs(request.query) == always | query
    assert request.timeout_seconds == 5.0


def test_a_struct_is_sent_with_its_api_version_and_kind_and_only_what_is_set() -> None:
    assert json.loads(requests.create(JOBS, "ns", JOB, dry_run=False).body) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "a", "namespace": "ns"},
        "spec": {"parallelism": 2},
    }
    assert json.loads(requests.encode(JOBS, Empty())) == {"apiVersion": "batch/v1", "kind": "Job"}


def test_a_manifest_is_sent_as_it_is() -> None:
    body = {"apiVersion": "batch/v2", "kind": "X", "spec": {"unknown": [1, None, "ä"]}}
    assert json.loads(requests.create(JOBS, "ns", body, dry_run=False).body) == body


@pytest.mark.parametrize(
    ("kind", "body", "type_", "sent"),
    [
        ("merge", {"a": None}, "application/merge-patch+json", {"a": None}),
        ("json", [{"op": "test"}], "application/json-patch+json", [{"op": "test"}]),
        ("json", ({"op": "test"},), "application/json-patch+json", [{"op": "test"}]),
        ("apply", Empty(), "application/apply-patch+yaml", {"apiVersion": "batch/v1", "kind": "Job"}),
        ("apply", {"kind": "Job"}, "application/apply-patch+yaml", {"kind": "Job"}),
        ("merge", JobSpec(suspend=True), "application/merge-patch+json", {"suspend": True}),
    ],
)
def test_patches(kind: Any, body: Any, type_: str, sent: Any) -> None:
    request = requests.patch(JOBS, "ns", "a", body, **PATCH | {"kind": kind})
    assert (request.content_type, json.loads(request.body)) == (type_, sent)


@pytest.mark.parametrize(
    ("options", "preconditions"),
    [
        ({}, {}),
        ({"uid": "u"}, {"uid": "u"}),
        ({"uid": "u", "resource_version": "7"}, {"uid": "u", "resourceVersion": "7"}),
    ],
)
def test_delete_options(options: dict[str, str], preconditions: dict[str, str]) -> None:
    body = json.loads(requests.delete(JOBS, "ns", "a", **DELETE | options | {"propagation": "Foreground"}).body)
    assert body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "preconditions": preconditions,
    }


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (requests.get(JOBS, "ns", "a"), "GET jobs.batch ns/a"),
        (requests.list_(PODS, None), "GET pods"),
        (requests.create(JOBS, "ns", JOB, dry_run=False), "POST jobs.batch ns/a"),
        (requests.create(JOBS, "ns", {"metadata": {"generateName": "b-"}}, dry_run=False), "POST jobs.batch ns/b-"),
        (requests.create(JOBS, "ns", {"metadata": None}, dry_run=False), "POST jobs.batch ns"),
        (requests.patch(JOBS, "ns", "a", {}, **PATCH | {"subresource": "status"}), "PATCH jobs.batch ns/a/status"),
        (Request("GET", "/version"), "GET /version"),
    ],
)
def test_messages_name_the_object(request_: Request, words: str) -> None:
    assert str(request_) == words
