"""In-place restarts: what the attempts that pods tell make of the JobSet's, one case a rule."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyjobset.objects import conditions as words
from pyjobset.objects import features as gates
from pyjobset.objects import labels
from pyjobset.objects.batch import Pod
from pyjobset.objects.template import INT32_MAX
from pyjobset.reconciler.decide import decide, needs_pods
from pyjobset.reconciler.decision import Decision, Delete
from tests.builders import FEATURES, TinyServer, jobset, replicated_job, with_status

ON = FEATURES | {gates.IN_PLACE_RESTART}
PODS = 4
Said = int | str | None


class World:
    """Two Jobs of two pods each, and what a case makes of them. `says` is the pods' annotations in order."""

    def __init__(self, *, features: frozenset[str] = ON, max_restarts: int = 3, **spec: Any) -> None:
        policy = {"maxRestarts": max_restarts, "restartStrategy": "InPlaceRestart"}
        self.features = features
        self.server = TinyServer(jobset(**{"failurePolicy": policy, **spec}))
        while decide(self.observe(pods=())).actions:
            self.server.apply(decide(self.observe(pods=())))
        self.pods: tuple[Pod, ...] | None = ()

    def observe(self, **more: Any) -> Any:
        return self.server.observe(**{"features": self.features, **more})

    def status(self, **fields: Any) -> "World":
        self.server.jobset = with_status(self.server.jobset, **fields)
        return self

    def says(self, *attempts: Said, **changes: Mapping[str, Any]) -> "World":
        """A pod for each attempt, two a Job. `pod_2={...}` merges into the third."""
        jobs = list(self.server.jobs.values())
        self.pods = tuple(
            _pod(i, jobs[i // 2 % len(jobs)].metadata.uid, attempt, changes.get(f"pod_{i}", {}))
            for i, attempt in enumerate(attempts)
        )
        return self

    def step(self) -> Decision:
        decision = decide(self.observe(pods=self.pods))
        self.server.apply(decision)
        return decision

    @property
    def attempts(self) -> tuple[int | None, int | None]:
        """previousInPlaceRestartAttempt, currentInPlaceRestartAttempt."""
        status = self.server.jobset.status
        return status.previous_in_place_restart_attempt, status.current_in_place_restart_attempt

    @property
    def failed(self) -> str:
        """The message of the condition Failed."""
        found = [c for c in self.server.jobset.status.conditions if c.type == words.FAILED and c.status == "True"]
        assert all(c.reason == words.REACHED_MAX_RESTARTS for c in found)
        return found[0].message if found else ""


def _pod(index: int, owner: str, attempt: Said, changes: Mapping[str, Any]) -> Pod:
    metadata = {
        "name": f"p{index}",
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "uid": owner, "controller": True}],
        "annotations": {} if attempt is None else {labels.IN_PLACE_RESTART_ATTEMPT: str(attempt)},
    }
    value = {"metadata": {**metadata, **changes.get("metadata", {})}, "status": changes.get("status", {})}
    return msgspec.convert(value, Pod)


def restarted(times: int, kind: str = "containerStatuses") -> Mapping[str, Any]:
    return {"status": {"phase": "Running", kind: [{"restartCount": 0}, {"restartCount": times}]}}


LEAVING = {"metadata": {"deletionTimestamp": "2026-11-30T12:00:00Z"}}
FAILED = {"status": {"phase": "Failed"}}
SUCCEEDED = {"status": {"phase": "Succeeded"}}


@pytest.mark.parametrize(
    ("previous", "current", "said", "expected"),
    [
        pytest.param(None, None, [], (None, None), id="no pod yet"),
        pytest.param(None, None, [0, 0, 0, None], (None, None), id="one agent has not spoken"),
        pytest.param(None, None, [0, 0, 0], (None, None), id="one pod is missing"),
        pytest.param(None, None, [0, 0, 0, 0], (None, 0), id="all start"),
        pytest.param(None, 0, [0, 0, 0, 0], (None, 0), id="all run"),
        pytest.param(None, 0, [0, 1, 0, 0], (0, 0), id="one restarted"),
        pytest.param(0, 0, [1, 1, 0, 1], (0, 0), id="the last is still restarting"),
        pytest.param(0, 0, [1, 1, 1, 1], (0, 1), id="all restarted"),
        pytest.param(0, 1, [1, 2, 1, 1], (1, 1), id="one restarted again"),
        pytest.param(0, 1, [2, 2, None, 2], (1, 1), id="a pod was replaced and its agent has not spoken"),
        pytest.param(1, 1, [1, 1, 1, 0], (1, 1), id="previous is never lowered"),
        pytest.param(None, 0, [2, 0, 0, 0], (1, 1), id="two at once are over, and the next begins after them"),
        pytest.param(None, None, [1, 0, 0, 0], (0, 0), id="nobody begins an attempt again that is over"),
    ],
)
def test_attempts(
    previous: int | None, current: int | None, said: Sequence[Said], expected: tuple[int | None, int | None]
) -> None:
    world = World().status(previousInPlaceRestartAttempt=previous, currentInPlaceRestartAttempt=current)
    world.says(*said).step()
    assert world.attempts == expected
    again = world.step()
    assert (again.actions, again.status) == ((), None)


def test_the_gate_off_does_nothing() -> None:
    world = World(features=FEATURES).says(0, 0, 0, 9, pod_0=restarted(99))
    world.step()
    assert world.attempts == (None, None)
    assert world.failed == ""


@pytest.mark.parametrize("policy", [None, {"maxRestarts": 0}, {"maxRestarts": 0, "restartStrategy": "Recreate"}])
def test_another_strategy_looks_at_no_attempts(policy: Any) -> None:
    world = World(failurePolicy=policy).says(0, 0, 0, 9)
    world.step()
    assert world.attempts == (None, None)
    assert world.failed == ""
    assert not needs_pods(world.server.jobset, ON)


def test_pods_are_needed_while_it_runs() -> None:
    world = World()
    assert needs_pods(world.server.jobset, ON)
    assert not needs_pods(world.server.jobset, FEATURES)


def test_pods_that_cannot_be_listed_change_nothing_and_are_told() -> None:
    world = World().status(currentInPlaceRestartAttempt=2, previousInPlaceRestartAttempt=1)
    world.pods = None
    decision = world.step()
    assert world.attempts == (1, 2)
    assert [r.code for r in decision.reasons] == ["in-place-restart-pods-unseen"]


STARTED, STOPPED = "2026-11-30T11:00:00Z", {"type": "Suspended", "status": "True"}


def suspends(world: World, *, suspend: bool = True) -> None:
    js = world.server.jobset
    world.server.jobset = msgspec.structs.replace(js, spec=msgspec.structs.replace(js.spec, suspend=suspend))


def run_jobs(world: World) -> World:
    """As the Job controller starts them."""
    for name in world.server.jobs:
        world.server.set_status(name, active=2, startTime=STARTED, conditions=[])
    return world


def stop_jobs(world: World, *names: str, active: int = 0) -> None:
    """As the Job controller stops them: their pods are on their way out."""
    for name in names or tuple(world.server.jobs):
        world.server.set_status(name, active=active, terminating=2 - active, startTime=None, conditions=[STOPPED])


@pytest.mark.decision(41)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param((None, None), (None, None), id="no attempt was complete"),
        pytest.param((None, 0), (None, None), id="the first one"),
        pytest.param((0, 1), (0, 0), id="the one after a restart"),
        pytest.param((None, 3), (2, 2), id="after global restarts"),
        pytest.param((2, 2), (2, 2), id="a restart was under way: the next attempt is yet to begin already"),
        pytest.param((4, 2), (4, 2), id="nothing is lowered that somebody raised"),
    ],
)
def test_a_suspension_is_no_restart(
    before: tuple[int | None, int | None], after: tuple[int | None, int | None]
) -> None:
    """The pods that follow it begin the attempt again that was interrupted."""
    world = run_jobs(World()).status(previousInPlaceRestartAttempt=before[0], currentInPlaceRestartAttempt=before[1])
    suspends(world)
    world.step()
    assert [job.spec.suspend for job in world.server.jobs.values()] == [True, True]
    world.step()
    assert world.attempts == before, "their pods may still be running"
    stop_jobs(world, "js-w-0")
    stop_jobs(world, "js-w-1", active=1)
    world.step()
    assert world.attempts == before, "one pod may still be running"
    stop_jobs(world)
    world.says(None, None, None, 1, pod_0=LEAVING, pod_1=SUCCEEDED, pod_2=FAILED).step()
    assert world.attempts == before, "so says a pod of which the watch does not show the end yet"
    assert needs_pods(world.server.jobset, ON) is (before != after), "it wakes the JobSet when it does"
    world.pods = None
    world.step()
    assert world.attempts == before, "pods cannot be seen"
    world.says(None, None, None, 1, pod_0=LEAVING, pod_1=SUCCEEDED, pod_2=FAILED, pod_3=LEAVING)
    for _ in range(3):
        world.step()
        assert world.attempts == after
    assert not needs_pods(world.server.jobset, ON)
    suspends(world, suspend=False)
    while world.step().actions:
        pass
    assert world.attempts == after
    assert [job.spec.suspend for job in world.server.jobs.values()] == [False, False]
    begun = 0 if after[1] is None else after[1] + 1
    run_jobs(world).says(begun, begun, begun, begun, pod_4=LEAVING).step()
    assert world.attempts == (after[0], begun)


def test_a_resume_before_the_jobs_have_stopped_is_no_restart_either() -> None:
    """Nothing is resumed before all have stopped, and the attempt is put back before that."""
    world = run_jobs(World(max_restarts=0)).status(currentInPlaceRestartAttempt=0).says(0, 0, 0, 0)
    suspends(world)
    world.step()
    suspends(world, suspend=False)
    stop_jobs(world, "js-w-0")
    decision = world.step()
    assert (decision.actions, [r.code for r in decision.reasons]) == ((), ["jobs-wait-for-old-pods"])
    stop_jobs(world)
    decision = world.step()
    assert [r.code for r in decision.reasons] == ["jobs-wait-for-old-pods"], "the watch of pods lags"
    world.says(0, 0, 0, 0, pod_0=LEAVING, pod_1=LEAVING, pod_2=LEAVING, pod_3=LEAVING)
    decision = world.step()
    assert (decision.actions, world.attempts) == ((), (None, None)), "stored first: agents read it when they start"
    assert len(world.step().actions) == 2
    assert world.attempts == (None, None)
    assert world.failed == ""


def test_without_the_strategy_a_suspended_jobset_keeps_what_it_has() -> None:
    world = run_jobs(World(failurePolicy={"maxRestarts": 1})).status(currentInPlaceRestartAttempt=1)
    suspends(world)
    world.step()
    stop_jobs(world)
    world.step()
    assert world.attempts == (None, 1)


def single(restarts: Sequence[int], counted: Sequence[int]) -> Mapping[str, Any]:
    entry = {"name": "w", "jobRestarts": restarts, "jobRestartsCountTowardsMax": counted}
    return {"replicatedJobsStatus": [entry]}


@pytest.mark.decision(41)
@pytest.mark.parametrize(
    ("status", "features", "begun", "fails"),
    [
        pytest.param({}, ON, 2, True, id="nothing but in-place restarts"),
        pytest.param(single([1, 0], [0, 0]), ON | {gates.RESTART_JOB}, 2, False, id="one that does not count"),
        pytest.param(single([1, 0], [0, 0]), ON | {gates.RESTART_JOB}, 3, True, id="beyond it"),
        pytest.param(single([1, 0], [1, 0]), ON | {gates.RESTART_JOB}, 2, True, id="one that counts"),
        pytest.param(single([2, 1], [1, 0]), ON | {gates.RESTART_JOB}, 3, False, id="two of three do not count"),
        pytest.param(single([1, 0], [0, 0]), ON, 2, True, id="the gate is off"),
        pytest.param({"replicatedJobsStatus": [{"name": "w"}]}, ON | {gates.RESTART_JOB}, 2, True, id="none at all"),
    ],
)
def test_restarts_of_single_jobs_that_do_not_count(
    status: Mapping[str, Any], features: frozenset[str], begun: int, fails: bool
) -> None:
    world = restarted_alone(World(max_restarts=1, features=features), status)
    world.says(begun, 1, 1, 1).step()
    assert bool(world.failed) is fails


@pytest.mark.parametrize(("times", "fails"), [(2, False), (3, True)])
def test_they_restart_the_containers_of_all_others(times: int, fails: bool) -> None:
    world = restarted_alone(World(max_restarts=1, features=ON | {gates.RESTART_JOB}), single([1, 0], [0, 0]))
    world.says(1, 1, 1, 1, pod_3=restarted(times)).step()
    assert bool(world.failed) is fails


def restarted_alone(world: World, status: Mapping[str, Any]) -> World:
    """Its Jobs are those that were made last."""
    for index, restarts in enumerate(status.get("replicatedJobsStatus", [{}])[0].get("jobRestarts", ())):
        job = world.server.jobs[f"js-w-{index}"]
        child = msgspec.structs.replace(job.metadata.labels, job_restart_attempt=str(restarts))
        metadata = msgspec.structs.replace(job.metadata, labels=child)
        world.server.jobs[f"js-w-{index}"] = msgspec.structs.replace(job, metadata=metadata)
    return world.status(**status)


@pytest.mark.parametrize("said", ["", "x", "-1", "1.0", "1e3", " 1", "\u0663", str(INT32_MAX + 1), "9" * 5000])
def test_what_is_no_attempt_counts_as_unsaid_and_is_told(said: str) -> None:
    world = World(max_restarts=INT32_MAX)
    decision = world.says(0, 0, said, 0).step()
    assert world.attempts == (None, None)
    (reason,) = decision.reasons
    assert reason.code == "in-place-restart-attempt-unreadable"
    assert dict(reason.arguments) == {"pods": 1, "first": "p2"}
    assert world.failed == ""


def test_the_greatest_attempt_is_one() -> None:
    world = World(max_restarts=INT32_MAX).says(*[INT32_MAX] * PODS)
    world.step()
    assert world.attempts == (None, INT32_MAX)


def test_failed_pods_are_replaced_and_do_not_count() -> None:
    world = World().status(currentInPlaceRestartAttempt=0).says(1, 1, 1, 1, 0, pod_4=FAILED)
    world.step()
    assert world.attempts == (None, 1)


def test_a_pod_that_succeeded_is_in_every_attempt() -> None:
    """It can neither restart nor wait, and the others would wait for it for ever."""
    world = World().status(currentInPlaceRestartAttempt=0, previousInPlaceRestartAttempt=0)
    world.says(1, 0, 1, 1, pod_1=SUCCEEDED).step()
    assert world.attempts == (0, 1)


def test_the_pods_of_a_job_that_succeeded_are_not_waited_for_even_when_they_are_gone() -> None:
    world = World().status(currentInPlaceRestartAttempt=0, previousInPlaceRestartAttempt=0)
    first, second = world.server.jobs
    world.server.finish(first)
    uid = world.server.jobs[second].metadata.uid
    world.pods = (_pod(2, uid, 1, {}), _pod(3, uid, 1, {}))
    world.step()
    assert world.attempts == (0, 1)


def test_nobody_starts_beside_a_pod_that_is_on_its_way_out() -> None:
    world = World().says(0, 0, 0, 0, pod_3=LEAVING)
    world.step()
    assert world.attempts == (None, None)


@pytest.mark.parametrize("said", [1, 9, "x"])
def test_a_pod_on_its_way_out_has_no_say_in_the_attempts(said: Said) -> None:
    """Another begins the next attempt in its place, which restarts the others; or it is of before a suspension."""
    world = World().status(currentInPlaceRestartAttempt=0).says(0, 0, 0, said, pod_3=LEAVING)
    decision = world.step()
    assert world.attempts == (None, 0)
    assert (world.failed, decision.reasons) == ("", ())


def test_nobody_starts_beside_a_pod_too_many() -> None:
    world = World().says(0, 0, 0, 0, None, pod_1=SUCCEEDED)
    world.step()
    assert world.attempts == (None, None)
    world.says(0, 0, 0, 0, 0).step()
    assert world.attempts == (None, None)


def test_pods_of_others_do_not_count() -> None:
    stranger = {"metadata": {"ownerReferences": [{"kind": "Job", "uid": "other", "controller": True}]}}
    world = World().says(0, 0, 0, 0, 5, 0, pod_4=stranger, pod_5={"metadata": {"ownerReferences": []}})
    world.step()
    assert world.attempts == (None, 0)


def test_every_pod_of_every_replicated_job_is_expected() -> None:
    jobs = [replicated_job("a", replicas=1, pods=2), replicated_job("b", replicas=1, pods=2)]
    world = World(replicatedJobs=jobs)
    world.says(0, 0).step()
    assert world.attempts == (None, None)
    world.says(0, 0, 0, 0).step()
    assert world.attempts == (None, 0)


@pytest.mark.parametrize(
    ("max_restarts", "status", "said", "changes", "message"),
    [
        pytest.param(1, {}, [2, 1, 1, 1], {}, "pod p0 is in in-place restart attempt 2", id="attempt"),
        pytest.param(2, {}, [2, 1, 1, 1], {}, "", id="attempt at the limit"),
        pytest.param(0, {}, [0, 0, 0, 0], {}, "", id="no restart"),
        pytest.param(0, {}, [0, 0, 1, 0], {}, "pod p2", id="no restart allowed"),
        pytest.param(
            1, {"restarts": 3, "restartsCountTowardsMax": 1}, [3, 3, 3, 3], {}, "", id="uncounted global restarts"
        ),
        pytest.param(1, {"restarts": 3, "restartsCountTowardsMax": 1}, [4, 3, 3, 3], {}, "attempt 4", id="beyond them"),
        pytest.param(1, {"restarts": 1, "restartsCountTowardsMax": 1}, [2, 2, 2, 2], {}, "attempt 2", id="counted"),
        pytest.param(1, {}, [0, 0, 0, 0], {"pod_1": restarted(1)}, "", id="container at the limit"),
        pytest.param(
            1, {}, [0, 0, 0, 0], {"pod_1": restarted(2)}, "a container of pod p1 restarted 2 times", id="container"
        ),
        pytest.param(
            1, {}, [0, 0, 0, 0], {"pod_3": restarted(2, "initContainerStatuses")}, "pod p3", id="init container"
        ),
        pytest.param(1, {}, [None] * 4, {"pod_3": restarted(2)}, "pod p3", id="an agent that never speaks"),
        pytest.param(
            1,
            {},
            [5, 0, 0, 0],
            {"pod_0": {"status": {"phase": "Failed", "containerStatuses": [{"restartCount": 9}]}}},
            "",
            id="a failed pod does not count",
        ),
    ],
)
def test_the_limit(
    max_restarts: int, status: Mapping[str, Any], said: Sequence[Said], changes: Any, message: str
) -> None:
    world = World(max_restarts=max_restarts).says(*said, **changes)
    world.server.jobset = with_status(world.server.jobset, **status)
    for name in world.server.jobs:  # the Jobs of this attempt of the JobSet
        job = world.server.jobs[name]
        child = msgspec.structs.replace(job.metadata.labels, restart_attempt=str(status.get("restarts", 0)))
        metadata = msgspec.structs.replace(job.metadata, labels=child)
        world.server.jobs[name] = msgspec.structs.replace(job, metadata=metadata)
    decision = world.step()
    assert (message in world.failed) if message else world.failed == ""
    assert [e.reason for e in decision.events] == [words.REACHED_MAX_RESTARTS] * bool(message)


def test_the_limit_ends_a_global_restart_too() -> None:
    world = World(max_restarts=0).says(1, 0, 0, 0)
    restarting = {"type": words.RESTARTING_JOBSET, "status": "True", "reason": words.DEFAULT_FAILURE_POLICY}
    world.status(conditions=[restarting]).step()
    found = next(c for c in world.server.jobset.status.conditions if c.type == words.RESTARTING_JOBSET)
    assert (found.status, found.reason) == ("False", words.JOBSET_FAILED)


def test_a_failed_job_restarts_the_jobset_as_recreate_does_and_attempts_go_on_upwards() -> None:
    world = World().status(currentInPlaceRestartAttempt=1, previousInPlaceRestartAttempt=0).says(1, 1, 1, 1)
    world.step()
    world.server.finish("js-w-0", failed=True)
    world.step()
    assert world.server.jobset.status.restarts == 1
    old = world.pods
    decision = world.step()
    assert {a.name for a in decision.actions if isinstance(a, Delete)} == {"js-w-0", "js-w-1"}
    world.step()
    assert {job.metadata.labels.restart_attempt for job in world.server.jobs.values()} == {"1"}
    assert world.attempts == (0, 1)
    world.says(2, 2, 2, 2)
    assert old is not None
    assert world.pods is not None
    world.pods = (*old, *world.pods)  # the old ones are not gone yet
    world.step()
    assert world.attempts == (0, 2)


def test_success_comes_first() -> None:
    world = World(max_restarts=0).says(0, 0, 0, 9)
    world.server.finish(*world.server.jobs)
    world.step()
    assert world.server.jobset.status.terminal_state == words.TERMINAL_COMPLETED
    assert world.failed == ""


attempt = st.one_of(st.none(), st.integers(-1, 5), st.text(max_size=3))
fate = st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])


@given(
    said=st.lists(st.tuples(attempt, fate, st.booleans()), max_size=6),
    previous=st.one_of(st.none(), st.integers(0, 5)),
    current=st.one_of(st.none(), st.integers(0, 5)),
)
def test_laws(said: list[tuple[Said, str, bool]], previous: int | None, current: int | None) -> None:
    """Whatever pods say: previous never falls, the barrier is only lifted for an attempt that somebody is in and nobody
    who counts is not, and the second look decides nothing."""
    changes: dict[str, Any] = {}
    for i, (_, phase, leaves) in enumerate(said):
        changes[f"pod_{i}"] = {"status": {"phase": phase}, "metadata": LEAVING["metadata"] if leaves else {}}
    world = World(max_restarts=9).status(previousInPlaceRestartAttempt=previous, currentInPlaceRestartAttempt=current)
    world.says(*(number for number, _, _ in said), **changes).step()
    new_previous, new_current = world.attempts
    assert (new_previous if new_previous is not None else -1) >= (previous if previous is not None else -1)
    if new_current != current:
        stay = {str(number) for number, phase, leaves in said if phase in ("Pending", "Running") and not leaves}
        assert stay == {str(new_current)} or new_current == new_previous, "or nobody runs in it"
    assert world.step().status is None
