"""Lines of a watch: decoded, cut anywhere, and bad ones."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyjobset.errors import Unavailable
from pyjobset.kube import events, requests
from pyjobset.kube.events import Bookmark, EventDecoder, LineSplitter, Unreadable, WatchEvent
from pyjobset.kube.responses import Expired
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.resources import JOBS

REQUEST = requests.watch(JOBS, None, silence_seconds_max=1)
DECODER = EventDecoder(REQUEST, Job)
META = {"namespace": "ns", "name": "a", "resourceVersion": "7"}


def line(type_: str, obj: Any) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode()


@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
def test_a_change_is_decoded_into_the_type(type_: str) -> None:
    event = DECODER.decode(line(type_, {"metadata": META, "spec": {"parallelism": 3, "unknown": {}}, "kind": "Job"}))
    assert isinstance(event, WatchEvent)
    assert (event.type, event.object.metadata.name, event.object.spec.parallelism) == (type_, "a", 3)


@pytest.mark.parametrize("type_", [Job, JobSet])
@pytest.mark.parametrize(
    ("annotations", "ends"), [({"k8s.io/initial-events-end": "true"}, True), ({"a": "b"}, False), (None, False)]
)
def test_a_bookmark(type_: Any, annotations: dict[str, str] | None, ends: bool) -> None:
    meta: dict[str, Any] = {"resourceVersion": "9", "creationTimestamp": None}
    if annotations is not None:
        meta["annotations"] = annotations
    bookmark = EventDecoder(REQUEST, type_).decode(line("BOOKMARK", {"kind": "Job", "metadata": meta}))
    assert bookmark == Bookmark("9", ends)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}, Expired),
        ({"kind": "Status", "code": 500, "message": "RequestWatchProgress is disabled"}, Unavailable),
        ({"kind": "Status", "message": "no code"}, Unavailable),
        ({"code": "not a number"}, Unavailable),
    ],
)
def test_an_error_event_is_raised_as_the_answer_it_stands_for(status: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        DECODER.decode(line("ERROR", status))


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        pytest.param(line("MODIFIED", {"metadata": META, "spec": {"parallelism": "x"}}), "a", id="a wrong type"),
        pytest.param(line("MODIFIED", {"metadata": META | {"ownerReferences": 1}}), "a", id="wrong metadata"),
        pytest.param(line("MODIFIED", {"metadata": {"name": 5}}), "", id="no name to be had"),
        pytest.param(line("STRANGE", {"metadata": META}), "", id="an unknown type of event"),
        pytest.param(b'{"type": "MODIFIED"', "", id="not JSON"),
        pytest.param(b'"MODIFIED"', "", id="not an object"),
        pytest.param(b'{"type": "ADDED", "object": {"a":' + b"[" * 100_000, "", id="nested without end"),
        pytest.param(b"\xff", "", id="not UTF-8"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_and_ends_nothing(bad: bytes, name: str) -> None:
    event = DECODER.decode(bad)
    assert isinstance(event, Unreadable)
    assert (event.name, event.resource_version) == ((name, "7") if name else ("", ""))
    assert event.problem


def test_an_item_of_a_list_that_cannot_be_read() -> None:
    good = DECODER.decode_item(msgspec.Raw(b'{"metadata": {"name": "a"}}'))
    bad = DECODER.decode_item(msgspec.Raw(json.dumps({"metadata": META, "spec": 5}).encode()))
    worse = DECODER.decode_item(msgspec.Raw(b"5"))
    assert isinstance(good, Job)
    assert isinstance(bad, Unreadable)
    assert isinstance(worse, Unreadable)
    assert (bad.name, worse.name) == ("a", "")


@given(st.lists(st.binary(min_size=1).map(lambda b: b.replace(b"\n", b"x")), max_size=8), st.data())
def test_lines_come_out_whole_wherever_the_stream_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(text + b"\n" for text in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    splitter, found = LineSplitter(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += splitter.feed(stream[start:end])
    assert found == [text for text in lines if not text.isspace()]


def test_a_cut_off_last_line_is_not_a_line() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one\r\n\n \ntw") == [b"one\r"]
    assert splitter.feed(b"o") == []


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LINE_BYTES_MAX", 10)
    splitter = LineSplitter()
    assert splitter.feed(b"0123456789\n0123456789") == [b"0123456789"]
    with pytest.raises(ValueError, match="longer than 10 bytes"):
        splitter.feed(b"0")
