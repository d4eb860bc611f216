"""volumeClaimPolicies: which claims are created, used, waited for or refused; by decide and by the whole controller."""

import asyncio
from typing import Any

import msgspec
import pytest

from pyjobset.controller.manager import RESYNC_SECONDS
from pyjobset.objects import conditions as words
from pyjobset.objects.batch import Claim
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import CLAIMS, JOBS, SERVICES
from pyjobset.reconciler.decide import decide
from pyjobset.reconciler.decision import Create, Decision
from pyjobset.reconciler.observation import Refusal
from tests.builders import NOW, TinyServer, jobset, merged, replicated_job
from tests.controller_world import conditions, controller, manifest, settled, until, world
from tests.model_server import ModelServer, failure

NAME_LABEL = "jobset.sigs.k8s.io/jobset-name"
UID = "jobset.sigs.k8s.io/jobset-uid"
SPEC: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
DEFAULTED = {**SPEC, "storageClassName": "standard", "volumeMode": "Filesystem", "volumeName": "pv-1"}
"""As the API server and the volume controller complete it."""


def policies(spec: Manifest = SPEC, when_deleted: str = "Retain", *names: str) -> list[Manifest]:
    templates = [{"metadata": {"name": name}, "spec": spec} for name in names or ("data",)]
    return [{"templates": templates, "retentionPolicy": {"whenDeleted": when_deleted}}]


def mounting(name: str = "w", **more: Any) -> Manifest:
    given = replicated_job(name, **more)
    (container,) = given["template"]["spec"]["template"]["spec"]["containers"]
    container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return given


def server(spec: Manifest = SPEC, when_deleted: str = "Retain", **more: Any) -> TinyServer:
    return TinyServer(jobset(mounting(), volumeClaimPolicies=policies(spec, when_deleted), **more))


def claim(spec: Manifest = DEFAULTED, *, label: str | None = "js", owner: Manifest | None = None, **more: Any) -> Claim:
    metadata = {"name": "data-js", "namespace": "ns", "uid": "c", "labels": {NAME_LABEL: label} if label else {}}
    return msgspec.convert(
        {"metadata": {**metadata, "ownerReferences": [owner] if owner else [], **more}, "spec": spec}, Claim
    )


def owner(kind: str = "JobSet", name: str = "js", uid: str = "uid-js") -> Manifest:
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": kind, "name": name, "uid": uid, "controller": True}


def created(decision: Decision) -> list[str]:
    return [f"{a.resource.kind}/{a.name}" for a in decision.actions if isinstance(a, Create)]


def blocked(decision: Decision) -> str:
    assert decision.status is not None
    return next((c.message for c in decision.status.conditions if (c.type, c.status) == (words.BLOCKED, "True")), "")


@pytest.mark.parametrize("suspend", [False, True])
def test_claims_are_created_between_the_service_and_the_jobs(suspend: bool) -> None:
    js = jobset(mounting(), volumeClaimPolicies=policies(SPEC, "Delete", "data", "logs"), suspend=suspend)
    decision = decide(TinyServer(js).observe())
    assert [a.resource for a in decision.actions] == [SERVICES, CLAIMS, CLAIMS, JOBS]
    assert created(decision)[1:3] == ["PersistentVolumeClaim/data-js", "PersistentVolumeClaim/logs-js"]


@pytest.mark.decision(28)
def test_a_claim_that_is_gone_is_created_again_and_nothing_else_is_done() -> None:
    running = server()
    running.settle()
    del running.claims["data-js"]
    assert created(running.step()) == ["PersistentVolumeClaim/data-js"]
    assert running.step().actions == ()


def test_a_finished_jobset_creates_no_claim() -> None:
    finished = server()
    finished.settle()
    finished.finish("js-w-0")
    finished.settle()
    assert finished.jobset.status.terminal_state == "Completed"
    finished.claims.clear()
    assert finished.step().actions == ()


USED = {
    "ours by owner, whatever it is like now": (server(when_deleted="Delete"), claim({}, owner=owner())),
    "made by this JobSet, grown and of another class since": (
        server({**SPEC, "storageClassName": "slow"}),
        claim({**DEFAULTED, "storageClassName": "fast"}, annotations={UID: "uid-js"}),
    ),
    "made by this JobSet, its label was taken away": (server(), claim(label=None, annotations={UID: "uid-js"})),
    "kept from before": (server(), claim()),
    "kept from before, by its annotation": (server(), claim(annotations={UID: "uid-of-before"})),
    "made by hand": (server(), claim(label=None)),
    "an owner that does not control it": (server(), claim(owner=owner("ConfigMap", "c", "u") | {"controller": False})),
}


@pytest.mark.decision(8)
@pytest.mark.parametrize("why", USED)
def test_a_claim_that_is_used_costs_no_write(why: str) -> None:
    tiny, stored = USED[why]
    decision = decide(tiny.observe(claims=(stored,)))
    assert created(decision) == ["Service/js", "Job/js-w-0"]
    assert decision.status is None or blocked(decision) == ""


SAME: dict[str, tuple[Manifest, Manifest]] = {
    "server defaults": (SPEC, DEFAULTED),
    "binary and binary": ({"resources": {"requests": {"storage": "1024Mi"}}}, DEFAULTED),
    "a number": ({"resources": {"requests": {"storage": 1073741824}}}, DEFAULTED),
    "expanded": ({"resources": {"requests": {"storage": "500Mi"}}}, DEFAULTED),
    "order of access modes": (
        {"accessModes": ["ReadOnlyMany", "ReadWriteOnce"]},
        {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]},
    ),
    "order in a selector": (
        {"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}, {"key": "b"}]}},
        {"selector": {"matchExpressions": [{"key": "b"}, {"operator": "In", "key": "a", "values": ["y", "x"]}]}},
    ),
    "null and empty are unset": ({"storageClassName": None, "selector": {}, "dataSource": None}, DEFAULTED),
    "no class is a class": ({"storageClassName": ""}, {"storageClassName": ""}),
    "the server copies a data source": (
        {"dataSource": {"kind": "PersistentVolumeClaim", "name": "p"}},
        {k: {"kind": "PersistentVolumeClaim", "name": "p"} for k in ("dataSource", "dataSourceRef")},
    ),
    "nothing is asked for": ({}, DEFAULTED),
}


@pytest.mark.decision(8)
@pytest.mark.parametrize("why", SAME)
def test_a_kept_claim_has_what_the_template_sets(why: str) -> None:
    spec, stored = SAME[why]
    decision = decide(server(spec).observe(claims=(claim(stored),)))
    assert created(decision) == ["Service/js", "Job/js-w-0"]


OTHER: dict[str, tuple[Manifest, str]] = {
    "smaller": (
        {"resources": {"requests": {"storage": "2Gi"}}},
        "spec.resources.requests.storage is '1Gi' instead of '2Gi'",
    ),
    "another class": ({"storageClassName": "fast"}, "spec.storageClassName is 'standard' instead of 'fast'"),
    "no class": ({"storageClassName": ""}, "spec.storageClassName is 'standard' instead of ''"),
    "a mode more": (
        {"accessModes": ["ReadWriteOnce", "ReadWriteMany"]},
        "spec.accessModes is [ReadWriteOnce] instead of [ReadWriteMany, ReadWriteOnce]",
    ),
    "another mode": (
        {"accessModes": ["ReadWriteMany"]},
        "spec.accessModes[0] is 'ReadWriteOnce' instead of 'ReadWriteMany'",
    ),
    "a selector": (
        {"selector": {"matchLabels": {"disk": "a"}}},
        "spec.selector.matchLabels.disk is unset instead of 'a'",
    ),
    "no quantity": (
        {"resources": {"requests": {"storage": "plenty"}}},
        "spec.resources.requests.storage is '1Gi' instead of 'plenty'",
    ),
    "a limit": (
        {"resources": {"limits": {"storage": "1Gi"}}},
        "spec.resources.limits.storage is unset instead of '1Gi'",
    ),
}


@pytest.mark.decision(14)
@pytest.mark.parametrize("why", OTHER)
def test_a_kept_claim_that_is_not_what_is_asked_for_is_told_field_by_field(why: str) -> None:
    spec, told = OTHER[why]
    decision = decide(server(spec).observe(claims=(claim(),)))
    assert created(decision) == ["Service/js"]
    assert blocked(decision) == (
        f"PersistentVolumeClaim data-js exists already and is not what the template asks for: {told}; "
        "change the template, or delete the claim"
    )
    assert [(e.type, e.reason) for e in decision.events] == [("Warning", "PVCCreationFailed")]


def test_many_differences_are_counted() -> None:
    wanted = {"resources": {"requests": {"storage": "9Gi"}}, "volumeMode": "Block", "storageClassName": "a"}
    message = blocked(decide(server({**wanted, "volumeName": "v"}).observe(claims=(claim(),))))
    assert "spec.storageClassName is 'standard' instead of 'a' and 1 more; change" in message


UNUSABLE = {
    "of another JobSet, by its label": (claim(label="other"), "exists and belongs to JobSet/other; it is not touched"),
    "of another JobSet, by its owner": (
        claim(label=None, owner=owner(name="other", uid="u")),
        "exists and belongs to JobSet/other; it is not touched",
    ),
    "of something else": (
        claim(owner=owner("StatefulSet", "db", "u")),
        "exists and belongs to StatefulSet/db; it is not touched",
    ),
    "of a JobSet of this name that was deleted": (claim(owner=owner(uid="u")), "JobSet of this name that was deleted"),
    "being deleted": (claim(deletionTimestamp="2026-11-30T12:00:00Z"), "is being deleted"),
    "ours, being deleted": (
        claim(owner=owner(), deletionTimestamp="2026-11-30T12:00:00Z"),
        "is being deleted",
    ),
}


@pytest.mark.decision(9)
@pytest.mark.parametrize("suspend", [False, True])
@pytest.mark.parametrize("why", UNUSABLE)
def test_a_claim_that_cannot_be_used_is_told_and_no_job_is_created(why: str, suspend: bool) -> None:
    stored, told = UNUSABLE[why]
    decision = decide(server(suspend=suspend).observe(claims=(stored,)))
    assert created(decision) == ["Service/js"]
    assert len(decision.actions) == 1
    assert blocked(decision).startswith("PersistentVolumeClaim data-js ")
    assert told in blocked(decision)


def test_a_claim_that_would_stay_is_not_used_by_a_jobset_that_deletes_its_claims() -> None:
    decision = decide(server(when_deleted="Delete").observe(claims=(claim(),)))
    assert created(decision) == ["Service/js"]
    assert "would not be deleted with the JobSet, as retentionPolicy.whenDeleted says: use Retain" in blocked(decision)


@pytest.mark.parametrize("stored", [claim(label="other"), claim(deletionTimestamp="2026-11-30T12:00:00Z")])
def test_no_job_is_resumed_onto_a_claim_that_cannot_be_used(stored: Claim) -> None:
    paused = server(suspend=True)
    paused.settle()
    paused.jobset = merged(paused.jobset, {"spec": {"suspend": False}})
    assert decide(paused.observe(claims=(stored,))).actions == ()
    assert [a.resource for a in decide(paused.observe()).actions] == [JOBS]


def test_no_job_is_created_or_resumed_while_the_creation_of_a_claim_is_refused() -> None:
    refusal = Refusal("PersistentVolumeClaim", "data-js", 403, "Forbidden", "exceeded quota", NOW.replace(minute=5))
    paused = server(suspend=True)
    paused.settle()
    paused.claims.clear()
    paused.jobset = merged(paused.jobset, {"spec": {"suspend": False}})
    decision = decide(paused.observe(refusals=(refusal,)))
    assert decision.actions == ()
    assert blocked(decision).startswith("PersistentVolumeClaim data-js was refused: exceeded quota; ")
    assert decide(server().observe(refusals=(refusal,))).actions[0].resource is SERVICES


def test_what_blocked_is_told_to_be_over() -> None:
    waiting = server()
    waiting.step(claims=(claim(label="other"),))
    waiting.settle()
    assert [(c.type, c.status) for c in waiting.jobset.status.conditions] == [(words.BLOCKED, "False")]
    assert waiting.claims
    assert waiting.jobs


# On the whole controller


def stateful(name: str = "js", when_deleted: str = "Retain", spec: Manifest = SPEC, **more: Any) -> Manifest:
    return manifest(name, mounting(), volumeClaimPolicies=policies(spec, when_deleted), **more)


def of_server(name: str = "data-js", label: str | None = None, spec: Manifest = DEFAULTED) -> Manifest:
    return {"metadata": {"name": name, "labels": {NAME_LABEL: label} if label else {}}, "spec": spec}


def claim_calls(api: ModelServer, method: str) -> list[int]:
    return [c.status for c in api.calls if (c.method, c.plural) == (method, CLAIMS.plural) and c.name]


def test_claims_exist_before_the_jobs_and_a_quiet_jobset_costs_no_request() -> None:
    async def case(api: ModelServer) -> None:
        api.put("jobsets", stateful())
        async with controller(api):
            await settled(api)
            posts = [c.plural for c in api.calls if c.method == "POST" and c.plural != "events"]
            assert posts == ["services", "persistentvolumeclaims", "jobs"]
            calls = len(api.calls)
            await asyncio.sleep(2 * RESYNC_SECONDS)
            assert len(api.calls) == calls

    world(case)


@pytest.mark.decision(28)
def test_a_kept_claim_that_is_deleted_comes_back() -> None:
    """It has no owner: the watch tells by its name whom it concerns."""

    async def case(api: ModelServer) -> None:
        api.put("jobsets", stateful())
        async with controller(api):
            await settled(api)
            api.remove(CLAIMS.plural, "data-js")
            await until(lambda: api.names(CLAIMS.plural), 5)

    world(case)


@pytest.mark.decision(9)
def test_two_jobsets_want_one_claim_and_the_second_has_it_when_the_first_is_gone() -> None:
    async def case(api: ModelServer) -> None:
        mine = stateful("b", when_deleted="Delete")
        mine["spec"]["volumeClaimPolicies"][0]["templates"][0]["metadata"]["name"] = "a-b"
        api.put("jobsets", stateful("b-b", when_deleted="Delete"))
        mine["metadata"]["name"] = "b"
        async with controller(api):
            await settled(api)
            before = api.get(CLAIMS.plural, "data-b-b")
            other = stateful("b")
            other["spec"]["volumeClaimPolicies"][0]["templates"][0]["metadata"]["name"] = "data-b"
            api.put("jobsets", other)
            await until(lambda: conditions(api, "b").get("Blocked", {}).get("status") == "True")
            message = "PersistentVolumeClaim data-b-b exists and belongs to JobSet/b-b"
            assert conditions(api, "b")["Blocked"]["message"].startswith(message)
            assert api.names("jobs") == ["b-b-w-0"]
            assert api.get(CLAIMS.plural, "data-b-b") == before
            api.remove("jobsets", "b-b")
            await until(lambda: "b-w-0" in api.names("jobs"), 5)
            assert api.get(CLAIMS.plural, "data-b-b")["metadata"]["labels"][NAME_LABEL] == "b"

    world(case)


def test_a_claim_made_by_hand_is_used_unchanged_and_asked_for_once() -> None:
    """Our watch does not show it, for want of the label."""

    async def case(api: ModelServer) -> None:
        before = api.put(CLAIMS.plural, of_server())
        api.put("jobsets", stateful())
        async with controller(api):
            await settled(api, 60)
            assert api.names("jobs") == ["js-w-0"]
            assert api.get(CLAIMS.plural, "data-js") == before
            assert claim_calls(api, "POST") == [409]
            api.remove(CLAIMS.plural, "data-js")
            await until(lambda: api.names(CLAIMS.plural), RESYNC_SECONDS + 20)
            assert claim_calls(api, "POST") == [409, 201]

    world(case)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            {**DEFAULTED, "accessModes": ["ReadOnlyMany"]},
            "spec.accessModes[0] is 'ReadOnlyMany' instead of 'ReadWriteOnce'",
        ),
        (None, "exists and belongs to StatefulSet/db"),
    ],
)
def test_an_unusable_claim_that_the_watch_does_not_show_is_told_and_tried_again(
    spec: Manifest | None, told: str
) -> None:
    async def case(api: ModelServer) -> None:
        found = of_server(spec=spec or DEFAULTED)
        if spec is None:
            found["metadata"]["ownerReferences"] = [owner("StatefulSet", "db", "u")]
        api.put(CLAIMS.plural, found)
        api.put("jobsets", stateful())
        async with controller(api):
            await settled(api)
            assert told in conditions(api)["Blocked"]["message"]
            assert conditions(api)["Blocked"]["reason"] == "PVCCreationFailed"
            assert api.names("jobs") == []
            api.remove(CLAIMS.plural, "data-js")
            await until(lambda: api.names("jobs") == ["js-w-0"], 60)
            assert conditions(api)["Blocked"]["status"] == "False"

    world(case)


def test_one_claim_that_does_not_fit_says_nothing_about_the_others() -> None:
    async def case(api: ModelServer) -> None:
        api.put(CLAIMS.plural, of_server(spec={"accessModes": []}))
        js = stateful()
        js["spec"]["volumeClaimPolicies"] = policies(SPEC, "Retain", "data", "a", "b")
        api.put("jobsets", js)
        async with controller(api):
            await settled(api)
            assert api.names(CLAIMS.plural) == ["a-js", "b-js", "data-js"]
            assert conditions(api)["Blocked"]["message"].count("PersistentVolumeClaim") == 1

    world(case)


def test_a_quota_is_told_with_its_reason_and_holds_the_jobs_back() -> None:
    async def case(api: ModelServer) -> None:
        is_full = True
        api.before = lambda request, plural: (
            failure(403, "Forbidden", "exceeded quota: storage")
            if is_full and (request.method, plural) == ("POST", CLAIMS.plural)
            else None
        )
        api.put("jobsets", stateful())
        async with controller(api):
            await settled(api)
            blocked = conditions(api)["Blocked"]
            assert blocked["reason"] == "PVCCreationFailed"
            assert "exceeded quota: storage" in blocked["message"]
            assert api.names("jobs") == []
            is_full = False
            await until(lambda: api.names("jobs"), 60)

    world(case)
