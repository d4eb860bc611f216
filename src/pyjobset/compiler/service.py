"""JobSet -> the headless Service that gives its pods their DNS names, and the ports that it has.

Called by the reconciler, which also keeps the ports of a Service that the JobSet owns as they are here, and by
`jobset plan`. It never looks at who owns a Service of that name.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pyjobset.compiler.ownership import owner_manifest
from pyjobset.objects import labels, names
from pyjobset.objects.batch import ServicePort
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.template import pod_spec


def has_hostnames(jobset: JobSet) -> bool:
    """spec.network.enableDNSHostnames, true when unset."""
    network = jobset.spec.network
    return network is None or network.enable_dns_hostnames is not False


def service_ports(jobset: JobSet) -> tuple[ServicePort, ...]:
    """Every port that a container of any ReplicatedJob names, once a number and protocol, in spec order."""
    found: dict[tuple[str, int], ServicePort] = {}
    for port in _container_ports(jobset):
        number = port.get("containerPort") or 0
        protocol = port.get("protocol") or "TCP"
        if number:
            name = f"{protocol.lower()}-{number}"
            found.setdefault((protocol, number), ServicePort(name=name, port=number, protocol=protocol))
    return tuple(found.values())


def compile_service(jobset: JobSet) -> Manifest | None:
    """None where the JobSet wants no DNS hostnames."""
    if not has_hostnames(jobset):
        return None
    network = jobset.spec.network
    of_jobset = {labels.JOBSET_NAME: jobset.metadata.name}
    spec: Manifest = {
        "clusterIP": "None",
        "selector": of_jobset,
        "publishNotReadyAddresses": network is None or network.publish_not_ready_addresses is not False,
    }
    ports = service_ports(jobset)
    if ports:
        spec["ports"] = [{"name": p.name, "port": p.port, "protocol": p.protocol} for p in ports]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": names.subdomain(jobset),
            "namespace": jobset.metadata.namespace,
            "labels": dict(of_jobset),
            "ownerReferences": [owner_manifest(jobset)],
        },
        "spec": spec,
    }


def _container_ports(jobset: JobSet) -> Iterator[Mapping[str, Any]]:
    for replicated_job in jobset.spec.replicated_jobs:
        for container in pod_spec(replicated_job.template).get("containers") or ():
            yield from container.get("ports") or ()
