"""The story of a world, one line a change, for the person who has to find out why it ended badly."""

from collections.abc import Iterator

from pyjobset.objects.meta import Manifest
from pyjobset.simulation.store import Change
from pyjobset.simulation.world import Outcome

LINES_MAX = 400


def story(outcome: Outcome) -> Iterator[str]:
    """What was asked for, what happened, what is wrong with it."""
    scenario = outcome.scenario
    yield f"spec: {scenario.spec}"
    yield f"steps: {', '.join(f'{step.action} at {step.at:g} s' for step in scenario.steps)}"
    yield f"the first pod: {', '.join(_fate(*fate) for fate in scenario.fates)}"
    yield f"faults: {dict(outcome.storm.seen)}"
    told = [change for change in outcome.changes if change.name.plural != "events"]
    if len(told) > LINES_MAX:
        yield f"... {len(told) - LINES_MAX} changes before"
    for change in told[-LINES_MAX:]:
        yield line(change)
    yield from (f"VIOLATION {text}" for text in outcome.violations)


def line(change: Change) -> str:
    who = f"{change.at:8.2f} s  {change.actor:14}"
    what = f"{change.type.lower():8}  {change.name.plural} {change.name.name}"
    ends = "deleted" if change.type != "DELETED" and "deletionTimestamp" in change.object["metadata"] else ""
    return "  ".join(part for part in (who, what, ends, _details(change.name.plural, change.object)) if part)


def _details(plural: str, obj: Manifest) -> str:
    status, spec = obj.get("status") or {}, obj.get("spec") or {}
    conditions = " ".join(
        f"{c['type']}={c['status']}/{c['reason']}" for c in status.get("conditions") or () if "reason" in c
    )
    match plural:
        case "jobsets":
            state = status.get("terminalState") or ("suspended" if spec.get("suspend") else "")
            return f"restarts={status.get('restarts') or 0} {state} {conditions}"
        case "jobs":
            group = ((spec["template"].get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName", "none")
            attempt = obj["metadata"].get("labels", {}).get("jobset.sigs.k8s.io/restart-attempt")
            state = "suspended" if spec.get("suspend") else "running"
            pods = f"pods={spec['parallelism']} active={status.get('active') or 0}"
            return f"attempt={attempt} {state} {pods} group={group} {conditions}"
        case "pods":
            return f"{status.get('phase')} on {spec.get('nodeName') or 'no node'}"
        case "podgroups":
            return f"{spec.get('schedulingPolicy')} {conditions}"
    return ""


def _fate(seconds: float | None, phase: str) -> str:
    return "never ends" if seconds is None else f"{phase} after {seconds:g} s"
