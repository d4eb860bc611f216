"""What readers see of an object while our own writes and the watch overtake each other. All rules of kube.mirror."""

from collections.abc import Callable

import msgspec
import pytest

from pyjobset.kube.mirror import Mirror
from pyjobset.kube.store import OWNER, Key, Store, owner_key
from pyjobset.objects.batch import ChildMeta, Job

KEY = Key("ns", "a")
Change = tuple[int | None, int | None]


def job(version: int, uid: str = "u1", name: str = "a") -> Job:
    return Job(metadata=ChildMeta(name=name, namespace="ns", uid=uid, resource_version=str(version)))


def version(obj: Job | None) -> int | None:
    return None if obj is None else int(obj.metadata.resource_version)


class Seen:
    """A mirror that was told of `a` at version 10 in a list of version 20, and what it says since."""

    def __init__(self, listed: tuple[Job, ...] = (job(10),)) -> None:
        self.changes: list[Change] = []
        self.store: Store[Job] = Store({})
        self.mirror = Mirror(self.store, lambda old, new: self.changes.append((version(old), version(new))))
        self.list(20, *listed)
        self.changes.clear()

    def list(self, at: int, *objects: Job) -> None:
        self.mirror.begin_list()
        for obj in objects:
            self.mirror.told(obj)
        self.mirror.end_list(at)

    @property
    def shown(self) -> int | None:
        return version(self.store.get(KEY))


@pytest.mark.parametrize(
    ("wrote", "shown"),
    [
        pytest.param(9, 10, id="older than the object"),
        pytest.param(10, 10, id="the object itself"),
        pytest.param(15, 10, id="older than the watch: it has told what followed"),
        pytest.param(20, 10, id="as old as the watch"),
        pytest.param(21, 21, id="newer than all that was told"),
    ],
)
def test_a_write_is_shown_if_it_is_newer_than_all_that_was_told(wrote: int, shown: int) -> None:
    seen = Seen()
    seen.mirror.wrote(job(wrote))
    assert seen.shown == shown
    assert seen.changes == []


@pytest.mark.parametrize(
    ("told", "shown", "changes"),
    [
        pytest.param(22, 25, [(10, 22)], id="older than our write: reported, not shown"),
        pytest.param(25, 25, [(10, 25)], id="our write itself"),
        pytest.param(26, 26, [(10, 26)], id="newer"),
    ],
)
def test_an_event_after_a_write(told: int, shown: int, changes: list[Change]) -> None:
    seen = Seen()
    seen.mirror.wrote(job(25))
    seen.mirror.told(job(told))
    assert seen.shown == shown
    assert seen.changes == changes


def test_our_creation_is_added_once_when_the_watch_tells_it() -> None:
    seen = Seen(listed=())
    seen.mirror.wrote(job(25))
    assert (seen.shown, seen.changes) == (25, [])
    seen.mirror.told(job(25))
    seen.mirror.told(job(25))
    assert (seen.shown, seen.changes) == (25, [(None, 25)])


def test_a_deletion_that_was_told_before_the_answer_to_the_write_stays() -> None:
    seen = Seen()
    seen.mirror.told_deleted(KEY, 30)
    seen.mirror.wrote(job(25))
    assert (seen.shown, seen.changes) == (None, [(10, None)])


@pytest.mark.parametrize(
    ("deleted_at", "shown"),
    [pytest.param(24, 25, id="an earlier object of the name"), pytest.param(26, None, id="the one that we wrote")],
)
def test_a_deletion_after_a_write(deleted_at: int, shown: int | None) -> None:
    seen = Seen()
    seen.mirror.wrote(job(25, "u2"))
    seen.mirror.told_deleted(KEY, deleted_at)
    assert (seen.shown, seen.changes) == (shown, [(10, None)])


def test_the_later_of_two_answers_wins_in_any_order() -> None:
    seen = Seen()
    seen.mirror.wrote(job(26))
    seen.mirror.wrote(job(25))
    assert seen.shown == 26
    seen.mirror.wrote(job(27))
    assert seen.shown == 27


def test_what_we_deleted_is_hidden_until_the_watch_tells_its_end() -> None:
    seen = Seen()
    seen.mirror.deleted(KEY, "u1")
    assert (seen.shown, seen.changes) == (None, [])
    seen.mirror.told(job(23))  # a change before the deletion
    assert (seen.shown, seen.changes) == (None, [(10, 23)])
    seen.mirror.told_deleted(KEY, 24)
    assert (seen.shown, seen.changes) == (None, [(10, 23), (23, None)])
    seen.mirror.told(job(30, "u2"))
    assert (seen.shown, seen.changes[2:]) == (30, [(None, 30)])


def test_a_deletion_of_another_object_of_the_name_hides_nothing() -> None:
    seen = Seen()
    seen.mirror.deleted(KEY, "u0")
    assert seen.shown == 10


def test_a_late_answer_does_not_bring_back_what_we_deleted() -> None:
    seen = Seen()
    seen.mirror.deleted(KEY, "u1")
    seen.mirror.wrote(job(25))
    assert seen.shown is None


def test_deleted_and_created_again_before_the_watch_tells_either() -> None:
    seen = Seen()
    seen.mirror.deleted(KEY, "u1")
    seen.mirror.wrote(job(30, "u2"))
    assert seen.shown == 30
    seen.mirror.told_deleted(KEY, 29)
    assert seen.shown == 30
    seen.mirror.told(job(30, "u2"))
    assert (seen.shown, seen.changes) == (30, [(10, None), (None, 30)])


def test_created_and_deleted_before_the_watch_tells_either() -> None:
    seen = Seen()
    seen.mirror.wrote(job(30, "u2"))
    seen.mirror.deleted(KEY, "u2")
    seen.mirror.told_deleted(KEY, 29)  # of u1
    assert seen.shown is None
    seen.mirror.told(job(30, "u2"))
    assert seen.shown is None
    seen.mirror.told_deleted(KEY, 31)
    assert (seen.shown, seen.changes) == (None, [(10, None), (None, 30), (30, None)])
    seen.mirror.wrote(job(32, "u3"))
    assert seen.shown == 32


def test_an_earlier_object_is_not_shown_after_ours_was_created_and_deleted() -> None:
    seen = Seen()
    seen.mirror.wrote(job(30, "u2"))
    seen.mirror.deleted(KEY, "u2")
    seen.mirror.told(job(28, "u1"))
    assert (seen.shown, seen.changes) == (None, [(10, 28)])
    seen.mirror.wrote(job(29, "u1"))
    assert seen.shown is None


# Lists


@pytest.mark.parametrize(
    ("act", "at", "listed", "shown", "changes"),
    [
        pytest.param(lambda m: m.wrote(job(25)), 24, (job(10),), 25, [], id="our write is newer than the list"),
        pytest.param(lambda m: m.wrote(job(25)), 25, (job(25),), 25, [(10, 25)], id="our write is in the list"),
        pytest.param(lambda m: m.wrote(job(25)), 30, (), None, [(10, None)], id="our write was undone before the list"),
        pytest.param(
            lambda m: m.wrote(job(25)), 30, (job(28),), 28, [(10, 28)], id="our write was overwritten before the list"
        ),
        pytest.param(lambda m: m.deleted(KEY, "u1"), 30, (), None, [(10, None)], id="our deletion is in the list"),
        pytest.param(
            lambda m: m.deleted(KEY, "u1"),
            30,
            (job(30, "u2"),),
            30,
            [(10, None), (None, 30)],
            id="created again before the list",
        ),
    ],
)
@pytest.mark.parametrize("is_before", [True, False])
def test_a_list_after_or_around_a_write(
    act: Callable[[Mirror[Job]], None],
    at: int,
    listed: tuple[Job, ...],
    shown: int | None,
    changes: list[Change],
    is_before: bool,
) -> None:
    seen = Seen()
    if is_before:
        act(seen.mirror)
    seen.mirror.begin_list()
    if not is_before:
        act(seen.mirror)
    for obj in listed:
        seen.mirror.told(obj)
    seen.mirror.end_list(at)
    assert (seen.shown, seen.changes) == (shown, changes)


@pytest.mark.parametrize(
    ("is_before", "shown"),
    [
        pytest.param(True, 10, id="the list began after the answer: the object is there, whoever put it back"),
        pytest.param(False, None, id="the list may be older than the deletion"),
    ],
)
def test_a_list_that_still_has_what_we_deleted(is_before: bool, shown: int | None) -> None:
    seen = Seen()
    if is_before:
        seen.mirror.deleted(KEY, "u1")
    seen.mirror.begin_list()
    if not is_before:
        seen.mirror.deleted(KEY, "u1")
    seen.mirror.told(job(10))
    seen.mirror.end_list(22)
    assert (seen.shown, seen.changes) == (shown, [])


def test_a_list_that_ends_after_what_we_created_and_deleted_forgets_it() -> None:
    seen = Seen(listed=())
    seen.mirror.begin_list()
    seen.mirror.wrote(job(25))
    seen.mirror.deleted(KEY, "u1")
    seen.mirror.end_list(27)
    seen.mirror.told(job(28, "u2"))
    assert (seen.shown, seen.changes) == (28, [(None, 28)])


def test_a_list_tells_the_end_of_what_our_write_replaced() -> None:
    seen = Seen()
    seen.mirror.deleted(KEY, "u1")
    seen.mirror.wrote(job(30, "u2"))
    seen.list(27)
    assert (seen.shown, seen.changes) == (30, [(10, None)])


def test_a_list_reports_only_differences() -> None:
    seen = Seen(listed=(job(10), job(11, "u2", "b"), job(12, "u3", "c"), job(13, "u4", "d")))
    seen.list(40, job(10), job(31, "u2", "b"), job(35, "u5", "d"), job(36, "u6", "e"))
    assert sorted(seen.changes, key=str) == [(11, 31), (12, None), (13, None), (None, 35), (None, 36)]
    assert len(seen.store) == 4


def test_a_change_in_the_middle_of_a_list_counts() -> None:
    seen = Seen()
    seen.mirror.begin_list()
    seen.mirror.told(job(10))
    seen.mirror.told_deleted(KEY, 22)
    seen.mirror.end_list(22)
    assert (seen.shown, seen.changes) == (None, [(10, None)])


def test_an_object_that_cannot_be_read_any_more_stays_as_it_was() -> None:
    seen = Seen()
    seen.mirror.begin_list()
    seen.mirror.told_unreadable(KEY, 25)
    seen.mirror.end_list(30)
    assert (seen.shown, seen.changes) == (10, [])


def test_a_server_that_was_restored_from_a_backup_is_believed() -> None:
    seen = Seen(listed=(job(10), job(15, "u2", "b")))
    seen.mirror.wrote(job(25))
    seen.list(8, job(7))
    assert (seen.shown, seen.changes) == (7, [(10, 7), (15, None)])
    assert seen.mirror.version == 8
    seen.mirror.wrote(job(9))
    assert seen.shown == 9


# Bookmarks


def test_a_bookmark_moves_the_version_and_shows_no_change() -> None:
    seen = Seen()
    seen.mirror.told_version(33)
    assert (seen.mirror.version, seen.shown, seen.changes) == (33, 10, [])


def test_a_write_that_a_bookmark_passes_untold_is_outside_of_the_watch() -> None:
    seen = Seen(listed=())
    seen.mirror.wrote(job(25))
    seen.mirror.told_version(24)
    assert seen.shown == 25
    seen.mirror.told_version(25)
    assert (seen.shown, seen.changes) == (None, [])


# The store


def test_parts_that_siblings_have_in_common_are_held_once() -> None:
    text = b"""{"metadata": {"namespace": "ns", "name": "%s", "uid": "%s", "resourceVersion": "7",
        "labels": {"jobset.sigs.k8s.io/jobset-name": "training", "jobset.sigs.k8s.io/job-index": "%s"},
        "ownerReferences": [{"uid": "o1", "controller": true, "name": "training"}]}, "spec": {"parallelism": 3}}"""
    store: Store[Job] = Store({})
    for index in (b"0", b"1"):
        store.put(msgspec.json.decode(text % (b"w-" + index, b"u-" + index, index), type=Job))
    one, two = store.by_index(OWNER, owner_key("ns", "o1"))
    assert one.metadata.owner_references is two.metadata.owner_references
    assert one.metadata.labels.jobset_name is two.metadata.labels.jobset_name
    assert one.spec is two.spec
    assert (one.metadata.labels.job_index, two.metadata.labels.job_index) == ("0", "1")


def test_an_index_follows_a_changed_value_and_forgets_an_empty_one() -> None:
    store: Store[Job] = Store({"version": lambda obj: [obj.metadata.resource_version]})
    store.put(job(1))
    before = store.by_index("version", "1")
    store.put(job(2))
    assert [version(obj) for obj in before] == [1], "a snapshot stays as it was"
    assert not store.by_index("version", "1")
    assert [version(obj) for obj in store.by_index("version", "2")] == [2]
    assert list(store._indexes["version"]) == ["2"]
    store.remove(KEY)
    store.remove(KEY)
    assert not store.by_index("version", "2")
    assert (len(store), list(store), store.get(KEY)) == (0, [], None)
    assert not store._indexes["version"], "it would grow with every value that there ever was"
    assert not store._objects


def test_an_object_of_another_uid_replaces_the_old_one_in_every_index() -> None:
    store: Store[Job] = Store({"all": lambda _: ["x"]})
    store.put(job(1, "u1"))
    store.put(job(2, "u2"))
    assert [version(obj) for obj in store.by_index("all", "x")] == [2]


def test_what_came_and_went_between_two_lists_is_told() -> None:
    """Only our own write showed it. Who waits for its end would wait for ever."""
    seen = Seen(listed=())
    seen.mirror.wrote(job(21))
    assert seen.changes == []
    seen.list(30)
    assert (seen.shown, seen.changes) == (None, [(None, 21), (21, None)])
