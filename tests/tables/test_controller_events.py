"""Events: what is sent, in which order, and that nobody waits for them."""

import asyncio
from datetime import timedelta

import msgspec

from pyjobset.controller.events import NOTE_BYTES_MAX, REASON_BYTES_MAX, EventSender, event_body
from pyjobset.errors import Unavailable
from pyjobset.kube.client import Client
from pyjobset.objects.jobset import JobSet
from pyjobset.reconciler.decision import Event
from pyjobset.simulation.clock import run
from tests.builders import NOW, jobset
from tests.model_server import ModelServer

EVENT = Event("Warning", "JobCreationFailed", "exceeded quota")


def body(event: Event = EVENT) -> dict[str, object]:
    return event_body(jobset(), event, NOW + timedelta(microseconds=7), name="js.1", instance="me")


def test_the_whole_event() -> None:
    assert body() == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "js.1", "namespace": "ns"},
        "eventTime": "2026-11-30T12:00:00.000007Z",
        "reportingController": "jobset.sigs.k8s.io/jobset-controller",
        "reportingInstance": "me",
        "action": "Reconciling",
        "type": "Warning",
        "reason": "JobCreationFailed",
        "note": "exceeded quota",
        "regarding": {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "namespace": "ns",
            "name": "js",
            "uid": "uid-js",
            "resourceVersion": "1",
        },
    }


def test_a_long_note_is_cut_and_one_that_fits_is_not() -> None:
    """By bytes: events with a longer note, or reason, are refused."""
    fits = "x" * NOTE_BYTES_MAX
    assert body(Event("Normal", "R", fits))["note"] == fits
    assert body(Event("Normal", "R", fits + "y"))["note"] == fits[:-3] + "…"
    assert body(Event("Normal", "R", "é" * 512))["note"] == "é" * 512
    assert body(Event("Normal", "R", "é" * 513))["note"] == "é" * 510 + "…"


def test_a_reason_with_the_name_of_a_long_rule_is_cut() -> None:
    reason = "FailurePolicy_" + "r" * 128
    assert body(Event("Warning", reason, "m"))["reason"] == reason[:REASON_BYTES_MAX]


def renamed(js: JobSet, name: str) -> JobSet:
    return msgspec.structs.replace(js, metadata=msgspec.structs.replace(js.metadata, name=name))


def test_they_are_sent_in_order_under_different_names_that_fit() -> None:
    async def main() -> None:
        server = ModelServer()
        async with Client(server) as client:
            sender = EventSender(client)
            running = asyncio.create_task(sender.run())
            for reason in "ABC":
                sender.send(renamed(jobset(), "n" * 253), Event("Normal", reason, "m"), NOW)
            await sender.drain()
            running.cancel()
        assert [call.body["reason"] for call in server.calls] == ["A", "B", "C"]
        names = [call.name for call in server.calls]
        assert len(set(names)) == 3
        assert max(map(len, names)) == 253

    run(main())


def test_one_that_cannot_be_sent_is_dropped_and_the_next_goes_out() -> None:
    async def main() -> None:
        server = ModelServer()
        server.before = lambda request, _: Unavailable("down") if b'"A"' in request.body else None
        async with Client(server) as client:
            sender = EventSender(client)
            running = asyncio.create_task(sender.run())
            for reason in "AB":
                sender.send(jobset(), Event("Normal", reason, "m"), NOW)
            await sender.drain()
            running.cancel()
        assert [(call.body["reason"], call.status) for call in server.calls] == [("A", 0), ("B", 201)]

    run(main())
