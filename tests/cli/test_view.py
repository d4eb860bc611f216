"""States in words come from what Jobs and pods do, and the tree shows who belongs to whom."""

from typing import Any

import msgspec
import pytest

from pyjobset.cli.treetext import ASCII, FOLD_ABOVE, lines, rows
from pyjobset.cli.view import UNTOUCHED_SECONDS, Family, view
from pyjobset.objects import conditions
from pyjobset.objects.jobset import JobSet
from tests.cli.families import FULL, UNSCHEDULABLE, family, group, job, jobset, pod

DONE = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
LOST = {"failed": 1, "conditions": [{"type": "Failed", "status": "True"}]}
GONE = {"deletionTimestamp": "2026-11-30T00:00:00Z"}

STATES: dict[str, tuple[Family, str]] = {
    "nothing yet": (family(), "Starting"),
    "pods run": (family(group(1), job(ready=1), pod(node="n")), "Running"),
    "pods have finished, their Job has not": (family(group(1), job(), pod(node="n", phase="Succeeded")), "Running"),
    "a gang waits": (family(group(2), job(), pod()), "Waiting"),
    "a group is missing": (family(job(), pod(), workload=False), "Waiting"),
    "completed": (family(jobset(terminalState="Completed"), job(**DONE)), "Completed"),
    "failed": (family(jobset(terminalState="Failed")), "Failed"),
    "suspended": (family(jobset((conditions.SUSPENDED, "True", ""), suspend=True)), "Suspended"),
    "asked to suspend": (family(jobset(suspend=True), job(ready=1), pod(node="n")), "Suspending"),
    "asked to resume": (family(jobset((conditions.SUSPENDED, "True", ""))), "Resuming"),
    "resumed": (family(jobset((conditions.SUSPENDED, "False", "")), group(1), job(ready=1), pod(node="n")), "Running"),
}


@pytest.mark.decision(30)
@pytest.mark.parametrize(("what", "state"), STATES.values(), ids=STATES.keys())
def test_state_of_a_jobset(what: Family, state: str) -> None:
    assert view(what).state == state
    assert view(what).is_finished == (state in ("Completed", "Failed"))


MISSING = "it does not exist, and pods without a node stay Pending until it does"
GROUPS: dict[str, tuple[Family, str, str]] = {
    "no Jobs yet": (family(group(2)), "Empty", "its Jobs do not exist yet"),
    "Jobs not started": (family(group(2), job(suspend=True)), "Empty", "its Jobs have not started"),
    "pods on their way": (family(group(2), job()), "Starting", ""),
    "running": (family(group(1), job(), pod(node="n")), "Running", ""),
    "waiting": (family(group(2), job(), pod()), "Waiting", "needs 2 pods at once, only 1 exists"),
    "finished": (family(group(1), job(**DONE), pod(node="n", phase="Succeeded")), "Finished", ""),
    "deleted": (family(group(1, **GONE), job(), pod(node="n")), "Terminating", "1 of its pods still run"),
    "missing": (family(job(), pod()), "Missing", MISSING),
}


@pytest.mark.parametrize(("what", "state", "why"), GROUPS.values(), ids=GROUPS.keys())
def test_state_of_a_group(what: Family, state: str, why: str) -> None:
    (only,) = view(what).groups
    assert (only.state, only.why) == (state, why)


def test_jobs_of_a_finished_jobset_stand_alone() -> None:
    """Its groups were deleted, and that is no news."""
    shown = view(family(jobset(terminalState="Completed"), job(**DONE), job("js-w-1", **LOST)))
    assert shown.groups == ()
    assert [(j.name, j.state) for j in shown.jobs] == [("js-w-0", "Complete"), ("js-w-1", "Failed")]


JOBS = {
    "new": (job(pods=2), "Pending"),
    "some ready": (job(pods=2, ready=1), "Running"),
    "done": (job(**DONE), "Complete"),
    "failed": (job(**LOST), "Failed"),
    "suspended": (job(suspend=True), "Suspended"),
}


@pytest.mark.parametrize(("what", "state"), JOBS.values(), ids=JOBS.keys())
def test_state_of_a_job(what: object, state: str) -> None:
    (only,) = view(family(group(), what)).groups[0].jobs  # type: ignore[arg-type]
    assert only.state == state


PODS = {
    "waiting": (pod(told=FULL), "Pending", FULL[:-1]),
    "bound": (pod(node="n", phase="Pending"), "Starting", ""),
    "running": (pod(node="n"), "Running", ""),
    "terminating": (pod(node="n", **GONE), "Terminating", ""),
    "finished": (pod(node="n", phase="Succeeded"), "Succeeded", ""),
}


@pytest.mark.parametrize(("what", "state", "why"), PODS.values(), ids=PODS.keys())
def test_state_of_a_pod(what: object, state: str, why: str) -> None:
    (only,) = view(family(group(), job(), what)).groups[0].jobs[0].pods  # type: ignore[arg-type]
    assert (only.state, only.why) == (state, why)


def test_jobs_are_in_the_order_of_their_index() -> None:
    shown = view(family(group(), *(job(f"js-w-{n}") for n in (10, 2, 0)))).groups[0].jobs
    assert [j.name for j in shown] == ["js-w-0", "js-w-2", "js-w-10"]


def test_the_controller_is_missing() -> None:
    note = ("no Jobs and no status yet: is the controller running?",)
    assert view(family(jobset(), age_seconds=UNTOUCHED_SECONDS + 1)).notes == note
    assert view(family(jobset(), age_seconds=UNTOUCHED_SECONDS - 1)).notes == ()
    assert view(family(jobset(), job(), age_seconds=60)).notes == ()


def test_what_stands_in_the_way_is_noted() -> None:
    blocked = jobset(
        (conditions.BLOCKED, "True", "Job js-w-0 belongs to ReplicaSet/x"), (conditions.FAILED, "False", "no")
    )
    assert view(family(blocked)).notes == ("Blocked: Job js-w-0 belongs to ReplicaSet/x",)


def test_a_job_that_waits_for_a_domain_is_noted() -> None:
    value = msgspec.to_builtins(jobset((conditions.LEADERS_SCHEDULED, "False", "Job js-w-0 waits for a domain")))
    value["status"]["conditions"][0]["reason"] = conditions.LEADER_UNSCHEDULABLE
    shown = view(family(msgspec.convert(value, JobSet), job(group=""), pod(group="")))
    assert (shown.state, shown.notes) == ("Waiting", ("Job js-w-0 waits for a domain",))
    value["spec"]["suspend"] = True
    assert view(family(msgspec.convert(value, JobSet))).notes == ()
    value["status"]["conditions"][0]["reason"] = conditions.JOBSET_SUSPENDED
    value["spec"]["suspend"] = False
    assert view(family(msgspec.convert(value, JobSet))).state == "Starting"


WAITING = family(
    group(5, said=UNSCHEDULABLE),
    job("js-driver-0"),
    job("js-w-0", pods=2),
    job("js-w-1", pods=2, labels={"jobset.sigs.k8s.io/restart-attempt": "1"}),
    pod("js-driver-0-0", job="js-driver-0", told=UNSCHEDULABLE),
    pod("js-w-0-0", told=UNSCHEDULABLE),
    pod("js-w-0-1", told=FULL),
    pod("js-w-1-0", job="js-w-1"),
    pod("js-w-1-1", job="js-w-1"),
)
TREE = """\
NAME                            STATE     DETAILS
JobSet ns/js                    Waiting
└─ Workload js-workload
   └─ PodGroup js-group         Waiting   gang of 5, waits: needs 5 pods at once, 3 fit (scheduler: {full})
      ├─ Job js-driver-0        Pending   0/1 ready
      │  └─ Pod js-driver-0-0   Pending
      ├─ Job js-w-0             Pending   0/2 ready
      │  ├─ Pod js-w-0-0        Pending
      │  └─ Pod js-w-0-1        Pending   {full}
      └─ Job js-w-1             Pending   0/2 ready, restart 1
         ├─ Pod js-w-1-0        Pending
         └─ Pod js-w-1-1        Pending
""".format(full=FULL[:-1])


def test_the_tree_as_text() -> None:
    assert "\n".join(lines(rows(view(WAITING)))) + "\n" == TREE


@pytest.mark.parametrize(
    ("old", "new", "state", "details"),
    [
        (0, 2, "Running", "gang of 2, 2 bound"),
        (2, 2, "Running", "gang of 2, 2 bound, 2 terminating"),
        (2, 0, "Terminating", "gang of 2, 2 terminating"),
    ],
)
def test_pods_that_terminate_are_told_apart(old: int, new: int, state: str, details: str) -> None:
    members = [pod(f"old-{n}", node="n", **GONE) for n in range(old)] + [pod(f"new-{n}", node="n") for n in range(new)]
    shown = rows(view(family(group(2), job(pods=2), *members)))
    assert [(row.state, row.details) for row in shown if "PodGroup" in row.name] == [(state, details)]


def test_less_detail_is_shorter() -> None:
    shown = view(WAITING)
    assert [len(rows(shown, detail)) for detail in ("pods", "jobs", "groups")] == [12, 7, 4]


def test_a_tree_for_terminals_without_lines() -> None:
    assert all(line.isascii() for line in lines(rows(view(WAITING), branches=ASCII)))


def test_names_cannot_move_the_cursor() -> None:
    hostile = family(group(name="g\x1b[2J\nPodGroup x"), job(group="g\x1b[2J\nPodGroup x"), pod(told="a\x9bb\nc"))
    text = lines(rows(view(hostile)))
    assert all(line.isprintable() for line in text)
    assert any("\\x1b[2J\\x0aPodGroup x" in line for line in text)


def many(jobs: int, pods: int = 1) -> Family:
    """Jobs of one gang; the last one runs, the others wait."""
    named = [f"js-w-{n}" for n in range(jobs)]
    members = [pod(f"{name}-{n}", job=name, told=FULL) for name in named[:-1] for n in range(pods)]
    return family(
        group(jobs * pods, said=UNSCHEDULABLE),
        *(job(name, pods=pods, ready=pods * (name == named[-1])) for name in named),
        *members,
        *(pod(f"{named[-1]}-{n}", job=named[-1], node=f"n{n}") for n in range(pods)),
    )


FOLDED = """\
NAME                                    STATE     DETAILS
JobSet ns/js                            Waiting
└─ Workload js-workload
   └─ PodGroup js-group                 Waiting   {why}
      ├─ Job js-w-0 .. js-w-998         Pending   999 Jobs, 0/1998 ready
      │  └─ Pod js-w-0-0 .. js-w-998-1  Pending   1998 pods, {full}
      └─ Job js-w-999                   Running   2/2 ready
         ├─ Pod js-w-999-0              Running   n0
         └─ Pod js-w-999-1              Running   n1
"""


def test_a_thousand_jobs_are_folded() -> None:
    shown = view(many(1000, pods=2))
    why = f"gang of 2000, 2 bound, waits: {shown.groups[0].why}"
    expected = FOLDED.format(why=why, full=FULL[:-1])
    squeezed = [line.split() for line in lines(rows(shown))]
    assert squeezed == [line.split() for line in expected.splitlines()]


def test_all_are_shown_where_they_are_few_or_asked_for() -> None:
    few, lot = view(many(FOLD_ABOVE)), view(many(FOLD_ABOVE + 1))
    assert rows(few) == rows(few, is_folded=False)
    assert len(rows(lot)) < 10
    assert len(rows(lot, is_folded=False)) == 4 + 2 * (FOLD_ABOVE + 1)


def test_groups_that_are_alike_are_folded() -> None:
    count = FOLD_ABOVE + 3
    groups = [group(1, name=f"g-{n}", reason="Scheduled") for n in range(count)]
    jobs = [job(f"js-w-{n}", group=f"g-{n}", ready=1) for n in range(count)]
    members = [pod(f"p-{n}", job=f"js-w-{n}", group=f"g-{n}", node="n" if n else "") for n in range(count)]
    shown = rows(view(family(*groups, *jobs, *members)), "groups")
    assert [row.name.split("─ ")[-1] for row in shown[3:]] == ["PodGroup g-0", f"PodGroup g-1 .. g-{count - 1}"]
    assert shown[-1].details == f"{count - 1} groups, gang of 1, {count - 1} bound"


def test_attempts_and_replicated_jobs_are_not_mixed() -> None:
    count = FOLD_ABOVE
    old = [job(f"js-w-{n}") for n in range(count)]
    new = [job(f"js-v-{n}", labels={"jobset.sigs.k8s.io/restart-attempt": str(n % 2)}) for n in range(count)]
    shown = rows(view(family(group(1), *old, *new)), "jobs")
    details = [row.details for row in shown if row.name.split("─ ")[-1].startswith("Job ")]
    half = count // 2
    mixed = [f"{half} Jobs, 0/{half} ready", f"{half} Jobs, 0/{half} ready, restart 1"]
    assert details == [*mixed, f"{count} Jobs, 0/{count} ready"]


ATTEMPT, ALONE = "jobset.sigs.k8s.io/restart-attempt", "jobset.sigs.k8s.io/job-restart-attempt"
COUNTS = {"name": "w", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}


def restarted(*of_jobs: int, counted: tuple[int, ...] = (), most: int | None = 3, **status: Any) -> JobSet:
    """`of_jobs` by the index of the Job in ReplicatedJob w."""
    entry = {**COUNTS, **({"jobRestarts": of_jobs, "jobRestartsCountTowardsMax": counted} if of_jobs else {})}
    value = msgspec.to_builtins(jobset(**status))
    value["status"]["replicatedJobsStatus"] = [entry]
    value["spec"]["failurePolicy"] = {"maxRestarts": most} if most is not None else None
    return msgspec.convert(value, JobSet)


RESTARTS: dict[str, tuple[JobSet, str]] = {
    "none": (restarted(), ""),
    "one": (restarted(restarts=1, restartsCountTowardsMax=1), "1 restart (1 of max 3)"),
    "two, one is free": (restarted(restarts=2, restartsCountTowardsMax=1), "2 restarts (1 of max 3 count)"),
    "of a single Job": (restarted(0, 1, counted=(0, 1)), "1 restart of a single Job (1 of max 3)"),
    "of single Jobs": (restarted(2, 1), "3 restarts of single Jobs (0 of max 3 count)"),
    "both": (
        restarted(1, 1, counted=(1, 0), restarts=2, restartsCountTowardsMax=1),
        "2 restarts and 2 of single Jobs (2 of max 3 count)",
    ),
    "without a policy": (restarted(restarts=1, most=None), "1 restart"),
    "in place": (restarted(currentInPlaceRestartAttempt=2), "in-place attempt 2"),
}


@pytest.mark.parametrize(("what", "said"), RESTARTS.values(), ids=RESTARTS.keys())
def test_restarts_of_a_jobset(what: JobSet, said: str) -> None:
    assert rows(view(family(what)))[1].details == said


def test_restarts_in_data() -> None:
    shown = view(family(RESTARTS["both"][0], job("js-w-1", group="", labels={ATTEMPT: "2", ALONE: "1"})))
    assert (shown.restarts, shown.job_restarts, shown.restarts_count_towards_max, shown.max_restarts) == (2, 2, 2, 3)
    assert [(j.name, j.attempt, j.restarts) for j in shown.jobs] == [("js-w-1", 2, 1)]


@pytest.mark.parametrize(
    ("labels", "state", "details"),
    [
        ({ATTEMPT: "1", ALONE: "2"}, "Running", "1/1 ready, restart 1, restarted alone 2 times"),
        ({ATTEMPT: "1", ALONE: "1"}, "Restarting", "1/1 ready, restart 1, restarted alone 2 times"),
        ({ATTEMPT: "1"}, "Restarting", "1/1 ready, restart 1, restarted alone 2 times"),
        ({ALONE: "2"}, "Restarting", "1/1 ready, restarted alone 2 times"),
    ],
)
def test_a_job_that_was_restarted_alone(labels: dict[str, str], state: str, details: str) -> None:
    """The count is stored first: the Job that is older than it goes next."""
    others = job("js-w-0", ready=1, labels={ATTEMPT: "1"}, group="")
    one = job("js-w-1", ready=1, labels=labels, group="")
    shown = rows(view(family(restarted(0, 2, restarts=1), others, one)), "jobs")
    assert [(row.state, row.details) for row in shown[2:]] == [("Running", "1/1 ready, restart 1"), (state, details)]


def test_jobs_that_were_restarted_are_not_folded_with_the_others() -> None:
    count = FOLD_ABOVE + 2
    jobs = [job(f"js-w-{n}", group="", labels={ALONE: str(int(n == 1))}) for n in range(count)]
    shown = rows(view(family(restarted(0, 1), *jobs)), "jobs")
    assert [row.details for row in shown[2:]] == [
        f"{count - 1} Jobs, 0/{count - 1} ready",
        "0/1 ready, restarted alone once",
    ]


@pytest.mark.parametrize(
    ("said", "details"), [("1", "n, in-place attempt 1"), ("0", "n"), ("x", "n"), ("\u0663", "n"), ("9" * 5000, "n")]
)
def test_the_in_place_attempt_of_a_pod(said: str, details: str) -> None:
    one = pod(node="n", annotations={"jobset.sigs.k8s.io/in-place-restart-attempt": said})
    assert rows(view(family(group(1), job(), one)))[-1].details == details


@pytest.mark.decision(27)
def test_that_it_was_scheduled_once_is_no_state() -> None:
    """PodGroupInitiallyScheduled stays True when pods of the group are gone for good."""
    once = group(2, reason="Scheduled")
    (shown,) = view(family(once, job(), pod())).groups
    assert (shown.state, shown.bound) == ("Waiting", 0)
