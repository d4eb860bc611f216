"""A suspended JobSet where the Configuration defers its Jobs: nothing before the first resume, all of it after."""

import pytest

from pyjobset.objects import conditions as words
from pyjobset.objects.meta import Manifest
from pyjobset.reconciler.conditions import is_true
from tests.builders import TinyServer, jobset, merged, replicated_job, with_status

MODELS: list[Manifest] = [{}, {"scheduling": {"schedulingPolicy": {"gang": {}}}}]


def settle(server: TinyServer, *, suspend: bool | None = None, defers: bool = True) -> None:
    if suspend is not None:
        server.jobset = merged(server.jobset, {"spec": {"suspend": suspend}})
    for _ in range(20):
        decision = server.step(defers_suspended=defers)
        if not decision.actions and decision.status is None:
            return
    raise AssertionError(f"still deciding: {decision}")


@pytest.mark.decision(29)
@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_created_before_the_first_resume(model: Manifest) -> None:
    server = TinyServer(jobset(replicated_job("w", replicas=2), suspend=True, **model))
    settle(server)
    assert (server.jobs, server.service, server.workloads, server.pod_groups) == ({}, None, {}, {})
    assert is_true(server.jobset.status.conditions, words.SUSPENDED)
    settle(server, suspend=False)
    assert [job.spec.suspend for job in server.jobs.values()] == [False, False]
    assert server.service is not None
    assert bool(server.pod_groups) == bool(model)


def test_by_default_the_jobs_are_there_suspended() -> None:
    server = TinyServer(jobset(replicated_job("w", replicas=2), suspend=True))
    settle(server, defers=False)
    assert [job.spec.suspend for job in server.jobs.values()] == [True, True]
    assert server.service is not None


@pytest.mark.decision(29)
def test_a_jobset_that_is_suspended_later_keeps_what_it_has() -> None:
    server = TinyServer(jobset(replicated_job("w", replicas=2)))
    settle(server)
    before = {name: job.metadata.uid for name, job in server.jobs.items()}
    settle(server, suspend=True)
    assert {name: job.metadata.uid for name, job in server.jobs.items()} == before
    assert all(job.spec.suspend for job in server.jobs.values())
    assert server.service is not None


@pytest.mark.decision(29)
def test_a_jobset_that_is_suspended_between_two_attempts_has_run() -> None:
    """All Jobs of the old attempt are gone, none of the new one is there yet."""
    server = TinyServer(with_status(jobset(replicated_job("w"), suspend=True), restarts=1))
    settle(server)
    assert [job.spec.suspend for job in server.jobs.values()] == [True]


def test_what_was_created_before_the_switch_stays() -> None:
    server = TinyServer(jobset(replicated_job("w"), suspend=True))
    settle(server, defers=False)
    before = dict(server.jobs)
    settle(server, defers=True)
    assert server.jobs == before
