"""The end equals that of the run without faults, where neither users nor strangers do what hangs on the moment.

Such a world, one in fifty, is played a second time without them: a hundredth of the time of all worlds.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pyjobset.simulation import faults
from pyjobset.simulation.checkers import reading
from pyjobset.simulation.chooser import Plain
from pyjobset.simulation.ending import ending
from pyjobset.simulation.kubelet import FOREVER
from pyjobset.simulation.scenario import Scenario
from pyjobset.simulation.world import Checker, play

PERCENT = 100
"""Where the chooser knows probabilities. Crash points and small scopes have one clean run for all of their worlds."""
CUT_SHORT = ("activeDeadlineSeconds", "ttlSecondsAfterFinished", "successPolicy")
OF_OTHERS = frozenset((faults.FOREIGN, faults.UNSERVED, faults.REFUSED, faults.TAKEN))
"""Faults that change what there is to do. All others only take time."""


class Endings(Checker):
    def end(self) -> None:
        if not is_timeless(self.scenario) or any(self.storm.seen[kind] for kind in OF_OTHERS):
            return
        if self.storm.choices.happens(PERCENT, "is the end compared"):
            clean = play(Plain(), frozenset(), checkers=(), given=self.scenario)
            for text in differences(ending(self.store), ending(clean.store)):
                self.report(text)


def is_timeless(scenario: Scenario) -> bool:
    """It ends the same way however long everything takes. Its users only wait; or nothing ever ends in it, and what
    they do leaves no trace where it was over before the controller saw it. No success of some cuts off the rest, and
    no time does: a clock may be wrong. A suspension leaves a count of executions, and Jobs whose turn has not come."""
    spec, is_ordered = scenario.spec, reading.has_order(scenario.spec)
    if not spec.keys().isdisjoint(CUT_SHORT) or (is_ordered and spec.get("suspend")):
        return False
    actions = {step.action for step in scenario.steps}
    if actions <= {"resume"}:
        return True
    traceless = {"resume", "grow", "shrink", "delete", "recreate"}
    if not (scenario.gates or is_ordered):
        traceless.add("suspend")
    return actions <= traceless and all(fate is FOREVER for fate in scenario.fates)


def differences(is_: Mapping[str, Any], should: Mapping[str, Any]) -> Iterator[str]:
    """Of two endings. Where a JobSet has failed, how far its other Jobs came depends on how soon that was seen."""
    failed = [name for name in should if name.startswith("jobsets/") and should[name][1]["terminalState"] == "Failed"]
    for name in failed or sorted(is_.keys() | should.keys()):
        has, wants = (_lasting(name, endings[name]) if name in endings else "nothing" for endings in (is_, should))
        if has != wants:
            yield f"{name} ends as {has}, without faults as {wants}"


def _lasting(name: str, ending_: Any) -> Any:
    """Without what a JobSet still tells of its way: a short suspension, or groups that had no time to be seen placed,
    may have been over before the controller heard of them."""
    if not name.startswith("jobsets/"):
        return ending_
    conditions, counters, suspend = ending_
    state = counters["terminalState"]
    conditions = [c for c in conditions if c[1] == "True" and state in (None, c[0])]
    # What runs on may have been suspended before it got as far as another attempt.
    passing = {"Failed": "replicatedJobsStatus", None: "executionAttempts"}.get(state)
    return conditions, {key: value for key, value in counters.items() if key != passing}, suspend
