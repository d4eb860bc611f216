"""The PersistentVolumeClaims of volumeClaimPolicies: created before the Jobs that mount them, never changed or deleted.

A claim of this JobSet is used as it is; one that was kept from before, or made by hand, is used if it has what the
template sets (decision 8); one of someone else is told and not touched (decision 9). While a claim cannot be used no
Job is created or resumed. Called by decide, and by controller.writes for a claim that the watch does not show. Mirrors
KEP-572.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from pyjobset.compiler.volumes import compile_claims
from pyjobset.objects.batch import Claim
from pyjobset.objects.jobset import KIND, JobSet
from pyjobset.objects.meta import Manifest, controller_of
from pyjobset.objects.resources import CLAIMS
from pyjobset.reconciler.decision import Create
from pyjobset.reconciler.observation import OWN_VERDICT, Refusal
from pyjobset.reconciler.outcome import NOTHING, Outcome
from pyjobset.reconciler.refusals import held_back
from pyjobset.reconciler.view import View
from pyjobset.rules.difference import differences
from pyjobset.rules.quantity import quantity
from pyjobset.rules.rule import shown

NAMED_MAX = 3


@dataclass(frozen=True, slots=True)
class Claims:
    outcome: Outcome = NOTHING
    is_ready: bool = True
    """Every claim is there after this decision's actions, so that Jobs may be created and resumed."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a claim that has the right name cannot be used. `owner` is set where it is someone else's."""

    message: str
    owner: str = ""


def claims(view: View) -> Claims:
    wanted = compile_claims(view.jobset)
    if not wanted:
        return Claims()
    observation = view.observation
    stored = {claim.metadata.name: claim for claim in observation.claims}
    held = held_back(observation.refusals, observation.now)
    actions: list[Create] = []
    refusals: list[Refusal] = []
    for body in wanted:
        name = body["metadata"]["name"]
        claim = stored.get(name)
        if claim is None:
            actions.append(Create(CLAIMS, name, body))
        elif (found := obstacle(view.jobset, body, claim)) is not None:
            refusals.append(Refusal(CLAIMS.kind, name, OWN_VERDICT, "", found.message, observation.now, found.owner))
    is_ready = not refusals and not any((CLAIMS.kind, action.name) in held for action in actions)
    return Claims(Outcome(tuple(actions), refusals=tuple(refusals)), is_ready)


def obstacle(jobset: JobSet, wanted: Manifest, claim: Claim) -> Obstacle | None:
    """`wanted` is the claim as compiled, `claim` the one that has its name. None: it is used as it is."""
    metadata = claim.metadata
    owner = controller_of(metadata.owner_references)
    is_ours = jobset.metadata.uid in (owner.uid if owner else None, metadata.annotations.jobset_uid)
    if owner is not None and owner.uid != jobset.metadata.uid:
        if (owner.kind, owner.name) != (KIND, jobset.metadata.name):
            return Obstacle(f"is controlled by {owner.kind}/{owner.name}", f"{owner.kind}/{owner.name}")
        return Obstacle("belongs to a JobSet of this name that was deleted; it is created anew once it is gone too")
    if metadata.labels.jobset_name not in ("", jobset.metadata.name):
        other = f"{KIND}/{metadata.labels.jobset_name}"
        return Obstacle(f"has the label of {other}", other)
    if metadata.deletion_timestamp is not None:
        return Obstacle("is being deleted; it is created anew once it is gone, and no Job is created before that")
    if is_ours:
        return None  # it was made of this very template: what differs was changed on purpose, such as its size
    if "ownerReferences" in wanted["metadata"]:
        return Obstacle(
            "exists already and would not be deleted with the JobSet, as retentionPolicy.whenDeleted says: "
            "use Retain to have it as it is, or delete the claim"
        )
    found = list(_differences(wanted.get("spec") or {}, claim.spec))
    if not found:
        return None
    more = f" and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    what = ", ".join(found[:NAMED_MAX])
    return Obstacle(
        f"exists already and is not what the template asks for: {what}{more}; change the template, or delete the claim"
    )


def _differences(wanted: Manifest, stored: Manifest) -> Iterator[str]:
    """Only of what the template sets: the API server and the volume's binding add the rest."""
    wanted = _plain(wanted)
    for difference in differences(wanted, _part(_plain(stored), wanted)):
        if _is_enough(difference.path, difference.old, difference.new):
            continue
        yield f"{difference.under('spec')} is {_word(difference.new)} instead of {_word(difference.old)}"


def _part(value: Any, of: Any) -> Any:
    """The fields of a value that another one has too, at every depth."""
    if isinstance(value, dict) and isinstance(of, dict):
        return {key: _part(value[key], of[key]) for key in of if key in value}
    return value


def _plain(value: Any) -> Any:
    """Without what is empty, which is not set, and with lists in one order: those of a claim are sets."""
    if isinstance(value, dict):
        return {key: plain for key, each in value.items() if (plain := _plain(each)) not in (None, {}, [])}
    if isinstance(value, list):
        return sorted(map(_plain, value), key=lambda each: msgspec.json.encode(each, order="sorted"))
    return value


def _is_enough(path: tuple[str | int, ...], wanted: object, stored: object) -> bool:
    """A claim can grow and never shrinks: one that was expanded since has all that was asked for."""
    least, has = quantity(wanted), quantity(stored)
    return path[:2] == ("resources", "requests") and least is not None and has is not None and has >= least


def _word(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(str(shown(each)) for each in value) + "]"
    return "unset" if value is None else repr(shown(value))
