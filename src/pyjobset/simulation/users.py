"""What the users of a world do to its JobSet: one step of a scenario, as admission lets it through.

A queue is a user too: it admits the JobSet with a node selector, evicts it and admits it somewhere else. So is another
controller that is in charge of it.
"""

from pyjobset.objects import conditions as words
from pyjobset.objects.meta import Manifest
from pyjobset.simulation import clock
from pyjobset.simulation.extras import with_pod
from pyjobset.simulation.scenario import NAME, NAMESPACE, Scenario, Step
from pyjobset.simulation.server import Refusal, Server
from pyjobset.simulation.store import Name

JOBSET = Name("jobsets", NAMESPACE, NAME)
PLACES = {"admit": "here", "admit elsewhere": "there"}
PLACE = "place"
"""The node selector that the queue sets."""


def act(server: Server, scenario: Scenario, step: Step) -> None:
    """Nothing happens where admission would not take it, or where there is no JobSet."""
    jobset = server.store.get(JOBSET)
    if jobset is None:
        if step.action == "recreate":
            server.create("jobsets", NAMESPACE, scenario.jobset)
        return
    try:
        _change(server, jobset, step.action)
    except Refusal:
        return


def _change(server: Server, jobset: Manifest, action: str) -> None:
    is_over = bool(jobset["status"].get("terminalState"))
    match action:
        case "suspend" | "resume":
            server.patch(JOBSET, {"spec": {"suspend": action == "suspend"}})
        case "delete":
            server.delete(JOBSET, {"propagationPolicy": "Background"})
        case "grow" | "shrink" if not is_over:
            _patch(server, [_resized(r, 2 if action == "grow" else 1) for r in jobset["spec"]["replicatedJobs"]])
        case "admit" | "admit elsewhere" if jobset["spec"].get("suspend") and _is_idle(jobset):
            _place(server, jobset, {PLACE: PLACES[action]}, suspend=False)
        case "evict":
            _place(server, jobset, None, suspend=True)
        case "complete":
            _complete(server)


def _is_idle(jobset: Manifest) -> bool:
    """It is new, or the controller says that it is suspended: before that a queue does not give it another place."""
    conditions = {c["type"]: c["status"] for c in jobset["status"].get("conditions") or ()}
    return conditions.get(words.SUSPENDED) == "True" or jobset["metadata"]["generation"] == 1


def _place(server: Server, jobset: Manifest, selector: Manifest | None, *, suspend: bool) -> None:
    replicated_jobs = [with_pod(r, {"nodeSelector": selector}) for r in jobset["spec"]["replicatedJobs"]]
    _patch(server, replicated_jobs, suspend=suspend)


def _patch(server: Server, replicated_jobs: list[Manifest], **more: object) -> None:
    server.patch(JOBSET, {"spec": {"replicatedJobs": replicated_jobs, **more}})


def _resized(replicated_job: Manifest, pods: int) -> Manifest:
    spec = {**replicated_job["template"]["spec"], "parallelism": pods, "completions": pods}
    return {**replicated_job, "template": {**replicated_job["template"], "spec": spec}}


def _complete(server: Server) -> None:
    done = {
        "type": words.COMPLETED,
        "status": "True",
        "reason": words.ALL_JOBS_COMPLETED,
        "message": "jobset completed successfully",
        "lastTransitionTime": clock.timestamp(),
    }
    server.set_status(JOBSET, conditions=[done], terminalState=words.TERMINAL_COMPLETED)
