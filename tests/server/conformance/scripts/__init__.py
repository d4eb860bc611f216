"""Hand-written scripts for every behaviour that the model API server claims, by what they show."""

from collections.abc import Mapping

from tests.server.conformance.player import Script
from tests.server.conformance.scripts.creation import CREATION
from tests.server.conformance.scripts.deletion import DELETION
from tests.server.conformance.scripts.immutable import IMMUTABLE
from tests.server.conformance.scripts.leases import LEASES
from tests.server.conformance.scripts.patches import PATCHES
from tests.server.conformance.scripts.reading import READING
from tests.server.conformance.scripts.refusals import REFUSALS
from tests.server.conformance.scripts.suspension import SUSPENSION

GROUPS: Mapping[str, Mapping[str, Script]] = {
    "Creation": CREATION,
    "Patches": PATCHES,
    "Deletion": DELETION,
    "What may not change": IMMUTABLE,
    "Suspended Jobs": SUSPENSION,
    "Refusals": REFUSALS,
    "Leases and Events": LEASES,
    "Reading and watching": READING,
}
SCRIPTS: Mapping[str, Script] = {name: script for group in GROUPS.values() for name, script in group.items()}
