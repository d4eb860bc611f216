"""The model's store: versions, who owns what, and what listeners and watches are told."""

import json
from collections.abc import Callable

from pyjobset.objects.meta import Manifest
from pyjobset.simulation import clock
from pyjobset.simulation.store import Change, Name, Store

A, B = Name("jobs", "ns", "a"), Name("pods", "ns", "b")


def obj(name: Name, uid: str, *owners: str, **metadata: object) -> Manifest:
    references = [{"uid": owner} for owner in owners]
    return {
        "metadata": {"name": name.name, "namespace": name.namespace, "uid": uid, "ownerReferences": references}
        | metadata
    }


def in_time(case: Callable[[], None]) -> None:
    async def run() -> None:
        case()

    clock.run(run())


def test_each_write_has_a_version_and_is_told() -> None:
    def case() -> None:
        store, told = Store(), list[Change]()
        end = store.listen(told.append)
        first = store.put(A, obj(A, "1"))
        second = store.put(A, {**first, "spec": {"x": 1}})
        last = store.remove(A)
        end()
        store.put(A, obj(A, "2"))
        assert [o["metadata"]["resourceVersion"] for o in (first, second, last)] == ["1", "2", "3"]
        assert [(c.type, c.version) for c in told] == [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 3)]
        assert told[1].old is first
        assert told[2].object["spec"] == {"x": 1}

    in_time(case)


def test_objects_are_found_by_kind_namespace_uid_and_owner() -> None:
    def case() -> None:
        store = Store()
        store.put(A, obj(A, "1"))
        pod = store.put(B, obj(B, "2", "1"))
        assert [o["metadata"]["name"] for o in store.of("pods")] == ["b"]
        assert list(store.of("pods", "other")) == []
        assert store.with_uid("1") == A
        assert store.owned_by("1") == (B,)
        store.put(B, {**pod, "metadata": {**pod["metadata"], "ownerReferences": []}})
        assert store.owned_by("1") == ()
        store.remove(A)
        assert store.with_uid("1") is None
        assert store.get(A) is None

    in_time(case)


def test_what_leaves_a_selection_is_told_as_it_was_in_it() -> None:
    def case() -> None:
        store, told = Store(), list[Change]()
        store.listen(told.append)
        first = store.put(A, obj(A, "1", labels={"colour": "red"}))
        store.put(A, {**first, "metadata": {**first["metadata"], "labels": {"colour": "blue"}}})
        line = json.loads(told[1].line("DELETED"))
        assert line["object"]["metadata"]["labels"] == {"colour": "red"}
        assert line["object"]["metadata"]["resourceVersion"] == "2"
        assert json.loads(told[1].line("MODIFIED"))["object"]["metadata"]["labels"] == {"colour": "blue"}

    in_time(case)


def test_what_is_forgotten_is_older_than_the_store_knows() -> None:
    def case() -> None:
        store = Store()
        store.put(A, obj(A, "1"))
        assert store.oldest == 0
        store.compact()
        assert store.oldest == 1
        assert store.history == []
        store.put(B, obj(B, "2"))
        assert [change.version for change in store.history] == [2]

    in_time(case)


def test_a_change_says_who_made_it() -> None:
    def case() -> None:
        store = Store()
        with store.acting("somebody"):
            store.put(A, obj(A, "1"))
        store.remove(A)
        assert [change.actor for change in store.history] == ["somebody", "user"]

    in_time(case)
