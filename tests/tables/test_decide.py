"""decide: a JobSet's life from the first observation to its end, one case a rule."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects.batch import PodTemplate
from pyjobset.objects.jobset import JOBS_MAX, JobSet
from pyjobset.objects.meta import Condition
from pyjobset.objects.resources import JOBS, POD_GROUPS, PODS, SERVICES, WORKLOADS
from pyjobset.reconciler.decide import decide
from pyjobset.reconciler.decision import Create, Decision, Delete, JsonPatch, Patch
from pyjobset.reconciler.observation import Refusal
from tests.builders import NOW, TinyServer, jobset, merged, replicated_job

GANG = {"schedulingPolicy": {"gang": {}}}


def kinds(decision: Decision) -> list[tuple[str, str]]:
    return [(type(a).__name__, a.resource.kind) for a in decision.actions]


def condition(js: JobSet, type_: str) -> Condition:
    return next(c for c in js.status.conditions if c.type == type_)


def running(js: JobSet) -> TinyServer:
    server = TinyServer(js)
    server.settle()
    for name, job in server.jobs.items():
        server.set_status(name, active=job.spec.parallelism, ready=job.spec.parallelism)
    server.settle()
    return server


def test_a_gang_is_created_workload_first_and_jobs_last() -> None:
    decision = decide(TinyServer(jobset(scheduling=GANG)).observe())
    assert kinds(decision) == [
        ("Create", "Workload"),
        ("Create", "PodGroup"),
        ("Create", "Service"),
        ("Create", "Job"),
        ("Create", "Job"),
    ]


def test_without_scheduling_there_is_only_the_service_and_the_jobs() -> None:
    decision = decide(TinyServer(jobset()).observe())
    assert kinds(decision) == [("Create", "Service"), ("Create", "Job"), ("Create", "Job")]
    for action in decision.actions:
        assert "scheduling" not in msgspec.json.encode(action.body).decode()  # type: ignore[union-attr]


def test_no_dns_hostnames_no_service() -> None:
    decision = decide(TinyServer(jobset(network={"enableDNSHostnames": False})).observe())
    assert SERVICES not in {a.resource for a in decision.actions}


def test_nothing_to_do_for_a_running_jobset() -> None:
    assert decide(running(jobset(scheduling=GANG)).observe()) == Decision()


def test_all_zero_counts_are_no_reason_to_write_status() -> None:
    assert decide(TinyServer(jobset()).observe()).status is None


def test_counts_of_the_child_jobs() -> None:
    server = running(jobset(replicated_job("a", replicas=3, pods=2), replicated_job("b")))
    server.set_status("js-a-0", active=2, ready=1)
    server.finish("js-a-1")
    server.settle()
    a, b = server.jobset.status.replicated_jobs_status
    assert (a.ready, a.succeeded, a.failed, a.active, a.suspended) == (1, 1, 0, 2, 0)
    assert (b.ready, b.succeeded, b.failed, b.active, b.suspended) == (1, 0, 0, 1, 0)


@pytest.mark.parametrize(
    ("policy", "finished", "is_completed"),
    [
        (None, ["js-a-0", "js-a-1", "js-b-0"], True),
        (None, ["js-a-0", "js-a-1"], False),
        ({"operator": "All", "targetReplicatedJobs": ["a"]}, ["js-a-0", "js-a-1"], True),
        ({"operator": "All", "targetReplicatedJobs": ["a"]}, ["js-a-0", "js-b-0"], False),
        ({"operator": "Any"}, ["js-b-0"], True),
        ({"operator": "Any", "targetReplicatedJobs": ["a"]}, ["js-b-0"], False),
        ({"operator": "Any", "targetReplicatedJobs": ["a"]}, ["js-a-1"], True),
    ],
)
def test_success_policy(policy: Any, finished: list[str], is_completed: bool) -> None:
    server = running(jobset(replicated_job("a", replicas=2), replicated_job("b"), successPolicy=policy))
    server.finish(*finished)
    decision = server.step()
    assert (server.jobset.status.terminal_state == words.TERMINAL_COMPLETED) is is_completed
    assert [e.reason for e in decision.events] == [words.ALL_JOBS_COMPLETED] * is_completed


@pytest.mark.parametrize("jobs", [[], [replicated_job("a", replicas=0)]])
@pytest.mark.decision(5)
def test_zero_jobs_complete_at_once(jobs: list[Any]) -> None:
    js = msgspec.convert({"metadata": {"name": "js", "namespace": "ns"}, "spec": {"replicatedJobs": jobs}}, JobSet)
    decision = decide(TinyServer(js).observe())
    assert decision.actions == ()
    assert decision.status is not None
    assert "no Jobs" in decision.status.conditions[0].message


def test_the_first_failed_job_fails_the_jobset_and_is_named() -> None:
    server = running(jobset(replicated_job("a", replicas=3)))
    server.finish("js-a-1", failed=True, at="2026-11-30T12:00:05Z")
    server.finish("js-a-2", failed=True, at="2026-11-30T12:00:01Z")
    decision = server.step()
    failed = condition(server.jobset, words.FAILED)
    assert (failed.status, failed.reason) == ("True", words.FAILED_JOBS)
    assert failed.message.endswith("(first failed job: js-a-2)")
    assert [(e.type, e.reason) for e in decision.events] == [("Warning", words.FAILED_JOBS)]
    assert decision.actions == ()


@pytest.mark.decision(4)
def test_success_comes_before_failure() -> None:
    server = running(jobset(replicated_job("a"), replicated_job("b"), successPolicy={"operator": "Any"}))
    server.finish("js-a-0", failed=True)
    server.finish("js-b-0")
    server.step()
    assert server.jobset.status.terminal_state == words.TERMINAL_COMPLETED


def test_a_finished_jobset_stops_what_runs_keeps_what_finished_and_drops_its_groups() -> None:
    server = running(jobset(replicated_job("a"), replicated_job("b"), scheduling=GANG))
    server.finish("js-a-0", failed=True)
    server.settle()
    assert set(server.jobs) == {"js-a-0"}
    assert server.workloads == {}
    assert server.pod_groups == {}


def test_a_restart_is_counted_once_and_then_replaces_every_job_under_the_same_groups() -> None:
    server = running(jobset(failurePolicy={"maxRestarts": 1}, scheduling=GANG))
    before = {g.metadata.uid for g in server.pod_groups.values()}
    server.finish("js-w-0", failed=True)
    first = server.step()
    assert first.actions == ()
    assert server.jobset.status.restarts == 1
    second = server.step()
    assert {a.name for a in second.actions if isinstance(a, Delete)} == {"js-w-0", "js-w-1"}
    server.settle()
    assert {job.metadata.labels.restart_attempt for job in server.jobs.values()} == {"1"}
    assert {g.metadata.uid for g in server.pod_groups.values()} == before
    assert server.jobset.status.restarts == 1
    server.finish("js-w-1", failed=True)
    server.settle()
    assert condition(server.jobset, words.FAILED).reason == words.REACHED_MAX_RESTARTS


@pytest.mark.decision(31)
def test_jobs_of_a_group_wait_for_its_last_old_job() -> None:
    server = running(jobset(failurePolicy={"maxRestarts": 1}, scheduling=GANG))
    server.finish("js-w-0", failed=True)
    server.step()
    old = server.jobs["js-w-1"]
    server.step()
    terminating = merged(old, {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}})
    server.jobs["js-w-1"] = terminating
    decision = server.step()
    assert decision.actions == ()
    assert [r.code for r in decision.reasons] == ["jobs-wait-for-group"]
    del server.jobs["js-w-1"]
    assert kinds(server.step()) == [("Create", "Job"), ("Create", "Job")]


def test_without_groups_each_job_is_recreated_as_soon_as_its_name_is_free() -> None:
    server = running(jobset(failurePolicy={"maxRestarts": 1}))
    server.finish("js-w-0", failed=True)
    server.step()
    old = server.jobs["js-w-1"]
    server.step()
    server.jobs["js-w-1"] = merged(old, {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}})
    assert [a.name for a in server.step().actions] == ["js-w-0"]


def test_suspend_and_resume_keep_the_names() -> None:
    server = running(jobset(scheduling=GANG))
    names = (set(server.workloads), set(server.pod_groups))
    server.jobset = merged(server.jobset, {"spec": {"suspend": True}})
    server.settle()
    assert not server.workloads
    assert not server.pod_groups
    assert all(job.spec.suspend for job in server.jobs.values())
    assert condition(server.jobset, words.SUSPENDED).status == "True"
    server.jobset = merged(server.jobset, {"spec": {"suspend": False}})
    decision = server.step()
    assert kinds(decision)[:2] == [("Create", "Workload"), ("Create", "PodGroup")]
    server.settle()
    assert (set(server.workloads), set(server.pod_groups)) == names
    assert not any(job.spec.suspend for job in server.jobs.values())
    assert condition(server.jobset, words.SUSPENDED).status == "False"


@pytest.mark.parametrize("kind", ["PodGroup", "Workload"])
def test_nothing_is_resumed_while_its_group_is_refused(kind: str) -> None:
    """The pods would join whatever has the name."""
    server = TinyServer(jobset(scheduling=GANG, suspend=True))
    server.settle()
    server.jobset = merged(server.jobset, {"spec": {"suspend": False}})
    names = {a.resource.kind: a.name for a in decide(server.observe()).actions}
    decision = server.step(refusals=(refusal(kind, names[kind], 30, owner="nobody"),))
    assert JOBS not in {a.resource for a in decision.actions}
    assert kinds(server.step(refusals=(refusal(kind, names[kind], 0),)))[-1] == ("JsonPatch", "Job"), (
        "tried when it is due"
    )


@pytest.mark.decision(35)
def test_resume_waits_while_the_old_group_is_terminating() -> None:
    server = running(jobset(scheduling=GANG))
    (group,) = server.pod_groups.values()
    server.jobset = merged(server.jobset, {"spec": {"suspend": True}})
    server.settle()
    server.jobset = merged(server.jobset, {"spec": {"suspend": False}})
    name = group.metadata.name
    server.pod_groups[name] = merged(group, {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}})
    assert kinds(server.step()) == [("Create", "Workload")]
    del server.pod_groups[name]
    assert kinds(server.step()) == [("Create", "PodGroup"), ("JsonPatch", "Job"), ("JsonPatch", "Job")]


def test_groups_stay_until_every_job_is_told_to_stop() -> None:
    """Found by a world: one Job was not stopped in time, the JobSet was resumed, and the others waited for a group on
    its way out, which the pods of that Job held for ever."""
    server = running(jobset(scheduling=GANG))
    server.jobset = merged(server.jobset, {"spec": {"suspend": True}})
    assert {kind for kind, _ in kinds(decide(server.observe()))} == {"Patch"}
    stopped = server.jobs["js-w-1"]
    server.jobs["js-w-1"] = merged(stopped, {"spec": {"suspend": True}})  # the request for the other one was lost
    assert [action.name for action in decide(server.observe()).actions] == ["js-w-0"]
    server.jobset = merged(server.jobset, {"spec": {"suspend": False}})
    server.settle()
    assert [job.spec.suspend for job in server.jobs.values()] == [False, False]
    server.jobset = merged(server.jobset, {"spec": {"suspend": True}})
    server.settle()
    assert not server.pod_groups
    assert not server.workloads


def test_a_suspended_jobset_has_suspended_jobs_and_no_groups() -> None:
    server = TinyServer(jobset(scheduling=GANG, suspend=True))
    server.settle()
    assert [job.spec.suspend for job in server.jobs.values()] == [True, True]
    assert all(job.spec.template.spec.scheduling_group for job in server.jobs.values())
    assert not server.pod_groups
    assert server.jobset.status.replicated_jobs_status[0].suspended == 2


def scale(server: TinyServer, pods: int) -> None:
    rj = msgspec.to_builtins(server.jobset.spec.replicated_jobs[0])
    rj["template"]["spec"] |= {"parallelism": pods, "completions": pods}
    server.jobset = merged(server.jobset, {"spec": {"replicatedJobs": [rj]}})


def min_counts(server: TinyServer) -> tuple[int | None, int | None]:
    (workload,), (group,) = server.workloads.values(), server.pod_groups.values()
    gangs = workload.spec.pod_group_templates[0].scheduling_policy.gang, group.spec.scheduling_policy.gang
    return tuple(g.min_count if g else None for g in gangs)  # type: ignore[return-value]


@pytest.mark.decision(34)
def test_the_quorum_goes_up_before_the_jobs_and_down_after_them() -> None:
    server = running(jobset(replicated_job("w", pods=2), scheduling=GANG))
    uids = {o.metadata.uid for o in (*server.workloads.values(), *server.pod_groups.values())}
    scale(server, 4)
    up = server.step()
    assert kinds(up) == [("JsonPatch", "Workload"), ("Patch", "PodGroup"), ("Patch", "Job")]
    assert min_counts(server) == (4, 4)
    scale(server, 1)
    assert kinds(server.step()) == [("Patch", "Job")]
    assert min_counts(server) == (4, 4)
    assert kinds(server.step()) == [("JsonPatch", "Workload"), ("Patch", "PodGroup")]
    assert min_counts(server) == (1, 1)
    assert {o.metadata.uid for o in (*server.workloads.values(), *server.pod_groups.values())} == uids


ENTRIES = {"replicatedJobs": [{"targetReplicatedJobs": ["a"]}, {"targetReplicatedJobs": ["b"]}]}


@pytest.mark.decision(21)
@pytest.mark.parametrize("scheduling", [GANG, ENTRIES], ids=["one group", "a group each"])
@pytest.mark.parametrize("meanwhile", ["running", "suspended"])
def test_what_had_no_pods_joins_its_gang_when_it_gets_some(scheduling: Any, meanwhile: str) -> None:
    server = running(jobset(replicated_job("b", pods=2), replicated_job("a"), scheduling=scheduling))
    full = {name: group.spec.scheduling_policy for name, group in server.pod_groups.items()}
    fresh = TinyServer(jobset(replicated_job("b", pods=2), replicated_job("a"), scheduling=scheduling))
    set_parallelism(fresh, 0)
    fresh.settle()
    assert len(fresh.pod_groups) == (1 if scheduling is GANG else len(full) - 1)
    if meanwhile == "suspended":
        fresh.jobset = merged(fresh.jobset, {"spec": {"suspend": True}})
        fresh.settle()
    set_parallelism(fresh, 2)
    fresh.settle()
    fresh.jobset = merged(fresh.jobset, {"spec": {"suspend": False}})
    fresh.settle()
    assert {name: group.spec.scheduling_policy for name, group in fresh.pod_groups.items()} == full
    placed = {name: (job.pod_group, job.spec.parallelism) for name, job in fresh.jobs.items()}
    assert placed == {name: (job.pod_group, job.spec.parallelism) for name, job in server.jobs.items()}


@pytest.mark.decision(21)
def test_a_gang_that_has_no_pods_any_more_has_no_group() -> None:
    server = running(jobset(replicated_job("b", pods=2), replicated_job("a"), scheduling=ENTRIES))
    jobs = {name: job.metadata.uid for name, job in server.jobs.items()}
    set_parallelism(server, 0)
    server.set_status("js-b-0", active=0, ready=0)
    server.settle()
    assert [group.spec.scheduling_policy.gang.min_count for group in server.pod_groups.values()] == [1]  # type: ignore[union-attr]
    assert {name: job.metadata.uid for name, job in server.jobs.items()} == jobs


@pytest.mark.decision(21)
def test_a_group_that_comes_or_goes_while_others_run_is_no_drift() -> None:
    """The Workload is made again: its templates cannot be added to, and no pod depends on it."""
    server = TinyServer(jobset(replicated_job("b", pods=2), replicated_job("a"), scheduling=ENTRIES))
    set_parallelism(server, 0)
    server.settle()
    server.set_status("js-a-0", active=1, ready=1)
    server.settle()
    groups = {name: group.metadata.uid for name, group in server.pod_groups.items()}
    for pods, templates in ((2, 2), (0, 1)):
        set_parallelism(server, pods)
        server.settle()
        (workload,) = server.workloads.values()
        assert len(workload.spec.pod_group_templates) == len(server.pod_groups) == templates
        assert groups.items() <= {name: group.metadata.uid for name, group in server.pod_groups.items()}.items()
        assert words.SCHEDULING_DEGRADED not in {c.type for c in server.jobset.status.conditions}


def set_parallelism(server: TinyServer, pods: int) -> None:
    """Of the first ReplicatedJob. Its completions stay: none would mean that it is done."""
    first, *others = msgspec.to_builtins(server.jobset.spec.replicated_jobs)
    first["template"]["spec"]["parallelism"] = pods
    server.jobset = merged(server.jobset, {"spec": {"replicatedJobs": [first, *others]}})


def leaves(server: TinyServer) -> tuple[Refusal, ...]:
    (name,) = server.pod_groups
    gone = {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}}
    server.pod_groups[name] = merged(server.pod_groups[name], gone)
    return ()


def refuses(server: TinyServer) -> tuple[Refusal, ...]:
    (name,) = server.pod_groups
    return (refusal("PodGroup", name, 30),)


def test_a_job_does_not_grow_without_its_group_but_shrinks() -> None:
    server = running(jobset(replicated_job("w", pods=2), scheduling=GANG))
    refusals = refuses(server)
    scale(server, 4)
    assert JOBS not in {a.resource for a in decide(server.observe(refusals=refusals)).actions}
    scale(server, 1)
    assert kinds(decide(server.observe(refusals=refusals))) == [("Patch", "Job")]


@pytest.mark.decision(34)
def test_jobs_grow_under_a_group_that_was_deleted_while_they_did() -> None:
    """The pods of the one that has grown wait for those of the other, and hold the group: nobody may wait for its
    successor."""
    server = running(jobset(replicated_job("a", pods=1), replicated_job("b", pods=1), scheduling=GANG))
    grown = [msgspec.to_builtins(replicated_job(name, pods=2)) for name in "ab"]
    server.jobset = merged(server.jobset, {"spec": {"replicatedJobs": grown}})
    server.jobs["js-a-0"] = merged(server.jobs["js-a-0"], {"spec": {"parallelism": 2, "completions": 2}})
    leaves(server)
    assert kinds(server.step()) == [("JsonPatch", "Workload"), ("Patch", "PodGroup"), ("Patch", "Job")]
    (group,) = server.pod_groups.values()
    assert group.spec.scheduling_policy.gang is not None
    assert group.spec.scheduling_policy.gang.min_count == 4
    assert [server.jobs[name].spec.parallelism for name in ("js-a-0", "js-b-0")] == [2, 2]


@pytest.mark.decision(34)
def test_no_job_grows_under_a_group_that_leaves_and_keeps_its_quorum() -> None:
    server = running(jobset(replicated_job("w", pods=2), scheduling=GANG))
    leaves(server)
    scale(server, 4)
    assert JOBS not in {a.resource for a in decide(server.observe(refusals=refuses(server))).actions}


def test_an_elastic_change_is_ignored_while_its_gate_is_off() -> None:
    server = running(jobset(replicated_job("w", pods=2)))
    scale(server, 4)
    assert decide(server.observe(features=gates.DEFAULTS)).actions == ()


def test_depends_on_ready_then_complete() -> None:
    jobs = (
        replicated_job("a"),
        replicated_job("b", dependsOn=[{"name": "a", "status": "Ready"}]),
        replicated_job("c", dependsOn=[{"name": "a", "status": "Complete"}]),
    )
    server = TinyServer(jobset(*jobs, scheduling={}))
    server.settle()
    assert set(server.jobs) == {"js-a-0"}
    assert len(server.pod_groups) == 3
    server.set_status("js-a-0", active=1, ready=1)
    server.settle()
    assert set(server.jobs) == {"js-a-0", "js-b-0"}
    server.finish("js-a-0")
    server.settle()
    assert set(server.jobs) == {"js-a-0", "js-b-0", "js-c-0"}


def test_in_order_startup_and_its_conditions() -> None:
    jobs = (replicated_job("a"), replicated_job("b"))
    server = TinyServer(jobset(*jobs, startupPolicy={"startupPolicyOrder": "InOrder"}))
    server.settle()
    assert set(server.jobs) == {"js-a-0"}
    assert condition(server.jobset, words.STARTUP_POLICY_IN_PROGRESS).status == "True"
    server.set_status("js-a-0", active=1, ready=1)
    server.settle()
    server.set_status("js-b-0", active=1, ready=1)
    server.settle()
    assert condition(server.jobset, words.STARTUP_POLICY_IN_PROGRESS).status == "False"
    assert condition(server.jobset, words.STARTUP_POLICY_COMPLETED).status == "True"


@pytest.mark.decision(18)
def test_in_order_suspended_turns_false_when_the_first_jobs_run() -> None:
    order = {"startupPolicyOrder": "InOrder"}
    server = TinyServer(jobset(replicated_job("a"), replicated_job("b"), startupPolicy=order, suspend=True))
    server.settle()
    assert condition(server.jobset, words.SUSPENDED).status == "True"
    server.jobset = merged(server.jobset, {"spec": {"suspend": False}})
    server.settle()
    assert {name: job.spec.suspend for name, job in server.jobs.items()} == {"js-a-0": False, "js-b-0": True}
    assert condition(server.jobset, words.SUSPENDED).status == "False"


@pytest.mark.parametrize("order", [{"startupPolicy": {"startupPolicyOrder": "InOrder"}}, {}])
def test_zero_replicas_are_ready_at_once(order: Any) -> None:
    depends = {} if order else {"dependsOn": [{"name": "a", "status": "Complete"}]}
    server = TinyServer(jobset(replicated_job("a", replicas=0), replicated_job("b", **depends), **order))
    server.settle()
    assert set(server.jobs) == {"js-b-0"}


def test_a_job_with_a_wrong_mapping_is_replaced() -> None:
    server = running(jobset(scheduling=GANG))
    wrong = {"spec": {"template": {"spec": {"schedulingGroup": {"podGroupName": "other"}}}}}
    server.jobs["js-w-0"] = merged(server.jobs["js-w-0"], wrong)
    decision = server.step()
    assert [(type(a), a.name) for a in decision.actions] == [(Delete, "js-w-0")]
    assert kinds(server.step()) == [("Create", "Job")]


def test_a_dropped_pod_group_field_is_no_wrong_mapping() -> None:
    server = running(jobset(scheduling=GANG))
    job = server.jobs["js-w-0"]
    server.jobs["js-w-0"] = msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, template={}))
    server.jobs["js-w-0"] = msgspec.convert(msgspec.to_builtins(server.jobs["js-w-0"]), JOBS.type)
    assert decide(server.observe()).actions == ()


TOPOLOGY = {**GANG, "schedulingConstraints": {"topology": [{"key": "rack"}]}}


@pytest.mark.decision(22)
def test_a_dropped_field_is_told_and_nothing_is_replaced() -> None:
    server = TinyServer(jobset(scheduling=TOPOLOGY))
    server.step()
    for store in (server.workloads, server.pod_groups):
        for name, obj in store.items():
            value = msgspec.to_builtins(obj)
            for leaf in value["spec"].get("podGroupTemplates", [value["spec"]]):
                leaf.pop("schedulingConstraints", None)
            store[name] = msgspec.convert(value, type(obj))  # type: ignore[index]
    decision = server.step()
    assert decision.actions == ()
    degraded = condition(server.jobset, words.SCHEDULING_DEGRADED)
    assert degraded.status == "True"
    assert "schedulingConstraints" in degraded.message
    assert "TopologyAwareWorkloadScheduling" in degraded.message
    assert [(e.type, e.reason) for e in decision.events] == [("Warning", words.FIELDS_DROPPED)]
    again = server.step()
    assert (again.actions, again.status, again.events) == ((), None, ())


def test_a_cluster_without_the_api_runs_the_jobs_and_says_so() -> None:
    server = TinyServer(jobset(scheduling=GANG))
    decision = server.step(has_scheduling_api=False)
    assert {a.resource for a in decision.actions} == {SERVICES, JOBS}
    assert condition(server.jobset, words.SCHEDULING_DEGRADED).reason == words.API_NOT_SERVED


def drifted(server: TinyServer) -> None:
    for name, group in server.pod_groups.items():
        server.pod_groups[name] = merged(group, {"spec": {"disruptionMode": {"all": {}}}})


@pytest.mark.decision(35)
def test_a_drifted_group_is_replaced_once_it_has_no_pods() -> None:
    server = running(jobset(scheduling=GANG))
    drifted(server)
    decision = server.step()
    assert decision.actions == ()
    assert condition(server.jobset, words.SCHEDULING_DEGRADED).reason == words.OBJECTS_DRIFTED
    for name in server.jobs:
        server.set_status(name, active=0, ready=0, terminating=0)
    assert [(type(a), a.resource) for a in server.step().actions] == [(Delete, POD_GROUPS)]
    assert kinds(server.step()) == [("Create", "PodGroup")]
    server.settle()
    assert condition(server.jobset, words.SCHEDULING_DEGRADED).status == "False"


@pytest.mark.decision(35)
def test_pods_that_no_job_counts_yet_keep_their_drifted_group() -> None:
    server = TinyServer(jobset(scheduling=GANG))
    server.settle()
    drifted(server)
    (name,) = server.pod_groups
    pod = {"metadata": {"name": "p"}, "spec": {"schedulingGroup": {"podGroupName": name}}}
    decision = server.step(pods=(msgspec.convert(pod, PODS.type),))
    assert decision.actions == ()
    assert condition(server.jobset, words.SCHEDULING_DEGRADED).reason == words.OBJECTS_DRIFTED


@pytest.mark.decision(35)
def test_a_drifted_workload_holds_no_job_back() -> None:
    jobs = (replicated_job("a"), replicated_job("b", dependsOn=[{"name": "a", "status": "Ready"}]))
    server = TinyServer(jobset(*jobs, scheduling={}))
    server.settle()
    for name, workload in server.workloads.items():
        server.workloads[name] = merged(workload, {"spec": {"controllerRef": {"name": "other"}}})
    server.set_status("js-a-0", active=1, ready=1)
    assert kinds(server.step()) == [("Create", "Job")]
    assert condition(server.jobset, words.SCHEDULING_DEGRADED).reason == words.OBJECTS_DRIFTED


def test_server_decided_values_are_no_drift() -> None:
    server = running(jobset(scheduling=GANG))
    for name, group in server.pod_groups.items():
        filled = {"spec": {"disruptionMode": {"single": {}}, "priorityClassName": "the-global-default"}}
        server.pod_groups[name] = merged(group, filled)
    assert decide(server.observe()) == Decision()


def test_a_lost_label_is_put_back() -> None:
    server = running(jobset(scheduling=GANG))
    (name,) = server.workloads
    workload = server.workloads[name]
    metadata = msgspec.structs.replace(workload.metadata, labels={"mine": "stays"})
    server.workloads[name] = msgspec.structs.replace(workload, metadata=metadata)
    (patch,) = server.step().actions
    assert isinstance(patch, Patch)
    assert server.workloads[name].metadata.labels == {"mine": "stays", "jobset.sigs.k8s.io/jobset-name": "js"}


def test_a_workload_that_someone_deleted_comes_back() -> None:
    server = running(jobset(scheduling=GANG))
    server.workloads.clear()
    assert kinds(server.step()) == [("Create", "Workload")]


def refusal(kind: str, name: str, seconds: int, owner: str = "") -> Refusal:
    return Refusal(kind, name, 403, "Forbidden", "no PriorityClass found", NOW + timedelta(seconds=seconds), owner)


@pytest.mark.decision(33)
def test_a_refused_pod_group_holds_its_jobs_and_is_told() -> None:
    server = TinyServer(jobset(scheduling=GANG))
    (group,) = (a.name for a in decide(server.observe()).actions if a.resource is POD_GROUPS)
    decision = server.step(refusals=(refusal("PodGroup", group, 30),))
    assert kinds(decision) == [("Create", "Workload")]
    assert decision.wake_after_seconds == 30
    blocked = condition(server.jobset, words.BLOCKED)
    assert (blocked.status, blocked.reason) == ("True", words.SCHEDULING_OBJECTS_RECONCILE_FAILED)
    assert "no PriorityClass found" in blocked.message
    again = server.step(refusals=(refusal("PodGroup", group, 0),))
    assert ("Create", "PodGroup") in kinds(again)
    assert again.events == ()
    server.settle()
    assert condition(server.jobset, words.BLOCKED).status == "False"


@pytest.mark.decision(12)
def test_a_foreign_job_is_named_with_its_owner_and_the_others_are_created() -> None:
    server = TinyServer(jobset())
    decision = server.step(refusals=(refusal("Job", "js-w-0", 30, owner="JobSet/other"),))
    assert [a.name for a in decision.actions if a.resource is JOBS] == ["js-w-1"]
    assert "belongs to JobSet/other" in condition(server.jobset, words.BLOCKED).message
    assert [e.reason for e in decision.events] == [words.JOB_CREATION_FAILED]


def test_what_an_earlier_jobset_of_the_name_leaves_is_no_ones_fault() -> None:
    """Deleted and created again at once: the garbage collector is still at work. There is nothing to rename."""
    decision = decide(TinyServer(jobset()).observe(refusals=(refusal("Job", "js-w-0", 30, owner="JobSet/js"),)))
    assert decision.status is not None
    told = next(c.message for c in decision.status.conditions if c.type == words.BLOCKED)
    assert told == (
        "Job js-w-0 is of an earlier JobSet of this name and is still being removed; this one goes on by itself"
    )


def test_many_refusals_make_a_short_message() -> None:
    server = TinyServer(jobset(replicated_job("w", replicas=900)))
    refusals = tuple(replace(refusal("Job", f"js-w-{i}", 30), message=f"no, {i}") for i in range(900))
    server.step(refusals=refusals)
    message = condition(server.jobset, words.BLOCKED).message
    assert "and 897 more" in message
    assert len(message) < 1000
    same = tuple(refusal("Job", f"js-w-{i}", 30) for i in range(900))
    server.step(refusals=same)
    assert "(and 899 more with it)" in condition(server.jobset, words.BLOCKED).message


@pytest.mark.parametrize(
    ("managed_by", "is_ours"),
    [(None, True), ("jobset.sigs.k8s.io/jobset-controller", True), ("kueue.x-k8s.io/multikueue", False)],
)
def test_managed_by(managed_by: str | None, is_ours: bool) -> None:
    assert bool(decide(TinyServer(jobset(managedBy=managed_by)).observe()).actions) is is_ours


def test_a_jobset_that_is_being_deleted_is_left_to_the_garbage_collector() -> None:
    js = merged(jobset(scheduling=GANG), {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}})
    assert decide(TinyServer(js).observe()) == Decision()


def test_the_gate_off_means_no_scheduling() -> None:
    decision = decide(TinyServer(jobset(scheduling=GANG)).observe(features=gates.DEFAULTS))
    assert {a.resource for a in decision.actions} == {SERVICES, JOBS}


def test_one_group_per_job_needs_only_its_own_quorum() -> None:
    scheduling = {"replicatedJobs": [{"targetReplicatedJobs": ["w"], "job": GANG}]}
    decision = decide(TinyServer(jobset(scheduling=scheduling)).observe())
    creates = [a for a in decision.actions if isinstance(a, Create)]
    assert [a.resource for a in creates] == [WORKLOADS, POD_GROUPS, POD_GROUPS, SERVICES, JOBS, JOBS]
    groups = [a.name for a in creates if a.resource is POD_GROUPS]
    jobs = [a.body for a in creates if a.resource is JOBS]
    used = [j["spec"]["template"]["spec"]["schedulingGroup"]["podGroupName"] for j in jobs]  # type: ignore[index]
    assert used == groups


def test_json_patches_test_before_they_replace() -> None:
    server = running(jobset(replicated_job("w", pods=2), scheduling=GANG))
    scale(server, 3)
    (patch,) = (a for a in decide(server.observe()).actions if isinstance(a, JsonPatch))
    path = "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount"
    assert patch.operations == (
        {"op": "test", "path": path, "value": 2},
        {"op": "replace", "path": path, "value": 3},
    )


def gang_counts(server: TinyServer) -> int | None:
    workload_count, group_count = min_counts(server)
    assert workload_count == group_count
    return group_count


@pytest.mark.decision(20)
def test_a_replacement_pod_is_not_left_waiting_for_finished_ones() -> None:
    server = running(jobset(replicated_job("w", pods=3), scheduling=GANG))
    server.set_status("js-w-0", active=1, ready=1, succeeded=2)
    server.settle()
    assert gang_counts(server) == 3, "not lowered once per finished pod"
    server.set_status("js-w-0", active=1, ready=0, succeeded=2, failed=1)
    server.settle()
    assert gang_counts(server) == 1


@pytest.mark.decision(20)
def test_the_tail_of_a_work_queue_finishes() -> None:
    job = replicated_job("w", pods=2)
    job["template"]["spec"]["completions"] = 5
    server = running(jobset(job, scheduling=GANG))
    server.set_status("js-w-0", active=2, ready=1, succeeded=3)
    server.settle()
    assert gang_counts(server) == 2, "two pods can still be live"
    server.set_status("js-w-0", active=1, ready=0, succeeded=4)
    server.settle()
    assert gang_counts(server) == 1


@pytest.mark.decision(20)
def test_a_finished_sibling_job_does_not_count() -> None:
    server = running(jobset(replicated_job("w", replicas=2, pods=2), scheduling=GANG))
    server.finish("js-w-0")
    server.set_status("js-w-1", active=2, ready=1)
    server.settle()
    assert gang_counts(server) == 2


@pytest.mark.decision(20)
def test_the_full_quorum_is_back_before_a_restart_creates_jobs() -> None:
    server = running(jobset(replicated_job("w", pods=3), failurePolicy={"maxRestarts": 1}, scheduling=GANG))
    server.set_status("js-w-0", active=1, ready=0, succeeded=2)
    server.settle()
    assert gang_counts(server) == 1
    server.finish("js-w-0", failed=True)
    while "js-w-0" in server.jobs:
        server.step()
    decision = server.step()
    assert kinds(decision)[-1] == ("Create", "Job")
    assert gang_counts(server) == 3


@pytest.mark.decision(20)
def test_an_explicit_quorum_is_never_changed() -> None:
    leaf = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    scheduling = {"replicatedJobs": [{"targetReplicatedJobs": ["w"], "job": leaf}]}
    server = running(jobset(replicated_job("w", pods=3), scheduling=scheduling))
    server.set_status("js-w-0", active=1, ready=0, succeeded=2)
    server.settle()
    assert gang_counts(server) == 2


TERMINATING = {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}}


def test_a_failed_job_that_is_being_deleted_has_failed() -> None:
    server = running(jobset(replicated_job("w"), failurePolicy={"maxRestarts": 0}))
    server.finish("js-w-0", failed=True)
    server.jobs["js-w-0"] = merged(server.jobs["js-w-0"], TERMINATING)
    server.step()
    assert condition(server.jobset, words.FAILED).reason == words.REACHED_MAX_RESTARTS


def test_a_succeeded_job_that_is_being_deleted_has_succeeded() -> None:
    server = running(jobset(replicated_job("w")))
    server.finish("js-w-0")
    server.jobs["js-w-0"] = merged(server.jobs["js-w-0"], TERMINATING)
    server.step()
    assert server.jobset.status.terminal_state == words.TERMINAL_COMPLETED


@pytest.mark.decision(20)
def test_indexes_that_failed_for_good_cannot_be_live() -> None:
    job = replicated_job("w", pods=4)
    job["template"]["spec"] |= {"backoffLimitPerIndex": 0, "completions": 10}
    server = running(jobset(job, scheduling=GANG))
    server.set_status("js-w-0", active=3, ready=0, succeeded=4, failed=3, failedIndexes="2,5-6")
    server.settle()
    assert gang_counts(server) == 3


@pytest.mark.parametrize("operator", ["All", "Any"])
def test_targets_without_jobs_leave_the_success_to_the_others(operator: str) -> None:
    policy = {"operator": operator, "targetReplicatedJobs": ["b"]}
    server = running(jobset(replicated_job("a", replicas=2), replicated_job("b", replicas=0), successPolicy=policy))
    server.finish("js-a-0")
    server.settle()
    assert server.jobset.status.terminal_state == ""
    server.finish("js-a-1")
    server.settle()
    assert server.jobset.status.terminal_state == words.TERMINAL_COMPLETED


def test_each_restart_of_a_crash_loop_is_an_event() -> None:
    server = running(jobset(replicated_job("w"), failurePolicy={"maxRestarts": 5}))
    told = []
    for _ in range(3):
        server.finish("js-w-0", failed=True)
        told += [e.reason for e in server.step().events]
        server.settle()
    assert told.count("RestartJobSetFailurePolicyAction") == 3
    assert told.count("DefaultFailurePolicy") == 1
    assert condition(server.jobset, words.RESTARTING_JOBSET).status == "True"


def test_jobs_made_without_the_scheduling_api_run_on_when_it_comes() -> None:
    server = TinyServer(jobset(scheduling=GANG))
    server.step(has_scheduling_api=False)
    for job in server.jobs.values():
        assert job.pod_group is None
        assert job.metadata.annotations.group_template_name is None
    for name in list(server.jobs):
        server.set_status(name, active=2, ready=2, startTime="2026-11-30T10:00:00Z")
    uids = {job.metadata.uid for job in server.jobs.values()}
    server.settle()
    assert {job.metadata.uid for job in server.jobs.values()} == uids
    assert condition(server.jobset, words.SCHEDULING_DEGRADED).status == "True"
    assert words.POD_GROUPS_SCHEDULED not in {c.type for c in server.jobset.status.conditions}


@pytest.mark.decision(31)
def test_the_jobs_of_a_group_wait_for_its_last_old_job_when_suspended_too() -> None:
    server = TinyServer(jobset(scheduling=GANG, suspend=True))
    server.settle()
    server.jobs["js-w-0"] = merged(server.jobs["js-w-0"], TERMINATING)
    server.jobset = merged(server.jobset, {"spec": {"suspend": False}})
    server.step()
    assert server.jobs["js-w-1"].spec.suspend
    del server.jobs["js-w-0"]
    server.settle()
    assert not server.jobs["js-w-1"].spec.suspend


def test_an_owned_service_of_another_name_is_not_ours() -> None:
    server = running(jobset())
    other = merged(server.service, {"metadata": {"name": "old"}})  # type: ignore[arg-type]
    assert kinds(decide(server.observe(service=other))) == [("Create", "Service")]


def test_a_job_that_is_replaced_must_be_as_it_was_seen() -> None:
    """The watch may lag: the Job may have run and finished since, and its result would go with it."""
    server = TinyServer(jobset(scheduling=GANG, suspend=True))
    server.settle()
    (name, *_) = server.jobs
    template = {"spec": {"template": {"spec": {"schedulingGroup": {"podGroupName": "other"}}}}}
    server.jobs[name] = merged(server.jobs[name], template)
    (delete,) = [a for a in decide(server.observe()).actions if isinstance(a, Delete)]
    assert (delete.name, delete.resource_version) == (name, server.jobs[name].metadata.resource_version)


def test_a_suspended_job_is_made_again_when_its_group_can_no_longer_be() -> None:
    """The scheduling API went away while the JobSet was suspended: its pods would wait for the group for ever."""
    server = TinyServer(jobset(scheduling=GANG, suspend=True))
    server.settle()
    old = {job.metadata.uid for job in server.jobs.values()}
    assert decide(server.observe(has_scheduling_api=False)).actions == (), "a blip while it is suspended costs nothing"
    server.jobset = merged(server.jobset, {"spec": {"suspend": False}})
    for _ in range(3):
        server.step(has_scheduling_api=False)
    assert [job.pod_group for job in server.jobs.values()] == [None, None]
    assert not old & {job.metadata.uid for job in server.jobs.values()}


@pytest.mark.decision(20)
def test_a_job_that_runs_outside_its_group_does_not_count_for_the_quorum() -> None:
    """It was made in the moment that the API was away. The gang would wait for pods that never join it."""
    server = TinyServer(jobset(scheduling=GANG))
    server.step()
    outside, inside = sorted(server.jobs)
    bare = msgspec.structs.replace(server.jobs[outside].spec, template=PodTemplate())
    server.jobs[outside] = msgspec.structs.replace(server.jobs[outside], spec=bare)
    server.set_status(inside, active=2)
    server.settle()
    (group,) = server.pod_groups.values()
    assert group.spec.scheduling_policy.gang is not None
    assert group.spec.scheduling_policy.gang.min_count == 2


def test_a_clock_that_was_set_back_holds_nothing_back() -> None:
    """The time of the next try was noted an hour ahead; the JobSet would stand still for that hour."""
    late = refusal("Job", "js-w-0", 3600)
    assert [a.name for a in decide(TinyServer(jobset()).observe(refusals=(late,))).actions if a.resource is JOBS] == [
        "js-w-0",
        "js-w-1",
    ]


def test_a_jobset_of_more_jobs_than_fit_is_told_and_left_alone() -> None:
    """Its Jobs are not even counted: two thousand million of them would be the end of the controller."""
    server = TinyServer(jobset(replicated_job("w", replicas=2**31 - 1)))
    decision = server.step()
    assert not decision.actions
    [blocked] = server.jobset.status.conditions
    assert (blocked.type, blocked.status, blocked.reason) == (words.BLOCKED, "True", words.REFUSED)
    assert blocked.message == "JobSet js asks for 2147483647 Jobs and is left alone: 20000 are the most"
    assert server.step() == Decision()


def test_a_jobset_of_the_most_jobs_is_worked_on() -> None:
    server = TinyServer(jobset(replicated_job("a"), replicated_job("b", replicas=JOBS_MAX - 1)))
    assert sum(action.resource is JOBS for action in server.step().actions) == JOBS_MAX


@pytest.mark.decision(35)
@pytest.mark.parametrize("second_is", ["missing", "suspended"])
def test_a_group_that_was_deleted_before_its_last_job_ran_does_not_hang(second_is: str) -> None:
    """Its pods wait for those of the other Job and hold the group; the group holds back that Job."""
    server = TinyServer(jobset(scheduling=GANG))
    server.step()
    first, second = sorted(server.jobs)
    if second_is == "missing":
        del server.jobs[second]
    else:
        server.jobs[second] = merged(server.jobs[second], {"spec": {"suspend": True}})
    server.set_status(first, active=2)
    (name,) = server.pod_groups
    going = merged(server.pod_groups[name], {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}})
    server.pod_groups[name] = going
    decision = server.step()
    assert [(type(a), a.name) for a in decision.actions] == [(Delete, first)]
    del server.pod_groups[name]
    server.settle()
    assert sorted(server.jobs) == [first, second]
    assert server.pod_groups.keys() == {name}


@pytest.mark.decision(35)
def test_a_deleted_group_with_a_pod_that_runs_is_not_disturbed() -> None:
    server = running(jobset(scheduling=GANG))
    first, second = sorted(server.jobs)
    del server.jobs[second]
    (name,) = server.pod_groups
    going = merged(server.pod_groups[name], {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}})
    server.pod_groups[name] = going
    assert server.step().actions == ()
    assert server.jobs.keys() == {first}


@pytest.mark.decision(20)
def test_the_quorum_of_a_group_that_is_on_its_way_out_is_kept_in_step() -> None:
    """Its pods hold it and it still places them: one that waits for pods that have ended would hold it for ever."""
    server = running(jobset(scheduling=GANG))
    first, second = sorted(server.jobs)
    server.finish(first)
    server.set_status(second, active=2, ready=1)
    (name,) = server.pod_groups
    going = merged(server.pod_groups[name], {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}})
    server.pod_groups[name] = going
    server.settle()
    gang = server.pod_groups[name].spec.scheduling_policy.gang
    assert gang is not None
    assert gang.min_count == 2


def test_a_quick_resume_starts_in_order_though_old_pods_are_still_counted() -> None:
    """The Job controller takes its time to notice: until then the Jobs say how many of the old pods are ready."""
    spec = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
    server = TinyServer(jobset(replicated_job("a"), replicated_job("b"), **spec))
    server.settle()
    server.set_status("js-a-0", active=1, ready=1, startTime="2026-11-30T12:00:00Z")
    server.settle()
    assert set(server.jobs) == {"js-a-0", "js-b-0"}
    server.jobset = merged(server.jobset, {"spec": {"suspend": True}})
    server.settle()
    suspended = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-11-30T12:00:00Z"}
    server.set_status("js-a-0", active=0, conditions=[suspended])
    server.jobset = merged(server.jobset, {"spec": {"suspend": False}})
    server.settle()
    assert {name for name, job in server.jobs.items() if job.spec.suspend} == {"js-b-0"}, "b waits for a"
    server.set_status("js-a-0", active=1, ready=1, conditions=[{**suspended, "status": "False"}])
    server.settle()
    assert not any(job.spec.suspend for job in server.jobs.values())
