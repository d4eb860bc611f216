"""What is always true of decide: it ends, it is deterministic, it acts with preconditions, gangs stay whole."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pyjobset.objects import conditions as words
from pyjobset.objects.resources import JOBS, POD_GROUPS, WORKLOADS
from pyjobset.reconciler.decide import decide
from pyjobset.reconciler.decision import CREATION_ORDER, Create
from tests.builders import TinyServer, jobset, merged, replicated_job

POLICIES = st.sampled_from([{"gang": {}}, {"basic": {}}])


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
        spec["failurePolicy"] = {"maxRestarts": draw(st.integers(0, 2))}
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


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["run", "succeed", "fail", "suspend", "resume", "lose-group", "lose-workload", "lose-job"]),
        st.integers(0, 8),
    ),
    max_size=12,
)


def act(server: TinyServer, what: str, which: int) -> None:
    """Something happens in the cluster."""
    jobs = [n for n, j in server.jobs.items() if not j.is_failed and not j.is_succeeded and not j.spec.suspend]
    name = jobs[which % len(jobs)] if jobs else None
    match what:
        case "run" if name:
            pods = server.jobs[name].spec.parallelism
            server.set_status(name, active=pods, ready=pods)
        case "succeed" | "fail" if name:
            server.finish(name, failed=what == "fail")
        case "suspend" | "resume":
            server.jobset = merged(server.jobset, {"spec": {"suspend": what == "suspend"}})
        case "lose-group" if server.pod_groups:
            del server.pod_groups[sorted(server.pod_groups)[which % len(server.pod_groups)]]
        case "lose-workload":
            server.workloads.clear()
        case "lose-job" if name:
            del server.jobs[name]


@given(jobsets(), ACTS)
def test_it_settles_after_anything_and_then_decides_nothing(js, acts) -> None:  # type: ignore[no-untyped-def]
    server = TinyServer(js)
    server.settle()
    for what, which in acts:
        act(server, what, which)
        server.settle()
        quiet = decide(server.observe())
        assert quiet.actions == ()
        assert quiet.status is None
        assert quiet.events == ()


@given(jobsets(), ACTS)
def test_every_job_names_a_group_that_exists_or_nothing_runs(js, acts) -> None:  # type: ignore[no-untyped-def]
    server = TinyServer(js)
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


@given(jobsets(), ACTS)
def test_the_same_observation_gives_the_same_decision(js, acts) -> None:  # type: ignore[no-untyped-def]
    server = TinyServer(js)
    for what, which in acts:
        server.step()
        act(server, what, which)
    observation = server.observe()
    assert decide(observation) == decide(observation)


@given(jobsets(), ACTS)
def test_preconditions_and_order_of_creation(js, acts) -> None:  # type: ignore[no-untyped-def]
    server = TinyServer(js)
    for what, which in acts:
        decision = server.step()
        ranks = [CREATION_ORDER.index(a.resource) for a in decision.actions if isinstance(a, Create)]
        assert ranks == sorted(ranks)
        for action in decision.actions:
            assert isinstance(action, Create) or action.uid
        names = [(a.resource.kind, a.name) for a in decision.actions if isinstance(a, Create)]
        assert len(names) == len(set(names))
        act(server, what, which)


@given(jobsets(), ACTS)
def test_terminal_stays_terminal_and_restarts_never_fall(js, acts) -> None:  # type: ignore[no-untyped-def]
    server = TinyServer(js)
    terminal, restarts = "", 0
    for what, which in acts:
        server.settle()
        state = server.jobset.status.terminal_state
        assert not terminal or state == terminal
        assert restarts <= server.jobset.status.restarts <= 2
        terminal, restarts = state, server.jobset.status.restarts
        act(server, what, which)


@given(jobsets(), st.permutations(range(6)))
def test_the_order_of_the_observed_objects_does_not_matter(js, order) -> None:  # type: ignore[no-untyped-def]
    server = TinyServer(js)
    server.step()
    for index, name in enumerate(list(server.jobs)):
        if index % 2:
            del server.jobs[name]
    observation = server.observe()
    shuffled = tuple(sorted(observation.jobs, key=lambda j: order[hash(j.metadata.name) % 6]))
    assert decide(server.observe(jobs=shuffled)) == decide(observation)


@given(jobsets())
def test_a_completed_jobset_leaves_no_reservation(js) -> None:  # type: ignore[no-untyped-def]
    server = TinyServer(merged(js, {"spec": {"suspend": False}}))
    for _ in range(20):
        server.settle()
        if server.jobset.status.terminal_state:
            break
        server.finish(*server.jobs)
    assert server.jobset.status.terminal_state == words.TERMINAL_COMPLETED
    decision = decide(server.observe())
    assert not [a for a in decision.actions if a.resource in (JOBS, WORKLOADS, POD_GROUPS)]
    assert not server.pod_groups
