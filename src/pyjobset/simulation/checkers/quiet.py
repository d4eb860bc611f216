"""A world comes to rest, and a quiet world writes nothing: what was written is not written again for ever."""

from pyjobset.simulation.store import Change
from pyjobset.simulation.world import Checker


class Quiet(Checker):
    def __post_init__(self) -> None:
        self._is_quiet = False
        self._last: Change | None = None

    def see(self, change: Change) -> None:
        if change.name.plural == "leases":
            return  # renewed all the time, whatever JobSets there are
        self._last = change
        if self._is_quiet:
            self.report(f"a quiet world is written to: {_told(change)}")

    def rest(self) -> None:
        self._is_quiet = True

    def end(self) -> None:
        if not self._is_quiet and self._last is not None:
            self.report(f"it never comes to rest; the last change: {_told(self._last)}")


def _told(change: Change) -> str:
    return f"{change.type} {change.name.plural} {change.name.name} by {change.actor}"
