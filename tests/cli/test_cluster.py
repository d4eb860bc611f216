"""What tree fetches and follows, on a model server in virtual time."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from pyjobset.cli import cluster
from pyjobset.cli.cluster import bounded, fetch, follow, hinting, plane_flag, plane_of
from pyjobset.cli.tree import show_changes
from pyjobset.cli.view import Family, view
from pyjobset.errors import NotFound, Refused, Unavailable
from pyjobset.kube.client import Client
from pyjobset.kube.requests import Request
from pyjobset.kube.responses import Response
from pyjobset.localplane.state import STATE
from pyjobset.simulation.clock import run
from tests.model_server import ModelServer, failure

LABEL = {"jobset.sigs.k8s.io/jobset-name": "js"}


def put(
    server: ModelServer, plural: str, name: str, owner: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": LABEL}
    if owner is not None:
        metadata["ownerReferences"] = [
            {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
        ]
    return server.put(plural, {"metadata": metadata, **more})


def with_children(server: ModelServer) -> dict[str, Any]:
    jobset = put(server, "jobsets", "js", spec={"replicatedJobs": []})
    put(server, "workloads", "w", jobset)
    put(server, "podgroups", "g", jobset)
    job = put(server, "jobs", "j", jobset)
    put(server, "pods", "p", job)
    return jobset


def names(family: Family) -> list[list[str]]:
    kinds: tuple[Any, ...] = (family.workloads, family.pod_groups, family.jobs, family.pods)
    return [[one.metadata.name for one in kind] for kind in kinds]


def fetched(server: ModelServer, name: str = "js", namespace: str = "ns") -> Family:
    return run(fetch(Client(server), namespace, name))


def test_the_children_of_a_jobset() -> None:
    server = ModelServer()
    with_children(server)
    assert names(fetched(server)) == [["w"], ["g"], ["j"], ["p"]]


def test_children_of_an_older_one_of_the_same_name_are_not_its() -> None:
    server = ModelServer()
    old = {"metadata": {"name": "js", "uid": "old"}}
    with_children(server)
    for plural in ("workloads", "podgroups", "jobs"):
        put(server, plural, f"old-{plural}", old)
    put(server, "pods", "stray")
    assert names(fetched(server)) == [["w"], ["g"], ["j"], ["p"]]


def test_a_cluster_without_the_scheduling_api() -> None:
    server = ModelServer(unserved={"workloads", "podgroups"})
    jobset = put(server, "jobsets", "js", spec={})
    put(server, "jobs", "j", jobset)
    assert names(fetched(server)) == [[], [], ["j"], []]


@pytest.mark.parametrize(
    ("name", "namespace", "hint"),
    [
        ("jss", "ns", "did you mean js?"),
        ("JS", "ns", "did you mean js?"),
        ("j" * 100_000, "ns", "namespace ns has js"),
        ("js", "other", "there is one in namespace ns: -n ns"),
        ("unlike", "ns", "namespace ns has js"),
        ("unlike", "empty", "namespace empty has none"),
    ],
)
def test_a_name_that_is_not_there(name: str, namespace: str, hint: str) -> None:
    server = ModelServer()
    put(server, "jobsets", "js", spec={})
    with pytest.raises(NotFound) as error:
        fetched(server, name, namespace)
    assert error.value.message == f"JobSet {namespace}/{name} not found"
    assert error.value.hint == hint


LIST = 'jobsets.jobset.x-k8s.io is forbidden: User "u" cannot list resource "jobsets" in API group "jobset.x-k8s.io"'


@pytest.mark.parametrize(
    ("may_list", "hint"),
    [("all", "there is one in namespace other: -n other"), ("its own", "did you mean jss?"), ("nothing", "")],
)
def test_a_name_that_is_not_there_for_who_may_not_look_everywhere(may_list: str, hint: str) -> None:
    """That a list is forbidden is no news: it was only to help."""

    def before(request: Request, plural: str) -> Response | None:
        is_list, is_own = request.path.endswith("/jobsets"), "/namespaces/" in request.path
        is_allowed = not is_list or may_list == "all" or (may_list == "its own" and is_own)
        return None if is_allowed or plural != "jobsets" else failure(403, "Forbidden", LIST)

    server = ModelServer(before=before)
    put(server, "jobsets", "jss", spec={})
    server.put("jobsets", {"metadata": {"name": "js", "namespace": "other"}, "spec": {}})
    with pytest.raises(NotFound) as error:
        fetched(server)
    assert (error.value.message, error.value.hint) == ("JobSet ns/js not found", hint)


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        (
            (
                'jobsets.jobset.x-k8s.io "js" is forbidden: User "u" cannot get resource "jobsets" in API group '
                '"jobset.x-k8s.io" in the namespace "ns"'
            ),
            "ask an administrator for that right; kubectl auth can-i get jobsets.jobset.x-k8s.io -n ns checks it",
        ),
        (
            LIST,
            (
                "ask an administrator for that right; kubectl auth can-i list jobsets.jobset.x-k8s.io --all-namespaces "
                "checks it"
            ),
        ),
        (
            'pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "ns"',
            "ask an administrator for that right; kubectl auth can-i list pods -n ns checks it",
        ),
        ("exceeded quota: small", "as it was"),
    ],
)
def test_a_right_that_is_missing(message: str, hint: str) -> None:
    with pytest.raises(Refused) as error, hinting(None):
        raise Refused(message, code=403, hint="as it was")
    assert error.value.hint == hint


def test_jobset_is_not_installed() -> None:
    with pytest.raises(Refused) as error:
        fetched(ModelServer(unserved={"jobsets"}))
    assert "JobSet is not installed" in error.value.message


def test_no_right_to_look_is_said() -> None:
    server = ModelServer(
        before=lambda _, plural: failure(403, "Forbidden", "no pods for you") if plural == "pods" else None
    )
    with_children(server)
    with pytest.raises(Refused, match="no pods for you"):
        fetched(server)


def test_changes_are_shown_until_the_end() -> None:
    """Each view once; changes within the same moment together; and no watch is left."""
    server = ModelServer()

    async def scene() -> list[str]:
        with_children(server)
        states: list[str] = []
        task = asyncio.create_task(
            show_changes(follow(Client(server), "ns", "js"), lambda now: states.append(f"{now.state} {now.restarts}"))
        )
        await asyncio.sleep(60)  # nothing happens, nothing is said
        server.change("jobsets", "js", {"status": {"restarts": 1}})
        await asyncio.sleep(1)
        server.change("jobsets", "js", {"status": {"restarts": 2}})
        server.change("jobsets", "js", {"status": {"restarts": 3}})
        await asyncio.sleep(1)
        server.change("jobsets", "js", {"status": {"terminalState": "Completed"}})
        last = await task
        assert last is not None
        assert last.is_finished
        return states

    states = run(scene())
    assert [state.split()[1] for state in states] == ["0", "1", "3", "3"]
    assert states[-1] == "Completed 3"
    assert server.open_watches == 0


def test_a_deleted_jobset_ends_it() -> None:
    server = ModelServer()

    async def scene() -> list[str]:
        with_children(server)
        families = follow(Client(server), "ns", "js")
        seen = [view(await anext(families)).state, view(await anext(families)).state]
        server.remove("jobsets", "js")
        return [*seen, *[view(family).state async for family in families]]

    assert len(run(scene())) == 2


def test_a_name_that_is_not_there_is_said_before_watching() -> None:
    async def scene() -> None:
        async with aclosing(follow(Client(ModelServer()), "ns", "js")) as families:
            with pytest.raises(NotFound):
                await anext(families)

    run(scene())


class Asked:
    """In the place of the local plane."""

    running = True

    def __init__(self) -> None:
        self.kubeconfig = Path(__file__)  # a file that exists

    def status(self) -> "Asked":
        return self


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("pyjobset.localplane.plane.Plane", Asked)
    monkeypatch.setattr(Asked, "running", True)
    return tmp_path


def test_the_local_plane_where_there_is_nothing_else(home: Path) -> None:
    assert cluster._plane_kubeconfig() == __file__


def test_not_a_plane_that_is_down(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Asked, "running", False)
    assert cluster._plane_kubeconfig() is None


def test_the_persons_own_cluster_comes_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".kube").mkdir()
    (home / ".kube" / "config").touch()
    assert cluster._plane_kubeconfig() is None
    (home / ".kube" / "config").unlink()
    monkeypatch.setenv("KUBECONFIG", "/some/where")
    assert cluster._plane_kubeconfig() is None


@pytest.mark.parametrize("is_plane", [True, False])
def test_a_cluster_that_does_not_answer_is_given_up_with_a_hint(tmp_path: Path, is_plane: bool) -> None:
    """As an API server whose etcd is gone: it takes the request, and half a minute."""
    kubeconfig = tmp_path / "kubeconfig"
    if is_plane:
        (tmp_path / STATE).write_text("{}")
    server = ModelServer(latency_seconds=40)

    async def tree() -> None:
        async with bounded():
            await fetch(Client(server), "ns", "js")

    with pytest.raises(Unavailable, match="did not answer in 15 seconds") as error, hinting(str(kubeconfig)):
        run(tree())
    repair = f"jobset up --dir {tmp_path} starts or repairs it"
    assert error.value.hint.endswith(repair if is_plane else "says what is wrong with it")


def test_the_hint_about_a_plane_is_to_start_it(tmp_path: Path) -> None:
    (tmp_path / STATE).write_text("{}")
    with pytest.raises(Unavailable) as error, hinting(str(tmp_path / "kubeconfig")):
        raise Unavailable("cannot connect", hint="is the API server running and reachable?")
    assert f"jobset up --dir {tmp_path} starts or repairs it" in error.value.hint


def test_the_plane_behind_a_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JOBSET_PLANE_DIR", str(tmp_path / "mine"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / STATE).write_text("{}")
    assert plane_of(None) == tmp_path / "mine"
    assert plane_flag(tmp_path / "mine") == ""
    assert plane_of(str(tmp_path / "other" / "kubeconfig")) == tmp_path / "other"
    assert plane_flag(tmp_path / "other") == str(tmp_path / "other")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "elsewhere" / "config"))
    assert plane_of(None) is None
