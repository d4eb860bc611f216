"""What is always true of decide: it ends, it is deterministic, it acts with preconditions, gangs stay whole."""

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects.resources import JOBS, POD_GROUPS, WORKLOADS
from pyjobset.reconciler.decide import decide
from pyjobset.reconciler.decision import CREATION_ORDER, Create
from tests.builders import TinyServer, jobset, merged, replicated_job

POLICIES = st.sampled_from([{"gang": {}}, {"basic": {}}])
ACTIONS = ("FailJobSet", "RestartJobSet", "RestartJob", "RestartJobSetAndIgnoreMaxRestarts")
RULES = st.fixed_dictionaries(
    {"action": st.sampled_from([*ACTIONS, "RestartJobAndIgnoreMaxRestarts"])},
    optional={
        "targetReplicatedJobs": st.sampled_from([["r0"], ["r1", "r2"]]),
        "onJobFailureReasons": st.sampled_from([["PodFailurePolicy"], ["BackoffLimitExceeded"]]),
        "onJobFailureMessagePatterns": st.sampled_from([["oom"], ["."], ["(?=not RE2)"]]),
    },
)
FEATURE_SETS = st.frozensets(
    st.sampled_from(
        [gates.RESTART_JOB, gates.EXECUTION_ATTEMPTS_TRACKING, gates.ACTIVE_DEADLINE_SECONDS, gates.ELASTIC_JOBSET]
    )
).map(lambda chosen: chosen | {gates.WORKLOAD_AWARE_SCHEDULING})


@st.composite
def jobsets(draw: st.DrawFn) -> msgspec.Struct:
    """JobSets that admission accepts: up to four ReplicatedJobs, any scheduling model, startup order and policies."""
    names = [f"r{i}" for i in range(draw(st.integers(1, 4)))]
    order = draw(st.sampled_from(["", "depends", "InOrder"]))
    jobs = []
    for index, name in enumerate(names):
        more = {}
        if order == "depends" and index:
            status = draw(st.sampled_from(["Ready", "Complete"]))
            more["dependsOn"] = [{"name": draw(st.sampled_from(names[:index])), "status": status}]
        jobs.append(replicated_job(name, replicas=draw(st.integers(0, 3)), pods=draw(st.integers(1, 3)), **more))
    spec: dict[str, object] = {"suspend": draw(st.booleans())}
    if order == "InOrder":
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    if draw(st.booleans()):
        strategy = draw(st.sampled_from(["Recreate", "BlockingRecreate"]))
        rules = draw(st.lists(RULES, max_size=3))
        spec["failurePolicy"] = {
            "maxRestarts": draw(st.integers(0, 2)),
            "restartStrategy": strategy,
            "rules": [rule | {"name": f"rule{i}"} for i, rule in enumerate(rules)],
        }
    if draw(st.booleans()):
        spec["activeDeadlineSeconds"] = draw(st.integers(1, 100))
    if draw(st.booleans()):
        spec["volumeClaimPolicies"] = [{"templates": [{"metadata": {"name": name}, "spec": {}} for name in ("a", "b")]}]
    model = draw(st.sampled_from(["none", "default", "entries", "jobs"]))
    if model == "default":
        spec["scheduling"] = {} if order else {"schedulingPolicy": draw(POLICIES)}
    elif model == "entries":
        spec["scheduling"] = {
            "replicatedJobs": [{"targetReplicatedJobs": [n], "schedulingPolicy": draw(POLICIES)} for n in names]
        }
    elif model == "jobs":
        spec["scheduling"] = {
            "replicatedJobs": [
                {"targetReplicatedJobs": [n], "job": {"schedulingPolicy": draw(POLICIES)}} for n in names
            ]
        }
    return jobset(*jobs, **spec)


def servers() -> st.SearchStrategy[TinyServer]:
    return st.builds(lambda js, features: TinyServer(js, features=features), jobsets(), FEATURE_SETS)


EVENTS = [
    "run",
    "succeed",
    "fail",
    "suspend",
    "resume",
    "lose-group",
    "lose-workload",
    "lose-job",
    "lose-claim",
    "pass",
]
ACTS = st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 8)), max_size=12)
REASONS = ("BackoffLimitExceeded", "PodFailurePolicy")


def act(server: TinyServer, what: str, which: int) -> None:
    """Something happens in the cluster."""
    jobs = [n for n, j in server.jobs.items() if not j.is_failed and not j.is_succeeded and not j.spec.suspend]
    name = jobs[which % len(jobs)] if jobs else None
    match what:
        case "run" if name:
            pods = server.jobs[name].spec.parallelism
            server.set_status(name, active=pods, ready=pods)
        case "succeed" if name:
            server.finish(name)
        case "fail" if name:
            server.finish(name, failed=True, reason=REASONS[which % 2], message="oom" if which % 3 else "")
        case "pass":
            server.now += timedelta(seconds=which * 10)
        case "suspend" | "resume":
            server.jobset = merged(server.jobset, {"spec": {"suspend": what == "suspend"}})
        case "lose-group" if server.pod_groups:
            del server.pod_groups[sorted(server.pod_groups)[which % len(server.pod_groups)]]
        case "lose-workload":
            server.workloads.clear()
        case "lose-job" if name:
            del server.jobs[name]
        case "lose-claim" if server.claims:
            del server.claims[sorted(server.claims)[which % len(server.claims)]]


@given(servers(), ACTS)
def test_it_settles_after_anything_and_then_decides_nothing(server, acts) -> None:  # type: ignore[no-untyped-def]
    server.settle()
    for what, which in acts:
        act(server, what, which)
        server.settle()
        quiet = decide(server.observe())
        assert quiet.actions == ()
        assert quiet.status is None
        assert quiet.events == ()


@given(servers(), ACTS)
def test_every_job_names_a_group_that_exists_or_nothing_runs(server, acts) -> None:  # type: ignore[no-untyped-def]
    server.settle()
    for what, which in acts:
        act(server, what, which)
        server.settle()
        finished = server.jobset.status.terminal_state != ""
        if finished or server.jobset.spec.suspend or server.jobset.spec.scheduling is None:
            assert not server.pod_groups
            assert not server.workloads
            continue
        for job in server.jobs.values():
            group = job.spec.template.spec.scheduling_group
            assert group is not None
            assert group.pod_group_name in server.pod_groups


@given(servers(), ACTS)
def test_the_same_observation_gives_the_same_decision(server, acts) -> None:  # type: ignore[no-untyped-def]
    for what, which in acts:
        server.step()
        act(server, what, which)
    observation = server.observe()
    assert decide(observation) == decide(observation)


@given(servers(), ACTS)
def test_preconditions_and_order_of_creation(server, acts) -> None:  # type: ignore[no-untyped-def]
    for what, which in acts:
        decision = server.step()
        ranks = [CREATION_ORDER.index(a.resource) for a in decision.actions if isinstance(a, Create)]
        assert ranks == sorted(ranks)
        for action in decision.actions:
            assert isinstance(action, Create) or action.uid
        names = [(a.resource.kind, a.name) for a in decision.actions if isinstance(a, Create)]
        assert len(names) == len(set(names))
        act(server, what, which)


def counters(server: TinyServer) -> list[int]:
    """Everything that only grows, as numbers: restarts, those that count, attempts, restarts of single Jobs."""
    status = server.jobset.status
    singles = [sum(s.job_restarts) for s in status.replicated_jobs_status if s.job_restarts]
    attempts = -1 if status.execution_attempts is None else status.execution_attempts
    return [status.restarts, status.restarts_count_towards_max, attempts, sum(singles)]


@given(servers(), ACTS)
def test_terminal_stays_terminal_and_counters_never_fall(server, acts) -> None:  # type: ignore[no-untyped-def]
    terminal, before = "", counters(server)
    policy = server.jobset.spec.failure_policy
    most = policy.max_restarts if policy else 0
    for what, which in acts:
        server.settle()
        state = server.jobset.status.terminal_state
        assert not terminal or state == terminal
        status = server.jobset.status
        counted = [s.job_restarts_count_towards_max for s in status.replicated_jobs_status]
        assert status.restarts_count_towards_max + sum(sum(c) for c in counted if c) <= most
        after = counters(server)
        assert all(old <= new for old, new in zip(before, after, strict=True))
        terminal, before = state, after
        act(server, what, which)


@given(servers(), ACTS)
def test_an_attempt_is_a_first_run_a_resume_or_a_restart(server, acts) -> None:  # type: ignore[no-untyped-def]
    """Counted without looking at the controller: what happened to a JobSet that had time to settle each time."""
    resumes, has_run, is_suspended = 0, False, False
    for what, which in [*acts, ("run", 0)]:
        server.settle()
        if not server.jobset.status.terminal_state and any(rj.replicas for rj in server.jobset.spec.replicated_jobs):
            suspend = bool(server.jobset.spec.suspend)
            resumes += is_suspended and has_run and not suspend
            has_run, is_suspended = has_run or not suspend, suspend
            if gates.EXECUTION_ATTEMPTS_TRACKING in server.features:
                expected = resumes + server.jobset.status.restarts if has_run else None
                assert server.jobset.status.execution_attempts == expected
        act(server, what, which)


@given(servers(), st.permutations(range(6)))
def test_the_order_of_the_observed_objects_does_not_matter(server, order) -> None:  # type: ignore[no-untyped-def]
    server.step()
    for index, name in enumerate(list(server.jobs)):
        if index % 2:
            del server.jobs[name]
    observation = server.observe()
    shuffled = tuple(sorted(observation.jobs, key=lambda j: order[hash(j.metadata.name) % 6]))
    assert decide(server.observe(jobs=shuffled)) == decide(observation)


@given(servers())
def test_a_completed_jobset_leaves_no_reservation(server) -> None:  # type: ignore[no-untyped-def]
    server.jobset = merged(server.jobset, {"spec": {"suspend": False}})
    for _ in range(20):
        server.settle()
        if server.jobset.status.terminal_state:
            break
        server.finish(*server.jobs)
    assert server.jobset.status.terminal_state == words.TERMINAL_COMPLETED
    decision = decide(server.observe())
    assert not [a for a in decision.actions if a.resource in (JOBS, WORKLOADS, POD_GROUPS)]
    assert not server.pod_groups


@given(servers(), ACTS)
def test_every_claim_is_there_while_jobs_may_run(server, acts) -> None:  # type: ignore[no-untyped-def]
    wanted = {"a-js", "b-js"} if server.jobset.spec.volume_claim_policies else set()
    server.settle()
    for what, which in acts:
        act(server, what, which)
        server.settle()
        if not server.jobset.status.terminal_state:
            assert server.claims.keys() == wanted
