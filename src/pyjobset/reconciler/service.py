"""The headless Service that gives the pods their DNS names: created once, its ports kept in step. Pure."""

from pyjobset.compiler.service import compile_service
from pyjobset.objects.batch import ServicePort
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import SERVICES
from pyjobset.reconciler.decision import Create, Patch
from pyjobset.reconciler.outcome import NOTHING, Outcome
from pyjobset.reconciler.view import View


def service(view: View) -> Outcome:
    wanted = compile_service(view.jobset)
    if wanted is None:
        return NOTHING
    name = wanted["metadata"]["name"]
    stored = view.observation.service
    if stored is None:
        return Outcome(actions=(Create(SERVICES, name, wanted),))
    if stored.metadata.deletion_timestamp is not None or _ports(wanted) == stored.spec.ports:
        return NOTHING
    patch = {"spec": {"ports": wanted["spec"].get("ports")}}
    return Outcome(actions=(Patch(SERVICES, name, stored.metadata.uid, patch),))


def _ports(wanted: Manifest) -> tuple[ServicePort, ...]:
    return tuple(
        ServicePort(p.get("name", ""), p["port"], p.get("protocol", "TCP")) for p in wanted["spec"].get("ports") or ()
    )
