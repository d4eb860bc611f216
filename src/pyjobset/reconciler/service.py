"""The headless Service that gives the pods their DNS names: created once, its ports kept in step. Pure."""

from pyjobset.compiler.service import compile_service, service_ports
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
    if stored is None or stored.metadata.name != name:
        return Outcome(actions=(Create(SERVICES, name, wanted),))
    if stored.metadata.deletion_timestamp is not None or service_ports(view.jobset) == stored.spec.ports:
        return NOTHING
    patch = {"spec": {"ports": wanted["spec"].get("ports")}}
    return Outcome(actions=(Patch(SERVICES, name, stored.metadata.uid, patch),))
