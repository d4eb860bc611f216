"""What the webhooks answer to a review of a JobSet: its defaults as a patch, or the verdict of the rules. Pure.

webhook.server calls it. The verdict on a creation is rules.validation.check, which is what `jobset lint` says. Only
what a JobSet is may be judged here; whether the cluster can take its Jobs is not looked at.
"""

import msgspec

from pyjobset.controller.webhook import denial, patch
from pyjobset.controller.webhook.review import CREATE, UPDATE, MalformedReview, Request, Response, manifest
from pyjobset.errors import InvalidSpec
from pyjobset.objects.features import Features
from pyjobset.objects.jobset import GROUP, KIND, JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.rules.parse import read
from pyjobset.rules.validation import check, check_update, warnings


def mutate(request: Request) -> Response:
    """Sets defaults on creation and refuses nothing: the schema and `validate` do. Raises MalformedReview."""
    _check_kind(request)
    if request.operation != CREATE:
        return Response(request.uid, allowed=True)
    sent = manifest(request.object, "object")
    jobset, _ = read(sent)
    operations = [] if jobset is None else patch.additions(sent, jobset)
    if not operations:
        return Response(request.uid, allowed=True)
    return Response(request.uid, allowed=True, patch=msgspec.json.encode(operations), patch_type="JSONPatch")


def validate(request: Request, features: Features) -> Response:
    """The verdict on a creation or an update. Raises MalformedReview."""
    _check_kind(request)
    if request.operation not in (CREATE, UPDATE):
        return Response(request.uid, allowed=True)
    sent = manifest(request.object, "object")
    try:
        jobset = _judged(request, sent, features)
    except InvalidSpec as invalid:
        return denial.denied(request.uid, _name(request, sent), invalid.problems)
    said = () if jobset is None else warnings(jobset, features)
    return Response(
        request.uid, allowed=True, warnings=tuple(f"{problem.path} {denial.sentence(problem)}" for problem in said)
    )


def _judged(request: Request, sent: Manifest, features: Features) -> JobSet | None:
    """The JobSet, if it is fit to be stored; None where it is stored whatever it is. Raises InvalidSpec."""
    if request.operation == CREATE:
        return check(sent, features)
    if _is_being_deleted(sent):
        return None  # a finalizer goes: nothing may hold that up
    return check_update(manifest(request.old_object, "oldObject"), sent, features)


def _is_being_deleted(sent: Manifest) -> bool:
    """The API server takes this field from the stored object: no client can set it."""
    metadata = sent.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))


def _name(request: Request, sent: Manifest) -> str:
    metadata = sent.get("metadata")
    generate_name = metadata.get("generateName") if isinstance(metadata, dict) else None
    return request.name or (generate_name if isinstance(generate_name, str) else "")


def _check_kind(request: Request) -> None:
    kind = request.kind
    if (kind.group, kind.kind) != (GROUP, KIND):
        raise MalformedReview(f"this webhook is about {KIND} of {GROUP}, not {kind.kind[:80]!r} of {kind.group[:80]!r}")
