"""The client and the cache on a real API server: every verb, the answers we interpret, restarts, plugins, pods."""

import asyncio
import base64
import contextlib
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from pyjobset.controller.events import event_body
from pyjobset.errors import JobSetError, NotFound, Raced, Refused, Unavailable, UsageError
from pyjobset.kube import cluster
from pyjobset.kube.cache import Cache
from pyjobset.kube.client import AlreadyExists, Client, Expired, connect
from pyjobset.kube.events import Bookmark, WatchEvent
from pyjobset.kube.transport import HttpTransport
from pyjobset.localplane.components import API_SERVER
from pyjobset.localplane.plane import Plane
from pyjobset.objects.batch import Job
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest, ObjectMeta
from pyjobset.objects.resources import EVENTS, JOBS, POD_GROUPS, SERVICES, WORKLOADS, Resource
from pyjobset.objects.scheduling import Gang, PodGroup, PodGroupSpec, SchedulingPolicy
from pyjobset.reconciler.decision import Event
from tests.server.plane import PATIENCE_SECONDS, MakePlane

UNSERVED: Resource[Job] = Resource("nowhere.example.com/v1", "things", "Thing", Job)
UNSERVED_IN_SERVED_GROUP: Resource[Job] = Resource("batch/v1", "things", "Thing", Job)


def job(name: str, **labels: str) -> Manifest:
    """Managed by nobody: no controller does anything about it."""
    containers = [{"name": "c", "image": "i"}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "managedBy": "example.com/nobody",
            "template": {"spec": {"restartPolicy": "Never", "containers": containers}},
        },
    }


def service(name: str) -> Manifest:
    return {"metadata": {"name": name}, "spec": {"clusterIP": "None"}}


def kill(plane: Plane, name: str) -> None:
    os.kill(next(part.pid for part in plane.status().components if part.name == name), signal.SIGKILL)


def on(plane: Plane, act: Callable[[Client], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with connect(kubeconfig=str(plane.kubeconfig)) as client:
            return await asyncio.wait_for(act(client), PATIENCE_SECONDS)

    return asyncio.run(main())


async def until(condition: Callable[[], Any], what: str) -> None:
    """As `wait_for`, on the event loop that the cache runs on."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():  # noqa: ASYNC110 - of the server's doing: there is no event to wait for
                await asyncio.sleep(0.02)
    except TimeoutError:
        pytest.fail(f"{what}: not after {PATIENCE_SECONDS} seconds")


@asynccontextmanager
async def running(cache: Cache[Any]) -> AsyncIterator[None]:
    task = asyncio.create_task(cache.run())
    try:
        await asyncio.wait_for(cache.wait_synced(), PATIENCE_SECONDS)
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


# Verbs


def test_create_get_patch_and_delete(plane: Plane, namespace: str) -> None:
    async def act(client: Client) -> None:
        made = await client.create(JOBS, namespace, job("a", x="1"))
        assert (made.metadata.name, made.metadata.namespace, made.spec.parallelism) == ("a", namespace, 1)
        assert await client.get(JOBS, namespace, "a") == made

        merged = await client.patch(JOBS, namespace, "a", {"spec": {"parallelism": 3}}, kind="merge")
        assert merged.spec.parallelism == 3
        assert int(merged.metadata.resource_version) > int(made.metadata.resource_version)

        replace = [
            {"op": "test", "path": "/metadata/uid", "value": made.metadata.uid},
            {"op": "replace", "path": "/spec/parallelism", "value": 4},
        ]
        assert (await client.patch(JOBS, namespace, "a", replace, kind="json")).spec.parallelism == 4

        status = {"status": {"active": 1, "ready": 1}}
        assert (await client.patch(JOBS, namespace, "a", status, kind="merge", subresource="status")).status.ready == 1

        deleted = await client.delete(JOBS, namespace, "a", uid=made.metadata.uid, propagation="Foreground")
        assert deleted is not None
        assert deleted.metadata.deletion_timestamp

    on(plane, act)


def test_a_struct_is_created_and_applied(plane: Plane, namespace: str) -> None:
    group = PodGroup(ObjectMeta(name="g"), PodGroupSpec(SchedulingPolicy(gang=Gang(2))))

    async def act(client: Client) -> None:
        made = await client.create(POD_GROUPS, namespace, group)
        assert made.spec.scheduling_policy == SchedulingPolicy(gang=Gang(2))
        larger = PodGroup(ObjectMeta(name="g"), PodGroupSpec(SchedulingPolicy(gang=Gang(3))))
        with pytest.raises(Raced, match="conflict"):
            await client.patch(POD_GROUPS, namespace, "g", larger, kind="apply", field_manager="another")
        applied = await client.patch(
            POD_GROUPS, namespace, "g", larger, kind="apply", field_manager="another", force=True
        )
        assert applied.spec.scheduling_policy == SchedulingPolicy(gang=Gang(3))

    on(plane, act)


def test_dry_run_creates_nothing_and_says_what_is_wrong(plane: Plane, namespace: str) -> None:
    async def act(client: Client) -> None:
        assert (await client.create(JOBS, namespace, job("a"), dry_run=True)).metadata.uid
        with pytest.raises(NotFound):
            await client.get(JOBS, namespace, "a")
        bad = job("a")
        bad["spec"]["template"]["spec"]["restartPolicy"] = "Always"
        with pytest.raises(Refused, match="restartPolicy") as raised:
            await client.create(JOBS, namespace, bad, dry_run=True)
        assert (raised.value.code, raised.value.reason) == (422, "Invalid")

    on(plane, act)


def test_delete_of_what_is_gone_at_once_returns_nothing(plane: Plane, namespace: str) -> None:
    async def act(client: Client) -> None:
        await client.create(JOBS, namespace, job("a"))
        assert await client.delete(JOBS, namespace, "a") is None  # answered with a Status
        await client.create(SERVICES, namespace, service("s"))
        assert await client.delete(SERVICES, namespace, "s") is None  # answered with the Service
        with pytest.raises(NotFound):
            await client.get(SERVICES, namespace, "s")

    on(plane, act)


def test_lists(plane: Plane, namespace: str) -> None:
    async def act(client: Client) -> None:
        for index in range(7):
            await client.create(JOBS, namespace, job(f"j{index}", parity=str(index % 2)))
        names = [found.metadata.name for found in await client.list(JOBS, namespace, page_size=3)]
        assert names == [f"j{index}" for index in range(7)]
        odd = await client.list(JOBS, namespace, label_selector="parity in (1)", page_size=2)
        assert [found.metadata.name for found in odd] == ["j1", "j3", "j5"]
        one = await client.list(JOBS, namespace, field_selector="metadata.name=j4")
        assert [found.metadata.name for found in one] == ["j4"]
        everywhere = {found.metadata.namespace for found in await client.list(JOBS)}
        assert namespace in everywhere

    on(plane, act)


def test_discovery(plane: Plane) -> None:
    async def act(client: Client) -> None:
        assert await client.serves("batch/v1", "jobs")
        assert await client.serves("v1", "pods")
        assert await client.serves(WORKLOADS.api_version, "workloads")
        assert not await client.serves("batch/v1", "things")
        assert not await client.serves("nowhere.example.com/v1", "things")
        assert json.loads(await client.raw("GET", "/version"))["gitVersion"].startswith("v1.")

    on(plane, act)


# Answers


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        pytest.param(lambda c, ns: c.create(JOBS, ns, job("there")), AlreadyExists, "already exists", id="taken"),
        pytest.param(lambda c, ns: c.get(JOBS, ns, "gone"), NotFound, '"gone" not found', id="get of nothing"),
        pytest.param(
            lambda c, ns: c.patch(JOBS, ns, "gone", {}, kind="merge"),
            NotFound,
            '"gone" not found',
            id="patch of nothing",
        ),
        pytest.param(lambda c, ns: c.delete(JOBS, ns, "gone"), Raced, '"gone" not found', id="delete of nothing"),
        pytest.param(
            lambda c, ns: c.delete(JOBS, ns, "there", uid="other"), Raced, "UID in the precondition", id="another uid"
        ),
        pytest.param(
            lambda c, ns: c.delete(JOBS, ns, "there", resource_version="1"),
            Raced,
            "ResourceVersion in the precondition",
            id="another version",
        ),
        pytest.param(
            lambda c, ns: c.patch(JOBS, ns, "there", {"metadata": {"resourceVersion": "1"}}, kind="merge"),
            Raced,
            "the object has been modified",
            id="stale patch",
        ),
        pytest.param(
            lambda c, ns: c.patch(
                JOBS, ns, "there", [{"op": "test", "path": "/metadata/uid", "value": "x"}], kind="json"
            ),
            Raced,
            "the server rejected our request",
            id="JSON patch whose test fails",
        ),
        pytest.param(
            lambda c, ns: c.patch(JOBS, ns, "there", [{"op": "remove", "path": "/spec/nothing/0"}], kind="json"),
            Raced,
            "the server rejected our request",
            id="JSON patch whose path is not there",
        ),
        pytest.param(
            lambda c, ns: c.patch(JOBS, ns, "there", {"metadata": {"uid": "other"}}, kind="merge"),
            Raced,
            "metadata.uid",
            id="patch of another uid",
        ),
        pytest.param(
            lambda c, ns: c.patch(JOBS, ns, "there", {"spec": {"completions": -1}}, kind="merge"),
            Refused,
            "spec.completions",
            id="invalid",
        ),
        pytest.param(
            lambda c, _: c.create(JOBS, "no-such-namespace", job("a")), Refused, "no-such-namespace", id="no namespace"
        ),
        pytest.param(lambda c, ns: c.list(UNSERVED, ns), Refused, "404 page not found", id="group not served"),
        pytest.param(
            lambda c, ns: c.list(UNSERVED_IN_SERVED_GROUP, ns), Refused, "could not find", id="resource not served"
        ),
        pytest.param(
            lambda c, ns: c.delete(UNSERVED_IN_SERVED_GROUP, ns, "a"),
            Refused,
            "could not find",
            id="delete, not served",
        ),
        pytest.param(lambda c, _: c.raw("GET", "/api/v1/pods?limit=x"), Refused, "strconv", id="bad request"),
    ],
)
def test_what_the_server_answers(
    plane: Plane, namespace: str, act: Callable[[Client, str], Awaitable[Any]], error: type[JobSetError], words: str
) -> None:
    async def main(client: Client) -> None:
        await client.create(JOBS, namespace, job("there"))
        with pytest.raises(JobSetError) as raised:
            await act(client, namespace)
        assert type(raised.value) is error
        assert words in raised.value.message

    on(plane, main)


def test_a_creation_in_the_place_of_what_is_being_deleted(plane: Plane, namespace: str) -> None:
    held = job("a")
    held["metadata"]["finalizers"] = ["example.com/held"]

    async def act(client: Client) -> None:
        await client.create(JOBS, namespace, held)
        assert await client.delete(JOBS, namespace, "a") is not None
        with pytest.raises(AlreadyExists, match="object is being deleted"):
            await client.create(JOBS, namespace, job("a"))
        await client.patch(JOBS, namespace, "a", {"metadata": {"finalizers": None}}, kind="merge")

    on(plane, act)


# Watches


def test_a_watch_from_a_list_and_from_a_version(plane: Plane, namespace: str) -> None:
    async def act(client: Client) -> None:
        made = await client.create(SERVICES, namespace, service("a"))
        async with aclosing(client.watch(SERVICES, namespace, is_streaming_list=True)) as events:
            first, end = await anext(events), await anext(events)
            assert isinstance(first, WatchEvent)
            assert (first.type, first.object) == ("ADDED", made)
            assert isinstance(end, Bookmark)
            assert end.ends_initial_list
            await client.delete(SERVICES, namespace, "a")
            gone = await anext(events)
            assert isinstance(gone, WatchEvent)
            assert (gone.type, gone.object.metadata.uid) == ("DELETED", made.metadata.uid)
            assert int(gone.object.metadata.resource_version) > int(made.metadata.resource_version)
        async with aclosing(client.watch(SERVICES, namespace, resource_version=end.resource_version)) as events:
            assert await anext(events) == gone

    on(plane, act)


# The cache


def test_the_cache_follows_the_server_and_our_own_writes(plane: Plane, namespace: str) -> None:
    told: dict[str, Job] = {}
    steps: list[tuple[str, str]] = []

    def on_change(old: Job | None, new: Job | None) -> None:
        one = new or old
        assert one is not None
        assert told.get(one.metadata.name) == old
        steps.append((one.metadata.name, "added" if old is None else "deleted" if new is None else "changed"))
        if new is None:
            del told[one.metadata.name]
        else:
            told[one.metadata.name] = new

    async def act(client: Client) -> None:
        owner = await client.create(SERVICES, namespace, service("o"))
        reference = {"apiVersion": "v1", "kind": "Service", "name": "o", "uid": owner.metadata.uid, "controller": True}
        owned = job("mine")
        owned["metadata"]["ownerReferences"] = [reference]
        await client.create(JOBS, namespace, job("before"))
        cache = Cache(client, JOBS, namespace=namespace, on_change=on_change)
        async with running(cache):
            assert [found.metadata.name for found in cache] == ["before"]
            made = await client.create(JOBS, namespace, owned)
            cache.wrote(made)
            assert list(cache.by_owner(namespace, owner.metadata.uid)) == [made]
            patched = await client.patch(JOBS, namespace, "mine", {"spec": {"parallelism": 2}}, kind="merge")
            cache.wrote(patched)
            assert cache.get(namespace, "mine") == patched
            assert await client.delete(JOBS, namespace, "mine", uid=made.metadata.uid) is None
            cache.deleted(namespace, "mine", made.metadata.uid)
            assert cache.get(namespace, "mine") is None
            await client.create(JOBS, namespace, job("last"))
            await until(lambda: "last" in told, "the watch to arrive")
            assert [found.metadata.name for found in cache] == ["before", "last"]
            assert [what for name, what in steps if name == "mine"] == ["added", "changed", "deleted"]

    on(plane, act)


def test_a_cache_of_an_api_that_is_not_served(plane: Plane) -> None:
    async def act(client: Client) -> None:
        cache = Cache(client, UNSERVED)
        async with running(cache):
            assert (cache.is_unserved, len(cache)) == (True, 0)

    on(plane, act)


def test_a_cache_with_a_label_selector(plane: Plane, namespace: str) -> None:
    async def act(client: Client) -> None:
        await client.create(JOBS, namespace, job("in", x="1"))
        await client.create(JOBS, namespace, job("out"))
        cache = Cache(client, JOBS, namespace=namespace, label_selector="x")
        async with running(cache):
            assert [found.metadata.name for found in cache] == ["in"]
            await client.patch(JOBS, namespace, "out", {"metadata": {"labels": {"x": "1"}}}, kind="merge")
            await client.patch(JOBS, namespace, "in", {"metadata": {"labels": {"x": None}}}, kind="merge")
            await until(lambda: [found.metadata.name for found in cache] == ["out"], "the labels to count")

    on(plane, act)


def test_an_api_server_that_is_killed_and_has_forgotten_the_past(make_plane: MakePlane) -> None:
    """The new API server's watch cache begins now: our version is too old (410), so the cache lists again."""
    plane = make_plane()

    async def main() -> None:
        added: list[str] = []
        deleted: list[str] = []

        def on_change(old: Job | None, new: Job | None) -> None:
            if old is None and new is not None:
                added.append(new.metadata.name)
            elif new is None and old is not None:
                deleted.append(old.metadata.name)

        async with connect(kubeconfig=str(plane.kubeconfig)) as client:
            await client.create(JOBS, "default", job("kept"))
            await client.create(JOBS, "default", job("gone"))
            cache = Cache(client, JOBS, on_change=on_change)
            async with running(cache):
                assert sorted(added) == ["gone", "kept"]
                added.clear()
                version = cache._mirror.version
                for index in range(5):  # the server moves on without a change of Jobs
                    await client.create(SERVICES, "default", service(f"s{index}"))
                kill(plane, API_SERVER)
                await until(lambda: isinstance(cache.problem, Unavailable), "the cache to lose its watch")
                with pytest.raises(Unavailable):
                    await client.create(JOBS, "default", job("never"))
                await asyncio.to_thread(plane.start)
                with pytest.raises(Expired, match="too old resource version"):
                    async with aclosing(client.watch(JOBS, resource_version=str(version))) as events:
                        await anext(events)
                await client.delete(JOBS, "default", "gone")
                await client.create(JOBS, "default", job("new"))
                await until(lambda: (added, deleted) == (["new"], ["gone"]), "the cache to be right again")
                assert sorted(found.metadata.name for found in cache) == ["kept", "new"]
                assert cache.problem is None

    asyncio.run(main())


def test_a_server_without_streaming_lists(make_plane: MakePlane) -> None:
    plane = make_plane(kubernetes_feature_gates={"WatchList": False})

    async def act(client: Client) -> None:
        for index in range(3):
            await client.create(JOBS, "default", job(f"j{index}"))
        cache = Cache(client, JOBS)
        async with running(cache):
            assert sorted(found.metadata.name for found in cache) == ["j0", "j1", "j2"]
            await client.delete(JOBS, "default", "j1")
            await until(lambda: cache.get("default", "j1") is None, "the deletion to arrive")

    on(plane, act)


# Who we are


def kubeconfig_with(plane: Plane, tmp_path: Path, user: Manifest) -> str:
    """The plane's kubeconfig with another user."""
    config = yaml.safe_load(Path(plane.kubeconfig).read_text())
    config["users"][0]["user"] = user
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def version_as(kubeconfig: str) -> str:
    async with connect(kubeconfig=kubeconfig) as client:
        await client.list(JOBS, "default")
        found = json.loads(await client.raw("POST", *who_am_i()))
        return str(found["status"]["userInfo"]["username"])


def who_am_i() -> tuple[str, bytes]:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    return "/apis/authentication.k8s.io/v1/selfsubjectreviews", json.dumps(body).encode()


def plugin(tmp_path: Path, status: Manifest) -> Manifest:
    """A plugin that prints the status and counts its runs."""
    printed = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    program = tmp_path / "plugin.py"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, os\n"
        f"open({str(tmp_path / 'runs')!r}, 'a').write('x')\n"
        "assert json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec']['interactive'] is False\n"
        f"print({json.dumps(printed)!r})\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"command": "./plugin.py", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}


def test_a_plugin_that_gives_a_certificate(plane: Plane, tmp_path: Path) -> None:
    user = yaml.safe_load(Path(plane.kubeconfig).read_text())["users"][0]["user"]
    pem = {key: base64.b64decode(user[f"{key}-data"]).decode() for key in ("client-certificate", "client-key")}
    status = {"clientCertificateData": pem["client-certificate"], "clientKeyData": pem["client-key"]}
    path = kubeconfig_with(plane, tmp_path, {"exec": plugin(tmp_path, status)})
    direct = asyncio.run(version_as(str(plane.kubeconfig)))
    assert asyncio.run(version_as(path)) == direct
    assert (tmp_path / "runs").read_text() == "x"


def test_a_plugin_that_gives_a_token_that_is_refused_is_asked_once_more(plane: Plane, tmp_path: Path) -> None:
    path = kubeconfig_with(plane, tmp_path, {"exec": plugin(tmp_path, {"token": "nonsense"})})
    with pytest.raises(Refused) as raised:
        asyncio.run(version_as(path))
    assert raised.value.code == 401
    assert "nonsense" not in raised.value.message
    assert (tmp_path / "runs").read_text() == "xx"


def test_a_plugin_that_is_not_there(plane: Plane, tmp_path: Path) -> None:
    exec_ = {"command": "./gone", "apiVersion": "client.authentication.k8s.io/v1", "installHint": "get it"}
    with pytest.raises(UsageError, match="cannot be started") as raised:
        asyncio.run(version_as(kubeconfig_with(plane, tmp_path, {"exec": exec_})))
    assert raised.value.hint == "get it"


def test_impersonation(plane: Plane, tmp_path: Path, namespace: str) -> None:
    user = yaml.safe_load(Path(plane.kubeconfig).read_text())["users"][0]["user"]
    path = kubeconfig_with(plane, tmp_path, user | {"as": "nobody", "as-groups": ["system:authenticated"]})

    async def main() -> None:
        async with connect(kubeconfig=path) as client:
            with pytest.raises(Refused, match='User "nobody" cannot list') as raised:
                await client.list(JOBS, namespace)
            assert (raised.value.code, raised.value.reason) == (403, "Forbidden")
            with pytest.raises(Refused, match='"nobody" cannot create'):
                await client.create(JOBS, namespace, job("a"))

    asyncio.run(main())


def test_in_a_pod_a_new_token_is_used_when_the_old_one_ends(plane: Plane, tmp_path: Path, namespace: str) -> None:
    """The files that the kubelet gives to a pod, made by hand. The right to list Jobs comes from a Role."""
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    role = {"metadata": {"name": "r"}, "rules": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list"]}]}
    binding = {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "sa", "namespace": namespace}],
    }

    async def act(client: Client) -> None:
        async def post(path: str, body: Manifest) -> Manifest:
            return json.loads(await client.raw("POST", path, json.dumps(body).encode()))  # type: ignore[no-any-return]

        await post(account, {"metadata": {"name": "sa"}})
        await post(f"{rbac}/roles", role)
        await post(f"{rbac}/rolebindings", binding)
        token = (await post(f"{account}/sa/token", {"spec": {"expirationSeconds": 600}}))["status"]["token"]
        admin = cluster.load(str(plane.kubeconfig))
        host, port = admin.server.removeprefix("https://").rsplit(":", 1)
        (tmp_path / "ca.crt").write_bytes(admin.authority)
        (tmp_path / "namespace").write_text(namespace)
        (tmp_path / "token").write_text("expired")
        environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        config = cluster.in_cluster(tmp_path, environment)
        async with Client(HttpTransport(config), namespace=config.namespace) as pod:
            with pytest.raises(Refused) as raised:
                await pod.list(JOBS, pod.namespace)
            assert raised.value.code == 401
            (tmp_path / "token").write_text(token)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not await may_list(pod):  # noqa: ASYNC110 - the API server hears of the RoleBinding later
                    await asyncio.sleep(0.05)
            assert await pod.list(JOBS, pod.namespace) == []
            with pytest.raises(Refused, match="cannot create"):
                await pod.create(JOBS, pod.namespace, job("a"))

    on(plane, act)


async def may_list(client: Client) -> bool:
    try:
        await client.list(JOBS, client.namespace)
    except Refused as error:
        if error.code != 403:
            raise
        return False
    return True


def test_an_unknown_authority(plane: Plane, tmp_path: Path) -> None:
    config = yaml.safe_load(Path(plane.kubeconfig).read_text())
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
        asyncio.run(version_as(str(path)))


def test_an_event_as_long_as_may_be_is_taken(plane: Plane) -> None:
    """Of the reason and the note that the API server counts in bytes, each is cut where it must be."""
    owner = JobSet(metadata=ObjectMeta(name="js", namespace="default", uid="u"))
    long = Event("Warning", "FailurePolicy_" + "r" * 128, "é" * 1024)
    now = datetime.now(UTC)
    body = event_body(owner, long, now, name=f"js.{now.timestamp():f}", instance="me")

    async def act(client: Client) -> None:
        for field, value in (("reason", "r" * 129), ("note", "é" * 512 + "x")):  # 1025 bytes
            with pytest.raises(Refused, match="can have at most"):
                await client.create(EVENTS, "default", body | {field: value})
        await client.create(EVENTS, "default", body)

    on(plane, act)
