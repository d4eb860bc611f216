"""The trial of Job templates: what is sent, and what each answer of the API server makes of the admission."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import pytest

from pyjobset.controller.webhook import admission
from pyjobset.controller.webhook.dry_run import SECONDS_MAX, DryRun, trials
from pyjobset.controller.webhook.review import decode
from pyjobset.controller.webhook.server import answer
from pyjobset.errors import OutcomeUnknown, Unavailable
from pyjobset.kube.client import Client
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.objects import features as gates
from pyjobset.objects.meta import Manifest
from pyjobset.rules.registry import JOB_TEMPLATE, JOB_TEMPLATE_UNTRIED
from pyjobset.simulation.clock import run
from tests.manifests import ALL_GATES, JOBSET, edited, entry, job_template
from tests.reviews import body

DRIVER, WORKERS = "spec.replicatedJobs[0].template", "spec.replicatedJobs[1].template"
IMAGE = "spec.template.spec.containers[0].image"
SUSPENDED = edited(JOBSET, {"spec.suspend": True})


@dataclass
class Server:
    """Answers each Job by its name after a while: a status and its Status object, or an error of the transport."""

    answers: dict[str, tuple[int, Manifest] | Exception] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    sent: list[Request] = field(default_factory=list)
    jobs: list[Manifest] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        job = json.loads(request.body)
        self.sent.append(request)
        self.jobs.append(job)
        name = job["metadata"]["name"]
        await asyncio.sleep(self.seconds.get(name, 0.01))
        said = self.answers.get(name, (201, job))
        if isinstance(said, Exception):
            raise said
        return Response(said[0], json.dumps(said[1]).encode())

    def stream(self, *_: object) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise AssertionError("nothing is watched")

    async def close(self) -> None: ...


def status(code: int, reason: str, message: str, *causes: tuple[str, str]) -> tuple[int, Manifest]:
    details = {"name": "x", "kind": "Job", "causes": [{"field": f, "message": m} for f, m in causes]}
    return code, {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}


INVALID = status(422, "Invalid", "Job.batch is invalid", (IMAGE, "Required value"))


def asked(server: Server, new: Any, old: Any = None, features: gates.Features = ALL_GATES, **request: Any) -> Manifest:
    """The response to a review, rules first."""

    async def main() -> Manifest:
        async with Client(server) as client:
            content = body(new, old, **request)
            said = await answer(content, lambda r: admission.validate(r, features), DryRun(client, features))
            assert isinstance(said.body, bytes)
            response: Manifest = json.loads(said.body)["response"]
            return response

    return run(main())


def refused(response: Manifest) -> list[tuple[str, str]]:
    assert response["allowed"] is False
    assert response["status"]["code"] == 422
    return [(cause["field"], cause["message"]) for cause in response["status"]["details"]["causes"]]


def warned(response: Manifest) -> str:
    assert response["allowed"] is True
    (warning,) = response["warnings"]
    assert f"[{JOB_TEMPLATE_UNTRIED.code}]" in warning
    return str(warning)


# What is sent


def test_the_first_job_of_each_template_is_sent_as_a_dry_run_and_suspended() -> None:
    server = Server()
    response = asked(server, JOBSET, namespace="team")
    assert (response["allowed"], response.get("warnings")) == (True, None)
    assert [job["metadata"]["name"] for job in server.jobs] == ["js-driver-0", "js-workers-0"]
    for request, job in zip(server.sent, server.jobs, strict=True):
        assert (request.method, request.path) == ("POST", "/apis/batch/v1/namespaces/team/jobs")
        assert "dryRun=All" in request.query
        assert job["metadata"]["namespace"] == "team"
        assert "ownerReferences" not in job["metadata"], "the API server does not know the JobSet yet"
        assert job["spec"]["suspend"] is True
        assert job["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == "js"


def test_equal_templates_are_sent_once_and_unused_ones_not() -> None:
    same = [{"name": f"r{i}", "replicas": 5, "template": job_template(3)} for i in range(20)]
    unused = {"name": "none", "replicas": 0, "template": job_template(4)}
    server = Server({"js-r0-0": INVALID})
    ((path, message),) = refused(asked(server, edited(JOBSET, {"spec.replicatedJobs": [*same, unused]})))
    assert len(server.jobs) == 1
    assert path == f"spec.replicatedJobs[0].template.{IMAGE}"
    assert "(also in replicatedJobs[1], replicatedJobs[2], replicatedJobs[3], ...)" in message


def test_the_work_does_not_grow_with_the_number_of_replicas() -> None:
    many = [{"name": f"r{i}", "replicas": 10_000_000, "template": job_template(1)} for i in range(3)]
    by_job = [entry(job["name"], job={}) for job in many]
    jobset = edited(JOBSET, {"spec.replicatedJobs": many, "spec.scheduling.replicatedJobs": by_job})
    (trial,) = trials(decode(body(jobset)), ALL_GATES)
    assert trial.indexes == (0, 1, 2)
    assert trial.job["spec"]["template"]["spec"]["schedulingGroup"]


def test_the_jobs_are_those_of_the_gates() -> None:
    gang = edited(JOBSET, {"spec.scheduling": {"schedulingPolicy": {"gang": {}}}})
    with_gang, without = (trials(decode(body(gang)), features)[0].job for features in (ALL_GATES, gates.DEFAULTS))
    assert "schedulingGroup" in with_gang["spec"]["template"]["spec"]
    assert "schedulingGroup" not in without["spec"]["template"]["spec"]


def test_a_name_that_the_server_makes_has_a_stand_in() -> None:
    server = Server()
    nameless = edited(JOBSET, {"metadata": {"generateName": "js-", "namespace": "default"}})
    assert asked(server, nameless)["allowed"] is True
    assert all(job["metadata"]["name"].startswith("js-") for job in server.jobs)


@pytest.mark.parametrize(
    ("edits", "names"),
    [
        ({"metadata.labels": {"a": "b"}}, []),
        ({"spec.suspend": False}, []),
        ({f"{WORKERS}.spec.template.spec.nodeSelector": {"a": "b"}}, ["js-workers-0"]),
    ],
)
def test_an_update_tries_only_the_templates_that_changed(edits: dict[str, Any], names: list[str]) -> None:
    server = Server()
    assert asked(server, edited(SUSPENDED, edits), SUSPENDED)["allowed"] is True
    assert [job["metadata"]["name"] for job in server.jobs] == names


@pytest.mark.parametrize(
    "edits",
    [
        {"metadata.deletionTimestamp": "2026-11-30T12:00:00Z"},
        {"spec.managedBy": "kueue.x-k8s.io/multikueue"},
    ],
    ids=["being deleted", "managed by another"],
)
def test_jobs_that_we_shall_not_create_are_not_tried(edits: dict[str, Any]) -> None:
    old = edited(SUSPENDED, edits)
    server = Server({"js-workers-0": INVALID})
    new = edited(old, {f"{WORKERS}.spec.template.spec.nodeSelector": {"a": "b"}})
    assert asked(server, new, old)["allowed"] is True
    assert server.jobs == []


def test_what_the_rules_refuse_is_not_tried() -> None:
    server = Server()
    assert asked(server, edited(JOBSET, {"spec.replicatedJobs[0].groupName": "G"}))["allowed"] is False
    assert server.jobs == []


def test_a_dry_run_of_the_jobset_is_judged_too() -> None:
    assert refused(asked(Server({"js-driver-0": INVALID}), JOBSET, dryRun=True))


# What the answers mean


@pytest.mark.decision(6)
def test_every_cause_is_told_under_the_path_of_its_template() -> None:
    two = status(422, "Invalid", "m", (IMAGE, "Required value"), ("spec.backoffLimit", "Invalid value: -1"))
    found = refused(asked(Server({"js-driver-0": INVALID, "js-workers-0": two}), JOBSET))
    paths = [f"{DRIVER}.{IMAGE}", f"{WORKERS}.{IMAGE}", f"{WORKERS}.spec.backoffLimit"]
    assert [path for path, _ in found] == paths
    assert found[0][1] == (
        f"Invalid value: {JOB_TEMPLATE.summary}: Required value; hint: {JOB_TEMPLATE.hint} [{JOB_TEMPLATE.code}]"
    )


def test_a_job_that_cannot_be_read_is_refused_with_the_servers_words() -> None:
    text = 'Job in version "v1" cannot be handled as a Job: quantities must match the regular expression'
    ((path, message),) = refused(asked(Server({"js-driver-0": status(400, "BadRequest", text)}), JOBSET))
    assert path == DRIVER
    assert f": {text};" in message
    assert "POST" not in message


WEBHOOK = 'admission webhook "x.example.com" denied the request: no'
POLICY = "jobs.batch \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (status(403, "Forbidden", 'jobs.batch "x" is forbidden: exceeded quota: q'), "exceeded quota: q"),
        (status(403, "Forbidden", 'jobs.batch is forbidden: User "x" cannot create'), "cannot create"),
        (status(404, "NotFound", 'namespaces "gone" not found'), "not found"),
        (status(409, "AlreadyExists", 'jobs.batch "js-driver-0" already exists'), "already exists"),
        (status(400, "BadRequest", WEBHOOK), "x.example.com"),
        (status(400, "BadRequest", 'admission webhook "x.example.com" does not support dry run'), "dry run"),
        (status(422, "Invalid", WEBHOOK, (IMAGE, "no")), "x.example.com"),
        (status(422, "Invalid", POLICY, ("", POLICY)), "ValidatingAdmissionPolicy"),
        (status(500, "InternalError", "Internal error: failed calling webhook y: refused"), "failed calling webhook"),
        (status(503, "ServiceUnavailable", "etcd is away"), "etcd is away"),
        (status(429, "TooManyRequests", "later"), "could not be tried"),  # it is sent again for a while
        (Unavailable("POST jobs.batch x: connection refused"), "connection refused"),
        (OutcomeUnknown("POST jobs.batch x: connection reset"), "connection reset"),
        ((200, {"metadata": 5}), "not a readable Job"),
        ((422, {"error": "a proxy's page"}), "a proxy's page"),
        ((400, {"error": "a proxy's page"}), "a proxy's page"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.decision(6)
def test_whatever_else_happens_is_a_warning(said: Any, words: str) -> None:
    warning = warned(asked(Server({"js-driver-0": said}), JOBSET))
    assert warning.startswith(DRIVER)
    assert words in warning
    assert "POST" not in warning


def test_a_job_that_an_update_meets_is_its_own() -> None:
    taken = status(409, "AlreadyExists", "it exists")
    new = edited(SUSPENDED, {f"{WORKERS}.spec.template.spec.nodeSelector": {"a": "b"}})
    response = asked(Server({"js-workers-0": taken}), new, SUSPENDED)
    assert (response["allowed"], response.get("warnings")) == (True, None)


@pytest.mark.decision(6)
def test_a_slow_server_is_waited_for_one_second_in_all() -> None:
    jobs = [{"name": f"r{i}", "replicas": 1, "template": job_template(i + 1)} for i in range(60)]
    server = Server(seconds={f"js-r{i}-0": 30.0 for i in range(60)})

    async def main() -> tuple[float, Manifest]:
        async with Client(server) as client:
            started = asyncio.get_running_loop().time()
            content = body(edited(JOBSET, {"spec.replicatedJobs": jobs}))
            said = await answer(content, lambda r: admission.validate(r, ALL_GATES), DryRun(client, ALL_GATES))
            assert isinstance(said.body, bytes)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            assert not others, "a trial goes on"
            return asyncio.get_running_loop().time() - started, json.loads(said.body)["response"]

    seconds, response = run(main())
    assert SECONDS_MAX <= seconds < SECONDS_MAX + 0.2
    warning = warned(response)
    assert warning.startswith("spec.replicatedJobs[0].template (and 59 more) ")
    assert "no answer within 1 s" in warning


def test_a_verdict_in_time_refuses_though_others_are_late() -> None:
    server = Server({"js-driver-0": INVALID}, seconds={"js-workers-0": 30.0})
    assert [path for path, _ in refused(asked(server, JOBSET))] == [f"{DRIVER}.{IMAGE}"]


def test_the_warnings_of_the_rules_stay() -> None:
    old_fashioned = edited(JOBSET, {"spec.startupPolicy": {"startupPolicyOrder": "InOrder"}})
    alone = asked(Server(), old_fashioned)["warnings"]
    both = asked(Server({"js-driver-0": status(403, "Forbidden", "no")}), old_fashioned)["warnings"]
    assert both[: len(alone)] == alone
    assert len(both) == len(alone) + 1


def test_a_bug_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    response = asked(Server({"js-driver-0": AssertionError("a bug")}), JOBSET)
    assert (response["allowed"], response["status"]["code"]) == (False, 500)


def test_long_words_of_a_server_are_cut() -> None:
    assert len(warned(asked(Server({"js-driver-0": status(403, "Forbidden", "n" * 5000)}), JOBSET))) < 600


def test_many_causes_of_a_server_are_a_hundred_problems() -> None:
    many = status(422, "Invalid", "m", *[(IMAGE, "n" * 3000)] * 300)
    found = refused(asked(Server({"js-driver-0": many}), JOBSET))
    assert len(found) == 100
    assert all(len(message) < 1500 for _, message in found)
