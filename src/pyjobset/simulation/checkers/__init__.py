"""What must always hold in a world, a file each. `ALL` is what a world is played with."""

from pyjobset.simulation.checkers.attempts import Attempts
from pyjobset.simulation.checkers.claims import Claims
from pyjobset.simulation.checkers.counters import Counters
from pyjobset.simulation.checkers.duplicates import Duplicates
from pyjobset.simulation.checkers.endings import Endings
from pyjobset.simulation.checkers.executions import Executions
from pyjobset.simulation.checkers.foreigners import Foreigners
from pyjobset.simulation.checkers.gangs import Gangs
from pyjobset.simulation.checkers.groups import Groups
from pyjobset.simulation.checkers.limits import Limits
from pyjobset.simulation.checkers.management import Management
from pyjobset.simulation.checkers.orphans import Orphans
from pyjobset.simulation.checkers.places import Places
from pyjobset.simulation.checkers.quiet import Quiet
from pyjobset.simulation.checkers.quorums import Quorums
from pyjobset.simulation.checkers.startup import Startup
from pyjobset.simulation.checkers.status import Status
from pyjobset.simulation.checkers.terminal import Terminal
from pyjobset.simulation.world import Checker

ALL: tuple[type[Checker], ...] = (
    Attempts,
    Claims,
    Counters,
    Duplicates,
    Endings,
    Executions,
    Foreigners,
    Gangs,
    Groups,
    Limits,
    Management,
    Orphans,
    Places,
    Quiet,
    Quorums,
    Startup,
    Status,
    Terminal,
)
