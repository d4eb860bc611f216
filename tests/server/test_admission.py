"""Admission on a real API server: the CRD and the webhooks together refuse what the rules refuse, and nothing else."""

import json
import os
import re
import signal
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from pyjobset.errors import PlaneError
from pyjobset.localplane.api import ApiServer, tls
from pyjobset.localplane.components import CONTROLLER
from pyjobset.localplane.options import NodeLayout, PlaneOptions
from pyjobset.localplane.plane import Plane
from pyjobset.objects import features as gates
from pyjobset.objects.meta import Manifest
from tests.manifests import (
    ALL_GATES,
    BASIC,
    DRIVER_POD,
    ENTRIES,
    EXCLUSIVE,
    JOBSET,
    RULE,
    WORKERS,
    WORKERS_POD,
    Case,
    Edits,
    edited,
    entry,
    problems_of_create,
)
from tests.server.plane import wait_for
from tests.server.test_controller import replicated_job
from tests.tables.test_rules_create import CASES as CREATIONS
from tests.tables.test_rules_scheduling import CASES as SCHEDULINGS

JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
CONFIGURATIONS = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
OURS = {"jobset-mutating-webhook-configuration", "jobset-validating-webhook-configuration"}
ALL = {name: True for name, gate in gates.GATES.items() if not gate.locked}
ASKED = re.compile(
    r'^apiserver_admission_webhook_admission_duration_seconds_count\{.*"vjobset.kb.io",operation="UPDATE".*\} (\d+)$',
    re.MULTILINE,
)
BAD = edited(JOBSET, {"spec.replicatedJobs[0].groupName": "G", "spec.replicatedJobs[1].name": "B"})


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """All gates are on, so that each rule can be broken by itself; its controller may be killed."""
    options = PlaneOptions(layout=NodeLayout(count=1), feature_gates=ALL)
    plane = Plane(tmp_path_factory.mktemp("admission"), options)
    yield plane
    plane.reset()


@pytest.fixture
def running(own: Plane) -> Plane:
    own.start()
    return own


@pytest.fixture
def server(running: Plane) -> Iterator[ApiServer]:
    port = urlsplit(running.status().server).port
    assert port
    with ApiServer(port, tls(running.directory / "pki", "ca", "admin")) as found:
        yield found


def refusal(server: ApiServer, manifest: Manifest) -> str:
    """What the API server says to a creation, as a dry run and as strict as kubectl is; nothing if it would take it."""
    try:
        server.create(f"{JOBSETS}?dryRun=All&fieldValidation=Strict", manifest)
    except PlaneError as error:
        return error.message
    return ""


def configured(plane: Plane) -> dict[str, Any]:
    items = json.loads(plane.run_kubectl("get", CONFIGURATIONS, "-o", "json").stdout)["items"]
    return {item["metadata"]["name"]: item for item in items}


def running_jobset(name: str) -> Manifest:
    spec = {"replicatedJobs": [replicated_job("w", "sleep 1", 2)]}
    return {**JOBSET, "metadata": {"name": name}, "spec": spec}


CASES = [
    case
    for case in (*CREATIONS, *SCHEDULINGS)
    if case.code != "namespace-name" and "J_" not in str(case.good) and not case.off
]
"""Not those of gates that are off, nor what the API server judges by itself: names of namespaces, unused prefixes."""


def test_bad_manifests_are_refused_and_their_neighbours_are_not(server: ApiServer) -> None:
    wrong = []
    for case in CASES:
        assert problems_of_create(case.bad, ALL_GATES)
        said = refusal(server, edited(JOBSET, case.bad))
        if f"[{case.code}]" not in said and not is_said_by_the_schema(said, case):
            wrong.append(f"{case}: {said or 'accepted'}")
        if said := refusal(server, edited(JOBSET, case.good)):
            wrong.append(f"neighbour of {case}: {said}")
    assert not wrong, "\n".join(wrong)


def is_said_by_the_schema(said: str, case: Case) -> bool:
    """The CRD's own rules come first. They point at the field, or at the object that has it."""
    parent = case.path.rpartition(".")[0].partition("[")[0]
    return bool(said) and "admission webhook" not in said and (case.path in said or f"{parent}" in said)


def test_kubectl_shows_the_problems_as_it_shows_those_of_kubernetes(running: Plane) -> None:
    applied = running.run_kubectl("apply", "-f", "-", stdin=json.dumps(BAD))
    assert applied.returncode == 1
    first, *problems = applied.stderr.strip().splitlines()
    assert first == 'The JobSet "js" is invalid: '
    assert [p.partition(": Invalid value: ")[0] for p in problems] == [
        "* spec.replicatedJobs[0].groupName",
        "* spec.replicatedJobs[1].name",
    ]
    assert all("; hint: " in problem for problem in problems)


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        pytest.param(
            {"spec.failurePolicy.maxRestarts": -1},
            ["spec.failurePolicy.maxRestarts: Invalid value: -1: "],
            id="maxRestarts",
            marks=pytest.mark.decision(2),
        ),
        pytest.param(
            {f"{WORKERS}.dependsOn": [{"name": "workers", "status": "Ready"}]},
            [f"{WORKERS}.dependsOn[0].name: ", '"workers"', "; hint: "],
            id="dependsOn itself",
            marks=pytest.mark.decision(2),
        ),
        pytest.param(
            {RULE: {"action": "FailJobSet", "onJobFailureMessagePatterns": ["("]}},
            [f"{RULE}.onJobFailureMessagePatterns[0]: ", '"("', "; hint: "],
            id="a pattern that is none",
            marks=pytest.mark.decision(2),
        ),
        pytest.param(
            {RULE: {"action": "FailJobSet", "onJobFailureReasons": ["FailedIndexes"] * 2}},
            [f"{RULE}.onJobFailureReasons[1]: ", '"FailedIndexes"'],
            id="the same reason again",
            marks=pytest.mark.decision(2),
        ),
        pytest.param(
            {"metadata": {"generateName": "j" * 41}},
            [f"{WORKERS}.name: ", "at most 63 are allowed"],
            id="a long generateName",
            marks=pytest.mark.decision(15),
        ),
        pytest.param(
            {"spec.scheduling": {}, "metadata.annotations": {EXCLUSIVE: "rack"}},
            ["a gang waits for all", "use schedulingConstraints"],
            id="exclusive placement of a gang",
            marks=pytest.mark.decision(23),
        ),
        pytest.param(
            {"spec.scheduling": {}, f"{WORKERS_POD}.schedulerName": "mine"},
            ["'driver' has 'default-scheduler'"],
            id="two schedulers",
            marks=pytest.mark.decision(24),
        ),
        pytest.param(
            {"spec.scheduling": {}, f"{DRIVER_POD}.priorityClassName": "system-node-critical"},
            ["is unset here and system-node-critical in 'driver'"],
            id="two priorities",
            marks=pytest.mark.decision(32),
        ),
        pytest.param(
            {"spec.scheduling": {"schedulingPolicy": BASIC, "disruptionMode": {"all": {}}}},
            ["spec.scheduling.disruptionMode: ", "disruptionMode all needs schedulingPolicy gang"],
            id="basic, disrupted as one",
            marks=pytest.mark.decision(37),
        ),
    ],
)
def test_what_could_never_work_is_refused_and_kubectl_says_why(edits: Edits, said: list[str], running: Plane) -> None:
    sent = json.dumps(edited(JOBSET, edits))
    created = running.run_kubectl("create", "--dry-run=server", "-f", "-", stdin=sent)
    assert created.returncode == 1
    assert " is invalid: " in created.stderr
    assert [words for words in said if words not in created.stderr] == [], created.stderr


SHARED = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}


@pytest.mark.parametrize(
    ("edits", "warning"),
    [
        pytest.param(
            {
                ENTRIES: [entry("driver"), entry("workers", job=SHARED)],
                f"{WORKERS_POD}.resourceClaims": [{"name": "c", "resourceClaimName": "mine"}],
            },
            "resourceClaims[0] is claim 'mine', and template 't' in spec.scheduling, so it is not shared",
            id="a claim of its own",
            marks=pytest.mark.decision(25),
        ),
        pytest.param(
            {f"{WORKERS}.template.spec.ttlSecondsAfterFinished": 9},
            f"{WORKERS}.template.spec.ttlSecondsAfterFinished is ignored",
            id="a TTL of the Job",
            marks=pytest.mark.decision(39),
        ),
    ],
)
def test_what_is_admitted_and_worth_a_look_is_a_warning(edits: Edits, warning: str, running: Plane) -> None:
    sent = json.dumps(edited(JOBSET, edits))
    created = running.run_kubectl("create", "--dry-run=server", "-f", "-", stdin=sent)
    assert created.returncode == 0, created.stderr
    assert warning in created.stderr


def test_kubectl_shows_warnings(running: Plane) -> None:
    empty = edited(JOBSET, {"spec.replicatedJobs": []})
    created = running.run_kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(empty))
    assert created.returncode == 0
    assert created.stderr.startswith("Warning: spec.replicatedJobs asks for no Job at all")


def test_the_defaults_of_the_templates_are_stored(running: Plane) -> None:
    bare = edited(running_jobset("bare"), {"spec.suspend": True})
    template = bare["spec"]["replicatedJobs"][0]["template"]["spec"]
    del template["template"]["spec"]["restartPolicy"]
    created = running.run_kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(bare))
    stored = json.loads(created.stdout)["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (stored["completionMode"], stored["template"]["spec"]["restartPolicy"]) == ("Indexed", "OnFailure")


def updates_asked(plane: Plane) -> int:
    return sum(map(int, ASKED.findall(plane.run_kubectl("get", "--raw", "/metrics").stdout)))


@pytest.mark.decision(14)
def test_updates_are_judged_and_the_controllers_own_writes_are_not_asked_about(running: Plane) -> None:
    before = updates_asked(running)
    created = running.run_kubectl("create", "-f", "-", stdin=json.dumps(running_jobset("life")))
    assert created.returncode == 0, created.stderr
    completed = running.run_kubectl("wait", "jobset/life", "--for=condition=Completed", "--timeout=100s")
    assert completed.returncode == 0, completed.stderr
    assert updates_asked(running) == before
    grown = '[{"op": "replace", "path": "/spec/replicatedJobs/0/replicas", "value": 3}]'
    patched = running.run_kubectl("patch", "jobset", "life", "--type=json", "-p", grown)
    assert "spec.replicatedJobs[0].replicas: Invalid value: field is immutable: was 2, now 3" in patched.stderr
    assert running.run_kubectl("label", "jobset", "life", "a=b").returncode == 0
    assert updates_asked(running) > before


def test_a_deletion_with_a_finalizer_ends(running: Plane) -> None:
    held = edited(running_jobset("held"), {"metadata.finalizers": ["example.com/held"], "spec.suspend": True})
    assert running.run_kubectl("create", "-f", "-", stdin=json.dumps(held)).returncode == 0
    assert running.run_kubectl("delete", "jobset", "held", "--wait=false").returncode == 0
    patch = '{"metadata":{"finalizers":null}}'
    freed = running.run_kubectl("patch", "jobset", "held", "--type=merge", "-p", patch)
    assert freed.returncode == 0, freed.stderr
    assert wait_for(lambda: running.run_kubectl("get", "jobset", "held").returncode == 1, "it is gone")


def test_without_its_controller_nothing_is_admitted_until_up_repairs_it(running: Plane, server: ApiServer) -> None:
    pid = next(c.pid for c in running.status().components if c.name == CONTROLLER)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not running.status().running, "the end of the controller")
    assert 'failed calling webhook "mjobset.kb.io"' in refusal(server, JOBSET)
    running.start()
    assert refusal(server, JOBSET) == ""
    assert "[group-name]" in refusal(server, BAD)


def test_a_plane_without_controller_has_no_webhooks_and_one_with_it_has_them_again(
    running: Plane, server: ApiServer
) -> None:
    assert set(configured(running)) == OURS
    Plane(running.directory, PlaneOptions(controller=False, feature_gates=ALL)).start()
    assert configured(running) == {}
    assert wait_for(lambda: refusal(server, BAD) == "", "nobody is asked")
    running.start()
    assert set(configured(running)) == OURS
    wait_for(lambda: "[group-name]" in refusal(server, BAD), "they are asked")
