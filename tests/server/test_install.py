"""The installation on real Kubernetes: it works with the rights that it has, and has none that it does not need."""

import asyncio
import json
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import helm_program
import msgspec
import pytest

from pyjobset.controller.certificates.keeper import Keeper
from pyjobset.controller.observe import Caches
from pyjobset.controller.options import Certificates, Tls
from pyjobset.controller.pace import Pace
from pyjobset.controller.queue import Queue
from pyjobset.controller.refusals import Refusals
from pyjobset.controller.watches import Watches
from pyjobset.controller.webhook.leaders import Leaders
from pyjobset.controller.webhook.pods import Placed
from pyjobset.controller.writes import Writer
from pyjobset.errors import Raced
from pyjobset.kube.cache import Cache
from pyjobset.kube.client import Client, connect
from pyjobset.localplane.progress import Progress
from pyjobset.objects import features as gates
from pyjobset.objects import names
from pyjobset.objects.resources import JOBSETS, PODS
from pyjobset.reconciler.decision import Delete
from tests.server.installation import NAMESPACE, RACK, USER, WEBHOOKS, Installation, Manager, installation
from tests.server.plane import PATIENCE_SECONDS, wait_for
from tests.server.test_claims import stateful
from tests.server.test_controller import GANG, OTHERS, Cluster, Object, manifest, replicated_job
from tests.server.test_exclusive_placement import INDEX, TOPOLOGY, exclusive
from tests.server.test_helm import CHART, GATE
from tests.server.test_metrics import READING, Accounts, get

OVERLAY = "scheduling"
JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path) as made:
        made.apply(OVERLAY)
        yield made


@dataclass(frozen=True)
class Right:
    """One verb on one resource. `namespace` and `name` are empty where it is for all."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def covers(self, asked: "Right") -> bool:
        return (
            (self.group, self.resource, self.verb) == (asked.group, asked.resource, asked.verb)
            and self.namespace in ("", asked.namespace)
            and self.name in ("", asked.name)
        )


def granted(objects: Iterable[Object]) -> set[Right]:
    """What the roles give that are bound to the manager's account."""
    found = {(o["kind"], o["metadata"]["name"]): o for o in objects}
    rights = set()
    for (kind, _), binding in found.items():
        if kind not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        (subject,) = binding["subjects"]
        assert f"system:serviceaccount:{subject['namespace']}:{subject['name']}" == USER
        role = found[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        namespace = binding["metadata"]["namespace"] if kind == "RoleBinding" else ""
        for rule in role["rules"]:
            rights |= {
                Right(group, resource, verb, namespace, name)
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for verb in rule["verbs"]
                for name in rule.get("resourceNames", [""])
            }
    return rights


def asked(request: Any) -> Right:
    of = request["objectRef"]
    resource = "/".join(part for part in (of["resource"], of.get("subresource")) if part)
    return Right(of.get("apiGroup", ""), resource, request["verb"], of.get("namespace", ""), of.get("name", ""))


def is_forbidden(request: Any) -> bool:
    return bool(request["annotations"]["authorization.k8s.io/decision"] == "forbid")


def test_it_is_installed_by_one_command(installed: Installation) -> None:
    """The pods pass the namespace's PodSecurity; a JobSet runs to its end; metrics are for those who may read them."""
    system = installed.system
    pods = wait_for(lambda: len(found := system.all("pods")) == 2 and found, "the two pods of the Deployment")
    assert (
        system.get("namespace", NAMESPACE)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    )
    assert len({pod["spec"]["nodeName"] for pod in wait_for(lambda: placed(system), "nodes for both")}) == 2
    weak = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "weak"},
        "spec": pods[0]["spec"] | {"securityContext": {}},
    }
    refused = system._kubectl("create", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(weak))
    assert 'violates PodSecurity "restricted' in refused.stderr

    cluster = Cluster(installed.plane.run_kubectl, "default")
    early = cluster._kubectl("create", "-f", "-", stdin=json.dumps(manifest("early", replicated_job("w", "sleep 1"))))
    assert 'failed calling webhook "mjobset.kb.io"' in early.stderr, "no manager, no JobSet"
    installed.start()
    manager = installed.start()  # it does not lead, and answers the webhooks
    certificates = trusted(installed)
    installed.apply(OVERLAY)
    assert trusted(installed) == certificates, "applied again, nothing of what the manager wrote is lost"
    installed.ask(manager)
    wait_for(lambda: works(cluster, manifest("js", replicated_job("w", "sleep 1", 2), scheduling=GANG)), "the webhooks")
    cluster.wait_true("Completed")
    wait_for(lambda: not cluster.names("workloads,podgroups"), "the manager has no more to do")
    bad = cluster._kubectl("create", "-f", "-", stdin=json.dumps(manifest("js-2", replicated_job("W", "sleep 1"))))
    assert "is invalid" in bad.stderr
    nobody_gets_anything(installed, manager)
    people_have_their_roles(cluster)


def test_it_is_installed_by_helm(tmp_path: Path) -> None:
    """An upgrade takes nothing from what the manager wrote, and after the end of the release the JobSets are there."""
    with installation(tmp_path) as installed:
        program, config = helm_program.ensure(Progress()), f"--kubeconfig={installed.plane.kubeconfig}"

        def helm(*words: str) -> None:
            command = [str(program), *words, config, "--namespace", NAMESPACE]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

        helm("install", "jobset", str(CHART), "--create-namespace", "--set", GATE)
        manager = installed.start()
        certificates = trusted(installed)
        helm("upgrade", "jobset", str(CHART), "--set", GATE, "--set", "replicas=3")
        assert installed.system.get("deployment", "jobset-controller-manager")["spec"]["replicas"] == 3
        assert trusted(installed) == certificates
        installed.ask(manager)
        cluster = Cluster(installed.plane.run_kubectl, "default")
        wait_for(
            lambda: works(cluster, manifest("js", replicated_job("w", "sleep 1"), scheduling=GANG)), "the webhooks"
        )
        cluster.wait_true("Completed")
        helm("uninstall", "jobset")
        assert cluster.names("jobsets") == {"JobSet/js"}
        cluster.run("label", "jobset", "js", "still=here")


def trusted(installed: Installation) -> list[str]:
    """The Secret's content, and what each webhook has as caBundle."""
    webhooks = [w for kind in WEBHOOKS for found in installed.system.all(kind) for w in found["webhooks"]]
    bundles = [webhook["clientConfig"]["caBundle"] for webhook in webhooks]
    assert len(bundles) == 4
    return [*bundles, *installed.system.get("secret", Certificates().secret)["data"].values()]


def people_have_their_roles(cluster: Cluster) -> None:
    for role, verbs in (("edit", "yes"), ("view", "no")):
        cluster.run("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}or")

        def may(verb: str, user: str = f"{role}or") -> str:
            asked = ("auth", "can-i", verb, "jobsets.jobset.x-k8s.io", f"--as={user}", "-n", cluster.namespace)
            return cluster._kubectl(*asked).stdout.strip()

        wait_for(lambda ask=may: ask("get") == "yes", f"the aggregated role of {role}")
        assert {may("create"), may("patch"), may("delete")} == {verbs}


def placed(system: Cluster) -> list[Object]:
    pods = system.all("pods")
    assert all(pod["spec"].get("nodeName") for pod in pods)
    return pods


def works(cluster: Cluster, jobset: Object) -> bool:
    done = cluster._kubectl("create", "-n", cluster.namespace, "-f", "-", stdin=json.dumps(jobset))
    assert done.returncode == 0, done.stderr
    return True


def nobody_gets_anything(installed: Installation, manager: Manager) -> None:
    """A user without rights, at every port of the manager: no metrics, and nothing changes."""
    accounts = Accounts(Cluster(installed.plane.run_kubectl, "default"))
    reader, nobody = accounts.make("reader"), accounts.make("nobody")
    accounts.allow("reader", READING)
    url = f"https://127.0.0.1:{manager.metrics}/metrics"
    assert wait_for(lambda: get(url, reader)[0] == 200, "the reader's right")
    assert [get(url)[0], get(url, nobody)[0]] == [401, 403]
    before = [request for request in installed.requests() if request["verb"] in ("patch", "update", "delete")]
    for port in (manager.metrics, manager.webhook, manager.health):
        scheme = "http" if port == manager.health else "https"
        for path in ("/metrics", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/js", "/healthz"):
            for method in ("PATCH", "PUT", "DELETE", "POST"):
                assert send(f"{scheme}://127.0.0.1:{port}{path}", method, nobody) in (400, 401, 403, 404, 405)
    after = [request for request in installed.requests() if request["verb"] in ("patch", "update", "delete")]
    assert [asked(request) for request in after if request not in before and "leases" not in str(request)] == []


def send(url: str, method: str, token: str) -> int:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(url, b'{"spec":{}}', {"Authorization": f"Bearer {token}"}, method=method)
    try:
        with urllib.request.urlopen(
            request, timeout=PATIENCE_SECONDS, context=context if url.startswith("https") else None
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_the_rights_are_those_that_are_used(installed: Installation) -> None:
    """Everything that the manager does, and then its rights compared with the API server's log of what it asked."""
    manager = installed.start()
    installed.ask(manager)
    cluster = Cluster(installed.plane.run_kubectl, "default")
    wait_for(lambda: works(cluster, manifest("first", replicated_job("w", "sleep 1"))), "the webhooks")
    for live in (lives_and_dies, restarts, is_resumed, is_repaired, has_claims, is_placed, lacks_class, meets_others):
        live(cluster)
    get(f"https://127.0.0.1:{manager.metrics}/metrics", Accounts(cluster).make("reader"))
    secret = installed.system.get("secret", Certificates().secret)["metadata"]["uid"]
    installed.system.run("delete", "secret", Certificates().secret)
    asyncio.run(unlikely(installed.kubeconfig()))
    wait_for(lambda: certificate_uid(installed) not in ("", secret), "another Secret")

    requests = [request for request in installed.requests() if "objectRef" in request]
    assert [asked(request) for request in requests if is_forbidden(request)] == []
    rights = granted(installed.rendered(OVERLAY))
    used = {right for request in requests for right in rights if right.covers(asked(request))}
    invisible = {Right("jobset.x-k8s.io", "jobsets/finalizers", "update")}  # the next lines show it
    assert sorted(map(str, rights - used)) == sorted(map(str, invisible))
    role = "jobset-manager-role"
    rules = [rule for rule in cluster.get("clusterrole", role)["rules"] if rule["resources"] != ["jobsets/finalizers"]]
    cluster.run("patch", "clusterrole", role, "--type=merge", "-p", json.dumps({"rules": rules}))
    cluster.apply(manifest("js", replicated_job("w", "sleep 1")))
    cluster.wait_true("Blocked", words="cannot set blockOwnerDeletion")


def certificate_uid(installed: Installation) -> str:
    found = {o["metadata"]["name"]: str(o["metadata"]["uid"]) for o in installed.system.all("secrets")}
    return found.get(Certificates().secret, "")


def lives_and_dies(cluster: Cluster) -> None:
    cluster.apply(manifest("dies", replicated_job("w", "sleep 1"), scheduling=GANG, ttlSecondsAfterFinished=1))
    wait_for(lambda: "JobSet/dies" not in cluster.names("jobsets"), "its end")


def restarts(cluster: Cluster) -> None:
    failing = replicated_job("driver", "sleep 1; exit 3")
    cluster.apply(manifest("restarts", failing, failurePolicy={"maxRestarts": 1}))
    cluster.wait_true("Failed", "restarts")


def is_resumed(cluster: Cluster) -> None:
    cluster.apply(manifest("resumed", replicated_job("w", "sleep infinity")))
    wait_for(lambda: ready(cluster, "resumed") == 1, "it runs")
    cluster.run("patch", "jobset", "resumed", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    cluster.wait_true("Suspended", "resumed")
    wait_for(lambda: not pods_of(cluster, "resumed"), "its pods are gone")
    # Job controllers before that of Kubernetes 1.35 leave it there.
    started = '{"status":{"startTime":"2026-01-01T00:00:00Z"}}'
    cluster.run("patch", "job", "resumed-w-0", "--subresource=status", "--type=merge", "-p", started)
    cluster.run("patch", "jobset", "resumed", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    wait_for(lambda: ready(cluster, "resumed") == 1, "it runs again")


def ready(cluster: Cluster, name: str) -> int:
    (status,) = cluster.get("jobset", name).get("status", {}).get("replicatedJobsStatus", [{}])
    return int(status.get("ready", 0))


def is_repaired(cluster: Cluster) -> None:
    """Somebody takes labels from the Workload and the PodGroup, and adds a port to the Service."""
    cluster.apply(manifest("repaired", replicated_job("w", "sleep infinity"), scheduling=GANG))
    wait_for(lambda: ready(cluster, "repaired") == 1, "it runs")
    group = names.workload_name(cluster.namespace, "repaired")
    for kind in ("workload", "podgroup"):
        cluster.run("label", kind, group, f"{JOBSET_LABEL}-")
    ports = {"spec": {"ports": [{"name": "x", "port": 1}]}}
    before = cluster.get("service", "repaired")["spec"].get("ports")
    cluster.run("patch", "service", "repaired", "--type=merge", "-p", json.dumps(ports))
    wait_for(lambda: cluster.get("service", "repaired")["spec"].get("ports") == before, "its ports")
    for kind in ("workload", "podgroup"):
        wait_for(lambda k=kind: JOBSET_LABEL in cluster.get(k, group)["metadata"]["labels"], f"the label of the {kind}")


def has_claims(cluster: Cluster) -> None:
    cluster.apply(stateful("claims"))
    wait_for(lambda: "PersistentVolumeClaim/data-claims" in cluster.names("pvc"), "its claim")


def is_placed(cluster: Cluster) -> None:
    """The leader's node turns out to be in another rack: its followers are marked, and made again."""
    cluster.apply(
        exclusive("placed", replicated_job("w", "sleep infinity", 1, 3, backoffLimit=6), notes={TOPOLOGY: RACK})
    )
    wait_for(lambda: ready(cluster, "placed") == 1, "it runs")
    pods = {pod["metadata"]["uid"]: pod for pod in pods_of(cluster, "placed")}
    (leader,) = (pod for pod in pods.values() if pod["metadata"]["name"].startswith("placed-w-0-0-"))
    cluster.run("label", "node", leader["spec"]["nodeName"], f"{RACK}=elsewhere", "--overwrite")
    wait_for(lambda: len(pods.keys() & {p["metadata"]["uid"] for p in pods_of(cluster, "placed")}) == 1, "new ones")


def pods_of(cluster: Cluster, name: str) -> list[Object]:
    items: list[Object] = json.loads(cluster.run("get", "pods", "-l", f"{JOBSET_LABEL}={name}", "-o", "json"))["items"]
    return items


def lacks_class(cluster: Cluster) -> None:
    pod = replicated_job("w", "sleep 1")
    pod["template"]["spec"]["template"]["spec"]["priorityClassName"] = "late"
    cluster.apply(manifest("lacks", pod, scheduling=GANG))
    cluster.wait_true("Blocked", "lacks")
    cluster.apply(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "late"}, "value": 7}
    )
    cluster.wait_true("Completed", "lacks")


def meets_others(cluster: Cluster) -> None:
    """Each kind of object that it makes is there already, and somebody else's."""
    for kind, body in OTHERS.items():
        name = f"meets-{kind.lower()}"
        group = names.workload_name(cluster.namespace, name)
        taken = {"Service": name, "Job": f"{name}-w-0"}.get(kind, group)
        cluster.apply({"kind": kind, "metadata": {"name": taken}, **body})
        cluster.apply(manifest(name, replicated_job("w", "sleep 1"), scheduling=GANG))
        cluster.wait_true("Blocked", name)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-meets"}, "spec": spec}
    cluster.apply(claim)
    cluster.apply(stateful("meets"))
    cluster.wait_true("Blocked", "meets")


async def unlikely(kubeconfig: Path) -> None:
    """What the manager does when a race is lost or a server cannot stream lists: its own code, by hand."""
    async with connect(kubeconfig=str(kubeconfig)) as client:
        watches = Watches(
            client,
            features=gates.resolve({gates.WORKLOAD_AWARE_SCHEDULING: True}),
            namespace=None,
            queue=Queue(),
            pace=Pace(),
            refusals=Refusals(),
        )
        watches.add_pods()
        watches.add_nodes()
        watches.add_priority_classes()
        keeper = Keeper(client, Certificates(), NAMESPACE, Tls())
        await list_in_pages(*watches.caches.all(), keeper._secrets, *(cache for _, cache in keeper._configurations))
        await loses_races(client, watches.caches)


async def list_in_pages(*caches: Cache[Any]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        for cache in caches:
            cache._uses_pages = True
            running = asyncio.create_task(cache.run())
            await cache.wait_synced()
            running.cancel()


async def loses_races(client: Client, caches: Caches) -> None:
    jobset = await client.get(JOBSETS, "default", "placed")
    old = msgspec.structs.replace(jobset, metadata=msgspec.structs.replace(jobset.metadata, resource_version="1"))
    writer = Writer(client, caches, old)
    with pytest.raises(Raced):
        await writer.write_status(msgspec.structs.replace(jobset.status, restarts=7))
    assert caches.pods is not None
    leader = next(pod for pod in caches.pods if pod.metadata.name.startswith("placed-w-0-0-"))
    with pytest.raises(Raced):
        await writer.perform(Delete(PODS, leader.metadata.name, "another"))
    # A replica that has no pods and nodes in its caches asks for them.
    caches.pods = caches.nodes = None
    raw = json.loads(await client.raw("GET", f"/api/v1/namespaces/default/pods/{leader.metadata.name}"))
    sent = {
        "namespace": "default",
        "name": "placed-w-0-1-",
        "labels": raw["metadata"]["labels"],
        "annotations": {TOPOLOGY: RACK, INDEX: "1"},
        "job": raw["metadata"]["ownerReferences"][0]["name"],
        "ownerUid": raw["metadata"]["ownerReferences"][0]["uid"],
        "spec": {},
    }
    leaders, follower = Leaders(client, caches), msgspec.convert(sent, Placed)
    found = await leaders.leader(follower)
    assert found is not None
    assert (await leaders.node(found, RACK)).metadata.name == leader.spec.node_name
