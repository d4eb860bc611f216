"""What may change in a Job that is suspended, and when."""

from collections.abc import Mapping

from pyjobset.objects.meta import Manifest
from tests.server.conformance.bodies import job
from tests.server.conformance.player import Script, create, patch
from tests.server.conformance.scripts.words import condition, op, steps

SUSPENDED = condition("Suspended", lastTransitionTime="2026-01-01T00:00:00Z")


def once_run(*statuses: Manifest) -> Script:
    """A Job that has run and is suspended, in one status after the other: each time its template is changed."""
    started = {"startTime": "2026-01-01T00:00:00Z", "active": 1, "ready": 0, "terminating": 0}
    changes = [
        step
        for number, status in enumerate(statuses)
        for step in (
            patch("jobs", "a", {"status": status}, "status"),
            patch("jobs", "a", [op("add", "/spec/template/spec/nodeSelector", {"n": str(number)})]),
        )
    ]
    return steps(
        create("jobs", job(suspend=False)),
        patch("jobs", "a", {"status": started}, "status"),
        patch("jobs", "a", {"spec": {"suspend": True}}),
        *changes,
        watch="jobs",
    )


SUSPENSION: Mapping[str, Script] = {
    "the template of a Job without pods that has not said that it is suspended": once_run(
        {"active": 0}, {"startTime": None}
    ),
    "the template of a suspended Job that has pods": once_run(
        {"conditions": [SUSPENDED]}, {"startTime": None}, {"active": None}
    ),
    "the template of a suspended Job that has a start time": once_run(
        {"conditions": [SUSPENDED], "active": 0}, {"active": 2}
    ),
    "the resources of a suspended Job's containers, as it is resumed": steps(
        create("jobs", job()),
        patch(
            "jobs",
            "a",
            [
                op("add", "/spec/template/spec/containers/0/resources", {"requests": {"cpu": "1"}}),
                op("add", "/spec/suspend", False),
            ],
        ),
        patch("jobs", "a", [op("add", "/spec/template/spec/containers/0/resources", {"requests": {"cpu": "2"}})]),
    ),
    "what is empty in a template is not there": steps(
        create("jobs", job()),
        patch(
            "jobs",
            "a",
            [
                op("add", "/spec/template/spec/nodeSelector", {}),
                op("add", "/spec/template/spec/tolerations", []),
                op("add", "/spec/template/spec/schedulingGates", []),
                op("add", "/spec/template/metadata/annotations", {}),
            ],
        ),
        patch("jobs", "a", [op("add", "/spec/template/spec/nodeSelector", {"n": "1"})]),
        patch("jobs", "a", [op("add", "/spec/template/spec/nodeSelector", {})]),
        watch="jobs",
    ),
    "startTime of a suspended Job": steps(
        create("jobs", job(suspend=False)),
        patch("jobs", "a", {"status": {"startTime": "2026-01-01T00:00:00Z"}}, "status"),
        patch("jobs", "a", {"spec": {"suspend": True}}),
        patch("jobs", "a", {"status": {"startTime": None}}, "status"),
        patch("jobs", "a", {"status": {"startTime": "2026-01-02T00:00:00Z"}}, "status"),
        patch("jobs", "a", {"spec": {"suspend": False}}),
        patch("jobs", "a", {"metadata": {"uid": "$uid:jobs/a"}, "status": {"startTime": None}}, "status"),
    ),
}
