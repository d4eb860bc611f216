"""What the webhooks answer to a review of a pod: exclusive placement. Pure, but for asking where the leader is.

The pod of index 0 leads: it gets affinity to its own Job and anti-affinity to those of other Jobs, so that the
scheduler finds it a domain of its own. The others follow: they get the domain of the leader's node as node selector,
and are refused until that is known; the Job controller tries again. One that comes when index 0 is over follows any
placed pod of its Job, and leads where there is none. Pods that follow no leader pass at once.
"""

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import field

from pyjobset.controller.webhook.denial import INVALID_CODE, NAME_LENGTH_MAX
from pyjobset.controller.webhook.review import CREATE, Cause, Details, MalformedReview, Request, Response, Status
from pyjobset.objects import labels
from pyjobset.objects.batch import Node, Pod
from pyjobset.objects.meta import Manifest, OwnerReference, Struct, controller_of
from pyjobset.objects.placement import LEADER_INDEX, has_leader, leaders
from pyjobset.rules.rule import shortened

KIND = "Pod"
_PATH = "spec.nodeSelector"
_NO_KEY = f"it has no label {labels.JOB_KEY}"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class NotYet(Exception):
    """The follower cannot be placed now. The text says why."""


class _Terms(Struct, frozen=True):
    """Of a PodAffinity or PodAntiAffinity. The user's terms stay as they are."""

    required: tuple[Any, ...] | None = field(default=None, name=_REQUIRED)


class _Affinity(Struct, frozen=True):
    pod_affinity: _Terms | None = None
    pod_anti_affinity: _Terms | None = None


class _Spec(Struct, frozen=True):
    priority: int | None = None
    """Resolved from the priority class by the API server before webhooks are asked."""
    node_selector: dict[str, str] | None = None
    affinity: _Affinity | None = None


class _Metadata(Struct, frozen=True):
    name: str = ""
    generate_name: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class _Sent(Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec | None = None


class Placed(Struct, frozen=True):
    """A pod under review that has or follows a leader."""

    namespace: str
    name: str
    """Of a pod that a Job makes: what the API server makes its name from."""
    labels: dict[str, str]
    annotations: dict[str, str]
    job: str
    """Its owner's name."""
    owner_uid: str
    spec: _Spec

    @property
    def topology(self) -> str:
        """The node label whose value is the domain."""
        return self.annotations[labels.EXCLUSIVE_TOPOLOGY]

    @property
    def is_leader(self) -> bool:
        return self.annotations.get(labels.COMPLETION_INDEX) == LEADER_INDEX


class Lookup(Protocol):
    """Where the leader is. Raises NotYet, and nothing else."""

    async def leader(self, follower: Placed) -> Pod | None:
        """The pod to follow, which has a node. None: there will be none, so that this one leads."""
        ...

    async def node(self, leader: Pod, topology: str) -> Node: ...


def mutate(request: Request, lookup: Lookup) -> Response | Awaitable[Response]:
    """Places a pod at its creation. Raises MalformedReview."""
    pod = _placed(request)
    if pod is None:
        return Response(request.uid, allowed=True)
    if not pod.is_leader:
        return _follow(request, pod, lookup)
    return _patched(request, lead(pod)) if pod.labels.get(labels.JOB_KEY) else _refused(request, pod, _NO_KEY)


def validate(request: Request, lookup: Lookup) -> Response | Awaitable[Response]:
    """No follower without its place, whatever other webhooks did. Raises MalformedReview."""
    pod = _placed(request)
    if pod is None or pod.is_leader:
        return Response(request.uid, allowed=True)
    return _verdict(request, pod, lookup)


async def _follow(request: Request, pod: Placed, lookup: Lookup) -> Response:
    why_not = _why_not(pod)
    if why_not:
        return _refused(request, pod, why_not)
    try:
        leader = await lookup.leader(pod)
        if leader is None:
            return _patched(request, lead(pod))
        node = await lookup.node(leader, pod.topology)
    except NotYet as why:
        return _refused(request, pod, str(why))
    return _patched(request, follow(pod, node))


async def _verdict(request: Request, pod: Placed, lookup: Lookup) -> Response:
    has_selector = pod.topology in (pod.spec.node_selector or {})
    no_selector = f"it has no node selector {pod.topology}"
    why_not = _why_not(pod) or ("" if has_selector or not _terms(pod) else no_selector)
    if why_not:
        return _refused(request, pod, why_not)
    try:
        leader = await lookup.leader(pod)
    except NotYet as why:
        return _refused(request, pod, str(why))
    if leader is not None and not has_selector:
        return _refused(request, pod, no_selector)
    return Response(request.uid, allowed=True)


def _why_not(follower: Placed) -> str:
    """Why it can never be placed."""
    if not follower.labels.get(labels.JOB_KEY):
        return _NO_KEY
    is_indexed = labels.COMPLETION_INDEX in follower.annotations
    return "" if is_indexed else "only pods of a Job with completionMode Indexed have a leader"


def chosen(follower: Placed, found: Sequence[Pod]) -> Pod:
    """The leader with a node, among pods of the follower's Job and attempt. Raises NotYet."""
    leading = leaders(found)
    if len(leading) != 1:
        names = ", ".join(sorted(pod.metadata.name for pod in leading))
        many = f"its Job has {len(leading)} pods that lead ({names})"
        raise NotYet(many if leading else "its leader does not exist yet")
    leader = leading[0]
    owner = controller_of(leader.metadata.owner_references)
    if (owner.uid if owner else "") != follower.owner_uid:
        raise NotYet(f"its leader {leader.metadata.name} belongs to another Job of the same name")
    if not leader.spec.node_name:
        raise NotYet(f"its leader {leader.metadata.name} is not scheduled yet")
    return leader


def lead(pod: Placed) -> list[Manifest]:
    """The operations that give a leader a domain of its own."""
    return [_label(pod, _priority(pod)), *_terms(pod)]


def _terms(pod: Placed) -> list[Manifest]:
    """The operations that add the terms of a leader; none where it has them."""
    key, priority = pod.labels[labels.JOB_KEY], _priority(pod)
    mine: list[Manifest] = [{"key": labels.JOB_KEY, "operator": "In", "values": [key]}]
    others: list[Manifest] = [
        {"key": labels.JOB_KEY, "operator": "Exists"},
        {"key": labels.JOB_KEY, "operator": "NotIn", "values": [key]},
        {"key": labels.PRIORITY, "operator": "In", "values": [priority]},
    ]
    operations: list[Manifest] = []
    if pod.spec.affinity is None:
        operations.append(_add("/spec/affinity", {}))
    affinity = pod.spec.affinity or _Affinity()
    for name, terms, expressions in (
        ("podAffinity", affinity.pod_affinity, mine),
        ("podAntiAffinity", affinity.pod_anti_affinity, others),
    ):
        term = {
            "labelSelector": {"matchExpressions": expressions},
            "topologyKey": pod.topology,
            "namespaceSelector": {},
        }
        if terms is None:
            operations.append(_add(f"/spec/affinity/{name}", {_REQUIRED: [term]}))
        elif not terms.required:
            operations.append(_add(f"/spec/affinity/{name}/{_REQUIRED}", [term]))
        elif term not in terms.required:  # at its end: the user's terms need not go to and fro
            operations.append(_add(f"/spec/affinity/{name}/{_REQUIRED}/-", term))
    return operations


def follow(pod: Placed, node: Node) -> list[Manifest]:
    """The operations that put a follower where that node is."""
    key, domain = pod.topology, node.metadata.labels[pod.topology]
    label = _label(pod, _priority(pod))
    if pod.spec.node_selector is None:
        return [label, _add("/spec/nodeSelector", {key: domain})]
    return [label, _add(f"/spec/nodeSelector/{_escaped(key)}", domain)]


def _priority(pod: Placed) -> str:
    """As a value of a label, which does not begin with a sign."""
    priority = pod.spec.priority or 0
    return str(priority) if priority >= 0 else f"minus{priority}"


def _label(pod: Placed, priority: str) -> Manifest:
    if not pod.labels:
        return _add("/metadata/labels", {labels.PRIORITY: priority})
    return _add(f"/metadata/labels/{_escaped(labels.PRIORITY)}", priority)


def _add(path: str, value: object) -> Manifest:
    return {"op": "add", "path": path, "value": value}


def _escaped(key: str) -> str:
    """RFC 6901."""
    return key.replace("~", "~0").replace("/", "~1")


def _placed(request: Request) -> Placed | None:
    """The pod, or None where it is none of our business. Raises MalformedReview."""
    kind = request.kind
    if (kind.group, kind.kind) != ("", KIND):
        raise MalformedReview(f"this webhook is about {KIND}, not {kind.kind[:80]!r} of {kind.group[:80]!r}")
    if request.operation != CREATE:
        return None
    try:
        sent = msgspec.json.decode(request.object, type=_Sent)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise MalformedReview(f"object is not a {KIND}: {error}") from error
    metadata = sent.metadata
    annotations = metadata.annotations or {}
    if not has_leader(annotations):
        return None
    if sent.spec is None:
        raise MalformedReview(f"the {KIND} has no spec")
    owner = controller_of(metadata.owner_references or ())
    return Placed(
        request.namespace,
        request.name or metadata.name or metadata.generate_name,
        metadata.labels or {},
        annotations,
        owner.name if owner is not None else "",
        owner.uid if owner is not None else "",
        sent.spec,
    )


def _patched(request: Request, operations: list[Manifest]) -> Response:
    return Response(request.uid, allowed=True, patch=msgspec.json.encode(operations), patch_type="JSONPatch")


def _refused(request: Request, pod: Placed, why: str) -> Response:
    role = "leads" if pod.is_leader else "follows its leader"
    message = f"a pod that {role} (exclusive placement by {pod.topology}) is not made now: {why}"
    message = shortened(message)
    details = Details(shortened(pod.name, NAME_LENGTH_MAX), "", KIND, (Cause("FieldValueInvalid", message, _PATH),))
    return Response(request.uid, allowed=False, status=Status(message, "Invalid", INVALID_CODE, details=details))
